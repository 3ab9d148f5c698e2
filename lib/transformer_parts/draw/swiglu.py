"""A gated layer of a few channels: each gate on its activation's curve, and gate times content as bars."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.feedforward import GateCounts, Gated

GATE, CONTENT, PRODUCT = theme.FIRST, theme.SECOND, theme.THIRD

#: The least reach of the axes: a hand that drags a gate or a bar of the worked numbers does not change the scale.
_LEAST_REACH = 4.0
_LEAST_SPAN = 6.0


@dataclass(frozen=True)
class Channels:
    """One position through a gated layer."""

    x: NDArray  # (D,): the input
    steps: Gated  # pre-activation, gate, content and product, each of shape (F,)
    output: NDArray  # (D,): the layer's result
    grid: NDArray  # grid, curve (N,): the activation over the stretch that is shown
    curve: NDArray
    reach: float  # how far that stretch goes to either side


def reach_of(values: NDArray) -> float:
    """Return how far axes go that show `values`, in coarse steps.

    Examples
    --------
    >>> reach_of([1.0, -1.0]), reach_of([4.2, 0.0])
    (4.0, 5.0)
    """
    reach = 1.05 * float(np.abs(values).max())
    return _LEAST_REACH if reach <= _LEAST_REACH else theme.step_above(reach)


class GatedChannelsView(View[Channels]):
    """Above, the activation with a mark for each channel; below, for each channel gate, content and their product."""

    size = (680, 460)
    channels = 2
    places = (-0.25, 0.0, 0.25)

    def build(self) -> None:
        self.curve_axes = self._axes(0.535, 0.405, "$f(g)$")
        self.bar_axes = self._axes(0.095, 0.315, "")
        self.curve_axes.text(
            1.012, -0.03, "$g$", fontsize=theme.SYMBOL, color=theme.INK, transform=self.curve_axes.transAxes
        )
        self.one = self.curve_axes.axhline(1, color=theme.FAINT, linewidth=theme.THIN, linestyle=(0, (5, 4)), zorder=1)
        self.curve_axes.axvline(0, color=theme.FAINT, linewidth=theme.THIN, zorder=1)
        (curve,) = self.curve_axes.plot([], [], color=GATE, linewidth=theme.LINE, zorder=3)
        self.curve = self.moving(curve)
        drops = LineCollection([], colors=GATE, linewidths=theme.LINE, linestyles=[(0, (2, 2))], zorder=2)
        self.curve_axes.add_collection(drops, autolim=False)
        self.drops = self.moving(drops)
        (marks,) = self.curve_axes.plot(
            [], [], linestyle="", marker="o", markersize=17, color=GATE, markeredgecolor=theme.PAPER, zorder=4,
            clip_on=False,
        )  # fmt: skip
        self.marks = self.moving(marks)
        self.names = [
            self.moving(
                self.curve_axes.text(
                    0, 0, str(i + 1), color=theme.PAPER, fontsize=theme.TEXT, ha="center", va="center_baseline",
                    weight="bold", zorder=5,
                )
            )
            for i in range(self.channels)
        ]  # fmt: skip
        self.bar_axes.set_xlim(0.5, self.channels + 0.5)
        self.bar_axes.set_xticks(range(1, self.channels + 1))
        self.bar_axes.grid(visible=False, axis="x")
        self.gate_bars = self._bars(GATE, "o")
        self.content_bars = self._bars(CONTENT, "s")
        self.product_bars = self._bars(PRODUCT, "^")
        for i in range(1, self.channels + 1):
            for sign, place in ((r"$\times$", -0.125), ("$=$", 0.125)):
                self.bar_axes.text(
                    i + place, 0, sign, fontsize=theme.SYMBOL, color=theme.INK, ha="center", va="center", zorder=6,
                    bbox={"facecolor": theme.PAPER, "edgecolor": "none", "pad": 1.5},
                )  # fmt: skip
        self.shows = {
            "pre": (self.marks,),
            "gate": self.gate_bars,
            "content": self.content_bars,
            "product": self.product_bars,
        }
        self.bar_axes.text(1.012, -0.03, "$j$", fontsize=theme.SYMBOL, transform=self.bar_axes.transAxes)

    def _axes(self, bottom: float, height: float, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.09, bottom, 0.855, height)))
        axes.axhline(0, color=theme.INK, linewidth=theme.THIN, zorder=4)
        axes.text(0.01, 0.98, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="top", transform=axes.transAxes)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(theme.tick_label))
        return axes

    def _bars(self, colour: str, marker: str) -> tuple[LineCollection, Line2D]:
        bars = LineCollection([], colors=colour, linewidths=36, capstyle="butt", zorder=2)
        self.bar_axes.add_collection(bars, autolim=False)
        (ends,) = self.bar_axes.plot(
            [], [], linestyle="", marker=marker, markersize=9, color=colour, markeredgecolor=theme.INK, zorder=5
        )
        return self.moving(bars), self.moving(ends)

    def update(self, data: Channels) -> Self:
        low, high = float(data.curve.min()), float(data.curve.max())
        margin = 0.09 * (high - low)
        # A sigmoid's height is 1 whatever the reach is; a curve that goes up with it has it for its height.
        self.limits(self.curve_axes, x=(-data.reach, data.reach), y=(low - max(margin, 0.05), max(high + margin, 1.15)))
        self.curve.set_data(data.grid, data.curve)
        pre, gate = data.steps.pre, data.steps.gate
        self.drops.set_segments([[(g, 0), (g, value)] for g, value in zip(pre, gate, strict=True)])
        self.marks.set_data(pre, gate)
        for name, place in zip(self.names, zip(pre, gate, strict=True), strict=True):
            name.set_position(place)
        sides = (gate, data.steps.up, data.steps.hidden)
        highest = float(np.abs(sides).max())
        span = 1.25 * (_LEAST_SPAN if highest <= _LEAST_SPAN else theme.step_above(highest))
        self.limits(self.bar_axes, y=(-span, span))
        channels = np.arange(1, self.channels + 1)
        for (body, ends), place, values in zip(
            (self.gate_bars, self.content_bars, self.product_bars), self.places, sides, strict=True
        ):
            body.set_segments([[(i + place, 0), (i + place, value)] for i, value in zip(channels, values, strict=True)])
            ends.set_data(channels + place, values)
        return self

    def grips(self, data):
        grips = {}
        for i in range(self.channels):
            grips[f"gate{i + 1}"] = self.grip(self.curve_axes, data.steps.pre[i], data.steps.gate[i])
            grips[f"content{i + 1}"] = self.grip(self.bar_axes, i + 1, data.steps.up[i])
        return grips

    def words(self, data):
        left, top = self.at(self.curve_axes, self.curve_axes.get_xlim()[0], self.curve_axes.get_ylim()[1])
        yield Word(_("activation"), left + 38, top + 12, GATE)
        for i in range(self.channels):
            for text, place, colour in zip(
                (_("gate"), _("content"), _("product")), self.places, (GATE, CONTENT, PRODUCT), strict=True
            ):
                yield self.word(text, self.bar_axes, i + 1 + place, self.bar_axes.get_ylim()[1], colour, "above")


NEGATIVE, WITHIN, ABOVE_ONE = theme.FIRST, theme.FAINT, theme.SECOND

#: The smallest fraction that is distinguished from none.
_FLOOR = 3e-6


@dataclass(frozen=True)
class Spread:
    """Gates of one layer as histograms; the outermost columns hold what lies beyond them too."""

    # pre_edges, gate_edges (N + 1,), (M + 1,): edges of the columns; 0 and 1 are among those after the activation
    pre_edges: NDArray
    gate_edges: NDArray
    # pre, gate (N,), (M,): which part of all numbers lies in each column, before and after the activation
    pre: NDArray
    gate: NDArray
    counts: GateCounts  # of the gates after the activation
    pre_lowest: float  # pre_lowest, pre_highest: the extremes before it
    pre_highest: float
    size: int  # how many numbers there are
    text: str | None = None  # the token they belong to; None for all tokens or random numbers


class RealGatesView(View[Spread]):
    """Two histograms on logarithmic scales; after the activation what is below 0 and above 1 has its own colour."""

    size = (680, 420)

    def build(self) -> None:
        self.pre_axes = self._axes(0.575, "$g$", [-8, -6, -4, -2, 0, 2, 4, 6, 8])
        self.gate_axes = self._axes(0.095, "$f(g)$", range(-1, 5))
        self.pre_steps = self._steps(self.pre_axes, WITHIN, "")
        self.negative_steps = self._steps(self.gate_axes, NEGATIVE, "")
        self.within_steps = self._steps(self.gate_axes, WITHIN, "")
        self.above_steps = self._steps(self.gate_axes, ABOVE_ONE, "//")
        self.pre_axes.axvline(0, color=theme.INK, linewidth=theme.THIN, linestyle=(0, (5, 3)), zorder=4)
        for place in (0, 1):
            self.gate_axes.axvline(place, color=theme.INK, linewidth=theme.THIN, linestyle=(0, (5, 3)), zorder=4)
        self.shows = {"negative": (self.negative_steps,), "above": (self.above_steps,), "pre": (self.pre_steps,)}

    def _axes(self, bottom: float, symbol: str, ticks: list[int] | range) -> Axes:
        axes = theme.style(self.fig.add_axes((0.095, bottom, 0.825, 0.385)))
        axes.set_yscale("log")
        axes.set_ylim(_FLOOR, 3)
        axes.yaxis.set_major_locator(FixedLocator([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]))
        axes.minorticks_off()
        axes.set_xlim(min(ticks), max(ticks))
        axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
        axes.xaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        axes.text(1.012, -0.03, symbol, fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        return axes

    def _steps(self, axes: Axes, colour: str, hatch: str) -> StepPatch:
        steps = axes.stairs([_FLOOR], [0, 1], baseline=_FLOOR, fill=True, facecolor=colour, linewidth=0, zorder=2)
        steps.set_hatch(hatch)
        steps.set_edgecolor(theme.PAPER)
        return self.moving(steps)

    def update(self, data: Spread) -> Self:
        self.pre_steps.set_data(data.pre + _FLOOR, data.pre_edges, _FLOOR)
        edges = data.gate_edges
        for steps, inside in (
            (self.negative_steps, edges[:-1] < 0),
            (self.within_steps, (edges[:-1] >= 0) & (edges[:-1] < 1)),
            (self.above_steps, edges[:-1] >= 1),
        ):
            first, last = inside.nonzero()[0][[0, -1]]
            steps.set_data(data.gate[inside] + _FLOOR, edges[first : last + 2], _FLOOR)
        return self

    def words(self, data):
        for axes, text in (
            (self.pre_axes, _("share of gates, before the activation")),
            (self.gate_axes, _("after it")),
        ):
            left, top = self.at(axes, axes.get_xlim()[0], axes.get_ylim()[1])
            yield Word(text, left, top - 8)
            yield self.word(_("all beyond"), axes, axes.get_xlim()[1], 1.6e-1, side="left")
        for place, text, colour in (
            (-0.5, _("below 0"), NEGATIVE),
            (0.5, _("0 to 1"), theme.INK),
            (2.5, _("above 1"), ABOVE_ONE),
        ):
            yield self.word(text, self.gate_axes, place, 1.2, colour, "on")


@dataclass(frozen=True)
class Changes:
    """Differences that a change of one position's input makes, each of shape (L, D)."""

    # of_input, of_feedforward, of_attention (L, D): in the input, in the output of the feed-forward layer, and in that
    # of causal attention
    of_input: NDArray
    of_feedforward: NDArray
    of_attention: NDArray
    position: int  # the position that was changed


class PositionChangesView(View[Changes]):
    """Three heat maps side by side, a row to a position and a column to a channel."""

    size = (680, 330)
    positions = 8
    symbols = (r"$\Delta x$", r"$\Delta\,\mathrm{FFN}(x)$", r"$\Delta\,\mathrm{Attn}(x)$")

    def build(self) -> None:
        self.maps = []
        self.rings = []
        for i, symbol in enumerate(self.symbols):
            axes = theme.style(self.fig.add_axes((0.075 + 0.312 * i, 0.09, 0.285, 0.79)), grid=False)
            axes.set_xlim(0, 1)
            axes.set_ylim(self.positions - 0.5, -0.5)
            axes.xaxis.set_major_locator(FixedLocator([]))
            axes.yaxis.set_major_locator(FixedLocator(range(self.positions)))
            axes.tick_params(labelleft=i == 0)
            axes.set_title(symbol, fontsize=theme.SYMBOL, color=theme.INK, pad=6)
            axes.text(
                1.0, -0.025, "$d$", fontsize=theme.SYMBOL, color=theme.INK, ha="right", va="top",
                transform=axes.transAxes,
            )  # fmt: skip
            if i == 0:
                axes.text(
                    -0.03, -0.025, "$t$", fontsize=theme.SYMBOL, color=theme.INK, ha="right", va="top",
                    transform=axes.transAxes,
                )  # fmt: skip
            self.maps.append(self.moving(HeatMap(axes)))
            (ring,) = axes.plot([], [], color=theme.INK, linewidth=theme.LINE, zorder=6, clip_on=False)
            self.rings.append(self.moving(ring))

    def update(self, data: Changes) -> Self:
        low, high = data.position - 0.5, data.position + 0.5
        for cells, ring, change in zip(
            self.maps, self.rings, (data.of_input, data.of_feedforward, data.of_attention), strict=True
        ):
            cells.set_cells(change, float(np.abs(change).max()))
            ring.set_data([0, 1, 1, 0, 0], [low, low, high, high, low])
        return self

    def grips(self, data):
        boxes = np.array([self.grip(cells.axes, 0, 0, anywhere=True).box for cells in self.maps])
        left, top, _width, down = map(int, boxes[0])
        across = int(boxes[-1, 0] + boxes[-1, 2]) - left
        return {"position": Grip(*self.at(self.maps[0].axes, 0, data.position), (left, top, across, down))}

    def words(self, data):
        names = (_("change of the input"), _("of the feed-forward output"), _("of attention's output"))
        for cells, text in zip(self.maps, names, strict=True):
            (x, top), (_right, bottom) = self.at(cells.axes, [0.5, 1], [-0.5, self.positions - 0.5])
            yield Word(text, x, top - 32, side="on")
            yield Word(_("channel"), x, bottom + 12, side="on")
