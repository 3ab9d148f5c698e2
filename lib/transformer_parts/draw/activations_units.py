"""A population of units over a data set: the reach of each one's pre-activation, its slope, and which are dead."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.activations import GELU, RELU, SWISH
from transformer_parts.draw.norms import plain
from transformer_parts.draw.view import View

DEAD, EXPECTED = theme.THIRD, theme.SECOND

#: Dash of each activation's line, in the order of `Units.slopes`.
_DASHES = ((RELU, "-"), (SWISH, (0, (6, 2))), (GELU, (0, (2, 1))))
_SMALLEST_SLOPE = 1e-4

#: Of more units, every second, third … is drawn, so that a column of the picture has a few pixels.
MOST_COLUMNS = 192


@dataclass(frozen=True)
class Units:
    """Units in the order of their largest pre-activation, the largest first.

    Attributes
    ----------
    lowest, highest : ndarray, shape (F,)
        The smallest and the largest pre-activation of each unit over the inputs.
    slopes : ndarray, shape (3, F)
        Root mean square, over the inputs, of the slopes of ReLU, SiLU and GELU.
    dead : int
        How many units are dead.
    negative : float
        Which part of all pre-activations is not above 0.
    n_inputs : int
        How many inputs there are.
    bias : float
        What was added to every pre-activation.
    biases, fractions : ndarray, shape (N,)
        Which part of the units is dead for other biases.
    expected : ndarray, shape (N,), or None
        What probability says of it, where the units are random.
    expected_now : float or None
        The same for the present bias.
    """

    lowest: NDArray
    highest: NDArray
    slopes: NDArray
    dead: int
    negative: float
    n_inputs: int
    bias: float
    biases: NDArray
    fractions: NDArray
    expected: NDArray | None
    expected_now: float | None

    @property
    def fraction(self) -> float:
        """Which part of the units is dead."""
        return self.dead / len(self.highest)


class UnitsView(View[Units]):
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
            axes.xaxis.set_major_formatter(FuncFormatter(plain))
        self.slope_axes.tick_params(labelbottom=True)
        self.slope_axes.text(1.012, -0.03, "$j/F$", fontsize=theme.SYMBOL, transform=self.slope_axes.transAxes)
        self.count_axes = self._axes(0.085, 0.175, r"$\dagger$")
        self.count_axes.set_xlim(-6, 3)
        self.count_axes.set_ylim(-0.05, 1.08)
        self.count_axes.set_yticks([0, 0.5, 1])
        self.count_axes.yaxis.set_major_formatter(FuncFormatter(plain))
        self.count_axes.xaxis.set_major_formatter(FuncFormatter(plain))
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
        self.slope_axes.legend(
            handles=[Line2D([], [], color=c, linestyle=d, linewidth=theme.LINE) for c, d in _DASHES],
            labels=[r"$\max(x, 0)$", r"$x\,\sigma(x)$", r"$x\,\Phi(x)$"],
            loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=3, fontsize=theme.SYMBOL, frameon=False,
            handlelength=2.2, handletextpad=0.5, columnspacing=1.4, borderpad=0.1,
        )  # fmt: skip
        self.count_line = self._line(self.count_axes, RELU, "-")
        self.expected_line = self._line(self.count_axes, EXPECTED, (0, (4, 2)))
        (mark,) = self.count_axes.plot(
            [], [], marker="D", markersize=9, color=DEAD, markeredgecolor=theme.INK, zorder=5, clip_on=False
        )
        self.count_mark = self.moving(mark)

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
