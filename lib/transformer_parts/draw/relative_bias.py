"""T5's buckets as a staircase: on both sides of the query, and over the logarithm of the distance."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap
from transformer_parts.draw.view import View
from transformer_parts.language import _

BEFORE, AFTER = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Buckets:
    """The buckets of the relative positions around a query."""

    offsets: NDArray  # (N,): j − i, from −2·max_distance to 2·max_distance
    buckets: NDArray  # (N,): the bucket of each
    starts: NDArray  # (n,): smallest distance of each bucket of one direction
    curve: NDArray  # (2, C): distances and what is rounded down to give the bucket
    offset: int  # offset, bucket: the chosen relative position
    bucket: int
    bidirectional: bool  # whether keys after the query have buckets of their own
    num_buckets: int  # num_buckets, max_distance: T5's two numbers
    max_distance: int

    @property
    def exact(self) -> int:
        """Buckets of one direction that hold a single distance each."""
        return len(self.starts) // 2

    @property
    def shared(self) -> NDArray:
        """The relative positions in the chosen bucket."""
        return self.offsets[self.buckets == self.bucket]


class T5BucketsView(View[Buckets]):
    """Above, the bucket of every relative position; below, of one direction against the distance, doubling evenly.

    Dots below are where a bucket begins; within the grey band each distance has its own.
    """

    size = (680, 500)

    def build(self) -> None:
        self.all_axes = theme.style(self.fig.add_axes((0.085, 0.61, 0.895, 0.37)), x="$j-i$", y="$b$")
        self.one_axes = theme.style(self.fig.add_axes((0.085, 0.115, 0.895, 0.37)), x="$|j-i|$", y="$b$")
        for axes in (self.all_axes, self.one_axes):
            axes.yaxis.set_label_coords(-0.06, 0.5)
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        self.one_axes.set_xscale("log", base=2)
        self.one_axes.xaxis.set_minor_locator(NullLocator())
        self.all_axes.axvline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.before = self._line(self.all_axes, color=BEFORE, linewidth=theme.LINE + 0.6)
        self.after = self._line(self.all_axes, color=AFTER, linewidth=theme.LINE + 0.6, linestyle=(0, (2.5, 1)))
        self.limit = [
            self._line(axes, color=theme.INK, linewidth=theme.THIN, linestyle=":")
            for axes in (self.all_axes, self.one_axes)
        ]
        self.exact = self.moving(self.one_axes.axvspan(0, 1, color=theme.GRID, zorder=0.5))
        self.curve = self._line(self.one_axes, color=theme.FAINT, linewidth=theme.LINE, zorder=2)
        self.steps = self._line(self.one_axes, color=BEFORE, linewidth=theme.LINE, zorder=3)
        self.starts = self._line(self.one_axes, color=BEFORE, linestyle="", marker="o", markersize=4.5, zorder=4)
        mark = {"color": theme.THIRD, "markeredgecolor": theme.INK, "linestyle": "", "markersize": 11, "zorder": 6}
        self.here = self._line(self.all_axes, marker="D", **mark)
        self.here_below = self._line(self.one_axes, marker="D", **mark)
        self.shared = self._line(self.all_axes, color=theme.THIRD, linewidth=7, solid_capstyle="butt", zorder=1)

    def _line(self, axes, **look) -> Line2D:
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: Buckets) -> Self:
        n, most, span = len(data.starts), data.max_distance, 2 * data.max_distance
        self.limits(self.all_axes, x=(-1.02 * span, 1.02 * span), y=(-0.05 * data.num_buckets, 1.05 * data.num_buckets))
        self.limits(self.one_axes, x=(0.9, 1.1 * span), y=(-0.06 * n, 1.06 * n))
        doublings = 2.0 ** np.arange(int(np.log2(span)) + 1)
        if not np.array_equal(self.one_axes.get_xticks(), doublings):
            self.one_axes.xaxis.set_major_locator(FixedLocator(doublings))
            self.one_axes.set_xticks(doublings, [f"{tick:.0f}" for tick in doublings])
            self.redraw_background()
        past = data.offsets <= 0
        self.before.set_data(*_steps(data.offsets[past], data.buckets[past]))
        self.after.set_data(*_steps(data.offsets[~past], data.buckets[~past]))
        self.limit[0].set_data([-most, -most, np.nan, most, most], [-9, 999, np.nan, -9, 999])
        self.limit[1].set_data([most, most], [-9, 999])
        self.exact.set(x=0.9, width=data.exact - 0.9)
        self.curve.set_data(data.curve)
        self.steps.set_data(*_held(data.starts, span))
        first = np.flatnonzero(np.diff(data.starts, append=span) > 0)
        first = first[data.starts[first] > 0]
        self.starts.set_data(data.starts[first], first)
        self.here.set_data([data.offset], [data.bucket])
        distance = abs(data.offset) if data.bidirectional else max(-data.offset, 0)
        within = data.bucket % n if data.bidirectional else data.bucket
        self.here_below.set_data([max(distance, 0.9)], [within])
        shared = data.shared
        self.shared.set_data([shared.min() - 0.5, shared.max() + 0.5], [data.bucket] * 2)
        return self

    def grips(self, data):
        return {"offset": self.grip(self.all_axes, data.offset, data.bucket, anywhere=True)}

    def words(self, data):
        span = 2 * data.max_distance
        yield self.word(_("keys before the query"), self.all_axes, -span, 1.02 * data.num_buckets, BEFORE)
        yield self.word(_("keys after it"), self.all_axes, span, 1.02 * data.num_buckets, AFTER, "left")


def _steps(offsets: NDArray, buckets: NDArray) -> tuple[NDArray, NDArray]:
    """Return a staircase with a flat piece around each whole number, its corners alone."""
    changes = np.flatnonzero(np.diff(buckets))
    edges = np.concatenate([[offsets[0] - 0.5], np.repeat(offsets[changes] + 0.5, 2), [offsets[-1] + 0.5]])
    return edges, np.repeat(buckets[np.append(changes, len(buckets) - 1)], 2)


def _held(starts: NDArray, end: int) -> tuple[NDArray, NDArray]:
    """Return the staircase that rises where a bucket starts."""
    x = np.append(np.repeat(starts, 2)[1:], end)
    return np.maximum(x, 0.5), np.repeat(np.arange(len(starts)), 2)


POWER, BETWEEN, ONE_SEQUENCE = theme.FIRST, theme.SECOND, theme.FAINT


@dataclass(frozen=True)
class Slopes:
    """The slopes of n heads and their weights over keys of equal score."""

    slopes: NDArray  # (n,): in the order of the heads
    of_power: int  # how many of them are those of a power of two; the others lie between
    one_sequence: NDArray  # (n,): 2^(−8h/n), which is right for a power of two alone
    weights: NDArray  # (n, S): by distance, the query's own position first
    half_distances: NDArray  # (n,): distance at which a weight is half of the nearest key's
    head: int  # the chosen head, counted from 1
    distance: int  # the chosen distance

    @property
    def ratios(self) -> NDArray:
        """Each slope over the next larger one, the slopes taken by size."""
        by_size = np.sort(self.slopes)
        return by_size[:-1] / by_size[1:]


class AlibiSlopesView(View[Slopes]):
    """Above, the slope of each head by powers of two; below, weight over nearest weight against the distance.

    Of many heads up to twenty are drawn below.
    """

    size = (680, 500)

    def build(self) -> None:
        self.slope_axes = theme.style(self.fig.add_axes((0.1, 0.595, 0.88, 0.385)), x="$h$", y=r"$m_h$")
        self.slope_axes.set_yscale("log", base=2)
        self.slope_axes.set_ylim(2.0**-8.6, 1.3)
        self.slope_axes.set_yticks([2.0**-p for p in range(0, 9, 2)])
        self.slope_axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
        self.weight_axes = theme.style(self.fig.add_axes((0.1, 0.115, 0.88, 0.355)), x="$|i-j|$", y=r"$a/a_0$")
        self.weight_axes.set_ylim(-0.02, 1.04)
        for axes in (self.slope_axes, self.weight_axes):
            axes.yaxis.set_label_coords(-0.075, 0.5)
        self.weight_axes.axhline(0.5, color=theme.FAINT, linewidth=theme.THIN, linestyle="--")
        self.one_sequence = self._line(
            self.slope_axes, color=ONE_SEQUENCE, linestyle="-", linewidth=theme.THIN, marker="x", markersize=6
        )
        self.power = self._line(self.slope_axes, color=POWER, linestyle="", marker="o", markersize=6, zorder=3)
        self.between = self._line(self.slope_axes, color=BETWEEN, linestyle="", marker="s", markersize=6, zorder=3)
        mark = {"linestyle": "", "markeredgecolor": theme.INK, "color": theme.THIRD, "zorder": 6}
        self.head = self._line(self.slope_axes, marker="D", markersize=10, **mark)
        curves = LineCollection([], linewidths=theme.THIN, colors=theme.FAINT, zorder=2)
        self.weight_axes.add_collection(curves, autolim=False)
        self.curves = self.moving(curves)
        self.curve = self._line(self.weight_axes, color=theme.THIRD, linewidth=theme.LINE + 1, zorder=4)
        self.here = self._line(self.weight_axes, marker="D", markersize=10, **mark)

    def _line(self, axes, **look) -> Line2D:
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: Slopes) -> Self:
        heads = np.arange(1, len(data.slopes) + 1)
        self.limits(self.slope_axes, x=(0.4, len(heads) + 0.6))
        distances = np.arange(data.weights.shape[1])
        self.limits(self.weight_axes, x=(-0.01 * distances[-1], 1.01 * distances[-1]))
        self.one_sequence.set_data(heads, data.one_sequence)
        self.power.set_data(heads[: data.of_power], data.slopes[: data.of_power])
        self.between.set_data(heads[data.of_power :], data.slopes[data.of_power :])
        self.head.set_data([data.head], [data.slopes[data.head - 1]])
        falls = data.weights / data.weights[:, :1]
        # The thin curves are a choice of the heads by size, and every third point of them is enough.
        by_size = np.argsort(data.slopes)[:: -(-len(heads) // 20)]
        self.curves.set_segments([np.column_stack([distances[::3], fall[::3]]) for fall in falls[by_size]])
        chosen = falls[data.head - 1]
        self.curve.set_data(distances, chosen)
        self.here.set_data([data.distance], [chosen[data.distance]])
        return self

    def grips(self, data):
        fall = data.weights[data.head - 1, data.distance] / data.weights[data.head - 1, 0]
        return {
            "head": self.grip(self.slope_axes, data.head, data.slopes[data.head - 1], anywhere=True),
            "distance": self.grip(self.weight_axes, data.distance, fall, anywhere=True),
        }

    def words(self, data):
        last = data.weights.shape[1]
        yield self.word(_("half of the nearest key's weight"), self.weight_axes, last, 0.5, side="left", up=9)


WITH, WITHOUT, BIAS = theme.FIRST, theme.SECOND, theme.THIRD


@dataclass(frozen=True)
class BiasedWeights:
    """One head's bias and what it does to its attention weights."""

    bias: NDArray  # (L, L): what is added to the logit of query i (row) and key j
    plain: NDArray  # plain, biased (L, L): attention weights without and with the bias
    biased: NDArray
    visible: NDArray  # (L, L): which keys a query may attend to
    entropies: tuple[float, float]  # entropy of the query's weights without and with the bias, nats
    spread: float  # standard deviation of the content's logits over the visible pairs
    slope: float  # ALiBi's slope of the head; NaN for T5
    parameters: int  # learned numbers of all heads together
    query: int  # the chosen query


class BiasAndWeightsView(View[BiasedWeights]):
    """Top, the bias (blue below zero, red above) and the weights with it, a row for each query.

    Bottom left, the framed row of the bias; bottom right, its weights: with the bias upwards, without it downwards.
    """

    size = (680, 540)

    def build(self) -> None:
        self.bias_axes, self.bias_map, self.bias_frame = self._map(0.085, "$B$", BIAS)
        self.weight_axes, self.weight_map, self.weight_frame = self._map(0.585, "$a$", WITH)
        self.row_axes = theme.style(self.fig.add_axes((0.085, 0.11, 0.395, 0.29)), x="$j$")
        self.row_axes.yaxis.set_major_locator(MaxNLocator(4))
        self.row_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        (row,) = self.row_axes.plot([], [], color=BIAS, marker="^", markersize=4.5, linewidth=theme.THIN)
        self.row = self.moving(row)
        self.stem_axes = theme.style(self.fig.add_axes((0.585, 0.11, 0.395, 0.29)), x="$j$")
        self.stem_axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2.5, 5, 10]))
        self.stem_axes.yaxis.set_major_formatter(FuncFormatter(lambda weight, _: f"{abs(weight):g}"))
        self.stem_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.biased_stems, self.plain_stems = self._stems(WITH), self._stems(WITHOUT)
        self.here = []
        for axes in (self.row_axes, self.stem_axes):
            (line,) = axes.plot(
                [], [], color=theme.INK, linewidth=theme.THIN, linestyle=":", transform=axes.get_xaxis_transform()
            )
            self.here.append(self.moving(line))

    def _map(self, left: float, symbol: str, colour: str) -> tuple[Axes, HeatMap, Line2D]:
        axes = theme.style(self.fig.add_axes((left, 0.5, 0.37, 0.466)), grid=False)
        axes.text(1.03, 0.93, symbol, fontsize=theme.SYMBOL + 3, color=colour, transform=axes.transAxes)
        axes.text(-0.16, 0.46, "$i$", fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        cells = self.moving(HeatMap(axes))
        (box,) = axes.plot([], [], color=theme.INK, linewidth=theme.THIN, zorder=5, clip_on=False)
        return axes, cells, self.moving(box)

    def _stems(self, colour: str) -> Line2D:
        (stems,) = self.stem_axes.plot([], [], color=colour, linewidth=4.2, solid_capstyle="butt", zorder=3)
        return self.moving(stems)

    def update(self, data: BiasedWeights) -> Self:
        length, i = len(data.bias), data.query
        bias = np.where(data.visible, data.bias, 0.0)
        for axes, cells, values, largest, box in (
            (self.bias_axes, self.bias_map, bias, float(np.abs(bias).max()), self.bias_frame),
            # Weights take the blue half of the map, as their stems are blue.
            (self.weight_axes, self.weight_map, -data.biased, 1.0, self.weight_frame),
        ):
            self.limits(axes, x=(-0.5, length - 0.5), y=(length - 0.5, -0.5))
            cells.set_cells(values, largest)
            ends = (-0.5, length - 0.5)
            box.set_data([ends[0], ends[1], ends[1], ends[0], ends[0]], i + np.array([-0.6, -0.6, 0.6, 0.6, -0.6]))
        keys = np.flatnonzero(data.visible[i])
        row = data.bias[i, keys]
        self.limits(self.row_axes, x=(-1, length), y=_around_zero(bias))
        most = float(max(data.biased[i].max(), data.plain[i].max()))
        top = 1.05 * 2.0 ** np.ceil(np.log2(max(most, 0.05)))
        self.limits(self.stem_axes, x=(-1, length), y=(-top, top))
        self.row.set_data(keys, row)
        for stems, weights, sign in ((self.biased_stems, data.biased, 1), (self.plain_stems, data.plain, -1)):
            heights = np.zeros((len(keys), 3))
            heights[:, 1], heights[:, 2] = sign * weights[i, keys], np.nan
            stems.set_data(np.repeat(keys, 3), heights.reshape(-1))
        for line in self.here:
            line.set_data([i, i], [0, 1])
        return self

    def grips(self, data):
        return {"query": self.grip(self.bias_axes, 0, data.query, anywhere=True)}

    def words(self, data):
        right, top = self.stem_axes.get_xlim()[0], self.stem_axes.get_ylim()[1]
        yield self.word(_("with the bias"), self.stem_axes, right, 0.93 * top, WITH)
        yield self.word(_("without it"), self.stem_axes, right, -0.93 * top, WITHOUT)


def _around_zero(bias: NDArray) -> tuple[float, float]:
    """Return limits that hold the bias and zero, in steps, so that the scale keeps still while a row moves."""
    low, high = float(bias.min()), float(bias.max())
    if low == high:
        return -1.0, 1.0
    step = 2.0 ** np.ceil(np.log2((high - low) / 4))
    low, high = step * np.floor(low / step), step * np.ceil(high / step)
    margin = 0.06 * (high - low)
    return low - margin, high + margin
