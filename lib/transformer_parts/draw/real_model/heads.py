"""The heads of a real model on a passage: an attention map, all heads, and the clocks of one score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import ClockFaces, HeatMap
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.real_model.words import written
from transformer_parts.draw.view import View
from transformer_parts.language import _

COLUMNS = 11


@dataclass(frozen=True, kw_only=True)
class Head:
    """One head, one query and one key of it."""

    weights: NDArray  # (L, L): attention weights of the head, a row for each query
    query: int  # query, key: the chosen tokens
    key: int
    every_head: NDArray  # (N, H): a number for each head of the model
    layer: int  # layer, head: the chosen head
    head: int
    query_pairs: NDArray  # query_pairs, key_pairs (P,): the pairs of channels, turned
    key_pairs: NDArray
    parts: NDArray  # (P,): what each pair adds to the score
    tokens: Sequence[str]  # the passage
    title: str  # what the number of each head is


class RealModelHeadsView(View[Head]):
    """Left, the attention map; right, all heads, a row for each layer; below, the clocks of query and key.

    A frame marks the chosen query's row and the chosen head, a dot the chosen key.  The hands of a clock are the longer
    the longer its pairs of channels are (by square roots); its face is gold where the pair adds to the score and grey
    where it takes away.
    """

    size = (680, 520)

    def build(self) -> None:
        self.map_axes = self._square((0.13, 0.44, 0.39, 0.505), x="$j$", y="$i$")
        # Words stand where the numbers of its rows would be.
        self.map_axes.tick_params(labelleft=False)
        self.map_axes.yaxis.set_label_coords(-0.1, 1.01)
        self.map_axes.yaxis.label.set_rotation(0)
        self.map = self.moving(HeatMap(self.map_axes))
        self.heads_axes = self._square((0.615, 0.44, 0.365, 0.505), x="$h$", y=r"$\ell$")
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
        self.shows = {"query": (self.row,), "key": (self.dot,), "head": (self.frame_of_head,)}

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

    def grips(self, data):
        row = self.grip(self.map_axes, -0.5, data.query, anywhere=True)
        left, top, width, height = row.box
        return {
            "query": Grip(row.x, row.y, (0, top, left + width, height)),
            "key": self.grip(self.map_axes, data.key, data.query),
            "one": self.grip(self.heads_axes, data.head, data.layer, anywhere=True),
        }

    def words(self, data):
        rows = self.at(self.map_axes, -0.5, np.arange(len(data.tokens)))
        every = -(-13 // max(1, int(np.diff(rows[:2, 1])[0] + 0.05)))
        for i, (x, y) in enumerate(rows):
            if i == data.query or (i % every == 0 and abs(i - data.query) >= every):
                colour = theme.QUERY if i == data.query else theme.FAINT
                yield Word(written(data.tokens[i]), x, y, colour, "left")
        yield self.word(written(data.tokens[data.key]), self.map_axes, data.key, -0.5, theme.KEY, "on", 10)
        yield self.word(data.title, self.heads_axes, -0.5, -0.5, up=10)
        yield Word(_("gold adds to the score, grey takes away"), 236, 0.64 * self.size[1] - 3)

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
