"""A cache that grows token by token: what is in it, what the newest token makes of it, and the error so far."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _

EXACT = 1e-12
LEAST = 1e-17


@dataclass(frozen=True)
class Steps:
    """One moment of a cached decoding, as it is and as it should be."""

    pad: int  # pad, prompt: padding and tokens that were there before the first step
    prompt: int
    keys: NDArray  # (G, S, 2): one pair of channels of each cached key
    right_keys: NDArray  # (G, S - pad, 2): the same in the right answer, which has no padding
    query: NDArray  # query, right_query (2,): that pair of the newest token's query
    right_query: NDArray
    weights: NDArray  # (S,): the newest token's attention weights
    right_weights: NDArray  # (S,): the right ones
    group: int  # which row of the keys the query reads
    errors: NDArray  # (step + 1,): largest difference from the right output, after the prompt and after each step
    output_rms: float  # root mean square of the right output at this step
    position: int  # position, right_position: of the newest token, as it was turned and as it should be
    right_position: int
    misplaced: float  # share of the attention weights that is on other tokens than it should be
    slowest: float  # frequency of the slowest pair at this step, radians per position
    token_bytes: int  # token_bytes, held_bytes: bytes of one token in all layers, and of all that is cached
    held_bytes: int


class CacheStepsView(View[Steps]):
    """Three rows over one axis of slots: the keys as hands, the attention weights, the error of every step."""

    size = (680, 500)
    slots = 24
    rows = 5

    def build(self) -> None:
        left, width = 0.115, 0.87
        self.grid = self.fig.add_axes((left, 0.725, width, 0.26))
        self.grid.set(xlim=(-0.7, self.slots - 0.3), ylim=(-0.6, self.rows - 0.4))
        self.grid.set_axis_off()
        self.weights_axes = self._axes((left, 0.425, width, 0.27), y="$a$")
        self.weights_axes.set(ylim=(0, 1.04), yticks=(0, 0.5, 1))
        self.weights_axes.tick_params(labelbottom=False)
        self.error_axes = self._axes((left, 0.115, width, 0.27), x="$t$", y=r"$\|\Delta\|_\infty$")
        self.error_axes.set(yscale="log", ylim=(LEAST / 3, 1e4), yticks=[1e-16, 1e-12, 1e-8, 1e-4, 1])
        self.error_axes.axhline(EXACT, color=theme.FAINT, linewidth=theme.THIN, linestyle=(0, (4, 3)))

        self.bands, self.edges = [], []
        for axes in (self.grid, self.weights_axes, self.error_axes):
            band = Rectangle((0, 0), 1, 1, transform=axes.get_xaxis_transform(), color=theme.GRID, zorder=0.5)
            axes.add_patch(band)
            self.bands.append(self.moving(band))
            (edge,) = axes.plot([], [], color=theme.FAINT, linewidth=theme.THIN, linestyle=":", scaley=False)
            edge.set_transform(axes.get_xaxis_transform())
            self.edges.append(self.moving(edge))
        self._build_hands()
        right_bars = LineCollection([], colors="#c4c4c4", linewidths=13, capstyle="butt", zorder=1)
        self.right_bars = self._add(self.weights_axes, right_bars)
        bars = LineCollection([], colors=theme.VALUE, linewidths=4, capstyle="butt", zorder=2)
        self.bars = self._add(self.weights_axes, bars)
        (tips,) = self.weights_axes.plot([], [], color=theme.VALUE, linestyle="", marker="^", markersize=7)
        self.tips = self.moving(tips)
        self.good, self.bad = (
            self.moving(self.error_axes.plot([], [], color=colour, marker=theme.MARKERS[colour], linestyle="", ms=7)[0])
            for colour in (theme.FIRST, theme.SECOND)
        )

        self.shows = {"errors": (self.good, self.bad), "weights": (self.bars, self.tips), "query": (self.query_hands,)}

    def _axes(self, box: tuple[float, float, float, float], *, x: str = "", y: str = "") -> Axes:
        axes = theme.style(self.fig.add_axes(box), x=x, y=y)
        axes.set(xlim=(-0.7, self.slots - 0.3), xticks=range(0, self.slots, 4))
        axes.yaxis.set_label_coords(-0.095, 0.5)
        return axes

    def _add(self, axes: Axes, collection: LineCollection) -> LineCollection:
        axes.add_collection(collection, autolim=False)
        return self.moving(collection)

    def _build_hands(self) -> None:
        faces = EllipseCollection(
            [], [], [], units="x", offsets=np.empty((0, 2)), offset_transform=self.grid.transData, zorder=1
        )
        self.grid.add_collection(faces, autolim=False)
        self.faces = self.moving(faces)
        self.right_hands, self.key_hands, self.query_hands = (
            self._add(self.grid, LineCollection([], colors=colour, linewidths=width, capstyle="round", zorder=zorder))
            for colour, width, zorder in (("#b5b5b5", 5, 2), (theme.KEY, 1.8, 3), (theme.QUERY, 1.8, 3))
        )
        # Data units of the two axes differ in pixels: a hand's second coordinate is stretched to stay a circle's.
        box = self.grid.get_position()
        across, up = (np.ptp(limits) for limits in (self.grid.get_xlim(), self.grid.get_ylim()))
        self.stretch = box.width * self.size[0] / across / (box.height * self.size[1] / up)
        self.names = [
            self.moving(self.grid.text(-1.25, 0, "", fontsize=theme.SYMBOL, ha="right", va="center", color=theme.KEY))
            for _ in range(self.rows)
        ]

    def update(self, data: Steps) -> Self:
        groups, slots, _ = data.keys.shape
        newest = slots - 1
        for band, edge in zip(self.bands, self.edges, strict=True):
            band.set_bounds(newest - 0.5, 0, 1, 1)
            edge.set_data([data.pad + data.prompt - 0.5] * 2, [0, 1])
        self._draw_hands(data, groups, newest)
        self.right_bars.set_segments(_bars(np.arange(slots), data.right_weights))
        self.bars.set_segments(_bars(np.arange(slots), data.weights))
        self.tips.set_data(np.arange(slots), data.weights)
        times = np.arange(len(data.errors)) + data.pad + data.prompt - 1
        errors = np.maximum(data.errors, LEAST)
        for line, chosen in ((self.good, errors <= EXACT), (self.bad, errors > EXACT)):
            line.set_data(times[chosen], errors[chosen])
        return self

    def grips(self, data):
        return {
            "step": self.grip(self.weights_axes, data.keys.shape[1] - 1, 0, anywhere=True),
            "prompt": self.grip(self.weights_axes, data.pad + data.prompt - 0.5, 1),
        }

    def words(self, data):
        groups, slots, _pair = data.keys.shape
        yield self.word(_("query"), self.grid, slots - 1.5, groups, theme.QUERY, "left")
        (left, right), top = self.at(self.weights_axes, [-0.7, self.slots - 0.3], 1.04)[:, 0], self.size[1] * 0.29
        yield Word(_("keys; grey: as they should be"), left, top, theme.KEY)
        yield Word(_("attention; grey: as it should be"), right, top + 18, theme.VALUE, "left")
        edge = data.pad + data.prompt - 0.5
        yield self.word(_("prompt"), self.error_axes, edge, 1e3, side="left")
        yield self.word(_("new tokens"), self.error_axes, edge, 1e3)
        yield self.word(_("error"), self.error_axes, self.slots - 0.3, 1e3, theme.SECOND, "left")
        yield self.word(_("rounding"), self.error_axes, self.slots - 0.3, EXACT / 100, theme.FIRST, "left")

    def _draw_hands(self, data: Steps, groups: int, newest: int) -> None:
        # Row 0 is the last kv head's; the query is drawn above the first's.
        pairs = (data.keys, data.right_keys, data.query[None, None], data.right_query[None, None])
        keys, right_keys, query, right_query = map(_directions, pairs)
        centres = np.array([[(slot, groups - 1 - g) for slot in range(newest + 1)] for g in range(groups)], dtype=float)
        crown = np.array([newest, groups], dtype=float)
        offsets = np.concatenate([centres.reshape(-1, 2), crown[None]])
        padding = np.append(np.tile(np.arange(newest + 1) < data.pad, groups), False)
        read = np.append(np.repeat(np.arange(groups) == data.group, newest + 1), True)
        self.faces.set(widths=np.full(len(offsets), 0.86), heights=np.full(len(offsets), 0.86))
        self.faces.set(angles=np.zeros(len(offsets)), offsets=offsets)
        self.faces.set_facecolor(np.where(padding, theme.FAINT, theme.PAPER))
        self.faces.set_edgecolor(np.where(read, theme.INK, "#c4c4c4"))
        self.faces.set_linewidth(np.where(read, 1.2, 0.8))
        self.right_hands.set_segments(
            np.concatenate(
                [
                    self._hands(centres[:, data.pad :].reshape(-1, 2), right_keys),
                    self._hands(crown[None], right_query),
                ]
            )
        )
        self.key_hands.set_segments(self._hands(centres.reshape(-1, 2), keys))
        self.query_hands.set_segments(self._hands(crown[None], query))
        for row, name in enumerate(self.names):
            name.set(y=row, text=f"$k_{groups - 1 - row}$" if row < groups else "$q$" if row == groups else "")
            name.set_color(theme.QUERY if row == groups else theme.KEY)

    def _hands(self, centres: NDArray, pairs: NDArray) -> NDArray:
        return np.stack([centres, centres + 0.42 * pairs * (1, self.stretch)], axis=1)


def _directions(pairs: NDArray) -> NDArray:
    """Return pairs of channels as a list of hands of one length; a pair that is zero has none."""
    lengths = np.linalg.norm(pairs, axis=-1, keepdims=True)
    return np.divide(pairs, lengths, out=np.zeros_like(pairs), where=lengths > 0).reshape(-1, 2)


def _bars(places: NDArray, heights: NDArray) -> NDArray:
    return np.stack([np.stack([places, np.zeros(len(places))], -1), np.stack([places, heights], -1)], axis=1)
