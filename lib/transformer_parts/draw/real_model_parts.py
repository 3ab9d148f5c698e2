"""What a passage loses with one part broken, and the gates of one layer."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.maths.activations import silu


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Losses by token with and without a part, and how a layer's gates are spread.

    Attributes
    ----------
    trained, broken : ndarray, shape (L − 1,)
        The loss of tokens 1, 2, …, in nats.
    token : int
        The chosen token, from 1.
    edges : ndarray, shape (C + 1,)
        Edges of the classes of gates before the activation.
    all_gates, token_gates : ndarray, shape (C,)
        Shares of the layer's gates in each class: over all tokens, and of the chosen one.
    all_shares, token_shares : ndarray, shape (2,)
        Shares of the gates after the activation that are below 0, and above 1.
    """

    trained: NDArray
    broken: NDArray
    token: int
    edges: NDArray
    all_gates: NDArray
    token_gates: NDArray
    all_shares: NDArray
    token_shares: NDArray


class PartsView(View[Parts]):
    """Above, the loss of each token, blue dots as trained, red squares with the part broken; below, gates.

    Below, grey: the share of the layer's gates x·W_gate in each class, over all tokens; blue: the chosen token's;
    gold, on the right-hand scale: what SiLU makes of them.
    """

    size = (680, 460)

    def build(self) -> None:
        self.loss_axes = theme.style(self.fig.add_axes((0.095, 0.60, 0.82, 0.375)), x="$t$", y=r"$-\ln p$")
        self.gate_axes = theme.style(self.fig.add_axes((0.095, 0.13, 0.82, 0.32)), x="$g$", y="%")
        self.gate_axes.set(xlim=(-6.05, 6.05), ylim=(0, 16))
        self.silu_axes = theme.style(self.gate_axes.twinx(), grid=False, y=r"$\mathrm{SiLU}(g)$")
        self.silu_axes.set(ylim=(-0.8, 6.4), facecolor="none")
        self.silu_axes.spines["right"].set_visible(True)
        self.silu_axes.yaxis.set_label_position("right")
        self.silu_axes.yaxis.tick_right()
        gates = np.linspace(-6, 6, 241)
        self.silu_axes.plot(gates, silu(gates), color=theme.THIRD, linewidth=theme.LINE, linestyle="--")
        self.silu_axes.axhline(0, color=theme.THIRD, linewidth=0.6, linestyle=":")
        self.loss_axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
        for axes in (self.loss_axes, self.gate_axes):
            axes.yaxis.set_label_coords(-0.065, 0.5)
        self.cursor = self.moving(
            self.loss_axes.axvline(1, color=theme.FAINT, linewidth=theme.THIN, linestyle="--", zorder=1)
        )
        self.broken, self.trained = (
            self.moving(
                self.loss_axes.plot(
                    [], [], color=colour, marker=theme.MARKERS[colour], markersize=5, linewidth=theme.THIN, zorder=3
                )[0]
            )
            for colour in (theme.SECOND, theme.FIRST)
        )
        self.all_gates = self.moving(self.gate_axes.stairs([0.0], [0.0, 1.0], fill=True, color=theme.FAINT, alpha=0.6))
        self.token_gates = self.moving(self.gate_axes.stairs([0.0], [0.0, 1.0], color=theme.FIRST, linewidth=1.5))

    def update(self, data: Parts) -> Self:
        tokens = np.arange(1, len(data.trained) + 1)
        highest = max(float(data.trained.max()), float(data.broken.max()))
        self.limits(self.loss_axes, x=(0.5, tokens[-1] + 0.5), y=(-0.5, 8 * np.ceil((highest + 0.5) / 8)))
        self.cursor.set_xdata([data.token, data.token])
        self.trained.set_data(tokens, data.trained)
        self.broken.set_data(tokens, data.broken)
        self.all_gates.set_data(100 * data.all_gates, data.edges)
        self.token_gates.set_data(100 * data.token_gates, data.edges)
        largest = 100 * max(float(data.all_gates.max()), float(data.token_gates.max()))
        self.limits(self.gate_axes, y=(0, 8 * np.ceil(1.05 * largest / 8)))
        return self
