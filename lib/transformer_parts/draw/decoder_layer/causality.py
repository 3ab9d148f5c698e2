"""One token changed: which outputs move, layer by layer and channel by channel; what does not move is exactly zero."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap, NumberMarks
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _

#: The colours' logarithmic scale; a change beyond it has the colour of its end.
LEAST, MOST = 1e-6, 10.0
CHANGED, LEAKED = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Moved:
    """How far the residual stream moved when one token was changed."""

    spread: NDArray  # (layers + 1, L, D): |ΔX| before the first layer and after each
    token: int  # the token that was changed
    layer: int  # after how many layers the channels are shown
    leak: float  # the largest change of an output of the last layer before the token
    sees: str  # which keys a token may attend to, as in `decoder.VISIBLE`

    @property
    def reach(self) -> NDArray:
        """The largest change over the channels, shape (layers + 1, L)."""
        return self.spread.max(axis=-1)


class LogMap(HeatMap):
    """Cells that are zero or positive: white for an exact zero, else coloured by the logarithm."""

    def __init__(self, axes: Axes):
        super().__init__(axes)
        colours = colormaps[theme.SEQUENTIAL](np.linspace(0, 1, 255), bytes=True)
        white = np.full((1, 4), 255, np.uint8)
        self._table = np.ascontiguousarray(np.concatenate([white, colours])).view(np.uint32).ravel()

    def set_sizes(self, sizes: NDArray) -> None:
        """Show `sizes`, shape (rows, columns), on the scale from `LEAST` to `MOST`."""
        share = np.log(np.clip(sizes, LEAST, MOST) / LEAST) / np.log(MOST / LEAST)
        self._cells = np.where(sizes == 0, 0, 1 + np.round(254 * share)).astype(np.uint8)
        self.stale = True


class DecoderCausalityView(View[Moved]):
    """Columns are positions.  Above, a row for each layer: the largest change of any channel.

    Below, the channels after one of the layers.  An exact zero is white and has a 0 in it.  The changed token is framed
    in blue; what moved before it, in red.
    """

    size = (680, 460)
    most_tokens, most_layers, n_channels = 12, 6, 8
    left, width = 0.075, 0.775

    def build(self) -> None:
        self.reach_axes, self.reach, self.reach_zeros = self._map((0.575, 0.35), self.most_layers + 1)
        self.channel_axes, self.channels, self.channel_zeros = self._map((0.075, 0.40), self.n_channels)
        self.positions = self.moving(NumberMarks(self.channel_axes, self.most_tokens))
        self.layers = self.moving(NumberMarks(self.reach_axes, self.most_layers + 1))
        channels = NumberMarks(self.channel_axes, self.n_channels)
        places = 1 - (np.arange(self.n_channels) + 0.5) / self.n_channels
        channels.set_numbers(np.arange(self.n_channels), np.stack([np.full(self.n_channels, -0.02), places], axis=1))
        self._label(self.reach_axes, r"$\|\Delta X^{(n)}_t\|_\infty$", 1.065)
        self.shown = self._label(self.channel_axes, "", 1.065)
        self.moving(self.shown)
        self.reach_axes.text(-0.055, 1.065, "$n$", transform=self.reach_axes.transAxes, fontsize=theme.SYMBOL)
        self.channel_axes.text(-0.055, 1.065, "$i$", transform=self.channel_axes.transAxes, fontsize=theme.SYMBOL)
        self.channel_axes.text(1.012, -0.10, "$t$", transform=self.channel_axes.transAxes, fontsize=theme.SYMBOL)
        self.frames = [self._frames(axes) for axes in (self.reach_axes, self.channel_axes)]
        self._build_scale()
        leaked, changed = ([frames[i] for frames in self.frames] for i in (0, 1))
        self.shows = {"leaked": tuple(leaked), "changed": tuple(changed)}

    def _map(self, y: tuple[float, float], rows: int) -> tuple[Axes, LogMap, NumberMarks]:
        axes = self.fig.add_axes((self.left, y[0], self.width, y[1]))
        axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
        for spine in axes.spines.values():
            spine.set(color=theme.FAINT, linewidth=theme.THIN)
        cells = self.moving(LogMap(axes))
        zeros = self.moving(NumberMarks(axes, 1))
        zeros.set_facecolor(theme.FAINT)
        return axes, cells, zeros

    def _label(self, axes: Axes, text: str, height: float):
        return axes.text(0, height, text, transform=axes.transAxes, fontsize=theme.SYMBOL, color=theme.INK)

    def _frames(self, axes: Axes) -> tuple[PolyCollection, PolyCollection, PolyCollection]:
        made = []
        for colour, width, dash in ((LEAKED, 2.4, "-"), (CHANGED, 2.8, "-"), (theme.INK, 1.4, (0, (4, 2)))):
            made.append(PolyCollection([], facecolors="none", edgecolors=colour, linewidths=width, linestyles=[dash]))
            made[-1].set(zorder=4, clip_on=False, transform=axes.transAxes)
            axes.add_collection(made[-1], autolim=False)
            self.moving(made[-1])
        return tuple(made)

    def _build_scale(self) -> None:
        bar = theme.style(self.fig.add_axes((0.888, 0.15, 0.02, 0.62)), grid=False)
        bar.yaxis.tick_right()
        bar.set(yscale="log", ylim=(LEAST, MOST), xticks=[], yticks=[1e-6, 1e-4, 1e-2, 1.0])
        bar.minorticks_off()
        LogMap(bar).set_sizes(np.geomspace(MOST, LEAST, 200)[:, None])
        zero = self.fig.add_axes((0.888, 0.09, 0.02, 0.032))
        zero.set(xticks=[], yticks=[])
        zero.text(1.6, 0.5, "0", transform=zero.transAxes, fontsize=theme.TEXT, color=theme.INK, va="center")
        for spine in zero.spines.values():
            spine.set(color=theme.FAINT, linewidth=theme.THIN)

    def update(self, data: Moved) -> Self:
        channels = data.spread[data.layer].T
        for cells, zeros, sizes in (
            (self.reach, self.reach_zeros, data.reach),
            (self.channels, self.channel_zeros, channels),
        ):
            cells.set_sizes(sizes)
            rows, columns = np.nonzero(sizes == 0)
            places = np.stack([(columns + 0.5) / sizes.shape[1], 1 - (rows + 0.5) / sizes.shape[0]], axis=1)
            zeros.set_numbers(np.zeros(len(rows), int), places)
        n_rows, length = data.reach.shape
        middles = (np.arange(length) + 0.5) / length
        self.positions.set_numbers(np.arange(length), np.stack([middles, np.full(length, -0.06)], axis=1))
        rows = 1 - (np.arange(n_rows) + 0.5) / n_rows
        self.layers.set_numbers(np.arange(n_rows), np.stack([np.full(n_rows, -0.02), rows], axis=1))
        self.shown.set_text(rf"$|\Delta X^{{({data.layer})}}_{{t,i}}|$")
        for (leaked, changed, shown), sizes, row in zip(
            self.frames, (data.reach, channels), (data.layer, None), strict=True
        ):
            if row is None:
                early = [(slice(0, len(sizes)), column) for column in np.flatnonzero(sizes.any(axis=0)[: data.token])]
            else:
                early = np.argwhere(sizes[:, : data.token] > 0)
            leaked.set_verts([_box(*cell, sizes.shape) for cell in early])
            changed.set_verts([_box(slice(0, len(sizes)), data.token, sizes.shape)])
            shown.set_verts([] if row is None else [_box(row, slice(0, length), sizes.shape)])
        return self

    def grips(self, data):
        rows, length = data.reach.shape
        return {
            "token": self.grip(self.channel_axes, (data.token + 0.5) / length, 1, anywhere=True),
            "layer": self.grip(self.reach_axes, 0, 1 - (data.layer + 0.5) / rows, anywhere=True),
        }

    def words(self, data):
        x, y = self.at(self.channel_axes, (data.token + 0.5) / data.reach.shape[1], 0)
        yield Word(_("changed"), x, y + 24, CHANGED, "on")
        x, y = self.at(self.reach_axes, 1, 1)
        text = _("red: moved before the changed token") if data.leak else _("white: did not move at all")
        yield Word(text, x, y - 14, LEAKED if data.leak else theme.INK, "left")
        x, y = self.at(self.channel_axes, 1, 1)
        yield Word(_("channels, after layer {n}", n=data.layer), x, y - 14, theme.INK, "left")
        yield Word(_("change"), 0.9 * self.size[0], 0.2 * self.size[1], theme.INK, "on")


def _box(row: int | slice, column: int | slice, shape: tuple[int, int]) -> list[tuple[float, float]]:
    """Return the corners of cells in fractions of the axes, the first row on top."""
    (top, bottom), (left, right) = (
        (at.start / size, at.stop / size) if isinstance(at, slice) else (at / size, (at + 1) / size)
        for at, size in zip((row, column), shape, strict=True)
    )
    return [(left, 1 - top), (right, 1 - top), (right, 1 - bottom), (left, 1 - bottom)]
