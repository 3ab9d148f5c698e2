"""RMSNorm beside LayerNorm on a vector of hundreds of channels, one of which may dwarf the rest."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.norms.bars import DIFFERENCE, DIFFERENCE_SYMBOL, LAYER_NORM, RMS_NORM, Pair
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _


@dataclass(frozen=True)
class Channels:
    """A residual vector through both norms."""

    pair: Pair  # the vector, both outputs, the moments
    order: NDArray[np.intp]  # (D,): the channels from left to right
    largest: int  # the channel whose entry is largest in size
    text: str | None = None  # the token's text; None for random numbers


class NormResidualView(View[Channels]):
    """Three rows over the same channels: the input, both outputs, their difference.

    The scales are linear up to 1 (the difference's: 0.01) and logarithmic beyond, so that a channel of 20,000 fits
    beside channels of 1.  Dashed lines mark ±√D, the furthest an entry of a vector of RMS 1 can be.
    """

    size = (680, 480)

    def build(self) -> None:
        self.input_axes = self._axes(0.72, "$x_i$", 8e4, [1e2, 1e4], linear_up_to=1)
        self.output_axes = self._axes(0.395, "$y_i$", 200, [1, 10, 100], linear_up_to=1)
        self.difference_axes = self._axes(0.09, DIFFERENCE_SYMBOL, 8, [0.1, 1], linear_up_to=0.01)
        self.difference_axes.tick_params(labelbottom=True)
        self.difference_axes.text(1.012, -0.03, "$i$", fontsize=theme.SYMBOL, transform=self.difference_axes.transAxes)

        self.input_stems = self._stems(self.input_axes, theme.INK)
        self.rms_stems = self._stems(self.output_axes, RMS_NORM)
        (layer,) = self.output_axes.plot([], [], linestyle="", marker="s", markersize=1.8, color=LAYER_NORM, zorder=3)
        self.layer_points = self.moving(layer)
        self.difference_stems = self._stems(self.difference_axes, DIFFERENCE)
        self.mean = self.moving(
            self.input_axes.axhline(0, color=LAYER_NORM, linewidth=theme.LINE, linestyle=(0, (5, 2)), zorder=4)
        )
        self.bounds = [self._bound(sign) for sign in ("", "−")]
        self.marks = []
        for axes in (self.input_axes, self.output_axes, self.difference_axes):
            (mark,) = axes.plot(
                [], [], marker="D", markersize=8, color=theme.THIRD, markeredgecolor=theme.INK, zorder=5, clip_on=False
            )
            self.marks.append(self.moving(mark))
        self.shows = {
            "mean": (self.mean,),
            "largest": tuple(self.marks),
            "rms_norm": (self.rms_stems,),
            "layer_norm": (self.layer_points,),
            "difference": (self.difference_stems,),
        }

    def _axes(self, bottom: float, symbol: str, reach: float, ticks: list[float], *, linear_up_to: float) -> Axes:
        axes = theme.style(self.fig.add_axes((0.115, bottom, 0.805, 0.26)))
        axes.set_yscale("symlog", linthresh=linear_up_to, linscale=0.7)
        axes.set_ylim(-reach, reach)
        axes.yaxis.set_major_locator(FixedLocator([-tick for tick in ticks] + [0] + ticks))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        axes.tick_params(labelbottom=False)
        axes.grid(visible=False, axis="x")
        axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN, zorder=1)
        axes.text(0.01, 1.02, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="top", transform=axes.transAxes)
        return axes

    def _bound(self, sign: str) -> tuple[Line2D, Text]:
        line = self.output_axes.axhline(0, color=theme.INK, linewidth=theme.THIN, linestyle=(0, (6, 4)))
        text = self.output_axes.text(
            1.008, 0, f"${sign}\\sqrt{{D}}$", fontsize=theme.TEXT, va="center",
            transform=self.output_axes.get_yaxis_transform(),
        )  # fmt: skip
        return self.moving(line), self.moving(text)

    def _stems(self, axes: Axes, colour: str) -> Line2D:
        (stems,) = axes.plot([], [], color=colour, linewidth=1.0, solid_capstyle="butt", zorder=2)
        return self.moving(stems)

    def update(self, data: Channels) -> Self:
        pair, places = data.pair, np.arange(len(data.order))
        margin = 0.012 * len(places) + 0.5
        for axes in (self.input_axes, self.output_axes, self.difference_axes):
            self.limits(axes, x=(-margin, len(places) - 1 + margin))
        place = int(np.flatnonzero(data.order == data.largest)[0])
        series = (pair.x, pair.rms_norm, pair.difference)
        for stems, mark, values in zip(
            (self.input_stems, self.rms_stems, self.difference_stems), self.marks, series, strict=True
        ):
            # One line with gaps: zero, tip, gap, zero, tip, gap …; a tenth of the time of as many single lines.
            heights = np.zeros((len(places), 3))
            heights[:, 1], heights[:, 2] = values[data.order], np.nan
            stems.set_data(np.repeat(places, 3), heights.reshape(-1))
            stems.set_linewidth(max(1.0, 200 / len(places)))
            mark.set_data([place], [values[data.largest]])
        self.mean.set_ydata([pair.moments.mean] * 2)
        self.layer_points.set_data(places, pair.layer_norm[data.order])
        for (line, text), sign in zip(self.bounds, (1, -1), strict=True):
            line.set_ydata([sign * len(places) ** 0.5] * 2)
            text.set_y(sign * len(places) ** 0.5)
        return self

    def grips(self, data):
        axes = self.input_axes
        return {"mean": self.grip(axes, axes.get_xlim()[1], data.pair.moments.mean, anywhere=True)}

    def words(self, data):
        for axes, names in (
            (self.input_axes, ((_("input, and its mean (dashed)"), theme.INK),)),
            (self.output_axes, ((_("RMSNorm"), RMS_NORM), (_("LayerNorm"), LAYER_NORM))),
            (self.difference_axes, ((_("difference"), DIFFERENCE),)),
        ):
            left, top = self.at(axes, axes.get_xlim()[0], axes.get_ylim()[1])
            for i, (text, colour) in enumerate(names):
                yield Word(text, left + 26 + 74 * i, top + 4, colour)
