"""A passage's residual stream through the layers of a real model, and the prediction that grows in it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

LEAST = 1e-6
"""Probabilities below this are drawn at this."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One token's way through the layers.

    Attributes
    ----------
    rms : ndarray, shape (2N + 1, L)
        RMS of every token's residual vector as it enters each norm, two a layer and the last.
    token, layer : int
        The chosen ones.
    best : ndarray, shape (N + 1,)
        Probability of the likeliest next token, by the residual stream before each layer and after the last.
    following : ndarray, shape (N + 1,)
        That of the token that comes next; NaN for the last token.
    """

    rms: NDArray
    token: int
    layer: int
    best: NDArray
    following: NDArray


class StreamView(View[Stream]):
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
