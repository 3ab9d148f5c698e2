"""Positions in 16 bits, and the errors of the angles."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.context_extension.frequencies import pair_limits
from transformer_parts.draw.view import View
from transformer_parts.language import _


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
