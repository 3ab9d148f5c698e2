"""One decoder layer, walked step by step: every tensor as a tile of the diagram, the present one in large."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import CellNumbers, HeatMap, NumberMarks
from transformer_parts.draw.decoder_layer.diagram import LABEL_DROP, SYMBOLS, TILE, Place, diagram, formula
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.decoder import StackConfig, Step, part_of

NOW, STREAM = theme.SECOND, theme.FIRST


@dataclass(frozen=True)
class Walked:
    """A layer's tensors, up to which step they are there, and which part of each is shown."""

    steps: tuple[Step, ...]  # all of them
    at: int  # the present one; those after it are not there yet
    # entry, head: which entry of the batch and which query head are shown; of keys and values, the head that this one
    # reads
    entry: int
    head: int
    config: StackConfig  # sizes and kinds of parts
    sees: str  # which keys a token may attend to, as in `decoder.VISIBLE`
    parameters: dict[str, int]  # of the layer, by part and in total
    # largest difference of Y from that of the layer with all parts as usual; NaN where there is none to compare
    changed: float

    @property
    def now(self) -> Step:
        """The present step."""
        return self.steps[self.at]

    @property
    def so_far(self) -> dict[str, int]:
        """Parameters of each part that have been used up to the present step."""
        counts = dict.fromkeys(("attention", "ffn", "norms"), 0)
        for step in self.steps[: self.at + 1]:
            if step.uses:
                counts[part_of(step.uses[0])] += step.parameters
        return counts

    def shown(self, step: Step) -> NDArray:
        """Return what is shown of a tensor, a matrix with a row for each token."""
        value = step.value[self.entry]
        if value.ndim == 2:
            return value
        return value[self.head * len(value) // self.config.n_heads]


class Tile(HeatMap):
    """A heat map that can be left out of a frame."""

    def draw(self, renderer) -> None:
        """Draw the cells unless the tile is hidden."""
        if self.get_visible():
            super().draw(renderer)


class DecoderWalkView(View[Walked]):
    """Above, the diagram: attention, then the feed-forward layer, with the residual stream in blue over each.

    A tensor that is not there yet is an empty frame.  Below, the present tensor: rows are tokens, columns channels (or
    keys, for S and A), blue below zero and red above.
    """

    size = (680, 520)
    most_tokens, most_columns = 8, 64
    # Of the large map, in CSS pixels: its left and upper edge, the room it has, the largest cell.
    left, top, room, cell = 44, 178, (545, 140), (54, 38)
    # Of the bar that counts parameters: its lower left corner, width and height.
    count = 482, 262, 160, 18

    def build(self) -> None:
        pixels = Affine2D().scale(self.fig.dpi / 100)
        # Under the tiles, whose axes are of order 0.
        look = {"colors": theme.FAINT, "linewidths": theme.THIN, "zorder": -1}
        self.lines = self._collection(LineCollection([], **look), pixels)
        look = {"colors": STREAM, "linewidths": theme.LINE, "zorder": -1}
        self.stream = self._collection(LineCollection([], **look), pixels)
        look = {"facecolors": theme.PAPER, "edgecolors": theme.FAINT, "linewidths": theme.THIN, "zorder": -2}
        self.frames = self._collection(PolyCollection([], **look), pixels)
        self.symbols, self.tiles = [], []
        for _number in range(21):
            self.symbols.append(self.fig.text(0, 0, "", fontsize=theme.SYMBOL - 1, color=theme.INK, ha="center"))
            self.tiles.append(self.moving(Tile(self._bare())))
        outline = PolyCollection([], facecolors="none", edgecolors=NOW, linewidths=2.6, zorder=6)
        self.outline = self.moving(self._collection(outline, pixels))
        self._names = None
        self._build_large()
        self._build_count(pixels)
        self.shows = {"now": (self.outline,), "count": (self.counted, self.total)}

    def _collection(self, collection, transform):
        collection.set_transform(transform)
        self.fig.add_artist(collection)
        return collection

    def _bare(self):
        axes = self.fig.add_axes((0, 0, 0.1, 0.1))
        axes.set_axis_off()
        return axes

    def _build_large(self) -> None:
        self.large = self._bare()
        self.map = self.moving(HeatMap(self.large))
        self.numbers = self.moving(CellNumbers(self.large))
        self.numbers.set_zorder(5)
        self.row_numbers = self.moving(NumberMarks(self.large, self.most_tokens))
        self.column_numbers = self.moving(NumberMarks(self.large, self.most_columns))
        self.formula = self.moving(
            self.fig.text(self.left / self.size[0], 0.39, "", fontsize=theme.SYMBOL + 2, color=theme.INK, va="center")
        )
        self.shape = self.moving(
            self.fig.text(0.868, 0.39, "", fontsize=theme.SYMBOL, color=theme.INK, va="center", ha="right")
        )
        bar = self.fig.add_axes((0.905, 0.072, 0.022, 0.265))
        bar.set(xticks=[], yticks=[])
        for spine in bar.spines.values():
            spine.set(color=theme.FAINT, linewidth=theme.THIN)
        HeatMap(bar).set_cells(np.linspace(1, -1, 200)[:, None], 1.0)
        self.ends = [
            self.moving(
                bar.text(1.35, y, "", transform=bar.transAxes, fontsize=theme.TEXT, color=theme.INK, va="center")
            )
            for y in (0.0, 1.0)
        ]
        bar.text(1.35, 0.5, "0", transform=bar.transAxes, fontsize=theme.TEXT, color=theme.INK, va="center")

    def _build_count(self, pixels: Affine2D) -> None:
        """A bar for the parameters, filled as far as the present step."""
        left, bottom, width, height = self.count
        frame = [(left, bottom), (left + width, bottom), (left + width, bottom + height), (left, bottom + height)]
        self._collection(PolyCollection([frame], facecolors=theme.PAPER, edgecolors=theme.FAINT), pixels)
        look = {"facecolors": [STREAM, theme.THIRD, theme.INK], "edgecolors": theme.PAPER, "linewidths": 0.8}
        self.counted = self.moving(self._collection(PolyCollection([], zorder=3, **look), pixels))
        self.total = self.moving(
            self.fig.text(
                left / self.size[0], (bottom + height + 10) / self.size[1], "", fontsize=theme.SYMBOL, color=theme.INK
            )
        )

    def _update_count(self, data: Walked) -> None:
        left, bottom, width, height = self.count
        parts = np.array([data.so_far[part] for part in ("attention", "ffn", "norms")])
        edges = left + width * np.concatenate([[0], np.cumsum(parts)]) / data.parameters["total"]
        self.counted.set_verts(
            [[(a, bottom), (b, bottom), (b, bottom + height), (a, bottom + height)] for a, b in pairwise(edges)]
        )
        self.total.set_text(f"{int(parts.sum()):,} / {data.parameters['total']:,}")

    def update(self, data: Walked) -> Self:
        names = tuple(step.name for step in data.steps)
        if names != self._names:
            self._lay_out(names)
        boxes = []
        index = {name: i for i, name in enumerate(names)}
        for tile, place in zip(self.tiles, self.places, strict=False):
            i = index[place.name]
            tile.set_visible(i <= data.at)
            if i <= data.at:
                cells = data.shown(data.steps[i])
                tile.set_cells(cells, theme.step_above(float(np.abs(cells).max())))
            if i == data.at:
                boxes.append(_box(place, 3))
        for tile in self.tiles[len(self.places) :]:
            tile.set_visible(False)
        self.outline.set_verts(boxes)
        self._update_large(data)
        self._update_count(data)
        return self

    def places_of(self, names: Sequence[str]) -> NDArray:
        """Return where the middle of each tensor's tile is in the picture, (N, 2); of U the first one."""
        at = {place.name: (place.x, self.size[1] - place.y) for place in reversed(diagram(names).places)}
        return np.array([at[name] for name in names])

    def grips(self, data):
        x, y = self.places_of([step.name for step in data.steps])[data.at]
        return {"tensor": Grip(x, y, (0, 0, self.size[0], self.size[1] - round(self.top) - 50))}

    def words(self, data):
        yield Word(_("residual stream"), 104, 14.5, STREAM, "below")
        yield Word(_("attention"), 42, 148, theme.INK, "on")
        yield Word(_("feed-forward"), 46, 288, theme.INK, "on")
        left, bottom, width, _height = self.count
        yield Word(_("parameters used so far"), left + width / 2, self.size[1] - bottom, theme.INK, "below")
        yield Word(_("token"), 30, self.size[1] - self.top - 9, theme.INK, "on")
        across = _("key") if data.now.name in ("scores", "weights") else _("channel")
        (x, y), (right, _top) = self.large.get_position().min, self.large.get_position().max
        yield Word(across, (x + right) / 2 * self.size[0], (1 - y) * self.size[1] + 30, theme.INK, "on")

    def _lay_out(self, names: tuple[str, ...]) -> None:
        """Place tiles, symbols and lines for these tensors; they are part of the background."""
        found = diagram(names)
        self._names, self.places = names, found.places
        width, height = self.size
        for tile, place in zip(self.tiles, self.places, strict=False):
            corner = (place.x - TILE[0] / 2) / width, (place.y - TILE[1] / 2) / height
            tile.axes.set_position((*corner, TILE[0] / width, TILE[1] / height))
        for i, symbol in enumerate(self.symbols):
            symbol.set_text(SYMBOLS[self.places[i].name] if i < len(self.places) else "")
            if i < len(self.places):
                symbol.set_position((self.places[i].x / width, (self.places[i].y - LABEL_DROP) / height))
        self.lines.set_segments(found.edges)
        self.stream.set_segments(found.residual)
        self.frames.set_verts([_box(place, 0) for place in self.places])
        self.redraw_background()

    def _update_large(self, data: Walked) -> None:
        step, cells = data.now, data.shown(data.now)
        rows, columns = cells.shape
        across = min(self.cell[0], self.room[0] / columns)
        down = min(self.cell[1], self.room[1] / rows)
        size = across * columns / self.size[0], down * rows / self.size[1]
        self.large.set_position((self.left / self.size[0], self.top / self.size[1] - size[1], *size))
        largest = theme.step_above(float(np.abs(cells).max()))
        self.map.set_cells(cells, largest)
        x, y = (np.arange(columns) + 0.5) / columns, 1 - (np.arange(rows) + 0.5) / rows
        self.row_numbers.set_numbers(np.arange(rows), np.stack([np.full(rows, -13 / (across * columns)), y], axis=1))
        every = next(n for n in (1, 2, 4, 8, 16) if n * across >= 20)
        chosen = np.arange(0, columns, every)
        below = np.full(len(chosen), -13 / (down * rows))
        self.column_numbers.set_numbers(chosen, np.stack([x[chosen], below], axis=1))
        legible = across >= 44 and down >= 16
        places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        values = cells.ravel() if legible else np.empty(0)
        self.numbers.set_values(values, places[: len(values)], np.abs(values) > 0.42 * largest)
        self.formula.set_text(formula(step.name, data.config, masked=data.sees != "everything"))
        self.shape.set_text(" × ".join(map(str, step.value.shape)))
        for text, sign in zip(self.ends, (-1, 1), strict=True):
            text.set_text(theme.tick_label(sign * largest))


def _box(place: Place, margin: float) -> list[tuple[float, float]]:
    """Return the corners of a tile's frame, `margin` pixels outside it."""
    across, up = TILE[0] / 2 + margin, TILE[1] / 2 + margin
    return [(place.x + a * across, place.y + b * up) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
