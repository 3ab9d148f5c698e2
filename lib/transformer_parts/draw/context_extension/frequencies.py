"""Context extension pair by pair: how much each is slowed, and the angles it reaches against those it has seen."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator

from transformer_parts.draw import theme
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
