"""One head of a real model on a passage: its attention map, its place among all heads, its clocks for one score."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.clock_faces import ClockFaces
from transformer_parts.draw.heat_map import HeatMap
from transformer_parts.draw.view import View

COLUMNS = 11


@dataclass(frozen=True, kw_only=True)
class Head:
    """One head, one query and one key of it.

    Attributes
    ----------
    weights : ndarray, shape (L, L)
        Attention weights of the head, a row for each query.
    query, key : int
        The chosen tokens.
    every_head : ndarray, shape (N, H)
        A number for each head of the model.
    layer, head : int
        The chosen head.
    query_pairs, key_pairs : ndarray of complex, shape (P,)
        The pairs of channels, turned.
    parts : ndarray, shape (P,)
        What each pair adds to the score.
    """

    weights: NDArray
    query: int
    key: int
    every_head: NDArray
    layer: int
    head: int
    query_pairs: NDArray
    key_pairs: NDArray
    parts: NDArray


class HeadView(View[Head]):
    """Left, the attention map; right, all heads, a row for each layer; below, the clocks of query and key.

    A frame marks the chosen query's row and the chosen head, a dot the chosen key.  The hands of a clock are the longer
    the longer its pairs of channels are (by square roots); its face is gold where the pair adds to the score and grey
    where it takes away.
    """

    size = (680, 520)

    def build(self) -> None:
        self.map_axes = self._square((0.085, 0.445, 0.435, 0.535), x="$j$", y="$i$")
        self.map = self.moving(HeatMap(self.map_axes))
        self.heads_axes = self._square((0.615, 0.445, 0.365, 0.535), x="$h$", y=r"$\ell$")
        self.heads = self.moving(HeatMap(self.heads_axes))
        self.row, self.frame_of_head = (
            self.moving(axes.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=theme.INK, linewidth=1.6)))
            for axes in (self.map_axes, self.heads_axes)
        )
        (dot,) = self.map_axes.plot([], [], color=theme.INK, marker="o", markersize=6, markerfacecolor=theme.THIRD)
        self.dot = self.moving(dot)
        self.clock_axes = self.fig.add_axes((0.02, 0.01, 0.96, 0.345))
        self.clock_axes.set_axis_off()
        self.clocks = ClockFaces(self.clock_axes, self.moving)

    def _square(self, place, **labels):
        axes = theme.style(self.fig.add_axes(place), grid=False, **labels)
        axes.xaxis.set_label_coords(0.5, -0.085)
        axes.yaxis.set_label_coords(-0.13, 0.5)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        for spine in axes.spines.values():
            spine.set_visible(True)
        return axes

    def update(self, data: Head) -> Self:
        length, (layers, heads) = len(data.weights), data.every_head.shape
        # A row of the map is a query, the first on top, as in a matrix.
        self.limits(self.map_axes, x=(-0.5, length - 0.5), y=(length - 0.5, -0.5))
        self.limits(self.heads_axes, x=(-0.5, heads - 0.5), y=(layers - 0.5, -0.5))
        self.map.set_cells(data.weights, 1.0)
        self.heads.set_cells(data.every_head, float(np.abs(data.every_head).max()))
        self.row.set_bounds(-0.5, data.query - 0.5, data.query + 1, 1)
        self.dot.set_data([data.key], [data.query])
        self.frame_of_head.set_bounds(data.head - 0.5, data.layer - 0.5, 1, 1)
        self._clocks(data)
        return self

    def _clocks(self, data: Head) -> None:
        pairs = np.arange(len(data.parts))
        centres = np.stack([pairs % COLUMNS, -(pairs // COLUMNS)], axis=-1).astype(float)
        rows = -(-len(pairs) // COLUMNS)
        box = self.clock_axes.get_position()
        width = max(COLUMNS, rows * box.width * self.size[0] / (box.height * self.size[1]))
        height = width * box.height * self.size[1] / (box.width * self.size[0])
        x, y = (COLUMNS - 1) / 2, -(rows - 1) / 2
        self.limits(self.clock_axes, x=(x - width / 2, x + width / 2), y=(y - height / 2, y + height / 2))
        # By square roots: a few pairs are many times as long as the rest.
        sizes = [np.sqrt(np.abs(turned)) for turned in (data.query_pairs, data.key_pairs)]
        lengths = [size / (size.max() or 1.0) for size in sizes]
        self.clocks.set_clocks(
            centres,
            np.angle(data.query_pairs),
            np.angle(data.key_pairs),
            data.parts / (np.abs(data.parts).max() or 1.0),
            query_lengths=lengths[0],
            key_lengths=lengths[1],
        )
