"""A passage's residual stream through the layers of a real model, and the prediction that grows in it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import ClockFaces, HeatMap
from transformer_parts.draw.view import View
from transformer_parts.maths.activations import silu

LEAST = 1e-6
"""Probabilities below this are drawn at this."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One token's way through the layers."""

    rms: NDArray  # (2N + 1, L): RMS of every token's residual vector as it enters each norm, two a layer and the last
    token: int  # token, layer: the chosen ones
    layer: int
    # (N + 1,): probability of the likeliest next token, by the residual stream before each layer and after the last
    best: NDArray
    following: NDArray  # (N + 1,): that of the token that comes next; NaN for the last token


class RealModelStreamView(View[Stream]):
    """Above, the size of the residual vectors; below, the probabilities that final norm and head make of the stream.

    Grey: all tokens; red squares: token 0; blue dots: the chosen token.  Below, black: the likeliest next token;
    gold triangles: the token that does come next.
    """

    size = (680, 460)

    def build(self) -> None:
        self.rms_axes = theme.style(self.fig.add_axes((0.115, 0.56, 0.865, 0.415)), y="rms")
        self.rms_axes.set(yscale="log", ylim=(0.03, 3000))
        self.rms_axes.tick_params(labelbottom=False)
        self.lens_axes = theme.style(self.fig.add_axes((0.115, 0.13, 0.865, 0.375)), x=r"$\ell$", y="$p$")
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


class RealModelHeadsView(View[Head]):
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


class RealModelPartsView(View[Parts]):
    """Above, the loss of each token, blue dots as trained, red squares with the part broken; below, gates.

    Below, grey: the share of the layer's gates x·W_gate in each class, over all tokens; blue: the chosen token's;
    gold, on the right-hand scale: what SiLU makes of them.
    """

    size = (680, 460)

    def build(self) -> None:
        self.loss_axes = theme.style(self.fig.add_axes((0.095, 0.60, 0.82, 0.375)), x="$t$", y=r"$-\ln p$")
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
