"""A relative bias as a matrix, and the attention weights with and without it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.heat_map import HeatMap
from transformer_parts.draw.view import View

WITH, WITHOUT, BIAS = theme.FIRST, theme.SECOND, theme.THIRD


@dataclass(frozen=True)
class BiasedWeights:
    """One head's bias and what it does to its attention weights.

    Attributes
    ----------
    bias : ndarray, shape (L, L)
        What is added to the logit of query i (row) and key j.
    plain, biased : ndarray, shape (L, L)
        Attention weights without and with the bias.
    visible : ndarray of bool, shape (L, L)
        Which keys a query may attend to.
    entropies : (float, float)
        Entropy of the query's weights without and with the bias, nats.
    spread : float
        Standard deviation of the content's logits over the visible pairs.
    slope : float
        ALiBi's slope of the head; NaN for T5.
    parameters : int
        Learned numbers of all heads together.
    query : int
        The query that is looked at.
    """

    bias: NDArray
    plain: NDArray
    biased: NDArray
    visible: NDArray
    entropies: tuple[float, float]
    spread: float
    slope: float
    parameters: int
    query: int


class BiasedWeightsView(View[BiasedWeights]):
    """Top, the bias (blue below zero, red above) and the weights with it, a row for each query.

    Bottom left, the framed row of the bias; bottom right, its weights: with the bias upwards, without it downwards.
    """

    size = (680, 540)

    def build(self) -> None:
        self.bias_axes, self.bias_map, self.bias_frame = self._map(0.085, "$B$", BIAS)
        self.weight_axes, self.weight_map, self.weight_frame = self._map(0.585, "$a$", WITH)
        self.row_axes = theme.style(self.fig.add_axes((0.085, 0.11, 0.395, 0.29)), x="$j$")
        self.row_axes.yaxis.set_major_locator(MaxNLocator(4))
        self.row_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        (row,) = self.row_axes.plot([], [], color=BIAS, marker="^", markersize=4.5, linewidth=theme.THIN)
        self.row = self.moving(row)
        self.stem_axes = theme.style(self.fig.add_axes((0.585, 0.11, 0.395, 0.29)), x="$j$")
        self.stem_axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2.5, 5, 10]))
        self.stem_axes.yaxis.set_major_formatter(FuncFormatter(lambda weight, _: f"{abs(weight):g}"))
        self.stem_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.biased_stems, self.plain_stems = self._stems(WITH), self._stems(WITHOUT)
        self.here = []
        for axes in (self.row_axes, self.stem_axes):
            (line,) = axes.plot(
                [], [], color=theme.INK, linewidth=theme.THIN, linestyle=":", transform=axes.get_xaxis_transform()
            )
            self.here.append(self.moving(line))

    def _map(self, left: float, symbol: str, colour: str) -> tuple[Axes, HeatMap, Line2D]:
        axes = theme.style(self.fig.add_axes((left, 0.5, 0.37, 0.466)), grid=False)
        axes.text(1.03, 0.93, symbol, fontsize=theme.SYMBOL + 3, color=colour, transform=axes.transAxes)
        axes.text(-0.16, 0.46, "$i$", fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        cells = self.moving(HeatMap(axes))
        (box,) = axes.plot([], [], color=theme.INK, linewidth=theme.THIN, zorder=5, clip_on=False)
        return axes, cells, self.moving(box)

    def _stems(self, colour: str) -> Line2D:
        (stems,) = self.stem_axes.plot([], [], color=colour, linewidth=4.2, solid_capstyle="butt", zorder=3)
        return self.moving(stems)

    def update(self, data: BiasedWeights) -> Self:
        length, i = len(data.bias), data.query
        bias = np.where(data.visible, data.bias, 0.0)
        for axes, cells, values, largest, box in (
            (self.bias_axes, self.bias_map, bias, float(np.abs(bias).max()), self.bias_frame),
            # Weights take the blue half of the map, as their stems are blue.
            (self.weight_axes, self.weight_map, -data.biased, 1.0, self.weight_frame),
        ):
            self.limits(axes, x=(-0.5, length - 0.5), y=(length - 0.5, -0.5))
            cells.set_cells(values, largest)
            ends = (-0.5, length - 0.5)
            box.set_data([ends[0], ends[1], ends[1], ends[0], ends[0]], i + np.array([-0.6, -0.6, 0.6, 0.6, -0.6]))
        keys = np.flatnonzero(data.visible[i])
        row = data.bias[i, keys]
        self.limits(self.row_axes, x=(-1, length), y=_around_zero(bias))
        most = float(max(data.biased[i].max(), data.plain[i].max()))
        top = 1.05 * 2.0 ** np.ceil(np.log2(max(most, 0.05)))
        self.limits(self.stem_axes, x=(-1, length), y=(-top, top))
        self.row.set_data(keys, row)
        for stems, weights, sign in ((self.biased_stems, data.biased, 1), (self.plain_stems, data.plain, -1)):
            heights = np.zeros((len(keys), 3))
            heights[:, 1], heights[:, 2] = sign * weights[i, keys], np.nan
            stems.set_data(np.repeat(keys, 3), heights.reshape(-1))
        for line in self.here:
            line.set_data([i, i], [0, 1])
        return self


def _around_zero(bias: NDArray) -> tuple[float, float]:
    """Return limits that hold the bias and zero, in steps, so that the scale stands still while a row moves."""
    low, high = float(bias.min()), float(bias.max())
    if low == high:
        return -1.0, 1.0
    step = 2.0 ** np.ceil(np.log2((high - low) / 4))
    low, high = step * np.floor(low / step), step * np.ceil(high / step)
    margin = 0.06 * (high - low)
    return low - margin, high + margin
