"""Attention of one real head read in the right and in the wrong layout of RoPE's pairs."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.heat_map import HeatMap
from transformer_parts.draw.rope_layout import DIFFERENCE, READ, RIGHT
from transformer_parts.draw.view import View


@dataclass(frozen=True)
class HeadReadings:
    """One head over one passage, as trained and as read.

    Attributes
    ----------
    right, read : ndarray, shape (L, L)
        Attention weights; row i is the query's.
    differences : ndarray, shape (L, L)
        Score as read minus score as trained.
    rms : ndarray, shape (L,)
        Their root mean square at each distance i − j.
    spread : float
        Standard deviation of the head's right scores over all i ≥ j.
    moved : ndarray, shape (L,)
        Total variation between the two rows of weights of each query.
    query : int
        The query that is looked at.
    """

    right: NDArray
    read: NDArray
    differences: NDArray
    rms: NDArray
    spread: float
    moved: NDArray
    query: int


class HeadReadingsView(View[HeadReadings]):
    """Top, both matrices of weights, a row for each query, the darker the larger (by the square root).

    Bottom left, the weights of the framed row: as trained upwards, as read downwards.  Bottom right, by how much the
    scores differ at each distance: every pair of tokens as a dot, their root mean square as a line.
    """

    size = (680, 520)

    def build(self) -> None:
        self.right_axes, self.right_map, self.right_frame = self._map(0.075, r"$a$", RIGHT)
        self.read_axes, self.read_map, self.read_frame = self._map(0.585, r"$\hat{a}$", READ)

        self.weight_axes = theme.style(self.fig.add_axes((0.075, 0.115, 0.40, 0.30)), x="$j$")
        self.weight_axes.set_ylim(-1.05, 1.05)
        self.weight_axes.set_yticks([-1, -0.5, 0, 0.5, 1], labels=["1", "0.5", "0", "0.5", "1"])
        self.weight_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        (here,) = self.weight_axes.plot([], [], color=theme.INK, linewidth=theme.THIN, linestyle=":")
        self.here = self.moving(here)
        self.right_stems, self.read_stems = self._stems(RIGHT), self._stems(READ)

        self.error_axes = theme.style(self.fig.add_axes((0.585, 0.115, 0.40, 0.30)), x="$i-j$")
        self.error_axes.text(
            0.02, 0.98, r"$|\hat{s}-s|$", fontsize=theme.SYMBOL, color=theme.INK, va="top", zorder=5,
            transform=self.error_axes.transAxes,
        )  # fmt: skip
        (dots,) = self.error_axes.plot([], [], color=theme.FAINT, linestyle="", marker=".", markersize=2.5, zorder=1)
        (spread,) = self.error_axes.plot([], [], color=theme.INK, linewidth=theme.THIN, linestyle="--", zorder=2)
        (rms,) = self.error_axes.plot([], [], color=DIFFERENCE, linewidth=theme.LINE, zorder=3)
        self.dots, self.spread, self.rms = map(self.moving, (dots, spread, rms))

    def _map(self, left: float, symbol: str, colour: str) -> tuple[Axes, HeatMap, Line2D]:
        axes = theme.style(self.fig.add_axes((left, 0.515, 0.345, 0.4512)), grid=False)
        axes.text(1.03, 0.93, symbol, fontsize=theme.SYMBOL + 3, color=colour, transform=axes.transAxes)
        axes.text(-0.13, 0.46, "$i$", fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        cells = self.moving(HeatMap(axes))
        (box,) = axes.plot([], [], color=theme.INK, linewidth=theme.THIN, zorder=5, clip_on=False)
        return axes, cells, self.moving(box)

    def _stems(self, colour: str) -> Line2D:
        (stems,) = self.weight_axes.plot([], [], color=colour, linewidth=2.4, solid_capstyle="butt", zorder=3)
        return self.moving(stems)

    def update(self, data: HeadReadings) -> Self:
        length, i = len(data.right), data.query
        for axes, cells, weights, sign, box in (
            (self.right_axes, self.right_map, data.right, -1, self.right_frame),
            (self.read_axes, self.read_map, data.read, 1, self.read_frame),
        ):
            self.limits(axes, x=(-0.5, length - 0.5), y=(length - 0.5, -0.5))
            # The negative side of the map is blue, the positive red, as the readings are.
            cells.set_cells(sign * np.sqrt(weights), 1.0)
            ends = (-0.5, length - 0.5)
            box.set_data([ends[0], ends[1], ends[1], ends[0], ends[0]], i + np.array([-0.6, -0.6, 0.6, 0.6, -0.6]))
        self.limits(self.weight_axes, x=(-1, length))
        places = np.arange(i + 1)
        for stems, weights, sign in ((self.right_stems, data.right[i], 1), (self.read_stems, data.read[i], -1)):
            heights = np.zeros((i + 1, 3))
            heights[:, 1], heights[:, 2] = sign * weights[: i + 1], np.nan
            stems.set_data(np.repeat(places, 3), heights.reshape(-1))
        self.here.set_data([i, i], [-1.05, 1.05])
        rows, columns = np.tril_indices(length)
        sizes = np.abs(data.differences[rows, columns])
        top = 5 * np.ceil(1.02 * max(sizes.max(), data.spread) / 5)
        self.limits(self.error_axes, x=(-1, length), y=(-0.02 * top, top))
        self.dots.set_data(rows - columns, sizes)
        self.rms.set_data(np.arange(length), data.rms)
        self.spread.set_data([-1, length], [data.spread] * 2)
        return self
