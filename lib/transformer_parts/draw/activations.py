"""Activations, their slopes, and the difference of two of them, over one stretch of the x axis."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.norms import plain, step_above
from transformer_parts.draw.view import View
from transformer_parts.maths.activations_extremes import Extreme

RELU, GELU, SWISH, SIGMOID = theme.INK, theme.FIRST, theme.SECOND, theme.THIRD
DIFFERENCE = theme.INK

#: What each curve looks like, in the order of `Curves`: symbol, colour, dashes, marker.
LOOKS = (
    (r"$\max(x, 0)$", RELU, (0, (1, 1)), "D"),
    (r"$x\,\Phi(x)$", GELU, "-", theme.MARKERS[theme.FIRST]),
    (r"$x\,\sigma(\beta x)$", SWISH, (0, (6, 2)), theme.MARKERS[theme.SECOND]),
    (r"$\sigma(x)$", SIGMOID, (0, (4, 2, 1, 2)), theme.MARKERS[theme.THIRD]),
)

#: How far the x axis reaches to either side.
REACH = 4.0


@dataclass(frozen=True)
class Curves:
    """ReLU, GELU, Swish and the sigmoid, in this order, and two functions compared.

    Attributes
    ----------
    grid : ndarray, shape (N,)
        Places on the x axis.
    values, slopes : ndarray, shape (4, N)
        The functions and their derivatives there.
    at : float
        The place that is marked.
    values_at, slopes_at : ndarray, shape (4,)
        The functions and derivatives at the mark.
    compared_at : (float, float)
        The two functions compared, at the mark.
    difference : ndarray, shape (N,)
        The first function compared less the second.
    furthest : Extreme
        Where that difference is largest in size, and what it is there.
    minimum : Extreme or None
        Where Swish is lowest; None where it is a line.
    """

    grid: NDArray
    values: NDArray
    slopes: NDArray
    at: float
    values_at: NDArray
    slopes_at: NDArray
    compared_at: tuple[float, float]
    difference: NDArray
    furthest: Extreme
    minimum: Extreme | None

    @property
    def difference_at(self) -> float:
        """The difference at the mark."""
        return self.compared_at[0] - self.compared_at[1]


class CurvesView(View[Curves]):
    """Three rows over the same x: the functions, their slopes, the difference of two of them."""

    size = (680, 500)

    def build(self) -> None:
        self.value_axes = self._axes(0.515, 0.415, "$f(x)$", (-0.6, 4.2))
        self.slope_axes = self._axes(0.285, 0.19, r"$f\,'(x)$", (-0.25, 1.3))
        self.difference_axes = self._axes(0.08, 0.165, r"$\Delta(x)$", (-1, 1))
        self.difference_axes.tick_params(labelbottom=True)
        self.difference_axes.text(
            1.012, -0.03, "$x$", fontsize=theme.SYMBOL, color=theme.INK, transform=self.difference_axes.transAxes
        )
        self.slope_axes.set_yticks([0, 0.5, 1])
        self.value_axes.set_yticks(range(5))
        self.value_lines, self.value_marks = self._curves(self.value_axes)
        self.slope_lines, self.slope_marks = self._curves(self.slope_axes)
        (line,) = self.difference_axes.plot([], [], color=DIFFERENCE, linewidth=theme.LINE, zorder=3)
        self.difference_line = self.moving(line)
        self.difference_mark = self._mark(self.difference_axes, DIFFERENCE, "D")
        (ends,) = self.difference_axes.plot(
            [], [], linestyle="", marker="o", markersize=9, markerfacecolor="none", color=theme.SECOND,
            markeredgewidth=theme.LINE, zorder=4, clip_on=False,
        )  # fmt: skip
        self.furthest_mark = self.moving(ends)
        self.places = [
            self.moving(axes.axvline(0, color=theme.FAINT, linewidth=theme.THIN, zorder=1))
            for axes in (self.value_axes, self.slope_axes, self.difference_axes)
        ]
        self.value_axes.legend(
            handles=[
                Line2D([], [], color=colour, linestyle=dash, marker=marker, linewidth=theme.LINE)
                for _, colour, dash, marker in LOOKS
            ],
            labels=[symbol for symbol, *_ in LOOKS],
            loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=4, fontsize=theme.SYMBOL, frameon=False,
            handlelength=2.4, handletextpad=0.5, columnspacing=1.4, borderpad=0.1,
        )  # fmt: skip

    def _axes(self, bottom: float, height: float, symbol: str, span: tuple[float, float]) -> Axes:
        axes = theme.style(self.fig.add_axes((0.115, bottom, 0.835, height)))
        axes.set_xlim(-REACH, REACH)
        axes.set_ylim(*span)
        axes.set_xticks(np.arange(-REACH, REACH + 1))
        axes.tick_params(labelbottom=False)
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 3, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN, zorder=1)
        axes.text(0.01, 0.98, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="top", transform=axes.transAxes)
        return axes

    def _curves(self, axes: Axes) -> tuple[list[Line2D], list[Line2D]]:
        lines, marks = [], []
        for z, (_, colour, dash, marker) in enumerate(LOOKS):
            (line,) = axes.plot([], [], color=colour, linestyle=dash, linewidth=theme.LINE, zorder=3 + z / 10)
            lines.append(self.moving(line))
            marks.append(self._mark(axes, colour, marker))
        return lines, marks

    def _mark(self, axes: Axes, colour: str, marker: str) -> Line2D:
        (mark,) = axes.plot(
            [], [], linestyle="", marker=marker, markersize=8, color=colour, markeredgecolor=theme.PAPER, zorder=5,
            clip_on=False,
        )  # fmt: skip
        return self.moving(mark)

    def update(self, data: Curves) -> Self:
        for lines, marks, curves, points in (
            (self.value_lines, self.value_marks, data.values, data.values_at),
            (self.slope_lines, self.slope_marks, data.slopes, data.slopes_at),
        ):
            for line, mark, curve, point in zip(lines, marks, curves, points, strict=True):
                line.set_data(data.grid, curve)
                mark.set_data([data.at], [point])
        span = 1.15 * step_above(abs(data.furthest.value))
        self.limits(self.difference_axes, y=(-span, span))
        self.difference_line.set_data(data.grid, data.difference)
        self.difference_mark.set_data([data.at], [data.difference_at])
        seen = abs(data.furthest.x) <= REACH
        self.furthest_mark.set_data([data.furthest.x] * seen, [data.furthest.value] * seen)
        for place in self.places:
            place.set_xdata([data.at, data.at])
        return self
