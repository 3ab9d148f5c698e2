"""Context extension pair by pair: how much each is slowed, and the angles it reaches against those it has seen."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import Envelope
from transformer_parts.draw.overlay import Word, spread_out
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.context_extension import AngleCoverage


@dataclass(frozen=True)
class Frequencies:
    """What a method does to each pair."""

    coverage: AngleCoverage  # ratios and angles by pair
    factor: int  # s, the extension that was asked for
    trained_length: int  # trained_length, length: L, and the length of the present input
    length: int
    rope_base: float  # the base of the frequencies: the new one where the method is a change of base
    attention_factor: float  # multiplies query and key


class ExtensionFrequenciesView(View[Frequencies]):
    """Above, θ'/θ of each pair; below, turns made in training (small dots) and in the present input.

    Pairs that made no whole turn in training are on grey; those that reach an angle they had not seen are squares.
    """

    size = (680, 460)

    def build(self) -> None:
        self.ratio_axes = theme.style(self.fig.add_axes((0.115, 0.60, 0.865, 0.37)), y=r"$\theta'_i\,/\,\theta_i$")
        self.ratio_axes.set_yscale("log", base=2)
        self.ratio_axes.yaxis.set_major_formatter(FuncFormatter(_as_fraction))
        self.ratio_axes.tick_params(labelbottom=False)
        self.turn_axes = theme.style(
            self.fig.add_axes((0.115, 0.135, 0.865, 0.42)), x="$i$", y=r"$m\,\theta_i\,/\,2\pi$"
        )
        self.turn_axes.set_yscale("log")
        for axes in (self.ratio_axes, self.turn_axes):
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_label_coords(-0.085, 0.5)
            axes.xaxis.get_major_locator().set_params(integer=True)
        self.slow = [
            self.moving(axes.axvspan(0, 1, facecolor=theme.GRID, edgecolor="none", alpha=0.75, zorder=0.6))
            for axes in (self.ratio_axes, self.turn_axes)
        ]
        self.floor = self.moving(self.ratio_axes.axhline(1, color=theme.FAINT, linewidth=theme.THIN, linestyle="--"))
        self.whole_turn = self.moving(self.turn_axes.axhline(1, color=theme.INK, linewidth=theme.THIN, linestyle="--"))
        self.ratios = self._dots(self.ratio_axes, theme.FIRST, 4.5)
        self.ratios_beyond = self._dots(self.ratio_axes, theme.SECOND, 4.5)
        self.seen = self._line(self.turn_axes, color=theme.INK, linewidth=theme.THIN, marker=".", markersize=3.5)
        self.reached = self._dots(self.turn_axes, theme.FIRST, 4.5)
        self.reached_beyond = self._dots(self.turn_axes, theme.SECOND, 4.5)
        self.shows = {"beyond": (self.ratios_beyond, self.reached_beyond), "ratio": (self.ratios, self.ratios_beyond)}

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def _dots(self, axes, colour: str, size: float):
        return self._line(axes, color=colour, linestyle="", marker=theme.MARKERS[colour], markersize=size)

    def update(self, data: Frequencies) -> Self:
        coverage = data.coverage
        pairs = np.arange(len(coverage.ratio))
        ends = pair_limits(len(pairs))
        lowest = min(1 / data.factor, float(coverage.ratio.min()))
        self.limits(self.ratio_axes, x=ends, y=(2.0 ** (-3.4 if lowest >= 1 / 8 else -6.6), 2**0.35))
        # Room for lengths about the trained one, so that the scale keeps still while the length is dragged.
        turns = np.concatenate([coverage.seen, 64 * coverage.seen, coverage.reached]) / (2 * np.pi)
        decades = np.floor(np.log10(turns.min())), np.ceil(np.log10(turns.max()))
        self.limits(self.turn_axes, x=ends, y=(10.0 ** min(decades[0], -1), 10.0 ** max(decades[1], 1)))

        first_slow = int(coverage.complete.sum())
        for span in self.slow:
            span.set(x=first_slow - 0.5, width=len(pairs) - first_slow)
        self.floor.set_ydata([1 / data.factor] * 2)
        self.seen.set_data(pairs, coverage.seen / (2 * np.pi))
        for dots, which, values in (
            (self.ratios, ~coverage.beyond, coverage.ratio),
            (self.ratios_beyond, coverage.beyond, coverage.ratio),
            (self.reached, ~coverage.beyond, coverage.reached / (2 * np.pi)),
            (self.reached_beyond, coverage.beyond, coverage.reached / (2 * np.pi)),
        ):
            dots.set_data(pairs[which], values[which])
        return self

    def grips(self, data):
        return {"length": self.grip(self.turn_axes, 0, data.coverage.reached[0] / (2 * np.pi), anywhere=True)}

    def words(self, data):
        left, right = self.turn_axes.get_xlim()
        yield self.word(_("slowed s times"), self.ratio_axes, left, 1 / data.factor, theme.FAINT, up=9)
        yield self.word(_("one turn"), self.turn_axes, left, 1, up=-9)
        top = self.turn_axes.get_ylim()[1]
        for i, (text, colour) in enumerate(
            (
                (_("black: turns in training"), theme.INK),
                (_("blue: turns at the length l"), theme.FIRST),
                (_("red: angles never seen"), theme.SECOND),
            )
        ):
            yield self.word(text, self.turn_axes, right, top, colour, "left", up=-10 - 17 * i)
        if not data.coverage.complete.all():
            text = _("grey: no whole turn in training")
            yield self.word(text, self.ratio_axes, right, self.ratio_axes.get_ylim()[1], theme.FAINT, "left", up=-4)


def pair_limits(pairs: int) -> tuple[float, float]:
    """Return limits of an axis of pairs, in steps, so that it keeps still while the head's width is dragged.

    Examples
    --------
    >>> pair_limits(64), pair_limits(61)
    ((-0.7, 63.7), (-0.7, 63.7))
    """
    step = 2 ** max(0, pairs.bit_length() - 4)
    return -0.7, -(-pairs // step) * step - 0.3


def _as_fraction(value: float, position: int | None = None) -> str:
    return str(Fraction(value).limit_denominator(4096))


# The largest number of distances that are shown as single dots.
FEW = 32


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Scores of one query with equal keys at every distance, and the entropy of its attention over the nearest n."""

    # before, after: the scores at distances 0, 1, … by columns: as trained, and extended (with the attention factor)
    before: Envelope
    after: Envelope
    counts: NDArray  # (N,): numbers n of keys that the entropies are drawn at
    # uniform, entropy_before, entropy_bare, entropy_after (N,): ln n, as trained, extended without and extended with
    # the attention factor; in nats
    uniform: NDArray
    entropy_before: NDArray
    entropy_bare: NDArray
    entropy_after: NDArray
    trained_length: int  # trained_length, length: L, and s·L
    length: int
    attention_factor: float  # multiplies query and key
    near: tuple[tuple[float, float], ...]  # the scores before and after at distances 0 and 1
    # at s·L keys: as trained, extended without the factor, with it on the query alone, with it on query and key
    entropies: tuple[float, float, float, float]
    entropy_trained: float  # at L keys, as trained


class ExtensionScoresView(View[Attention]):
    """Above, the score against the distance; below, the entropy of attention over all keys up to that distance.

    Black is the model as trained, blue the extended one, dashed without the attention factor; grey begins where
    training ended; the dotted line is the entropy of equal weights.
    """

    size = (680, 460)

    def build(self) -> None:
        self.score_axes = theme.style(self.fig.add_axes((0.10, 0.595, 0.88, 0.375)), y="$s$")
        self.score_axes.tick_params(labelbottom=False)
        self.score_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.entropy_axes = theme.style(self.fig.add_axes((0.10, 0.135, 0.88, 0.415)), x="$m-n$", y="$H$")
        for axes in (self.score_axes, self.entropy_axes):
            axes.yaxis.set_label_coords(-0.07, 0.5)
        self.unseen = [
            self.moving(axes.axvspan(0, 1, facecolor=theme.GRID, edgecolor="none", alpha=0.75, zorder=0.6))
            for axes in (self.score_axes, self.entropy_axes)
        ]
        self.reach_before = self._band(theme.INK, 0.22)
        self.reach_after = self._band(theme.FIRST, 0.35)
        self.score_before = self._line(self.score_axes, color=theme.INK, linewidth=theme.THIN, markersize=4)
        self.score_after = self._line(self.score_axes, color=theme.FIRST, linewidth=theme.LINE, markersize=5)
        self.uniform = self._line(self.entropy_axes, color=theme.INK, linewidth=theme.THIN, linestyle=":")
        self.entropy_before = self._line(self.entropy_axes, color=theme.INK, linewidth=theme.LINE)
        self.entropy_bare = self._line(self.entropy_axes, color=theme.FIRST, linewidth=theme.LINE, linestyle="--")
        self.entropy_after = self._line(self.entropy_axes, color=theme.FIRST, linewidth=theme.LINE)
        self.shows = {
            "before": (self.score_before, self.entropy_before), "bare": (self.entropy_bare,),
            "after": (self.score_after, self.entropy_after),
        }  # fmt: skip

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def _band(self, colour: str, alpha: float):
        band = self.score_axes.fill_between([0.0], [0.0], [0.0], color=colour, alpha=alpha, linewidth=0)
        return self.moving(band)

    def update(self, data: Attention) -> Self:
        distances = data.counts - 1
        last = float(distances[-1])
        ends = (-0.01 * last, 1.01 * last)
        scores = [part for curve in (data.before, data.after) for part in (curve.lowest, curve.highest)]
        self.limits(self.score_axes, x=ends, y=_heights(scores))
        self.limits(self.entropy_axes, x=ends, y=(0, np.ceil(1.05 * data.uniform[-1])))
        for span in self.unseen:
            span.set(x=data.trained_length, width=max(0.0, ends[1] - data.trained_length))
        for curve, reach, line in (
            (data.before, self.reach_before, self.score_before),
            (data.after, self.reach_after, self.score_after),
        ):
            reach.set_data(curve.middles, curve.lowest, curve.highest)
            line.set_data(curve.middles, curve.mean)
            line.set_marker("o" if len(distances) <= FEW else "")
        for line, entropy in (
            (self.uniform, data.uniform),
            (self.entropy_before, data.entropy_before),
            (self.entropy_bare, data.entropy_bare),
            (self.entropy_after, data.entropy_after),
        ):
            line.set_data(distances, entropy)
        return self

    def grips(self, data):
        if data.trained_length > self.entropy_axes.get_xlim()[1]:
            return {}
        return {"factor": self.grip(self.entropy_axes, data.trained_length, 0, anywhere=True)}

    def words(self, data):
        left, right = self.entropy_axes.get_xlim()
        names = {
            _("equal weights"): (data.uniform, theme.INK),
            _("as trained"): (data.entropy_before, theme.INK),
            _("without the attention factor"): (data.entropy_bare, theme.FIRST),
            _("extended"): (data.entropy_after, theme.FIRST),
        }
        ends = {
            name: float(self.at(self.entropy_axes, right, line[-1])[1]) - 8 for name, (line, _look) in names.items()
        }
        for name, height in spread_out(ends, 15).items():
            yield Word(name, self.at(self.entropy_axes, right, 0)[0], height, names[name][1], "left")
        if data.trained_length < 0.7 * right:
            text = _("grey: beyond training")
            yield self.word(text, self.score_axes, right, self.score_axes.get_ylim()[1], theme.FAINT, "left", up=-6)
        yield self.word(_("score"), self.score_axes, left, self.score_axes.get_ylim()[1], up=-6)
        yield self.word(_("entropy"), self.entropy_axes, left, self.entropy_axes.get_ylim()[1], up=-6)


def _heights(parts: list[NDArray]) -> tuple[float, float]:
    """Return limits in coarse steps, so that the scale keeps still during a drag."""
    low = min(0.0, *(float(part.min()) for part in parts))
    high = max(0.5, *(float(part.max()) for part in parts))
    step = 2.0 ** np.floor(np.log2((high - low) / 5))
    return step * np.floor(low / step - 0.1), step * np.ceil(high / step + 0.1)


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Positions around m as a format holds them, and the error of the angle at m for each pair."""

    position: int  # m
    steps: NDArray  # steps, rounded_steps (N,): k, and what m + k is rounded to, less m
    rounded_steps: NDArray
    # by what was rounded (positions, frequencies or angles): the size of the angle's error at m, radians
    errors: dict[str, NDArray]
    spacing: float  # from m to the format's next number
    distinct: int  # numbers that the positions from 0 up to m become
    dtype: str  # the format


class PositionPrecisionView(View[Precision]):
    """Above, positions around m and the numbers they become; below, the angle's error at m, pair by pair."""

    size = (680, 460)
    lowest = 1e-7

    def build(self) -> None:
        self.step_axes = theme.style(self.fig.add_axes((0.115, 0.64, 0.865, 0.33)), x="$k$", y=r"$\mathrm{rd}(m+k)-m$")
        self.error_axes = theme.style(self.fig.add_axes((0.115, 0.13, 0.865, 0.365)), x="$i$", y=r"$|\varepsilon_i|$")
        self.error_axes.set_yscale("log")
        self.limits(self.error_axes, y=(self.lowest, 1e2))
        self.error_axes.xaxis.get_major_locator().set_params(integer=True)
        for axes in (self.step_axes, self.error_axes):
            axes.yaxis.set_label_coords(-0.085, 0.5)
        self.limits(self.step_axes, x=(-16.7, 16.7), y=(-20, 20))
        self.step_axes.set_xticks(range(-16, 17, 4))
        self.step_axes.set_yticks(range(-16, 17, 8))
        self.step_axes.plot([-16, 16], [-16, 16], color=theme.FAINT, linewidth=theme.THIN)
        self.error_axes.axhline(np.pi, color=theme.INK, linewidth=theme.THIN, linestyle="--")
        self.error_axes.text(
            0.995,
            np.pi * 1.4,
            r"$\pi$",
            transform=self.error_axes.get_yaxis_transform(),
            ha="right",
            color=theme.INK,
            fontsize=theme.TEXT,
        )
        self.no_error = self.moving(
            self.error_axes.text(
                0.5, 0.45, r"$\varepsilon_i=0$", transform=self.error_axes.transAxes, ha="center", color=theme.INK,
                fontsize=theme.SYMBOL,
            )
        )  # fmt: skip
        (steps,) = self.step_axes.plot(
            [], [], color=theme.FIRST, linestyle="", marker=theme.MARKERS[theme.FIRST], markersize=4.5
        )
        self.steps = self.moving(steps)
        self.errors = {}
        for name, colour, size in (
            ("angles", theme.THIRD, 7.5),
            ("frequencies", theme.SECOND, 4.0),
            ("positions", theme.FIRST, 4.0),
        ):
            (dots,) = self.error_axes.plot(
                [], [], color=colour, linestyle="", marker=theme.MARKERS[colour], markersize=size
            )
            self.errors[name] = self.moving(dots)
        self.shows = {"steps": (self.steps,)} | {name: (dots,) for name, dots in self.errors.items()}

    def update(self, data: Precision) -> Self:
        self.steps.set_data(data.steps, data.rounded_steps)
        pairs = np.arange(len(data.errors["positions"]))
        self.limits(self.error_axes, x=pair_limits(len(pairs)))
        for name, dots in self.errors.items():
            # No error has no place on a logarithmic scale.
            shown = data.errors[name] > 0
            dots.set_data(pairs[shown], data.errors[name][shown])
        self.no_error.set_visible(not any(errors.any() for errors in data.errors.values()))
        return self

    def words(self, data):
        yield self.word(_("what position m + k becomes"), self.step_axes, -16.7, 20, theme.FIRST, up=-8)
        yield self.word(_("grey: exact"), self.step_axes, -16.7, 20, theme.FAINT, up=-26)
        left, right = self.error_axes.get_xlim()
        yield self.word(_("half a turn"), self.error_axes, right - 0.05 * (right - left), np.pi, side="left", up=9)
        for i, (text, colour) in enumerate(
            (
                (_("positions rounded"), theme.FIRST),
                (_("frequencies rounded"), theme.SECOND),
                (_("angles rounded"), theme.THIRD),
            )
        ):
            place = left + 0.27 * i * (right - left)
            yield self.word(text, self.error_axes, place, self.error_axes.get_ylim()[1], colour, up=10)
