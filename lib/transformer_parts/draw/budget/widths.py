"""How wide a gated feed-forward layer is: its matrices beside those of a plain one, and the published rule's steps."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import blended_transform_factory

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.budget import BudgetMatch, LlamaWidth


@dataclass(frozen=True)
class Layer:
    """One feed-forward layer: how many matrices of D × width it has, and its parameters against the plain layer's."""

    matrices: int
    width: int
    match: BudgetMatch


@dataclass(frozen=True)
class Widths:
    """A plain layer, gated ones of three widths, and the steps of the published rule."""

    d_model: int  # d_model, d_ff: D, and the plain layer's width
    d_ff: int
    equal: float  # 2·d_ff/3, the gated width of an equal budget
    # the plain layer; gated ones as wide as that, of `equal` rounded down, and of the rule's width
    layers: tuple[Layer, Layer, Layer, Layer]
    two_thirds: float  # 8·D/3, before any rounding
    rule: LlamaWidth  # the rule's steps
    multiplier: float  # the rule's factor
    multiple_of: int  # what the rule's last step rounds up to


class BudgetWidthsView(View[Widths]):
    """Above, the matrices of four layers, one on another, so that area is parameters; below, the rule's steps.

    A dashed frame is the plain layer's budget: as wide as it around two matrices, 2/3 of that around three.  The grid
    below is made of the widths that the last step may choose.
    """

    size = (680, 500)
    #: The widest of the axes, in D; what is wider is cut.
    reach = 8.5
    most_multiples = 40
    left, width = 0.15, 0.73
    #: Where the layers' lowest matrices stand, and the height of a matrix.
    floors, height = (11.5, 7.7, 3.9, 0.1), 1.0

    def build(self) -> None:
        self.budget = theme.style(self.fig.add_axes((self.left, 0.465, self.width, 0.52)), grid=False)
        self.budget.set(xlim=(0, self.reach), ylim=(0, 14))
        self.budget.set_xticks(range(9), [r"$0$", r"$d$", *(rf"${n}d$" for n in range(2, 9))])
        self.budget.set_yticks(
            [floor + 1.5 - 0.5 * (i == 0) for i, floor in enumerate(self.floors)],
            [r"$2\,d\,d_{ff}$", r"$3\,d\,d_{ff}$", r"$3\,d\,\lfloor 2d_{ff}/3\rfloor$", r"$3\,d\,f$"],
            fontsize=theme.SYMBOL,
        )
        self.budget.tick_params(axis="y", length=0)
        self.matrices = [[self._matrix(i, n) for n in range(2 if i == 0 else 3)] for i in range(4)]
        self.frames = [self._frame(i) for i in range(1, 4)]
        # The first layer is the measure of the others, the second half as much again, whatever the widths.
        beside = blended_transform_factory(self.fig.transFigure, self.budget.transData)
        middles = [floor + 1.5 - 0.5 * (i == 0) for i, floor in enumerate(self.floors)]
        for y, ratio in zip(middles, ("1", "1.5"), strict=False):
            self._text(self.budget, y, x=0.985, text=ratio, ha="right", transform=beside)
        self.ratios = [
            self.moving(self._text(self.budget, y, x=0.985, ha="right", transform=beside)) for y in middles[2:]
        ]
        self.widths = [
            self.moving(self._text(self.budget, y, ha="center", color=theme.PAPER, zorder=6))
            for y in (middles[0] + 0.5, *middles[2:])
        ]
        self.shows = {
            name: tuple(matrices)
            for name, matrices in zip(("plain", "same", "equal", "rule"), self.matrices, strict=True)
        }

        self.steps = theme.style(self.fig.add_axes((self.left, 0.03, self.width, 0.345)), grid=False)
        self.steps.set(xlim=(0, 1), ylim=(-0.6, 3.6), xticks=[])
        self.steps.set_yticks([3, 2], [r"$8d/3$", r"$\lfloor 8d/3\rfloor$"], fontsize=theme.SYMBOL)
        self.steps.tick_params(axis="y", length=0)
        beside = blended_transform_factory(self.fig.transFigure, self.steps.transData)
        left = {"x": self.left - 0.012, "ha": "right", "fontsize": theme.SYMBOL, "transform": beside}
        self.symbols = [self.moving(self._text(self.steps, y, **left)) for y in (1, 0)]
        self.values = [
            self.moving(self._text(self.steps, y, x=0.985, ha="right", transform=beside)) for y in (3, 2, 1, 0)
        ]
        self.grid = self.moving(self.steps.vlines([], [], [], color=theme.GRID, linewidth=1.5, zorder=1))
        (path,) = self.steps.plot([], [], color=theme.SECOND, linewidth=theme.THIN, zorder=2)
        (dots,) = self.steps.plot([], [], color=theme.SECOND, linestyle="", marker="s", markersize=9, zorder=3)
        (exact,) = self.steps.plot(
            [], [], color=theme.SECOND, linestyle="", marker="D", markersize=9, markerfacecolor=theme.PAPER, zorder=3
        )
        self.path, self.dots, self.exact = map(self.moving, (path, dots, exact))

    def _matrix(self, layer: int, number: int) -> Rectangle:
        matrix = Rectangle(
            (0, self.floors[layer] + number * self.height), 0, self.height, edgecolor=theme.PAPER, linewidth=1.6,
            facecolor=theme.SECOND if layer else theme.FIRST,
        )  # fmt: skip
        self.budget.add_patch(matrix)
        return self.moving(matrix)

    def _frame(self, layer: int) -> Rectangle:
        look = {"fill": False, "edgecolor": theme.INK, "linewidth": 1.5, "linestyle": (0, (5, 3)), "zorder": 5}
        return self.moving(self.budget.add_patch(Rectangle((0, self.floors[layer]), 0, 3 * self.height, **look)))

    @staticmethod
    def _text(axes: Axes, y: float, *, x: float = 0, text: str = "", **look) -> Text:
        look = {"va": "center_baseline", "color": theme.INK, "fontsize": theme.TEXT} | look
        return axes.text(x, y, text, **look)

    def update(self, data: Widths) -> Self:
        for layer, matrices in zip(data.layers, self.matrices, strict=True):
            for matrix in matrices:
                matrix.set_width(layer.width / data.d_model)
        for frame in self.frames:
            frame.set_width(data.equal / data.d_model)
        plain, _same, equal, ruled = data.layers
        for layer, width in zip((plain, equal, ruled), self.widths, strict=True):
            length = min(layer.width / data.d_model, self.reach)
            width.set(x=length / 2, text=f"d × {layer.width}", visible=length > 0.16 * self.reach)
        for layer, ratio in zip((equal, ruled), self.ratios, strict=True):
            ratio.set_text(f"{layer.match.ratio:.4f}")
        self._update_steps(data)
        return self

    def grips(self, data):
        return {"plain": self._edge(data, 0), "multiplier": self._edge(data, 3)}

    def _edge(self, data: Widths, layer: int) -> Grip:
        """Return a grip at the right edge of a layer, which a hand may take anywhere in its row."""
        floor, matrices = self.floors[layer], data.layers[layer].matrices
        place = self.at(self.budget, min(data.layers[layer].width / data.d_model, self.reach), floor + matrices / 2)
        return Grip(*place, self.box(self.budget, (0, self.reach), (floor, floor + matrices)))

    def words(self, data):
        names = (_("plain"), _("gated, as wide"), _("gated, equal budget"), _("gated, by the rule"))
        for name, floor, layer in zip(names, self.floors, data.layers, strict=True):
            # Right of the layer and of the frame of its budget.
            edge = max(layer.width, data.equal) / data.d_model
            if edge < 0.72 * self.reach:
                x, y = self.at(self.budget, edge, floor + layer.matrices / 2)
                yield Word(name, x + 6, y, theme.SECOND if layer.matrices == 3 else theme.FIRST)
        gap = (self.floors[0] + self.floors[1] + 3) / 2
        yield self.word(_("dashed: as much area as the plain layer"), self.budget, 0, gap)
        names = (_("exact"), _("rounded down"), _("times the multiplier"), _("up to a multiple"))
        places = [*self.exact.get_xdata(), *self.dots.get_xdata()]
        for i, (name, place) in enumerate(zip(names, places, strict=True)):
            x, y = self.at(self.steps, place, 3 - i)
            side, out = ("right", 6) if place < 0.7 else ("left", -6)
            # Above the line that comes from the step before, where that lies on this side.
            before = places[max(i - 1, 0)]
            above = before > place if side == "right" else before < place
            yield Word(name, x + out, y - 9 * above, theme.SECOND, side)

    def _update_steps(self, data: Widths) -> None:
        rule, step = data.rule, data.multiple_of
        widths = np.array([data.two_thirds, rule.two_thirds, rule.multiplied, rule.d_ff])
        low = min(widths.min(), rule.d_ff - step)
        high = max(widths.max(), low + 1)
        pad = 0.07 * (high - low)
        low, high = low - pad, high + pad
        places = (widths - low) / (high - low)
        heights = np.arange(3.0, -1.0, -1.0)
        self.exact.set_data(places[:1], heights[:1])
        self.dots.set_data(places[1:], heights[1:])
        self.path.set_data(np.repeat(places, 2)[:-1], np.repeat(heights, 2)[1:])
        first, last = int(np.ceil(low / step)), int(np.floor(high / step))
        multiples = step * np.arange(first, last + 1) if last - first < self.most_multiples else np.array([rule.d_ff])
        multiples = (multiples - low) / (high - low)
        self.grid.set_segments([[(x, -0.6), (x, 3.6)] for x in multiples])
        self.symbols[0].set_text(f"× {data.multiplier:g}")
        self.symbols[1].set_text(f"↑ {step}")
        for value, number in zip(self.values, (f"{data.two_thirds:.2f}", *map(str, map(int, widths[1:]))), strict=True):
            value.set_text(number)
