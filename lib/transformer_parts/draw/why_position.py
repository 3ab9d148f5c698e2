"""A sentence reordered: attention's outputs before and after, what is left when one is moved onto the other."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap, NumberMarks
from transformer_parts.draw.view import View

EXACT = 1e-12
LEAST = 1e-17
#: Outputs beyond this have the colour of this.
SCALE = 2.5
MOVED, STILL = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Reordered:
    """What attention makes of a sentence as it was written, X, and reordered, PX."""

    words: tuple[str, ...]  # the sentence as it was written
    order: NDArray[np.intp]  # (L,): the word at each place of the reordered sentence, by its number
    written: NDArray  # written, moved (L, D): Attn(X) and Attn(PX)
    moved: NDArray
    gap: NDArray  # (L, D): Attn(PX) − P Attn(X)
    invariance: float  # largest |Attn(PX) − Attn(X)|
    shift: float  # largest change of Attn(X) when all positions are shifted
    weights: NDArray  # (L, L): one head's attention weights for the reordered sentence
    # (L, L): the same head's for the sentence as written, rows and columns moved as the words were
    written_weights: NDArray
    causal: bool  # whether a word sees only itself and those before it
    swapped: tuple[int, int] = (0, 0)  # the places that are swapped
    shown: tuple[str, ...] = ()  # the words as the reader sees them

    @property
    def token_gaps(self) -> NDArray:
        """Largest |gap| of each place of the reordered sentence, shape (L,)."""
        return np.abs(self.gap).max(axis=1)

    @property
    def largest(self) -> float:
        """Largest |gap| of all."""
        return float(self.token_gaps.max())


class ReorderingView(View[Reordered]):
    """Above, the outputs Attn(X) and Attn(PX), a row for each token and a column for each channel.

    Below, from the left: one head's weights, filled for PX and open for X with its tokens moved (they coincide where
    attention is equivariant); Attn(PX) − P Attn(X); and its largest entry of each token on a logarithmic scale.  The
    numbers at rows and columns are the places where the tokens stood in X.
    """

    size = (680, 500)
    most_tokens = 10

    def build(self) -> None:
        left, middle, top, bottom = (0.055, 0.345), (0.455, 0.345), (0.565, 0.36), (0.075, 0.36)
        self.written, self.written_rows = self._map(left, top, r"$\mathrm{Attn}(X)$")
        self.moved, self.moved_rows = self._map(middle, top, r"$\mathrm{Attn}(PX)$")
        self.gap, self.gap_rows = self._map(middle, bottom, r"$\mathrm{Attn}(PX)-P\,\mathrm{Attn}(X)$")
        self._build_weights(self._axes(left, bottom, "$A$", title_at=-0.075))
        self._build_gaps(self.fig.add_axes((0.825, bottom[0], 0.16, bottom[1])))
        self._build_key()

    def _axes(self, x: tuple[float, float], y: tuple[float, float], title: str, *, title_at: float = 0.5) -> Axes:
        axes = self.fig.add_axes((x[0], y[0], x[1], y[1]))
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(1, 0))
        for spine in axes.spines.values():
            spine.set(color=theme.FAINT, linewidth=theme.THIN)
        height = 1.05 if title_at == 0.5 else 1.045
        axes.text(
            title_at, height, title, transform=axes.transAxes, fontsize=theme.SYMBOL, color=theme.INK, ha="center"
        )
        return axes

    def _map(self, x, y, title) -> tuple[HeatMap, NumberMarks]:
        axes = self._axes(x, y, title)
        return self.moving(HeatMap(axes)), self.moving(NumberMarks(axes, self.most_tokens))

    def _build_weights(self, axes: Axes) -> None:
        width, height = axes.get_position().size * self.size
        self.square = 0.96 * np.array([height / width, 1.0])
        self.weight_rows = self.moving(NumberMarks(axes, self.most_tokens))
        self.weight_columns = self.moving(NumberMarks(axes, self.most_tokens))
        squares = {
            "masked": {"facecolors": theme.GRID, "linewidths": 0, "zorder": 1},
            "filled": {"facecolors": MOVED, "linewidths": 0, "zorder": 2},
            "open": {"facecolors": "none", "edgecolors": STILL, "linewidths": 1.6, "zorder": 3},
        }
        for name, look in squares.items():
            axes.add_collection(PolyCollection([], **look), autolim=False)
            setattr(self, name, self.moving(axes.collections[-1]))

    def _build_gaps(self, axes: Axes) -> None:
        self.gap_axes = theme.style(axes, grid=False)
        axes.set(xscale="log", xlim=(LEAST / 3, 40), xticks=[1e-16, 1e-8, 1], ylim=(1, 0), yticks=[])
        axes.minorticks_off()
        axes.grid(axis="x", color=theme.GRID, linewidth=theme.THIN)
        axes.axvline(EXACT, color=theme.FAINT, linewidth=theme.THIN, linestyle=(0, (4, 3)))
        axes.text(
            0.5,
            1.05,
            r"$\|\cdot\|_\infty$",
            transform=axes.transAxes,
            fontsize=theme.SYMBOL,
            color=theme.INK,
            ha="center",
        )
        stems = LineCollection([], colors=theme.FAINT, linewidths=theme.THIN, zorder=2)
        axes.add_collection(stems, autolim=False)
        self.stems = self.moving(stems)
        self.exact, self.broken = (
            self.moving(axes.plot([], [], color=colour, marker=theme.MARKERS[colour], linestyle="", ms=7)[0])
            for colour in (theme.FIRST, theme.SECOND)
        )

    def _build_key(self) -> None:
        """What the squares and the colours mean, in symbols, in the corner that is free."""
        axes = self.fig.add_axes((0.825, 0.60, 0.16, 0.30))
        axes.set_axis_off()
        axes.legend(
            handles=[
                Line2D([], [], linestyle="", marker="s", markersize=9, color=MOVED),
                Line2D([], [], linestyle="", marker="s", ms=9, markerfacecolor="none", mec=STILL, mew=1.6),
            ],
            labels=["$A(PX)$", r"$PA(X)P^{\mathsf{T}}$"],
            loc="upper left", bbox_to_anchor=(-0.12, 1.05), frameon=False, fontsize=theme.SYMBOL, handlelength=1.0,
            handletextpad=0.4, borderpad=0.0, borderaxespad=0.0, labelspacing=0.6,
        )  # fmt: skip
        bar = theme.style(self.fig.add_axes((0.832, 0.65, 0.146, 0.035)), grid=False)
        bar.set(xlim=(-SCALE, SCALE), yticks=[])
        bar.set_xticks([-SCALE, 0, SCALE], [f"−{SCALE}", "0", f"{SCALE}"])
        bar.spines["left"].set_visible(False)
        HeatMap(bar).set_cells(np.linspace(-SCALE, SCALE, 200)[None], SCALE)

    def update(self, data: Reordered) -> Self:
        length = len(data.order)
        middles = (np.arange(length) + 0.5) / length
        # Places of numbers count from the bottom, rows from the top.
        beside = np.stack([np.full(length, -0.06), middles[::-1]], axis=1)
        for shown, rows, cells, numbers in (
            (self.written, self.written_rows, data.written, np.arange(length)),
            (self.moved, self.moved_rows, data.moved, data.order),
            (self.gap, self.gap_rows, data.gap, data.order),
        ):
            shown.set_cells(cells, SCALE)
            rows.set_numbers(numbers, beside)
        self.weight_rows.set_numbers(data.order, beside)
        self.weight_columns.set_numbers(data.order, np.stack([middles, np.full(length, 1.07)], axis=1))
        self.filled.set_verts(_boxes(np.sqrt(data.weights), self.square))
        self.open.set_verts(_boxes(np.sqrt(data.written_weights), self.square))
        unseen = np.triu(np.ones((length, length)), 1) * data.causal
        self.masked.set_verts(_boxes(unseen, np.ones(2)))
        self._draw_gaps(data.token_gaps, middles)
        return self

    def grips(self, data):
        length, axes = len(data.order), self.written.axes
        first, second = ((place + 0.5) / length for place in data.swapped)
        return {
            "first": self.grip(axes, 0.82, first, anywhere=True),
            "second": self.grip(axes, 0.93, second, anywhere=True),
        }

    def words(self, data):
        length = len(data.order)
        for axes, order in ((self.written.axes, range(length)), (self.moved.axes, data.order)):
            for place, token in enumerate(order):
                yield self.word(data.shown[token], axes, 0.02, (place + 0.5) / length)

    def _draw_gaps(self, gaps: NDArray, middles: NDArray) -> None:
        shown = np.maximum(gaps, LEAST)
        ends = np.stack([np.full_like(shown, LEAST / 3), shown], axis=1)
        self.stems.set_segments(np.stack([ends, np.stack([middles, middles], axis=1)], axis=-1))
        for line, chosen in ((self.exact, gaps <= EXACT), (self.broken, gaps > EXACT)):
            line.set_data(shown[chosen], middles[chosen])


def _boxes(sides: NDArray, whole: NDArray) -> NDArray:
    """Return the corners of a box for each entry of a matrix that isn't 0; `whole`, in cells, is the box of 1."""
    rows, columns = np.nonzero(sides)
    half = 0.5 * whole * sides[rows, columns, None, None]
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    centres = np.stack([columns, rows], axis=-1)[:, None] + 0.5
    return (centres + half * corners) / len(sides)
