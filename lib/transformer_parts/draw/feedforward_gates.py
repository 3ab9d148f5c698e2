"""The spread of a layer's gates: before the activation, and after it, with what lies outside 0 to 1 set off."""

from dataclasses import dataclass
from typing import Self

from matplotlib.axes import Axes
from matplotlib.patches import StepPatch
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.norms import plain
from transformer_parts.draw.view import View
from transformer_parts.maths.feedforward_gates import GateCounts

NEGATIVE, WITHIN, ABOVE_ONE = theme.FIRST, theme.FAINT, theme.SECOND

#: The smallest fraction that is told from none.
_FLOOR = 3e-6


@dataclass(frozen=True)
class Spread:
    """Gates of one layer as histograms; the outermost columns hold what lies beyond them too.

    Attributes
    ----------
    pre_edges, gate_edges : ndarray, shape (N + 1,), (M + 1,)
        Edges of the columns; 0 and 1 are among those after the activation.
    pre, gate : ndarray, shape (N,), (M,)
        Which part of all numbers lies in each column, before and after the activation.
    counts : GateCounts
        Of the gates after the activation.
    pre_lowest, pre_highest : float
        The extremes before it.
    size : int
        How many numbers there are.
    text : str or None
        The token they belong to; None for all tokens or random numbers.
    """

    pre_edges: NDArray
    gate_edges: NDArray
    pre: NDArray
    gate: NDArray
    counts: GateCounts
    pre_lowest: float
    pre_highest: float
    size: int
    text: str | None = None


class SpreadView(View[Spread]):
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
        for place, symbol, colour in (
            (-0.5, "$f<0$", NEGATIVE),
            (0.5, r"$0\ldots1$", theme.INK),
            (2.5, "$f>1$", ABOVE_ONE),
        ):
            self.gate_axes.text(
                place, 0.97, symbol, fontsize=theme.SYMBOL, color=colour, ha="center", va="top",
                transform=self.gate_axes.get_xaxis_transform(), zorder=5,
            )  # fmt: skip

    def _axes(self, bottom: float, symbol: str, ticks: list[int] | range) -> Axes:
        axes = theme.style(self.fig.add_axes((0.095, bottom, 0.825, 0.385)))
        axes.set_yscale("log")
        axes.set_ylim(_FLOOR, 3)
        axes.yaxis.set_major_locator(FixedLocator([1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1]))
        axes.minorticks_off()
        axes.set_xlim(min(ticks), max(ticks))
        axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
        axes.xaxis.set_major_formatter(FuncFormatter(plain))
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
