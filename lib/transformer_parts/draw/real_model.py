"""A passage's residual stream through the layers of a real model, and the prediction that grows in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import ClockFaces, HeatMap
from transformer_parts.draw.overlay import Grip, Word, spread_out
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.activations import silu

LEAST = 1e-6
"""Probabilities below this are drawn at this."""

#: Width of a letter of a word over a picture, about, and height of a line of words, in CSS pixels.
LETTER, LINE = 7.6, 17
#: Tokens in a line of a passage, and its most lines.
A_LINE, MOST_LINES = 12, 3


def passage_places(count: int, width: float) -> NDArray:
    """Return where the tokens of a passage stand that is written over a picture, (count, 2)."""
    columns = max(A_LINE, -(-count // MOST_LINES))
    index = np.arange(count)
    return np.stack([(index % columns + 0.5) * width / columns, 10 + LINE * (index // columns)], axis=-1)


def written(token: str, width: float = np.inf) -> str:
    """Return the text of a token as a word, cut to a width."""
    most = len(token) if width == np.inf else int(width / LETTER)
    return token.strip()[:most] or "·"


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One token's way through the layers."""

    rms: NDArray  # (2N + 1, L): RMS of every token's residual vector as it enters each norm, two a layer and the last
    token: int  # token, layer: the chosen ones
    layer: int
    # (N + 1,): probability of the likeliest next token, by the residual stream before each layer and after the last
    best: NDArray
    following: NDArray  # (N + 1,): that of the token that comes next; NaN for the last token
    tokens: Sequence[str]  # the passage


class RealModelStreamView(View[Stream]):
    """Above, the size of the residual vectors; below, the probabilities that final norm and head make of the stream.

    Grey: all tokens; red squares: token 0; blue dots: the chosen token.  Below, black: the likeliest next token;
    gold triangles: the token that does come next.
    """

    size = (680, 500)

    def build(self) -> None:
        self.rms_axes = theme.style(self.fig.add_axes((0.115, 0.515, 0.745, 0.365)), y="rms")
        self.rms_axes.set(yscale="log", ylim=(0.03, 3000))
        self.rms_axes.tick_params(labelbottom=False)
        self.lens_axes = theme.style(self.fig.add_axes((0.115, 0.12, 0.745, 0.345)), x=r"$\ell$", y="$p$")
        self.lens_axes.set(yscale="log", ylim=(LEAST / 1.6, 1.6))
        for axes in (self.rms_axes, self.lens_axes):
            axes.yaxis.set_label_coords(-0.085, 0.5)
            axes.minorticks_off()
        self.cursors = [
            self.moving(axes.axvline(0, color=theme.FAINT, linewidth=theme.THIN, linestyle="--", zorder=1))
            for axes in (self.rms_axes, self.lens_axes)
        ]
        others = LineCollection([], colors=theme.FAINT, linewidths=0.8, alpha=0.7, zorder=2)
        self.others = self.moving(self.rms_axes.add_collection(others, autolim=False))
        self.first = self._line(self.rms_axes, theme.SECOND, markersize=4)
        self.chosen = self._line(self.rms_axes, theme.FIRST, markersize=4)
        self.best = self._line(self.lens_axes, theme.INK, marker="", linewidth=theme.THIN)
        self.following = self._line(self.lens_axes, theme.THIRD, markersize=5)
        self.mark = self._line(self.rms_axes, theme.INK, marker="o", markersize=9, markerfacecolor="none")
        self.shows = {
            "token": (self.chosen, self.mark),
            "best": (self.best,),
            "following": (self.following,),
        }

    def _line(self, axes, colour: str, **look):
        look = {"linewidth": theme.LINE, "marker": theme.MARKERS.get(colour, "o"), "zorder": 3} | look
        (line,) = axes.plot([], [], color=colour, **look)
        return self.moving(line)

    def update(self, data: Stream) -> Self:
        places = np.arange(len(data.rms)) / 2
        layers = np.arange(len(data.best))
        for axes in (self.rms_axes, self.lens_axes):
            self.limits(axes, x=(-0.5, layers[-1] + 0.5))
        for cursor in self.cursors:
            cursor.set_xdata([data.layer, data.layer])
        self.others.set_segments([np.stack([places, rms], axis=-1) for rms in data.rms.T])
        self.first.set_data(places[::2], data.rms[::2, 0])
        self.chosen.set_data(places[::2], data.rms[::2, data.token])
        self.mark.set_data([data.layer], [data.rms[2 * data.layer, data.token]])
        self.best.set_data(layers, np.maximum(data.best, LEAST))
        self.following.set_data(layers, np.maximum(data.following, LEAST))
        return self

    def grips(self, data):
        x, y = passage_places(len(data.tokens), self.size[0])[data.token]
        return {
            "token": Grip(x, y, (0, 0, self.size[0], LINE * MOST_LINES)),
            "layer": self.grip(self.rms_axes, data.layer, 1500, anywhere=True, down_to=self.lens_axes),
        }

    def words(self, data):
        places = passage_places(len(data.tokens), self.size[0])
        width = places[1, 0] - places[0, 0]
        colours = {data.token: theme.FIRST, 0: theme.SECOND} | {data.token: theme.FIRST}
        for i, (token, place) in enumerate(zip(data.tokens, places, strict=True)):
            yield Word(written(token, width), *place, colours.get(i, theme.FAINT), "on")
        names = {0: written(data.tokens[0]), data.token: written(data.tokens[data.token])}
        ends = {i: data.rms[-1, i] for i in names} | {-1: float(np.median(data.rms[-1]))}
        yield from self._names(self.rms_axes, ends, names | {-1: _("all tokens")}, colours)
        ends = {0: data.best[-1], 1: data.following[-1]}
        ends = {i: max(end, LEAST) for i, end in ends.items() if np.isfinite(end)}
        names = {0: _("likeliest"), 1: _("next token")}
        yield from self._names(self.lens_axes, ends, names, {0: theme.INK, 1: theme.THIRD})
        if (data.following < LEAST).any():
            yield self.word(_("this or less"), self.lens_axes, 0, LEAST, theme.THIRD, up=11)

    def _names(self, axes, ends, names, colours) -> Iterator[Word]:
        """Name lines at their ends, which are given by the numbers of the names."""
        right = axes.get_xlim()[1]
        heights = {i: self.at(axes, right, end)[1] for i, end in ends.items()}
        for i, y in spread_out(heights, 14).items():
            yield Word(names[i], self.at(axes, right, 1)[0], y, colours.get(i, theme.FAINT))


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
            "head": self.grip(self.heads_axes, data.head, data.layer, anywhere=True),
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
        yield Word(_("gold adds to the score, grey takes away"), 10, 0.64 * self.size[1] - 3)

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


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Losses by token with and without a part, and how a layer's gates are spread."""

    trained: NDArray  # trained, broken (L − 1,): the loss of tokens 1, 2, …, in nats
    broken: NDArray
    token: int  # the chosen token, from 1
    edges: NDArray  # (C + 1,): edges of the classes of gates before the activation
    # all_gates, token_gates (C,): shares of the layer's gates in each class: over all tokens, and of the chosen one
    all_gates: NDArray
    token_gates: NDArray
    # all_shares, token_shares (2,): shares of the gates after the activation that are below 0, and above 1
    all_shares: NDArray
    token_shares: NDArray
    tokens: Sequence[str]  # the passage
    title: str  # what is broken


class RealModelPartsView(View[Parts]):
    """Above, the loss of each token, blue dots as trained, red squares with the part broken; below, gates.

    Below, grey: the share of the layer's gates x·W_gate in each class, over all tokens; blue: the chosen token's;
    gold, on the right-hand scale: what SiLU makes of them.
    """

    size = (680, 460)

    def build(self) -> None:
        self.loss_axes = theme.style(self.fig.add_axes((0.095, 0.615, 0.82, 0.315)), x="$t$", y=r"$-\ln p$")
        self.gate_axes = theme.style(self.fig.add_axes((0.095, 0.13, 0.82, 0.32)), x="$g$", y="%")
        self.gate_axes.set(xlim=(-6.05, 6.05), ylim=(0, 16))
        self.silu_axes = theme.style(self.gate_axes.twinx(), grid=False, y=r"$\mathrm{SiLU}(g)$")
        self.silu_axes.set(ylim=(-0.8, 6.4), facecolor="none")
        for side, spine in self.silu_axes.spines.items():
            spine.set_visible(side == "right")
        self.silu_axes.yaxis.set_label_position("right")
        self.silu_axes.yaxis.tick_right()
        gates = np.linspace(-6, 6, 241)
        # Lies over the gates, which move.
        (curve,) = self.silu_axes.plot(gates, silu(gates), color=theme.THIRD, linewidth=theme.LINE, linestyle="--")
        for line in (curve, self.silu_axes.axhline(0, color=theme.THIRD, linewidth=0.6, linestyle=":")):
            self.moving(line)
        # Words stand where the numbers of the tokens would be.
        self.loss_axes.tick_params(labelbottom=False)
        self.loss_axes.xaxis.set_label_coords(1.02, 0.03)
        self.loss_axes.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
        for axes in (self.loss_axes, self.gate_axes):
            axes.yaxis.set_label_coords(-0.065, 0.5)
        self.cursor = self.moving(
            self.loss_axes.axvline(1, color=theme.FAINT, linewidth=theme.THIN, linestyle="--", zorder=1)
        )
        self.broken, self.trained = (
            self.moving(
                self.loss_axes.plot(
                    [], [], color=colour, marker=theme.MARKERS[colour], markersize=5, linewidth=theme.THIN, zorder=3
                )[0]
            )
            for colour in (theme.SECOND, theme.FIRST)
        )
        self.shows = {"trained": (self.trained,), "broken": (self.broken,)}
        self.all_gates = self.moving(self.gate_axes.stairs([0.0], [0.0, 1.0], fill=True, color=theme.FAINT, alpha=0.6))
        self.token_gates = self.moving(self.gate_axes.stairs([0.0], [0.0, 1.0], color=theme.FIRST, linewidth=1.5))

    def update(self, data: Parts) -> Self:
        tokens = np.arange(1, len(data.trained) + 1)
        highest = max(float(data.trained.max()), float(data.broken.max()))
        self.limits(self.loss_axes, x=(0.5, tokens[-1] + 0.5), y=(-0.5, 8 * np.ceil((highest + 0.5) / 8)))
        self.cursor.set_xdata([data.token, data.token])
        self.trained.set_data(tokens, data.trained)
        self.broken.set_data(tokens, data.broken)
        self.all_gates.set_data(100 * data.all_gates, data.edges)
        self.token_gates.set_data(100 * data.token_gates, data.edges)
        largest = 100 * max(float(data.all_gates.max()), float(data.token_gates.max()))
        self.limits(self.gate_axes, y=(0, 8 * np.ceil(1.05 * largest / 8)))
        return self

    def grips(self, data):
        return {"token": self.grip(self.loss_axes, data.token, 0.85 * self.loss_axes.get_ylim()[1], anywhere=True)}

    def words(self, data):
        (left, right), top = self.loss_axes.get_xlim(), self.loss_axes.get_ylim()[1]
        yield self.word(_("as trained"), self.loss_axes, left, top, theme.FIRST, up=10)
        yield self.word(data.title, self.loss_axes, left + 0.18 * (right - left), top, theme.SECOND, up=10)
        yield from self._tokens(data)
        top = self.gate_axes.get_ylim()[1]
        yield self.word(_("gates of all tokens"), self.gate_axes, -6, top, theme.FAINT, up=-8)
        yield self.word(written(data.tokens[data.token]), self.gate_axes, -6, top, theme.FIRST, up=-24)

    def _tokens(self, data: Parts) -> Iterator[Word]:
        """Write as many tokens below the axis as there is room for in two lines, the chosen one first."""
        filled: list[list[tuple[float, float]]] = [[], []]
        for i in (data.token, *(i for i in range(1, len(data.tokens)) if i != data.token)):
            text = written(data.tokens[i])
            (x, y), half = self.at(self.loss_axes, i, self.loss_axes.get_ylim()[0]), (LETTER * len(text) + 8) / 2
            for line, taken in enumerate(filled):
                if all(x + half <= low or high <= x - half for low, high in taken):
                    taken.append((x - half, x + half))
                    colour = theme.FIRST if i == data.token else theme.FAINT
                    yield Word(text, x, y + 13 + 15 * line, colour, "on")
                    break
