"""Activations, their slopes, and the difference of two of them, over one stretch of the x axis."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.activations import Extreme

RELU, GELU, SWISH, SIGMOID = theme.INK, theme.FIRST, theme.SECOND, theme.THIRD
DIFFERENCE = theme.INK

#: What each curve looks like, in the order of `Curves`: symbol, colour, dashes, marker.
LOOKS = (
    (r"$\max(x, 0)$", RELU, (0, (1, 1)), "D"),
    (r"$x\,\Phi(x)$", GELU, "-", theme.MARKERS[theme.FIRST]),
    (r"$x\,\sigma(\beta x)$", SWISH, (0, (6, 2)), theme.MARKERS[theme.SECOND]),
    (r"$\sigma(x)$", SIGMOID, (0, (4, 2, 1, 2)), theme.MARKERS[theme.THIRD]),
)

#: Half the length of a tangent, along x.
_TANGENT = 0.9

#: How far the x axis reaches to either side.
REACH = 4.0


@dataclass(frozen=True)
class Curves:
    """ReLU, GELU, Swish and the sigmoid, in this order, and two functions compared."""

    grid: NDArray  # (N,): places on the x axis
    values: NDArray  # values, slopes (4, N): the functions and their derivatives there
    slopes: NDArray
    at: float  # the place that is marked
    values_at: NDArray  # values_at, slopes_at (4,): the functions and derivatives at the mark
    slopes_at: NDArray
    compared_at: tuple[float, float]  # the two functions compared, at the mark
    difference: NDArray  # (N,): the first function compared less the second
    furthest: Extreme  # where that difference is largest in size, and what it is there
    minimum: Extreme | None  # where Swish is lowest; None where it is a line

    @property
    def difference_at(self) -> float:
        """The difference at the mark."""
        return self.compared_at[0] - self.compared_at[1]


class ActivationCurvesView(View[Curves]):
    """Three rows over the same x: the functions, their slopes, the difference of two of them."""

    size = (680, 500)

    def build(self) -> None:
        self.value_axes = self._axes(0.515, 0.415, "$f(x)$", (-0.6, 4.2))
        self.slope_axes = self._axes(0.285, 0.19, r"$f\,'(x)$", (-0.25, 1.3))
        self.difference_axes = self._axes(0.08, 0.165, r"$\Delta(x)$", (-1, 1))
        self.difference_axes.tick_params(labelbottom=True)
        self.difference_axes.text(
            1.012, -0.03, "$x$", fontsize=theme.SYMBOL, color=theme.INK, transform=self.difference_axes.transAxes
        )
        self.slope_axes.set_yticks([0, 0.5, 1])
        self.value_axes.set_yticks(range(5))
        self.value_lines, self.value_marks = self._curves(self.value_axes)
        self.slope_lines, self.slope_marks = self._curves(self.slope_axes)
        tangents = LineCollection(
            [], colors=[colour for _symbol, colour, *_look in LOOKS], linewidths=theme.THIN, zorder=4
        )
        self.value_axes.add_collection(tangents, autolim=False)
        self.tangents = self.moving(tangents)
        (line,) = self.difference_axes.plot([], [], color=DIFFERENCE, linewidth=theme.LINE, zorder=3)
        self.difference_line = self.moving(line)
        self.difference_mark = self._mark(self.difference_axes, DIFFERENCE, "D")
        (ends,) = self.difference_axes.plot(
            [], [], linestyle="", marker="o", markersize=9, markerfacecolor="none", color=theme.SECOND,
            markeredgewidth=theme.LINE, zorder=4, clip_on=False,
        )  # fmt: skip
        self.furthest_mark = self.moving(ends)
        self.places = [
            self.moving(axes.axvline(0, color=theme.FAINT, linewidth=theme.THIN, zorder=1))
            for axes in (self.value_axes, self.slope_axes, self.difference_axes)
        ]
        names = ("relu", "gelu", "swish", "sigmoid")
        curves = zip(self.value_lines, self.value_marks, self.slope_lines, self.slope_marks, strict=True)
        self.shows = dict(zip(names, curves, strict=True))
        self.shows |= {"difference": (self.difference_mark,), "furthest": (self.furthest_mark,)}
        self.value_axes.legend(
            handles=[
                Line2D([], [], color=colour, linestyle=dash, marker=marker, linewidth=theme.LINE)
                for _, colour, dash, marker in LOOKS
            ],
            labels=[symbol for symbol, *_ in LOOKS],
            loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=4, fontsize=theme.SYMBOL, frameon=False,
            handlelength=2.4, handletextpad=0.5, columnspacing=1.4, borderpad=0.1,
        )  # fmt: skip

    def _axes(self, bottom: float, height: float, symbol: str, span: tuple[float, float]) -> Axes:
        axes = theme.style(self.fig.add_axes((0.115, bottom, 0.835, height)))
        axes.set_xlim(-REACH, REACH)
        axes.set_ylim(*span)
        axes.set_xticks(np.arange(-REACH, REACH + 1))
        axes.tick_params(labelbottom=False)
        axes.xaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        axes.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 3, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN, zorder=1)
        axes.text(0.01, 0.98, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="top", transform=axes.transAxes)
        return axes

    def _curves(self, axes: Axes) -> tuple[list[Line2D], list[Line2D]]:
        lines, marks = [], []
        for z, (_symbol, colour, dash, marker) in enumerate(LOOKS):
            (line,) = axes.plot([], [], color=colour, linestyle=dash, linewidth=theme.LINE, zorder=3 + z / 10)
            lines.append(self.moving(line))
            marks.append(self._mark(axes, colour, marker))
        return lines, marks

    def _mark(self, axes: Axes, colour: str, marker: str) -> Line2D:
        (mark,) = axes.plot(
            [], [], linestyle="", marker=marker, markersize=8, color=colour, markeredgecolor=theme.PAPER, zorder=5,
            clip_on=False,
        )  # fmt: skip
        return self.moving(mark)

    def update(self, data: Curves) -> Self:
        for lines, marks, curves, points in (
            (self.value_lines, self.value_marks, data.values, data.values_at),
            (self.slope_lines, self.slope_marks, data.slopes, data.slopes_at),
        ):
            for line, mark, curve, point in zip(lines, marks, curves, points, strict=True):
                line.set_data(data.grid, curve)
                mark.set_data([data.at], [point])
        steps = np.array([-_TANGENT, _TANGENT])
        self.tangents.set_segments(
            [
                np.stack([data.at + steps, value + slope * steps], axis=-1)
                for value, slope in zip(data.values_at, data.slopes_at, strict=True)
            ]
        )
        span = 1.15 * theme.step_above(abs(data.furthest.value))
        self.limits(self.difference_axes, y=(-span, span))
        self.difference_line.set_data(data.grid, data.difference)
        self.difference_mark.set_data([data.at], [data.difference_at])
        seen = abs(data.furthest.x) <= REACH
        self.furthest_mark.set_data([data.furthest.x] * seen, [data.furthest.value] * seen)
        for place in self.places:
            place.set_xdata([data.at, data.at])
        return self

    def grips(self, data):
        return {"at": self.grip(self.value_axes, data.at, 0, anywhere=True, down_to=self.difference_axes)}

    def words(self, data):
        names = (_("ReLU"), _("GELU"), _("Swish"), _("sigmoid"))
        for i, (text, (_symbol, colour, *_look)) in enumerate(zip(names, LOOKS, strict=True)):
            yield self.word(text, self.value_axes, -REACH + 0.6, 4, colour, up=-20 * i)
        yield self.word(_("slope"), self.slope_axes, -REACH + 0.6, self.slope_axes.get_ylim()[1], up=-12)
        yield self.word(_("difference"), self.difference_axes, -REACH + 0.6, self.difference_axes.get_ylim()[1], up=-12)


DEAD, EXPECTED = theme.THIRD, theme.SECOND

#: Dash of each activation's line, in the order of `Units.slopes`.
_DASHES = ((RELU, "-"), (SWISH, (0, (6, 2))), (GELU, (0, (2, 1))))
_SMALLEST_SLOPE = 1e-4

#: Of more units, every second, third … is drawn, so that a column of the picture has a few pixels.
MOST_COLUMNS = 192


@dataclass(frozen=True)
class Units:
    """Units in the order of their largest pre-activation, the largest first."""

    lowest: NDArray  # lowest, highest (F,): the smallest and the largest pre-activation of each unit over the inputs
    highest: NDArray
    slopes: NDArray  # (3, F): root mean square, over the inputs, of the slopes of ReLU, SiLU and GELU
    dead: int  # how many units are dead
    negative: float  # which part of all pre-activations is not above 0
    n_inputs: int  # how many inputs there are
    bias: float  # what was added to every pre-activation
    biases: NDArray  # biases, fractions (N,): which part of the units is dead for other biases
    fractions: NDArray
    expected: NDArray | None  # (N,), or None: what probability says of it, where the units are random
    expected_now: float | None  # the same for the present bias

    @property
    def fraction(self) -> float:
        """Which part of the units is dead."""
        return self.dead / len(self.highest)


class DeadUnitsView(View[Units]):
    """Above, for each unit the span of its pre-activations; below that its slopes; at the foot the dead by bias."""

    size = (680, 520)
    reach = (-8.0, 6.0)

    def build(self) -> None:
        self.span_axes = self._axes(0.67, 0.275, "$z_j$")
        self.span_axes.set_ylim(*self.reach)
        self.slope_axes = self._axes(0.37, 0.235, r"$\sqrt{\overline{f\,'(z_j)^2}}$")
        self.slope_axes.set_yscale("log")
        self.slope_axes.set_ylim(_SMALLEST_SLOPE / 2, 3)
        self.slope_axes.set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1])
        self.slope_axes.minorticks_off()
        for axes in (self.span_axes, self.slope_axes):
            axes.set_xlim(0, 1)
            axes.set_xticks(np.linspace(0, 1, 6))
            axes.xaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        self.slope_axes.tick_params(labelbottom=True)
        self.slope_axes.text(1.012, -0.03, "$j/F$", fontsize=theme.SYMBOL, transform=self.slope_axes.transAxes)
        self.count_axes = self._axes(0.085, 0.175, r"$\dagger$")
        self.count_axes.set_xlim(-6, 3)
        self.count_axes.set_ylim(-0.05, 1.08)
        self.count_axes.set_yticks([0, 0.5, 1])
        self.count_axes.yaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        self.count_axes.xaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        self.count_axes.tick_params(labelbottom=True)
        self.count_axes.text(1.012, -0.03, "$b$", fontsize=theme.SYMBOL, transform=self.count_axes.transAxes)

        self.spans = self.moving(self.span_axes.stairs([0], [0, 1], baseline=[0], fill=True, color="#c9c9c9", zorder=1))
        self.highest_line = self._line(self.span_axes, RELU, "-")
        self.dead_areas = [
            self.moving(axes.axvspan(1, 1, facecolor=DEAD, alpha=0.22, zorder=0))
            for axes in (self.span_axes, self.slope_axes)
        ]
        self.edges = [self._line(axes, DEAD, (0, (4, 2))) for axes in (self.span_axes, self.slope_axes)]
        for edge in self.edges:
            edge.set_transform(edge.axes.get_xaxis_transform())
        self.span_axes.axhline(0, color=theme.INK, linewidth=theme.THIN, zorder=3)
        self.dead_symbol = self.moving(
            self.span_axes.text(
                1, 0.93 * self.reach[1], r"$\dagger$", fontsize=theme.SYMBOL + 3, color=theme.INK, ha="center", va="top"
            )
        )
        self.slope_lines = [self._line(self.slope_axes, colour, dash) for colour, dash in _DASHES]
        self.count_line = self._line(self.count_axes, RELU, "-")
        self.expected_line = self._line(self.count_axes, EXPECTED, (0, (4, 2)))
        (mark,) = self.count_axes.plot(
            [], [], marker="D", markersize=9, color=DEAD, markeredgecolor=theme.INK, zorder=5, clip_on=False
        )
        self.count_mark = self.moving(mark)
        self.shows = {
            "dead": (self.count_mark, self.dead_symbol, *self.dead_areas), "expected": (self.expected_line,),
            "relu": (self.slope_lines[0],), "silu": (self.slope_lines[1],), "gelu": (self.slope_lines[2],),
        }  # fmt: skip

    def _axes(self, bottom: float, height: float, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.095, bottom, 0.825, height)))
        axes.tick_params(labelbottom=False)
        axes.text(0, 1.02, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="bottom", transform=axes.transAxes)
        return axes

    def _line(self, axes: Axes, colour: str, dash: str | tuple) -> Line2D:
        (line,) = axes.plot([], [], color=colour, linestyle=dash, linewidth=theme.LINE, zorder=2)
        return self.moving(line)

    def update(self, data: Units) -> Self:
        # A column stands for `step` units of the order, and shows the first of them.
        step = -(-len(data.highest) // MOST_COLUMNS)
        columns = slice(None, None, step)
        edges = np.append(np.arange(0, len(data.highest), step), len(data.highest)) / len(data.highest)
        middles = (edges[1:] + edges[:-1]) / 2
        low, high = (np.clip(values[columns], *self.reach) for values in (data.lowest, data.highest))
        self.spans.set_data(high, edges, low)
        self.highest_line.set_data(middles, data.highest[columns])
        border = 1 - data.fraction
        for area, edge in zip(self.dead_areas, self.edges, strict=True):
            area.set_bounds(border, 0, 1 - border, 1)
            edge.set_data([border] * 2 * bool(data.dead), [0, 1] * bool(data.dead))
        self.dead_symbol.set_visible(data.fraction >= 0.04)
        self.dead_symbol.set_x(1 - data.fraction / 2)
        for line, slope in zip(self.slope_lines, data.slopes[:, columns], strict=True):
            line.set_data(middles, np.where(slope >= _SMALLEST_SLOPE / 2, slope, np.nan))
        self.count_line.set_data(data.biases, data.fractions)
        self.expected_line.set_data(*(([], []) if data.expected is None else (data.biases, data.expected)))
        self.count_mark.set_data([data.bias], [data.fraction])
        return self

    def grips(self, data):
        return {"bias": self.grip(self.count_axes, data.bias, data.fraction, anywhere=True)}

    def words(self, data):
        yield self.word(_("pre-activations over the inputs, unit by unit"), self.span_axes, 0.03, self.reach[1], up=10)
        yield self.word(_("slope"), self.slope_axes, 0.15, 3, up=12)
        for i, (text, (colour, _dash)) in enumerate(zip((_("ReLU"), _("SiLU"), _("GELU")), _DASHES, strict=True)):
            yield self.word(text, self.slope_axes, 0.7 + 0.1 * i, 3, colour, up=12)
        yield self.word(_("units, highest z first"), self.slope_axes, 0.5, _SMALLEST_SLOPE / 2, side="on", up=-30)
        left, right = self.count_axes.get_xlim()
        yield self.word(_("share of dead units"), self.count_axes, left + 0.2, 1.08, up=12)
        if data.expected is not None:
            yield self.word(_("dashed: expected"), self.count_axes, right, 1.08, EXPECTED, "left", up=12)
        yield self.word(_("bias"), self.count_axes, right, -0.05, side="left", up=12)
