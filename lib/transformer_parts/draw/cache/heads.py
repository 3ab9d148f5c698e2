"""One head's attention weights under a fault of the cache, mirrored against the right ones, and their distance."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _


@dataclass(frozen=True)
class HeadWeights:
    """What one head attends to at one moment, and how far that is off at every moment so far."""

    prompt: int  # tokens that came at once
    # weights, right_weights (S,): the newest token's attention weights, as they are and as they should be
    weights: NDArray
    right_weights: NDArray
    # (step + 1,): share of attention on other tokens than it should be, after the prompt and after each step
    misplaced: NDArray
    tokens: tuple[str, ...]  # the text of the tokens there are
    position: int  # position, right_position: of the newest token, as it was turned and as it should be
    right_position: int
    slowest: float  # frequency of the slowest pair at this moment, radians per position


class CacheHeadsView(View[HeadWeights]):
    """Above, right weights upwards and actual ones downwards over the slots; below, the misplaced share."""

    size = (680, 420)
    slots = 49

    def build(self) -> None:
        self.weights_axes = theme.style(self.fig.add_axes((0.105, 0.44, 0.88, 0.53)), y="$a$")
        self.weights_axes.set(xlim=(-1, self.slots), ylim=(-1.05, 1.05), xticks=range(0, self.slots, 8))
        self.weights_axes.set_yticks([-1, -0.5, 0, 0.5, 1], ["1", "0.5", "0", "0.5", "1"])
        self.weights_axes.tick_params(labelbottom=False)
        self.weights_axes.axhline(0, color=theme.INK, linewidth=theme.THIN, zorder=3)
        self.share_axes = theme.style(
            self.fig.add_axes((0.105, 0.13, 0.88, 0.26)), x="$t$", y=r"$\frac{1}{2}\|\Delta a\|_1$"
        )
        self.share_axes.set(
            xlim=(-1, self.slots), ylim=(-0.04, 1.04), yticks=(0, 0.5, 1), xticks=range(0, self.slots, 8)
        )
        for axes in (self.weights_axes, self.share_axes):
            axes.yaxis.set_label_coords(-0.07, 0.5)
        self.bands, self.edges = [], []
        for axes in (self.weights_axes, self.share_axes):
            band = Rectangle((0, 0), 1, 1, transform=axes.get_xaxis_transform(), color=theme.GRID, zorder=0.5)
            axes.add_patch(band)
            self.bands.append(self.moving(band))
            (edge,) = axes.plot([], [], color=theme.FAINT, linewidth=theme.THIN, linestyle=":")
            edge.set_transform(axes.get_xaxis_transform())
            self.edges.append(self.moving(edge))
        self.bars, self.tips = [], []
        for colour in (theme.FIRST, theme.SECOND):
            bars = LineCollection([], colors=colour, linewidths=4, capstyle="butt", zorder=2)
            self.weights_axes.add_collection(bars, autolim=False)
            self.bars.append(self.moving(bars))
            (tips,) = self.weights_axes.plot([], [], color=colour, linestyle="", marker=theme.MARKERS[colour], ms=6)
            self.tips.append(self.moving(tips))
        (line,) = self.share_axes.plot([], [], color=theme.SECOND, linewidth=theme.LINE, marker="s", markersize=4)
        self.share = self.moving(line)
        self.shows = {
            "right": (self.bars[0], self.tips[0]),
            "here": (self.bars[1], self.tips[1]),
            "share": (self.share,),
        }

    def update(self, data: HeadWeights) -> Self:
        slots = np.arange(len(data.weights))
        for band, edge in zip(self.bands, self.edges, strict=True):
            band.set_bounds(slots[-1] - 0.5, 0, 1, 1)
            edge.set_data([data.prompt - 0.5] * 2, [0, 1])
        for bars, tips, heights in zip(self.bars, self.tips, (data.right_weights, -data.weights), strict=True):
            bars.set_segments(np.stack([np.stack([slots, 0 * heights], -1), np.stack([slots, heights], -1)], axis=1))
            seen = np.abs(heights) > 0.02
            tips.set_data(slots[seen], heights[seen])
        self.share.set_data(np.arange(len(data.misplaced)) + data.prompt - 1, data.misplaced)
        return self

    def grips(self, data):
        return {
            "step": self.grip(self.share_axes, len(data.weights) - 1, 0, anywhere=True),
            "prompt": self.grip(self.share_axes, data.prompt - 0.5, 1),
        }

    def words(self, data):
        (left, right), (top, bottom) = self.at(self.weights_axes, [-1, self.slots], [1.05, -1.05]).T
        yield Word(_("as it should be"), left, top + 8, theme.FIRST)
        yield Word(_("as it is"), left, bottom - 8, theme.SECOND)
        yield self.word(_("share on wrong tokens"), self.share_axes, -1, 0.92, theme.SECOND)
        for weights, sign, colour in ((data.right_weights, 1, theme.FIRST), (data.weights, -1, theme.SECOND)):
            slot = int(weights.argmax())
            x, y = self.at(self.weights_axes, slot, sign * weights[slot])
            yield Word(data.tokens[slot], x, y, colour, "left" if slot > self.slots / 2 else "right")
        x = self.at(self.weights_axes, len(data.tokens) - 1, 0)[0]
        yield Word(data.tokens[-1], min(x, right - 30), bottom + 10, side="on")
