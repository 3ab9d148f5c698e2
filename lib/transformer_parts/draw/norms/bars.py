"""RMSNorm beside LayerNorm: a short vector as bars."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.norms import Moments

RMS_NORM, LAYER_NORM, DIFFERENCE = theme.FIRST, theme.SECOND, theme.THIRD
DIFFERENCE_SYMBOL = r"$\Delta$"


@dataclass(frozen=True)
class Pair:
    """A vector, what both norms make of it, and its moments."""

    x: NDArray  # (D,): what enters the norms
    rms_norm: NDArray  # rms_norm, layer_norm (D,): what leaves them
    layer_norm: NDArray
    moments: Moments  # mean, RMS and standard deviation of `x`
    angle: float  # between the two outputs, in radians; NaN where one of them is zero

    @property
    def difference(self) -> NDArray:
        """LayerNorm's output less RMSNorm's."""
        return self.layer_norm - self.rms_norm


class NormBarsView(View[Pair]):
    """Above, the input with its mean and RMS; below, both outputs and their difference, channel by channel."""

    size = (680, 440)
    places = (-0.22, 0.0, 0.22)
    #: Heights of the axes, in few steps, so that bars grow and shrink with the vector.
    input_spans = (5.0, 10.0, 1e2, 1e3, 1e4)
    output_spans = (2.2, 6.6)

    def build(self) -> None:
        self.input_axes = self._axes(0.565, "$x_i$")
        self.output_axes = self._axes(0.12, "$y_i$")
        self.output_axes.set_xlabel("$i$", labelpad=0)
        self.input_axes.xaxis.set_visible(False)
        self.input_bars = self._bars(self.input_axes, theme.FAINT, "o", width=40)
        # The mean, which LayerNorm subtracts; and RMS, by which RMSNorm divides.
        self.mean_level = self._level(LAYER_NORM, (0, (5, 2)), r"$\mu$", 1.012)
        self.rms_level = self._level(RMS_NORM, (0, (1, 1)), r"$\mathrm{RMS}$", 1.05)
        self.rms_bars = self._bars(self.output_axes, RMS_NORM, "o")
        self.layer_bars = self._bars(self.output_axes, LAYER_NORM, "s")
        self.difference_bars = self._bars(self.output_axes, DIFFERENCE, "D")
        self.shows = {
            "x": self.input_bars,
            "mean": self.mean_level,
            "rms": self.rms_level,
            "rms_norm": self.rms_bars,
            "layer_norm": self.layer_bars,
            "difference": self.difference_bars,
        }

    def _axes(self, bottom: float, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.095, bottom, 0.765, 0.41)))
        axes.axhline(0, color=theme.INK, linewidth=theme.THIN, zorder=4)
        axes.text(0.01, 0.99, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="top", transform=axes.transAxes)
        axes.set_xticks(range(1, 9))
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 3, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        axes.grid(visible=False, axis="x")
        return axes

    def _bars(self, axes: Axes, colour: str, marker: str, width: float = 21) -> tuple[LineCollection, Line2D]:
        bars = LineCollection([], colors=colour, linewidths=width, capstyle="butt", zorder=2)
        axes.add_collection(bars, autolim=False)
        (ends,) = axes.plot(
            [], [], linestyle="", marker=marker, markersize=8, color=colour, markeredgecolor=theme.INK, zorder=3
        )
        return self.moving(bars), self.moving(ends)

    def _level(self, colour: str, dash: tuple, symbol: str, place: float) -> tuple[Line2D, Text]:
        # The symbols of the two levels have columns of their own, so that they never cover each other.
        line = self.input_axes.axhline(0, color=colour, linewidth=theme.LINE, linestyle=dash, zorder=3)
        text = self.input_axes.text(
            place, 0, symbol, color=colour, fontsize=theme.SYMBOL, va="center",
            transform=self.input_axes.get_yaxis_transform(),
        )  # fmt: skip
        return self.moving(line), self.moving(text)

    def update(self, data: Pair) -> Self:
        channels = np.arange(1, len(data.x) + 1)
        for axes, values, spans in (
            (self.input_axes, data.x, self.input_spans),
            (self.output_axes, (data.rms_norm, data.layer_norm, data.difference), self.output_spans),
        ):
            highest = float(np.abs(values).max())
            span = 1.12 * next((span for span in spans if span >= highest), spans[-1])
            self.limits(axes, x=(0.5, len(channels) + 0.5), y=(-span, span))
        self._set(self.input_bars, channels, data.x)
        for bars, place, values in zip(
            (self.rms_bars, self.layer_bars, self.difference_bars),
            self.places,
            (data.rms_norm, data.layer_norm, data.difference),
            strict=True,
        ):
            self._set(bars, channels + place, values)
        for (line, text), level in ((self.mean_level, data.moments.mean), (self.rms_level, data.moments.rms)):
            line.set_ydata([level, level])
            text.set_y(float(level))
        return self

    def grips(self, data):
        width = 1 / len(data.x)
        left, top, across, down = self.grip(self.input_axes, 1, 0, anywhere=True).box
        return {
            f"x{i + 1}": Grip(
                *self.at(self.input_axes, i + 1, x),
                (round(left + i * width * across), top, round(width * across), down),
            )
            for i, x in enumerate(data.x)
        }

    def words(self, data):
        for axes, text in ((self.input_axes, _("input")), (self.output_axes, _("after the norm"))):
            left, top = self.at(axes, axes.get_xlim()[0], axes.get_ylim()[1])
            yield Word(text, left + 30, top + 10)
        names = ((_("RMSNorm"), RMS_NORM), (_("LayerNorm"), LAYER_NORM), (_("difference"), DIFFERENCE))
        right, top = self.at(self.output_axes, self.output_axes.get_xlim()[1], self.output_axes.get_ylim()[1])
        for i, (text, colour) in enumerate(names):
            yield Word(text, right, top + 60 + 30 * i, colour)

    @staticmethod
    def _set(bars: tuple[LineCollection, Line2D], places: NDArray, values: NDArray) -> None:
        body, ends = bars
        body.set_segments([[(place, 0), (place, value)] for place, value in zip(places, values, strict=True)])
        ends.set_data(places, values)
