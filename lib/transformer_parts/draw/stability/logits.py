"""Attention as queries and keys grow: the size of the logits, the entropy, and the weights themselves."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.stability import GrownAttention

NORMED, PLAIN = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Growth:
    """One head with and without QK-norm over a range of factors."""

    factors: NDArray  # (N,): by which queries and keys are multiplied
    normed: GrownAttention  # normed, plain: with and without QK-norm, at all factors
    plain: GrownAttention
    chosen: int  # index of the factor that is shown
    bound: float  # the largest logit that QK-norm allows
    ceiling: float  # the largest logit whose product q·k is within the format; infinite where nothing comes near it
    uniform: float  # mean entropy of equal weights
    # the largest change of one of the plain head's weights by the format's rounding, at the chosen factor; NaN where
    # weights are lost
    moved: float


class LogitGrowthView(View[Growth]):
    """Above, the largest logit; below, the mean entropy; on the right the weights of the chosen factor.

    Blue with QK-norm, its bound dashed; red without; dotted the ceiling of the format and the entropy of equal weights.
    """

    size = (680, 440)

    def build(self) -> None:
        self.logit_axes = self._axes(0.575, (1e-3, 1e9), r"$\max|z|$")
        self.entropy_axes = self._axes(0.125, None, r"$H$")
        self.logit_axes.set_yscale("log")
        self.logit_axes.yaxis.set_major_locator(LogLocator(1000, numticks=9))
        self.logit_axes.yaxis.set_minor_locator(LogLocator(10, numticks=20))
        self.logit_axes.yaxis.set_minor_formatter(NullFormatter())
        self.logit_axes.tick_params(labelbottom=False)
        self.entropy_axes.set_xlabel("$c$", fontsize=theme.SYMBOL, labelpad=-2)
        self.ceiling = self._line(self.logit_axes, theme.INK, linestyle=":")
        self.bound = self._line(self.logit_axes, NORMED, linestyle=(0, (4, 2)), linewidth=theme.THIN)
        self.uniform = self._line(self.entropy_axes, theme.INK, linestyle=":")
        self.places = [self._line(axes, theme.INK, linewidth=theme.THIN) for axes in self._both]
        self.curves = {
            (axes, colour): (self._line(axes, colour), self._line(axes, colour, marker=theme.MARKERS[colour]))
            for axes in self._both
            for colour in (PLAIN, NORMED)
        }
        self.shows = {
            name: tuple(line for axes in self._both for line in self.curves[axes, colour])
            for name, colour in (("plain", PLAIN), ("normed", NORMED))
        } | {"bound": (self.bound,), "uniform": (self.uniform,)}
        self.maps = {colour: self._map(bottom, colour) for colour, bottom in ((PLAIN, 0.575), (NORMED, 0.125))}

    @property
    def _both(self) -> tuple[Axes, Axes]:
        return self.logit_axes, self.entropy_axes

    def _axes(self, bottom: float, limits: tuple[float, float] | None, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.095, bottom, 0.555, 0.355)))
        axes.set(xscale="log", ylim=limits)
        axes.xaxis.set_minor_locator(LogLocator(10, numticks=12))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.text(0.0, 1.03, symbol, fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        return axes

    def _line(self, axes: Axes, colour: str, **look) -> Line2D:
        (line,) = axes.plot([], [], color=colour, **{"linewidth": theme.LINE, "markersize": 9} | look)
        return self.moving(line)

    def _map(self, bottom: float, colour: str) -> HeatMap:
        axes = self.fig.add_axes((0.735, bottom, 0.23, 0.355))
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(color=colour, linewidth=theme.LINE)
        axes.text(0.0, 1.03, "$p$", fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        # The frame's colour says whose weights these are, and so does the marker of its curve.
        axes.plot(
            0.94, 1.065, marker=theme.MARKERS[colour], color=colour, markersize=8, transform=axes.transAxes,
            clip_on=False,
        )  # fmt: skip
        return self.moving(HeatMap(axes))

    def update(self, data: Growth) -> Self:
        ends = (data.factors[0], data.factors[-1])
        for axes in self._both:
            self.limits(axes, x=ends)
        self.limits(self.entropy_axes, y=(-0.05, np.ceil(4 * data.uniform + 0.2) / 4))
        factor = data.factors[data.chosen]
        for place, axes in zip(self.places, self._both, strict=True):
            place.set_data([factor, factor], axes.get_ylim())
        self.ceiling.set_data(ends, [data.ceiling] * 2 if np.isfinite(data.ceiling) else [np.nan] * 2)
        self.bound.set_data(ends, [data.bound] * 2)
        self.uniform.set_data(ends, [data.uniform] * 2)
        for colour, run in ((PLAIN, data.plain), (NORMED, data.normed)):
            finite = np.where(np.isfinite(run.largest), run.largest, np.nan)
            for axes, values in ((self.logit_axes, finite), (self.entropy_axes, run.entropy)):
                line, mark = self.curves[axes, colour]
                line.set_data(data.factors, values)
                mark.set_data([factor], [values[data.chosen]])
            # Rows without a softmax are blue, below zero, where no weight can be.
            self.maps[colour].set_cells(np.nan_to_num(run.weights[data.chosen], nan=-1.0), 1.0)
        return self

    def grips(self, data):
        factor = data.factors[data.chosen]
        return {"factor": self.grip(self.logit_axes, factor, 1e8, anywhere=True, down_to=self.entropy_axes)}

    def words(self, data):
        first, last = data.factors[[0, -1]]
        # Above its line, or below it where the ceiling of the format lies above.
        place = data.factors[len(data.factors) * 3 // 5], data.plain.largest[len(data.factors) * 3 // 5]
        side, up = ("right", -11) if np.isfinite(data.ceiling) else ("left", 8)
        yield self.word(_("without QK-norm"), self.logit_axes, *place, PLAIN, side, up)
        yield self.word(_("with QK-norm"), self.logit_axes, last, data.normed.largest[-1], NORMED, "left", -12)
        yield self.word(_("its bound"), self.logit_axes, first, data.bound, NORMED, up=10)
        if np.isfinite(data.ceiling):
            yield self.word(_("float16 overflows here"), self.logit_axes, first, data.ceiling, up=10)
        yield self.word(_("equal weights"), self.entropy_axes, last, data.uniform, side="left", up=10)
        for axes, text, colour in (
            (self.logit_axes, _("without QK-norm"), PLAIN),
            (self.entropy_axes, _("with QK-norm"), NORMED),
        ):
            top = self.at(axes, last, axes.get_ylim()[1])[1]
            yield Word(text, 0.76 * self.size[0], top - 11, colour)
