"""Measured loss by position, within and beyond the trained length, by method of context extension."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

FEWEST, MOST = 1.5, 8.0
#: Half heights of the axes for differences.
REACHES = (0.25, 1.0, 6.0)


@dataclass(frozen=True, kw_only=True)
class LossByPosition:
    """The mean loss of each block of positions.

    Attributes
    ----------
    block, trained_length : int
        Positions in a block, and of the training.
    losses : mapping of str to ndarray, shape (N,)
        By method, in nats a token.
    method, beside : str
        The method drawn in blue, and the one in black.
    relative : bool
        Whether what is drawn in black is taken away from all.
    """

    block: int
    trained_length: int
    losses: Mapping[str, NDArray]
    method: str
    beside: str
    relative: bool


class LossView(View[LossByPosition]):
    """Blue dots: the chosen method; black: the one it is held against; grey lines: the others.

    The ground is grey where training had not been.
    """

    size = (680, 400)

    def build(self) -> None:
        self.axes = theme.style(self.fig.add_axes((0.1, 0.145, 0.86, 0.83)), x="$m$", y=r"$-\ln p$")
        self.axes.yaxis.set_label_coords(-0.07, 0.5)
        self.axes.set_xticks(range(0, 16385, 2048), [f"{place:,}" for place in range(0, 16385, 2048)])
        self.unseen = self.moving(
            self.axes.axvspan(0, 1, facecolor=theme.GRID, edgecolor="none", alpha=0.75, zorder=0.6)
        )
        others = LineCollection([], colors=theme.FAINT, linewidths=1.0, zorder=2)
        self.others = self.moving(self.axes.add_collection(others, autolim=False))
        self.zero = self.moving(self.axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN, linestyle=":"))
        self.beside, self.chosen = (
            self.moving(
                self.axes.plot([], [], color=colour, marker=marker, markersize=size, linewidth=width, zorder=3)[0]
            )
            for colour, marker, size, width in ((theme.INK, "", 0, theme.LINE), (theme.FIRST, "o", 5, theme.LINE))
        )

    def update(self, data: LossByPosition) -> Self:
        count = len(data.losses[data.method])
        places = data.block * (np.arange(count) + 0.5)
        end = data.block * count
        chosen, beside, lowest, highest = data.losses[data.method], data.losses[data.beside], FEWEST, MOST
        base = beside if data.relative else np.zeros(count)
        if data.relative:
            farthest = np.abs(chosen - beside).max()
            highest = next((reach for reach in REACHES if farthest < 0.95 * reach), REACHES[-1])
            lowest = -highest
        # The limits tell the two kinds of picture apart, so that each background keeps its own label.
        self.axes.set_ylabel(r"$-\Delta\,\ln p$" if data.relative else r"$-\ln p$")
        self.limits(self.axes, x=(0, end), y=(lowest, highest))
        self.unseen.set(x=data.trained_length, width=max(0, end - data.trained_length))
        self.zero.set_visible(data.relative)
        self.others.set_segments(
            [
                np.stack([places, losses - base], axis=-1)
                for name, losses in data.losses.items()
                if name not in (data.method, data.beside)
            ]
        )
        self.beside.set_data(places, beside - base)
        self.chosen.set_data(places, chosen - base)
        return self
