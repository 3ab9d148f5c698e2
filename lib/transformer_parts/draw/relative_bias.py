"""T5's buckets as a staircase: on both sides of the query, and over the logarithm of the distance."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

BEFORE, AFTER = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Buckets:
    """The buckets of the relative positions around a query.

    Attributes
    ----------
    offsets : ndarray, shape (N,)
        j − i, from −2·max_distance to 2·max_distance.
    buckets : ndarray, shape (N,)
        The bucket of each.
    starts : ndarray, shape (n,)
        Smallest distance of each bucket of one direction.
    curve : ndarray, shape (2, C)
        Distances and what is rounded down to give the bucket.
    offset, bucket : int
        The relative position that is looked at.
    bidirectional : bool
        Whether keys after the query have buckets of their own.
    num_buckets, max_distance : int
        T5's two numbers.
    """

    offsets: NDArray
    buckets: NDArray
    starts: NDArray
    curve: NDArray
    offset: int
    bucket: int
    bidirectional: bool
    num_buckets: int
    max_distance: int

    @property
    def exact(self) -> int:
        """Buckets of one direction that hold a single distance each."""
        return len(self.starts) // 2

    @property
    def shared(self) -> NDArray:
        """The relative positions in the bucket that is looked at."""
        return self.offsets[self.buckets == self.bucket]


class BucketsView(View[Buckets]):
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


def _steps(offsets: NDArray, buckets: NDArray) -> tuple[NDArray, NDArray]:
    """Return a staircase with a flat piece around each whole number, its corners alone."""
    changes = np.flatnonzero(np.diff(buckets))
    edges = np.concatenate([[offsets[0] - 0.5], np.repeat(offsets[changes] + 0.5, 2), [offsets[-1] + 0.5]])
    return edges, np.repeat(buckets[np.append(changes, len(buckets) - 1)], 2)


def _held(starts: NDArray, end: int) -> tuple[NDArray, NDArray]:
    """Return the staircase that rises where a bucket starts."""
    x = np.append(np.repeat(starts, 2)[1:], end)
    return np.maximum(x, 0.5), np.repeat(np.arange(len(starts)), 2)
