"""A gated layer of a few channels: each gate on its activation's curve, and gate times content as bars."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.norms import plain, step_above
from transformer_parts.draw.view import View
from transformer_parts.maths.feedforward import Gated

GATE, CONTENT, PRODUCT = theme.FIRST, theme.SECOND, theme.THIRD

#: The least reach of the axes, so that the dip below zero is seen.
_LEAST_REACH = 3.0


@dataclass(frozen=True)
class Channels:
    """One position through a gated layer.

    Attributes
    ----------
    x : ndarray, shape (D,)
        The input.
    steps : Gated
        Pre-activation, gate, content and product, each of shape (F,).
    output : ndarray, shape (D,)
        The layer's result.
    grid, curve : ndarray, shape (N,)
        The activation over the stretch that is shown.
    reach : float
        How far that stretch goes to either side.
    """

    x: NDArray
    steps: Gated
    output: NDArray
    grid: NDArray
    curve: NDArray
    reach: float


def reach_of(values: NDArray) -> float:
    """Return how far axes go that show `values`, in coarse steps.

    Examples
    --------
    >>> reach_of([1.0, -1.0]), reach_of([4.2, 0.0])
    (3.0, 5.0)
    """
    return max(_LEAST_REACH, step_above(1.05 * float(np.abs(values).max())))


class ChannelsView(View[Channels]):
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
        self.bar_axes.legend(
            handles=[bars[1] for bars in (self.gate_bars, self.content_bars, self.product_bars)],
            labels=["$f(g_j)$", "$u_j$", r"$f(g_j)\cdot u_j$"],
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=theme.SYMBOL, frameon=False,
            handlelength=0.8, handletextpad=0.4, borderpad=0.1, columnspacing=2.2,
        )  # fmt: skip
        self.bar_axes.text(1.012, -0.03, "$j$", fontsize=theme.SYMBOL, transform=self.bar_axes.transAxes)

    def _axes(self, bottom: float, height: float, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.09, bottom, 0.855, height)))
        axes.axhline(0, color=theme.INK, linewidth=theme.THIN, zorder=4)
        axes.text(0.01, 0.98, symbol, fontsize=theme.SYMBOL, color=theme.INK, va="top", transform=axes.transAxes)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(plain))
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
        span = 1.25 * step_above(float(np.abs(sides).max()))
        self.limits(self.bar_axes, y=(-span, span))
        channels = np.arange(1, self.channels + 1)
        for (body, ends), place, values in zip(
            (self.gate_bars, self.content_bars, self.product_bars), self.places, sides, strict=True
        ):
            body.set_segments([[(i + place, 0), (i + place, value)] for i, value in zip(channels, values, strict=True)])
            ends.set_data(channels + place, values)
        return self
