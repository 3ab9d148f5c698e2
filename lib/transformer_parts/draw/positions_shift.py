"""The matrix that moves every position's vector on by k, and by how much it misses at each position."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.heat_map import HeatMap
from transformer_parts.draw.view import View

MOVED, WANTED, ERROR = theme.FIRST, theme.SECOND, theme.THIRD
LEAST = 1e-18


@dataclass(frozen=True)
class Shifted:
    """A shift matrix and what it makes of one position's vector, and of all.

    Attributes
    ----------
    matrix : ndarray, shape (D, D)
        The matrix.
    moved, wanted : ndarray, shape (D,)
        M PE[p], and the vector of the position that it should give.
    errors : ndarray, shape (L,)
        Largest entry of the difference, at the positions 0 … L − 1.
    position : int
        p.
    shift, tested : int
        The k of the matrix, and the k that it is tried for.
    distance_from_orthogonal : float
        Largest entry of M Mᵀ − I.
    """

    matrix: NDArray
    moved: NDArray
    wanted: NDArray
    errors: NDArray
    position: int
    shift: int
    tested: int
    distance_from_orthogonal: float


class ShiftedView(View[Shifted]):
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
        # An error of 0 has no place on the scale and stands at its foot.
        self.errors.set_data(np.arange(length), np.maximum(data.errors, LEAST))
        self.here.set_data([data.position] * 2, [0, 1])
        return self
