"""RoPE's two layouts: pairs as arcs over a head's channels, the permutation, and the scores under both readings."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import LinearLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.number_marks import NumberMarks
from transformer_parts.draw.view import View

RIGHT, READ, DIFFERENCE = theme.FIRST, theme.SECOND, theme.THIRD

#: Heads up to this width have the number of each channel under its dot.
NUMBERED = 16

_ARC = np.exp(1j * np.linspace(0, np.pi, 33))
_SPANS = (5, 10, 20, 40, 80)


@dataclass(frozen=True)
class Layouts:
    """A head whose rows may have been moved, the pairs that code turns in it, and the scores that come out.

    Attributes
    ----------
    order : ndarray of int, shape (K,)
        What was done to the rows: row c holds what was channel ``order[c]`` in training.
    needed : ndarray of int, shape (K,)
        The order that the code would need.
    trained, turned : ndarray of int, shape (P, 2)
        The rows of each pair of training, where they are now, and the rows of each pair that the code turns.
    offsets, right, read, difference, typical : ndarray, shape (N,)
        Score as trained, score as read, their difference, and the standard deviation of such a difference.
    offset : int
        The offset that is marked.
    marked : tuple of float
        ``right``, ``read`` and ``difference`` there.
    agreement : float
        Correlation of the two scores there, over random content.
    """

    order: NDArray[np.intp]
    needed: NDArray[np.intp]
    trained: NDArray[np.intp]
    turned: NDArray[np.intp]
    offsets: NDArray
    right: NDArray
    read: NDArray
    difference: NDArray
    typical: NDArray
    offset: int
    marked: tuple[float, float, float]
    agreement: float


class LayoutsView(View[Layouts]):
    """Top left, channels as dots: arcs above join the pairs of training, arcs below those that the code turns.

    The two sides mirror one another where code and rows fit.  A thick arc is a fast pair.  Top right, the permutation:
    filled squares where rows were moved to, open ones where the code needs them.  Below, scores against the offset.
    """

    size = (680, 520)

    def build(self) -> None:
        self.arcs_axes = self.fig.add_axes((0.02, 0.60, 0.645, 0.385))
        self.arcs_axes.set_axis_off()
        self.arcs_axes.set(xlim=(-0.02, 1.02), ylim=(-1.02, 1.02))
        (dots,) = self.arcs_axes.plot([], [], color=theme.INK, linestyle="", marker="o", zorder=3)
        self.dots = self.moving(dots)
        self.trained_arcs, self.turned_arcs = self._arcs(RIGHT), self._arcs(READ)
        self.numbers = self.moving(NumberMarks(self.arcs_axes, NUMBERED, self.arcs_axes.transData))

        self.matrix_axes = theme.style(self.fig.add_axes((0.70, 0.605, 0.285, 0.3727)), grid=False)
        self.matrix_axes.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[])
        for spine in self.matrix_axes.spines.values():
            spine.set_visible(True)
        (needed,) = self.matrix_axes.plot([], [], linestyle="", marker="s", markerfacecolor="none")
        (moved,) = self.matrix_axes.plot([], [], linestyle="", marker="s", color=theme.INK, markeredgewidth=0)
        needed.set_markeredgecolor(READ)
        self.needed, self.moved = self.moving(needed), self.moving(moved)

        self.score_axes = self._curves(0.315, 0.235)
        self.score_axes.tick_params(labelbottom=False)
        self.score_axes.yaxis.set_major_locator(LinearLocator(5))
        self.difference_axes = self._curves(0.105, 0.16)
        self.difference_axes.yaxis.set_major_locator(LinearLocator(3))
        self.difference_axes.set_xlabel("$n-m$", fontsize=theme.SYMBOL, labelpad=1)
        self.right, self.right_mark = self._curve(self.score_axes, RIGHT, "-", "o")
        self.read, self.read_mark = self._curve(self.score_axes, READ, (0, (4, 1.5)), "s")
        self.difference, self.difference_mark = self._curve(self.difference_axes, DIFFERENCE, "-", "^")
        self.typical = [
            self.moving(self.difference_axes.plot([], [], color=theme.INK, linewidth=theme.THIN, linestyle=":")[0])
            for _ in range(2)
        ]
        for axes, symbols in (
            (self.score_axes, {"$s$": self.right_mark, r"$\hat{s}$": self.read_mark}),
            (self.difference_axes, {r"$\hat{s}-s$": self.difference_mark, r"$\pm\sigma$": self.typical[0]}),
        ):
            handles = [Line2D([], [], color=line.get_color(), marker=line.get_marker()) for line in symbols.values()]
            handles[-1].set_linestyle(":" if symbols.get(r"$\pm\sigma$") else (0, (4, 1.5)))
            axes.legend(
                handles=handles, labels=list(symbols), loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=2,
                fontsize=theme.SYMBOL, frameon=False, borderpad=0.0, borderaxespad=0.2, handlelength=1.6,
                handletextpad=0.4, columnspacing=1.2,
            )  # fmt: skip

    def _arcs(self, colour: str) -> LineCollection:
        arcs = LineCollection([], colors=colour, capstyle="round", zorder=2)
        self.arcs_axes.add_collection(arcs, autolim=False)
        return self.moving(arcs)

    def _curves(self, bottom: float, height: float) -> Axes:
        axes = theme.style(self.fig.add_axes((0.075, bottom, 0.91, height)))
        axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        axes.axvline(0, color=theme.FAINT, linewidth=theme.THIN)
        return axes

    def _curve(self, axes: Axes, colour: str, linestyle: object, marker: str) -> tuple[Line2D, Line2D]:
        (line,) = axes.plot([], [], color=colour, linestyle=linestyle, linewidth=1.4, zorder=2)
        (mark,) = axes.plot([], [], color=colour, marker=marker, markersize=8, markeredgecolor=theme.INK, zorder=4)
        return self.moving(line), self.moving(mark)

    def update(self, data: Layouts) -> Self:
        width = len(data.order)
        places = (np.arange(width) + 0.5) / width
        numbered = width <= NUMBERED
        self.dots.set_data(places, np.zeros(width))
        self.dots.set_markersize(0.0 if numbered else max(1.5, 200 / width))
        numbers = data.order if numbered else data.order[:0]
        self.numbers.set_numbers(numbers, np.stack([places, np.zeros(width)], axis=-1)[: len(numbers)])
        start = 0.1 if numbered else 0.035
        widest = max(0.25, *(np.abs(np.diff(places[pairs])).max() for pairs in (data.trained, data.turned)))
        _join(self.trained_arcs, places[data.trained], start, (0.98 - start) / widest**0.5)
        _join(self.turned_arcs, places[data.turned], -start, -(0.98 - start) / widest**0.5)
        cell = 0.285 * self.size[0] * 0.72 / width
        for line, order, size in ((self.needed, data.needed, 0.92), (self.moved, data.order, 0.5)):
            line.set_data((order + 0.5) / width, places)
            line.set_markersize(max(1.6, size * cell))
        self.needed.set_markeredgewidth(min(1.4, max(0.5, 0.14 * cell)))
        self._draw_curves(data)
        return self

    def _draw_curves(self, data: Layouts) -> None:
        ends = (data.offsets[0], data.offsets[-1])
        self.limits(self.score_axes, x=ends, y=_span(data.right, data.read))
        self.limits(self.difference_axes, x=ends, y=_span(data.difference, data.typical))
        for curve, mark, values, marked in zip(
            (self.right, self.read, self.difference),
            (self.right_mark, self.read_mark, self.difference_mark),
            (data.right, data.read, data.difference),
            data.marked,
            strict=True,
        ):
            curve.set_data(data.offsets, values)
            mark.set_data([data.offset], [marked])
        for line, sign in zip(self.typical, (1, -1), strict=True):
            line.set_data(data.offsets, sign * data.typical)


def _join(arcs: LineCollection, ends: NDArray, start: float, height: float) -> None:
    """Join the two ends of each pair by half an ellipse on top of `start`.

    It rises by `height` times the square root of its span, so that arcs between neighbours of a wide head are seen
    beside those that span half of it.
    """
    middle, half = ends.mean(axis=1)[:, None], np.diff(ends, axis=1) / 2
    rise = height * np.sqrt(2 * np.abs(half))
    arcs.set_segments(np.stack([middle + half * _ARC.real, start + rise * _ARC.imag], axis=-1))
    fastest = 2.6 if len(ends) <= 16 else 1.6
    arcs.set_linewidth(np.linspace(fastest, 0.3 * fastest, len(ends)))


def _span(*series: NDArray) -> tuple[float, float]:
    """Return limits from a ladder of steps, so that the scale stands still under a moving hand."""
    largest = 1.05 * max(np.abs(values).max() for values in series)
    span = next((step for step in _SPANS if largest <= step), largest)
    return -span, span
