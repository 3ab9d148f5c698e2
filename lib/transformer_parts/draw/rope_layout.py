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
from transformer_parts.draw.artists import HeatMap, NumberMarks
from transformer_parts.draw.view import View
from transformer_parts.language import _

RIGHT, READ, DIFFERENCE = theme.FIRST, theme.SECOND, theme.THIRD

#: Heads up to this width have the number of each channel under its dot.
NUMBERED = 16

_ARC = np.exp(1j * np.linspace(0, np.pi, 33))
_SPANS = (5, 10, 20, 40, 80)


@dataclass(frozen=True)
class Layouts:
    """A head whose rows may have been moved, the pairs that code turns in it, and the scores that come out."""

    order: NDArray[np.intp]  # (K,): what was done to the rows: row c holds what was channel ``order[c]`` in training
    needed: NDArray[np.intp]  # (K,): the order that the code would need
    # trained, turned (P, 2): the rows of each pair of training, where they are now, and the rows of each pair that the
    # code turns
    trained: NDArray[np.intp]
    turned: NDArray[np.intp]
    # offsets, right, read, difference, typical (N,): score as trained, score as read, their difference, and the
    # standard deviation of such a difference
    offsets: NDArray
    right: NDArray
    read: NDArray
    difference: NDArray
    typical: NDArray
    offset: int  # the offset that is marked
    marked: tuple[float, float, float]  # ``right``, ``read`` and ``difference`` there
    agreement: float  # correlation of the two scores there, over random content


class RopeLayoutsView(View[Layouts]):
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

    def grips(self, data):
        read = data.marked[1]
        return {"offset": self.grip(self.score_axes, data.offset, read, anywhere=True, down_to=self.difference_axes)}

    def words(self, data):
        yield self.word(_("pairs of training"), self.arcs_axes, 1, 0.9, side="left")
        yield self.word(_("pairs that the code turns"), self.arcs_axes, 1, -0.9, side="left")

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
    """Return limits from a ladder of steps, so that the scale keeps still during a drag."""
    largest = 1.05 * max(np.abs(values).max() for values in series)
    span = next((step for step in _SPANS if largest <= step), largest)
    return -span, span


@dataclass(frozen=True)
class HeadReadings:
    """One head over one passage, as trained and as read."""

    right: NDArray  # right, read (L, L): attention weights; row i is the query's
    read: NDArray
    differences: NDArray  # (L, L): score as read minus score as trained
    rms: NDArray  # (L,): their root mean square at each distance i − j
    spread: float  # standard deviation of the head's right scores over all i ≥ j
    moved: NDArray  # (L,): total variation between the two rows of weights of each query
    query: int  # the chosen query


class RopeLayoutHeadsView(View[HeadReadings]):
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

    def grips(self, data):
        return {"query": self.grip(self.right_axes, 0, data.query, anywhere=True)}

    def words(self, data):
        length = len(data.right)
        yield self.word(_("as trained"), self.weight_axes, length - 1, 0.9, RIGHT, "left")
        yield self.word(_("as read"), self.weight_axes, length - 1, -0.9, READ, "left")
