"""ALiBi's slopes of all heads, and how fast each head's weights fall."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

POWER, BETWEEN, ONE_SEQUENCE = theme.FIRST, theme.SECOND, theme.FAINT


@dataclass(frozen=True)
class Slopes:
    """The slopes of n heads and their weights over keys of equal score.

    Attributes
    ----------
    slopes : ndarray, shape (n,)
        In the order of the heads.
    of_power : int
        How many of them are those of a power of two; the others lie between.
    one_sequence : ndarray, shape (n,)
        2^(−8h/n), which is right for a power of two alone.
    weights : ndarray, shape (n, S)
        By distance, the query's own position first.
    half_distances : ndarray, shape (n,)
        Distance at which a weight is half of the nearest key's.
    head : int
        The head that is looked at, counted from 1.
    distance : int
        The distance that is looked at.
    """

    slopes: NDArray
    of_power: int
    one_sequence: NDArray
    weights: NDArray
    half_distances: NDArray
    head: int
    distance: int

    @property
    def ratios(self) -> NDArray:
        """Each slope over the next larger one, the slopes taken by size."""
        by_size = np.sort(self.slopes)
        return by_size[:-1] / by_size[1:]


class SlopesView(View[Slopes]):
    """Above, the slope of each head by powers of two; below, weight over nearest weight against the distance.

    Of many heads up to twenty are drawn below.
    """

    size = (680, 500)

    def build(self) -> None:
        self.slope_axes = theme.style(self.fig.add_axes((0.1, 0.595, 0.88, 0.385)), x="$h$", y=r"$m_h$")
        self.slope_axes.set_yscale("log", base=2)
        self.slope_axes.set_ylim(2.0**-8.6, 1.3)
        self.slope_axes.set_yticks([2.0**-p for p in range(0, 9, 2)])
        self.slope_axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, min_n_ticks=1))
        self.weight_axes = theme.style(self.fig.add_axes((0.1, 0.115, 0.88, 0.355)), x="$|i-j|$", y=r"$a/a_0$")
        self.weight_axes.set_ylim(-0.02, 1.04)
        for axes in (self.slope_axes, self.weight_axes):
            axes.yaxis.set_label_coords(-0.075, 0.5)
        self.weight_axes.axhline(0.5, color=theme.FAINT, linewidth=theme.THIN, linestyle="--")
        self.one_sequence = self._line(
            self.slope_axes, color=ONE_SEQUENCE, linestyle="-", linewidth=theme.THIN, marker="x", markersize=6
        )
        self.power = self._line(self.slope_axes, color=POWER, linestyle="", marker="o", markersize=6, zorder=3)
        self.between = self._line(self.slope_axes, color=BETWEEN, linestyle="", marker="s", markersize=6, zorder=3)
        mark = {"linestyle": "", "markeredgecolor": theme.INK, "color": theme.THIRD, "zorder": 6}
        self.head = self._line(self.slope_axes, marker="D", markersize=10, **mark)
        curves = LineCollection([], linewidths=theme.THIN, colors=theme.FAINT, zorder=2)
        self.weight_axes.add_collection(curves, autolim=False)
        self.curves = self.moving(curves)
        self.curve = self._line(self.weight_axes, color=theme.THIRD, linewidth=theme.LINE + 1, zorder=4)
        self.here = self._line(self.weight_axes, marker="D", markersize=10, **mark)

    def _line(self, axes, **look) -> Line2D:
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: Slopes) -> Self:
        heads = np.arange(1, len(data.slopes) + 1)
        self.limits(self.slope_axes, x=(0.4, len(heads) + 0.6))
        distances = np.arange(data.weights.shape[1])
        self.limits(self.weight_axes, x=(-0.01 * distances[-1], 1.01 * distances[-1]))
        self.one_sequence.set_data(heads, data.one_sequence)
        self.power.set_data(heads[: data.of_power], data.slopes[: data.of_power])
        self.between.set_data(heads[data.of_power :], data.slopes[data.of_power :])
        self.head.set_data([data.head], [data.slopes[data.head - 1]])
        falls = data.weights / data.weights[:, :1]
        # The thin curves are a choice of the heads by size, and every third point of them is enough.
        by_size = np.argsort(data.slopes)[:: -(-len(heads) // 20)]
        self.curves.set_segments([np.column_stack([distances[::3], fall[::3]]) for fall in falls[by_size]])
        chosen = falls[data.head - 1]
        self.curve.set_data(distances, chosen)
        self.here.set_data([data.distance], [chosen[data.distance]])
        return self
