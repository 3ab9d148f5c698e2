"""What a change at one position does to the outputs of all: of a feed-forward layer, and of causal attention."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.ticker import FixedLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.heat_map import HeatMap
from transformer_parts.draw.view import View


@dataclass(frozen=True)
class Changes:
    """Differences that a change of one position's input makes, each of shape (L, D).

    Attributes
    ----------
    of_input, of_feedforward, of_attention : ndarray, shape (L, D)
        In the input, in the output of the feed-forward layer, and in that of causal attention.
    position : int
        The position that was changed.
    """

    of_input: NDArray
    of_feedforward: NDArray
    of_attention: NDArray
    position: int


class ChangesView(View[Changes]):
    """Three heat maps side by side, a row to a position and a column to a channel."""

    size = (680, 330)
    positions = 8
    symbols = (r"$\Delta x$", r"$\Delta\,\mathrm{FFN}(x)$", r"$\Delta\,\mathrm{Attn}(x)$")

    def build(self) -> None:
        self.maps = []
        self.rings = []
        for i, symbol in enumerate(self.symbols):
            axes = theme.style(self.fig.add_axes((0.075 + 0.312 * i, 0.09, 0.285, 0.79)), grid=False)
            axes.set_xlim(0, 1)
            axes.set_ylim(self.positions - 0.5, -0.5)
            axes.xaxis.set_major_locator(FixedLocator([]))
            axes.yaxis.set_major_locator(FixedLocator(range(self.positions)))
            axes.tick_params(labelleft=i == 0)
            axes.set_title(symbol, fontsize=theme.SYMBOL, color=theme.INK, pad=6)
            axes.text(
                1.0, -0.025, "$d$", fontsize=theme.SYMBOL, color=theme.INK, ha="right", va="top",
                transform=axes.transAxes,
            )  # fmt: skip
            if i == 0:
                axes.text(
                    -0.03, -0.025, "$t$", fontsize=theme.SYMBOL, color=theme.INK, ha="right", va="top",
                    transform=axes.transAxes,
                )  # fmt: skip
            self.maps.append(self.moving(HeatMap(axes)))
            (ring,) = axes.plot([], [], color=theme.INK, linewidth=theme.LINE, zorder=6, clip_on=False)
            self.rings.append(self.moving(ring))

    def update(self, data: Changes) -> Self:
        low, high = data.position - 0.5, data.position + 0.5
        for cells, ring, change in zip(
            self.maps, self.rings, (data.of_input, data.of_feedforward, data.of_attention), strict=True
        ):
            cells.set_cells(change, float(np.abs(change).max()))
            ring.set_data([0, 1, 1, 0, 0], [low, low, high, high, low])
        return self
