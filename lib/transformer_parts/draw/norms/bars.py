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
from transformer_parts.draw.view import View
from transformer_parts.maths.norms import Moments

RMS_NORM, LAYER_NORM, DIFFERENCE = theme.FIRST, theme.SECOND, theme.THIRD
RMS_NORM_SYMBOL = r"$\frac{x}{\mathrm{RMS}}$"
LAYER_NORM_SYMBOL = r"$\frac{x-\mu}{\sigma}$"
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
        self.output_axes.legend(
            handles=[self.rms_bars[1], self.layer_bars[1], self.difference_bars[1]],
            labels=[RMS_NORM_SYMBOL, LAYER_NORM_SYMBOL, DIFFERENCE_SYMBOL],
            loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=theme.SYMBOL + 2, frameon=False,
            handlelength=0.8, handletextpad=0.4, borderpad=0.1, labelspacing=1.1,
        )  # fmt: skip

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
        for axes, values in (
            (self.input_axes, data.x),
            (self.output_axes, (data.rms_norm, data.layer_norm, data.difference)),
        ):
            span = 1.12 * theme.step_above(float(np.abs(values).max()))
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

    @staticmethod
    def _set(bars: tuple[LineCollection, Line2D], places: NDArray, values: NDArray) -> None:
        body, ends = bars
        body.set_segments([[(place, 0), (place, value)] for place, value in zip(places, values, strict=True)])
        ends.set_data(places, values)
