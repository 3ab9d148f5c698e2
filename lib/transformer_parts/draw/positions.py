"""The sinusoidal table as a heat map, two of its rows, and their inner product against the shift."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap
from transformer_parts.draw.view import View
from transformer_parts.language import _

HERE, SHIFTED, PRODUCT = theme.FIRST, theme.SECOND, theme.THIRD


@dataclass(frozen=True)
class Table:
    """A sinusoidal table, a position p in it and another, p + k."""

    table: NDArray  # (L, D): the vectors of the positions 0 … L − 1
    shifts: NDArray  # (N,): k, from −(L − 1) to L − 1
    products: NDArray  # (N,): PE[p]·PE[p + k] for each shift, at any p
    position: int  # position, shift: p and k
    shift: int
    here: NDArray  # here, moved (D,): PE[p] and PE[p + k]
    moved: NDArray
    wavelengths: tuple[float, float]  # of the first and the last pair of channels, in positions

    @property
    def product(self) -> float:
        """The inner product of the two vectors, computed from them."""
        return float(self.here @ self.moved)


class PositionTableView(View[Table]):
    """Above, the table: positions to the right, channels downwards; below, the inner product against the shift.

    Frames mark p and p + k.  The diamond is computed from the two columns, the curve from the shift alone.
    """

    size = (680, 500)

    def build(self) -> None:
        self.table_axes = theme.style(self.fig.add_axes((0.1, 0.55, 0.88, 0.395)), x="$p$", y="$c$", grid=False)
        self.curve_axes = theme.style(self.fig.add_axes((0.1, 0.115, 0.88, 0.305)), x="$k$", y=r"$PE_p \cdot PE_{p+k}$")
        for axes in (self.table_axes, self.curve_axes):
            axes.yaxis.set_label_coords(-0.065, 0.5)
            axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        self.curve_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.cells = self.moving(HeatMap(self.table_axes))
        # White under the dashed frame sets it off from cells as red as itself.
        self.moved_ground = self._line(
            self.table_axes, color=theme.PAPER, linewidth=2 * theme.LINE + 0.5, clip_on=False, zorder=4.5
        )
        self.here_frame = self._line(self.table_axes, color=HERE, linewidth=theme.LINE, clip_on=False, zorder=5)
        self.moved_frame = self._line(
            self.table_axes, color=SHIFTED, linewidth=theme.LINE, clip_on=False, zorder=5, linestyle=(0, (3, 1.5))
        )
        self.symbols = [
            self.moving(
                self.table_axes.text(
                    0, 1.015, symbol, color=colour, fontsize=theme.SYMBOL, va="bottom", ha="center",
                    transform=self.table_axes.get_xaxis_transform(),
                )
            )
            for symbol, colour in (("$p$", HERE), ("$p+k$", SHIFTED))
        ]  # fmt: skip
        self.curve = self._line(self.curve_axes, color=PRODUCT, linewidth=theme.LINE, zorder=3)
        self.half = self._line(self.curve_axes, color=theme.INK, linewidth=theme.THIN, linestyle="--", zorder=2)
        self.marker = self._line(
            self.curve_axes, color=PRODUCT, marker="D", markersize=10, markeredgecolor=theme.INK, zorder=6
        )

    def _line(self, axes, **look) -> Line2D:
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: Table) -> Self:
        length, width = data.table.shape
        self.limits(self.table_axes, x=(-0.5, length - 0.5), y=(width - 0.5, -0.5))
        top = width / 2
        low = -0.45 * top if data.products.min() > -0.42 * top else -1.1 * top
        self.limits(self.curve_axes, x=(data.shifts[0] - 0.5, data.shifts[-1] + 0.5), y=(low, 1.1 * top))
        self.cells.set_cells(data.table.T, 1.0)
        places = (data.position, data.position + data.shift)
        frames = (self.here_frame, self.moved_ground, self.moved_frame)
        for frame, place in zip(frames, (places[0], places[1], places[1]), strict=True):
            # Never so narrow that it covers its column.
            half = max(0.5, 0.004 * length)
            left, right = place - half, place + half
            frame.set_data([left, right, right, left, left], [-0.5, -0.5, width - 0.5, width - 0.5, -0.5])
            frame.set_visible(0 <= place < length)
        apart = abs(data.shift) > 0.06 * length
        for text, place, shown in zip(self.symbols, places, (True, apart), strict=True):
            text.set_position((place, 1.015))
            text.set_visible(shown and 0 <= place < length)
        self.curve.set_data(data.shifts, data.products)
        self.half.set_data([data.shifts[0], data.shifts[-1]], [top, top])
        self.marker.set_data([data.shift], [data.product])
        return self

    def grips(self, data):
        return {
            "position": self.grip(self.table_axes, data.position, len(data.here) / 2, anywhere=True),
            "shift": self.grip(self.curve_axes, data.shift, data.product, anywhere=True),
        }


MOVED, WANTED, ERROR = theme.FIRST, theme.SECOND, theme.THIRD
LEAST = 1e-18


@dataclass(frozen=True)
class Shifted:
    """A shift matrix and what it makes of one position's vector, and of all."""

    matrix: NDArray  # (D, D): the matrix
    moved: NDArray  # moved, wanted (D,): M PE[p], and the vector of the position that it should give
    wanted: NDArray
    errors: NDArray  # (L,): largest entry of the difference, at the positions 0 … L − 1
    position: int  # p
    shift: int  # shift, tested: the k of the matrix, and the k that it is tried for
    tested: int
    distance_from_orthogonal: float  # largest entry of M Mᵀ − I


class ShiftMatrixView(View[Shifted]):
    """Top left, the matrix; top right, what it gives (dots) on what it should (squares), channel by channel.

    Below, the error at every position on a logarithmic scale; the dashed line is 1e-12.
    """

    size = (680, 500)

    def build(self) -> None:
        self.matrix_axes = theme.style(self.fig.add_axes((0.085, 0.53, 0.325, 0.442)), grid=False)
        self.matrix_axes.text(
            1.03, 0.93, "$M_k$", fontsize=theme.SYMBOL + 2, color=theme.INK, transform=self.matrix_axes.transAxes
        )
        self.cells = self.moving(HeatMap(self.matrix_axes))
        self.vector_axes = theme.style(self.fig.add_axes((0.575, 0.53, 0.405, 0.442)), x="$c$")
        self.vector_axes.set_ylim(-1.15, 1.15)
        self.vector_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.error_axes = theme.style(self.fig.add_axes((0.13, 0.115, 0.85, 0.275)), x="$p$", y=r"$\|\Delta\|_\infty$")
        self.error_axes.set(yscale="log", ylim=(LEAST / 3, 10), yticks=[1e-16, 1e-12, 1e-8, 1e-4, 1])
        self.error_axes.yaxis.set_label_coords(-0.098, 0.5)
        self.error_axes.axhline(1e-12, color=theme.FAINT, linewidth=theme.THIN, linestyle=(0, (4, 3)))
        for axes in (self.matrix_axes, self.vector_axes, self.error_axes):
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        self.matrix_axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        self.wanted = self._line(
            self.vector_axes, color=WANTED, linestyle="", marker="s", markersize=9, markerfacecolor="none",
            markeredgewidth=1.6,
        )  # fmt: skip
        self.moved = self._line(self.vector_axes, color=MOVED, linestyle="", marker="o", markersize=5)
        self.errors = self._line(self.error_axes, color=ERROR, linestyle="", marker="^", markersize=3.5)
        self.here = self._line(
            self.error_axes, color=theme.INK, linewidth=theme.THIN, linestyle=":",
            transform=self.error_axes.get_xaxis_transform(),
        )  # fmt: skip

    def _line(self, axes, **look) -> Line2D:
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: Shifted) -> Self:
        width, length = len(data.matrix), len(data.errors)
        self.limits(self.matrix_axes, x=(-0.5, width - 0.5), y=(width - 0.5, -0.5))
        self.limits(self.vector_axes, x=(-0.7, width - 0.3))
        self.limits(self.error_axes, x=(-0.015 * length, 1.015 * length))
        self.cells.set_cells(data.matrix, 1.0)
        channels = np.arange(width)
        self.moved.set_data(channels, data.moved)
        self.wanted.set_data(channels, data.wanted)
        # An error of 0 has no place on the scale and is drawn at its foot.
        self.errors.set_data(np.arange(length), np.maximum(data.errors, LEAST))
        self.here.set_data([data.position] * 2, [0, 1])
        return self

    def grips(self, data):
        error = max(data.errors[data.position], LEAST)
        return {"position": self.grip(self.error_axes, data.position, error, anywhere=True)}

    def words(self, data):
        yield self.word(_("float64 rounding lies below"), self.error_axes, len(data.errors), 1e-12, side="left", up=9)
