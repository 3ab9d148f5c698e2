"""The loss of each token of a passage with a part of the model broken, and the gates of a layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.real_model.words import LETTER, written
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.activations import silu


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Losses by token with and without a part, and how a layer's gates are spread."""

    trained: NDArray  # trained, broken (L − 1,): the loss of tokens 1, 2, …, in nats
    broken: NDArray
    token: int  # the chosen token, from 1
    edges: NDArray  # (C + 1,): edges of the classes of gates before the activation
    # all_gates, token_gates (C,): shares of the layer's gates in each class: over all tokens, and of the chosen one
    all_gates: NDArray
    token_gates: NDArray
    # all_shares, token_shares (2,): shares of the gates after the activation that are below 0, and above 1
    all_shares: NDArray
    token_shares: NDArray
    tokens: Sequence[str]  # the passage
    title: str  # what is broken


class RealModelPartsView(View[Parts]):
    """Above, the loss of each token, blue dots as trained, red squares with the part broken; below, gates.

    Below, grey: the share of the layer's gates x·W_gate in each class, over all tokens; blue: the chosen token's;
    gold, on the right-hand scale: what SiLU makes of them.
    """

    size = (680, 460)

    def build(self) -> None:
        self.loss_axes = theme.style(self.fig.add_axes((0.095, 0.615, 0.82, 0.315)), x="$t$", y=r"$-\ln p$")
        self.gate_axes = theme.style(self.fig.add_axes((0.095, 0.13, 0.82, 0.32)), x="$g$", y="%")
        self.gate_axes.set(xlim=(-6.05, 6.05), ylim=(0, 16))
        self.silu_axes = theme.style(self.gate_axes.twinx(), grid=False, y=r"$\mathrm{SiLU}(g)$")
        self.silu_axes.set(ylim=(-0.8, 6.4), facecolor="none")
        for side, spine in self.silu_axes.spines.items():
            spine.set_visible(side == "right")
        self.silu_axes.yaxis.set_label_position("right")
        self.silu_axes.yaxis.tick_right()
        gates = np.linspace(-6, 6, 241)
        # Lies over the gates, which move.
        (curve,) = self.silu_axes.plot(gates, silu(gates), color=theme.THIRD, linewidth=theme.LINE, linestyle="--")
        for line in (curve, self.silu_axes.axhline(0, color=theme.THIRD, linewidth=0.6, linestyle=":")):
            self.moving(line)
        # Words stand where the numbers of the tokens would be.
        self.loss_axes.tick_params(labelbottom=False)
        self.loss_axes.xaxis.set_label_coords(1.02, 0.03)
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
        self.shows = {"trained": (self.trained,), "broken": (self.broken,)}
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

    def grips(self, data):
        return {"token": self.grip(self.loss_axes, data.token, 0.85 * self.loss_axes.get_ylim()[1], anywhere=True)}

    def words(self, data):
        (left, right), top = self.loss_axes.get_xlim(), self.loss_axes.get_ylim()[1]
        yield self.word(_("as trained"), self.loss_axes, left, top, theme.FIRST, up=10)
        yield self.word(data.title, self.loss_axes, left + 0.18 * (right - left), top, theme.SECOND, up=10)
        yield from self._tokens(data)
        top = self.gate_axes.get_ylim()[1]
        yield self.word(_("gates of all tokens"), self.gate_axes, -6, top, theme.FAINT, up=-8)
        yield self.word(written(data.tokens[data.token]), self.gate_axes, -6, top, theme.FIRST, up=-24)

    def _tokens(self, data: Parts) -> Iterator[Word]:
        """Write as many tokens below the axis as there is room for in two lines, the chosen one first."""
        filled: list[list[tuple[float, float]]] = [[], []]
        for i in (data.token, *(i for i in range(1, len(data.tokens)) if i != data.token)):
            text = written(data.tokens[i])
            (x, y), half = self.at(self.loss_axes, i, self.loss_axes.get_ylim()[0]), (LETTER * len(text) + 8) / 2
            for line, taken in enumerate(filled):
                if all(x + half <= low or high <= x - half for low, high in taken):
                    taken.append((x - half, x + half))
                    colour = theme.FIRST if i == data.token else theme.FAINT
                    yield Word(text, x, y + 13 + 15 * line, colour, "on")
                    break
