"""A passage's residual stream through the layers of a real model, and the prediction that grows in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Grip, Word, apart
from transformer_parts.draw.real_model.words import LINE, MOST_LINES, passage_places, written
from transformer_parts.draw.view import View
from transformer_parts.language import _

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
        yield from apart(self.word(names[i], axes, right, end, colours.get(i, theme.FAINT)) for i, end in ends.items())
