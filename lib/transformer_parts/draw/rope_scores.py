"""RoPE's score against the offset, and under it what each pair of channels adds to it."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import Envelope, HeatMap
from transformer_parts.draw.overlay import apart
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.rope_scores import DistanceCounts


def _none() -> NDArray:
    return np.empty(0)


@dataclass(frozen=True, kw_only=True)
class ScoreCurve:
    """The score at every whole offset of a range, with what it is compared with."""

    envelope: Envelope  # the curve by columns: its middles are the offsets of everything below that has shape (N,)
    # wave_offsets, wave (N',): the line through the curve: between whole offsets where they can be distinguished, else
    # the columns' means
    wave_offsets: NDArray
    wave: NDArray
    pairs: NDArray  # (P, N): what each pair of channels adds, the mean around each column; the fastest pair first
    largest_pair: float  # the most that a pair can add at any offset
    largest: float  # the sum of what all pairs can add: no score exceeds it at any offset
    # band_offsets, mean, deviation (N''), or empty: the score over other content
    band_offsets: NDArray = field(default_factory=_none)
    mean: NDArray = field(default_factory=_none)
    deviation: NDArray = field(default_factory=_none)
    # bound_offsets, bound (N''''), or empty: RoFormer's bound, at one offset of each column and at 0
    bound_offsets: NDArray = field(default_factory=_none)
    bound: NDArray = field(default_factory=_none)
    # dot_offsets, dots (N''',): scores shown one by one: the points of the curve, or measured ones
    dot_offsets: NDArray = field(default_factory=_none)
    dots: NDArray = field(default_factory=_none)
    measured: bool = False  # whether the dots are measured
    causal: bool = False  # whether no query attends to a key after it, so that offsets above 0 do not occur
    offset: int  # offset, score: the marked place on the curve
    score: float
    positions: tuple[int, int]  # m of the query and n of the key, whose difference is the offset
    turned_score: float  # the score from turning both by their positions


@dataclass(frozen=True, kw_only=True)
class SyntheticCurve(ScoreCurve):
    """A curve of made content, with the numbers of its table."""

    inner_product: float  # the turned vectors' inner product, before the scale
    counts: DistanceCounts  # how often the score is negative and how often a step further raises it, over the range
    mean_here: float | None  # mean_here, deviation_here: over random content at the marked offset
    deviation_here: float | None
    bound_here: float  # RoFormer's bound at the marked offset


@dataclass(frozen=True, kw_only=True)
class HeadCurve(ScoreCurve):
    """A curve of a real head's content, with the numbers of its table."""

    query_name: str  # query_name, key_name: the tokens, or that it is the mean
    key_name: str
    peak: int  # peak, peak_score: where the curve is highest, up to offset 0
    peak_score: float
    r_squared: float  # the share of the variance of the head's scores over the passage that the curve explains
    mean_here: float  # mean_here, deviation_here: over every query with every key at the marked offset
    deviation_here: float


class ScoreCurveView(View[ScoreCurve]):
    """Above, the score against the offset; below, what each pair adds, red for more and blue for less."""

    size = (680, 430)

    def build(self) -> None:
        self.curve_axes = theme.style(self.fig.add_axes((0.10, 0.375, 0.87, 0.595)), y="$s$")
        self.curve_axes.tick_params(labelbottom=False)
        future = self.curve_axes.axvspan(0, 1, facecolor=theme.GRID, edgecolor=theme.FAINT, hatch="//", linewidth=0)
        self.future = self.moving(future)
        self.curve_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        band = self.curve_axes.fill_between([0.0], [0.0], [0.0], color=theme.QUERY, alpha=0.18, linewidth=0)
        reach = self.curve_axes.fill_between([0.0], [0.0], [0.0], color=theme.FAINT, linewidth=0)
        self.band, self.reach = self.moving(band), self.moving(reach)
        self.edges = [self._line(color=theme.QUERY, linewidth=0.8) for _ in range(2)]
        self.mean = self._line(color=theme.QUERY, linewidth=theme.LINE, linestyle="--")
        self.bound = self._line(color=theme.KEY, linewidth=theme.THIN)
        self.largest = self._line(color=theme.KEY, linewidth=theme.LINE, linestyle=":")
        self.measured = self._line(color=theme.KEY, linestyle="", marker="o", markersize=2.2, markeredgewidth=0)
        self.wave = self._line(color=theme.INK, linewidth=1.3)
        self.points = self._line(color=theme.INK, linestyle="", marker="o", markersize=3.4)
        self.mark = self._line(
            color=theme.THIRD,
            linestyle="",
            marker="D",
            markersize=10,
            markeredgecolor=theme.INK,
            zorder=6,
            clip_on=False,
        )

        self.pair_axes = theme.style(self.fig.add_axes((0.10, 0.14, 0.87, 0.20)), x="$n-m$", y="$i$", grid=False)
        for axes in (self.curve_axes, self.pair_axes):
            axes.yaxis.set_label_coords(-0.075, 0.5)
        self.pair_axes.yaxis.get_major_locator().set_params(integer=True, nbins=4, min_n_ticks=1)
        self.pairs = self.moving(HeatMap(self.pair_axes))
        (where,) = self.pair_axes.plot([], [], color=theme.INK, linewidth=theme.THIN)
        self.where = self.moving(where)

    def _line(self, **look):
        (line,) = self.curve_axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: ScoreCurve) -> Self:
        x = data.envelope.middles
        half = (x[1] - x[0]) / 2
        ends = (x[0] - half, x[-1] + half)
        self.limits(self.curve_axes, x=ends, y=self._heights(data))
        self.limits(self.pair_axes, x=ends, y=(len(data.pairs) - 0.5, -0.5))

        self.future.set(x=0.5, width=ends[1] - 0.5 if data.causal else 0)
        low, high = data.mean - data.deviation, data.mean + data.deviation
        self.band.set_data(*_between(data.band_offsets, low, high, len(low) > 0))
        self.mean.set_data(data.band_offsets, data.mean)
        for edge, height in zip(self.edges, (low, high), strict=True):
            edge.set_data(data.band_offsets, height)
        self.reach.set_data(*_between(x, data.envelope.lowest, data.envelope.highest, half > 0.5))
        self.wave.set_data(data.wave_offsets, data.wave)
        shown = len(data.bound) > 0
        self.bound.set_data(data.bound_offsets, data.bound)
        self.largest.set_data(*((ends, [data.largest] * 2) if shown else ([], [])))
        for line, wanted in ((self.measured, data.measured), (self.points, not data.measured)):
            line.set_data(*((data.dot_offsets, data.dots) if wanted else ([], [])))
        self.mark.set_data([data.offset], [data.score])

        self.pairs.set_cells(data.pairs, data.largest_pair)
        self.where.set_data([data.offset] * 2, [len(data.pairs) - 0.5, -0.5])
        return self

    def grips(self, data):
        return {
            "offset": self.grip(self.curve_axes, data.offset, data.score, anywhere=True, down_to=self.pair_axes),
        }

    @staticmethod
    def _heights(data: ScoreCurve) -> tuple[float, float]:
        """Return limits in coarse steps, so that the scale keeps still during a drag."""
        shown = [data.envelope.lowest, data.envelope.highest, data.wave, data.dots, data.bound]
        shown += [data.mean - data.deviation, data.mean + data.deviation]
        low = min([-0.4, *(float(part.min()) for part in shown if len(part))])
        high = max([0.4, *(float(part.max()) for part in shown if len(part))])
        power = 10.0 ** np.floor(np.log10((high - low) / 7))
        step = power * next(factor for factor in (1, 2, 5, 10) if factor * power * 7 >= high - low)
        return step * np.floor(low / step - 0.1), step * np.ceil(high / step + 0.1)


def _between(x: NDArray, low: NDArray, high: NDArray, shown: bool) -> tuple:
    return (x, low, high) if shown else (np.zeros(1), np.zeros(1), np.zeros(1))


@dataclass(frozen=True)
class Spectrum:
    """How long each pair takes for a turn, and its phase at an offset."""

    wavelengths: NDArray  # (P,): positions per turn, fastest first
    reference: NDArray  # (P,): the same for the base that it is compared with
    trained_length: int  # how many positions the model has seen
    offset: int  # a distance between query and key
    # (P,): cos of the angle by which the offset turns each pair apart: what it adds to the score of q = k, per unit of
    # amplitude
    alignment: NDArray

    @property
    def complete(self) -> NDArray:
        """Whether each pair makes a whole turn within the trained length."""
        return self.wavelengths <= self.trained_length


class RopeSpectrumView(View[Spectrum]):
    """Above, the wavelengths on a logarithmic scale; below, where each pair's key points at the offset."""

    size = (680, 420)

    def build(self) -> None:
        self.waves = theme.style(self.fig.add_axes((0.10, 0.40, 0.80, 0.57)), y=r"$\lambda_i$")
        self.waves.set(yscale="log", ylim=(0.7, 2e8))
        self.waves.set_yticks([10.0**power for power in range(0, 9, 2)])
        self.waves.minorticks_off()
        self.waves.tick_params(labelbottom=False)
        self.waves.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        self.cosines = theme.style(self.fig.add_axes((0.10, 0.145, 0.80, 0.215)), x="$i$", y=r"$\cos\,\Delta\theta_i$")
        self.cosines.set(ylim=(-1.15, 1.15), yticks=(-1, 0, 1))
        self.cosines.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.cosines.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        for axes in (self.waves, self.cosines):
            axes.yaxis.set_label_coords(-0.07, 0.5)

        self.unfinished = [
            self.moving(axes.axvspan(0, 1, facecolor=theme.KEY, alpha=0.12, linewidth=0))
            for axes in (self.waves, self.cosines)
        ]
        self.reference = self._line(self.waves, color=theme.FAINT, linewidth=theme.LINE)
        self.trained, self.trained_symbol = self._level(theme.INK, "$L$", "--")
        self.distance, self.distance_symbol = self._level(theme.THIRD, r"$|\Delta|$", "-.")
        self.whole = self._line(self.waves, color=theme.QUERY, linestyle="", marker="o", markersize=5)
        self.partial = self._line(
            self.waves, color=theme.KEY, linestyle="", marker="s", markersize=5.5, markerfacecolor=theme.PAPER
        )
        self.stems = LineCollection([], colors=theme.THIRD, capstyle="butt")
        self.cosines.add_collection(self.stems, autolim=False)
        self.moving(self.stems)
        self.mean = self._line(self.cosines, color=theme.INK, linewidth=theme.LINE, linestyle="--")

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def _level(self, colour: str, symbol: str, dashes: str) -> tuple:
        line = self._line(self.waves, color=colour, linewidth=theme.LINE, linestyle=dashes)
        text = self.waves.text(
            1.02, 1, symbol, color=colour, fontsize=theme.SYMBOL, va="center",
            transform=self.waves.get_yaxis_transform(),
        )  # fmt: skip
        return line, self.moving(text)

    def update(self, data: Spectrum) -> Self:
        pairs = len(data.wavelengths)
        index = np.arange(pairs)
        ends = (-0.6, pairs - 0.4)
        for axes in (self.waves, self.cosines):
            self.limits(axes, x=ends)
        start = int(data.complete.sum()) - 0.5
        for patch in self.unfinished:
            patch.set(x=start, width=0 if data.complete.all() else ends[1] - start)
        self.reference.set_data(index, data.reference)
        self.whole.set_data(index[data.complete], data.wavelengths[data.complete])
        self.partial.set_data(index[~data.complete], data.wavelengths[~data.complete])
        # Two symbols at one height would hide each other.
        apart = np.log10(data.trained_length / data.offset)
        aside = max(0.0, 0.35 - abs(apart) / 2) * (1 if apart >= 0 else -1)
        self.trained.set_data(ends, [data.trained_length] * 2)
        self.trained_symbol.set_y(data.trained_length * 10**aside)
        self.distance.set_data(ends, [data.offset] * 2)
        self.distance_symbol.set_y(data.offset * 10**-aside)
        self.stems.set_segments(np.stack([np.stack([index, 0 * index], -1), np.stack([index, data.alignment], -1)], 1))
        self.stems.set_linewidth(min(12.0, 0.6 * 72 / 100 * 0.80 * self.size[0] / pairs))
        self.mean.set_data(ends, [data.alignment.mean()] * 2)
        return self

    def grips(self, data):
        right = len(data.wavelengths) - 0.4
        return {
            "trained": self.grip(self.waves, right, data.trained_length, anywhere=True),
            "offset": self.grip(self.waves, 0.5 * right, data.offset, anywhere=True),
        }

    def words(self, data):
        levels = (
            self.word(_("trained length"), self.waves, -0.6, data.trained_length, up=9),
            self.word(_("offset"), self.waves, -0.6, data.offset, theme.THIRD, up=9),
        )
        yield from apart(levels, 15)
