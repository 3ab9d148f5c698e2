"""How wide a gated feed-forward layer is: its matrices beside those of a plain one, and the published rule's steps."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import blended_transform_factory

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
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
    """Above, the matrices of four layers end to end, so that length is parameters; below, the rule's steps.

    The dashed line is the plain layer's budget.  The grid below is made of the widths that the last step may choose.
    """

    size = (680, 460)
    reaches = (1.75, 2.5, 4, 7, 12, 25, 50, 100, 200, 400, 1000)
    most_multiples = 40
    left, width = 0.15, 0.73

    def build(self) -> None:
        self.budget = theme.style(self.fig.add_axes((self.left, 0.53, self.width, 0.455)), grid=False)
        self.budget.set(xlim=(0, self.reaches[0]), ylim=(-0.55, 3.55))
        self.budget.set_yticks(
            range(4),
            [r"$2\,d\,d_{ff}$", r"$3\,d\,d_{ff}$", r"$3\,d\,\lfloor 2d_{ff}/3\rfloor$", r"$3\,d\,f$"][::-1],
            fontsize=theme.SYMBOL,
        )
        self.budget.tick_params(axis="y", length=0)
        line = self.budget.axvline(1, color=theme.INK, linewidth=1.5, linestyle=(0, (5, 3)), zorder=5)
        self.line = self.moving(line)
        self.matrices = [[self._matrix(3 - i, plain=i == 0) for _ in range(2 if i == 0 else 3)] for i in range(4)]
        # The first layer is the measure of the others, the second half as much again, whatever the widths.
        beside = blended_transform_factory(self.fig.transFigure, self.budget.transData)
        for y, ratio in ((3, "1"), (2, "1.5")):
            self._text(self.budget, y, x=0.985, text=ratio, ha="right", transform=beside)
        self.ratios = [self.moving(self._text(self.budget, y, x=0.985, ha="right", transform=beside)) for y in (1, 0)]
        self.widths = [
            self.moving(self._text(self.budget, y, ha="center", color=theme.PAPER, zorder=6)) for y in (3, 1, 0)
        ]

        self.steps = theme.style(self.fig.add_axes((self.left, 0.03, self.width, 0.40)), grid=False)
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

    def _matrix(self, y: float, *, plain: bool) -> Rectangle:
        matrix = Rectangle(
            (0, y - 0.36), 0, 0.72, edgecolor=theme.PAPER, linewidth=1.6,
            facecolor=theme.FIRST if plain else theme.SECOND,
        )  # fmt: skip
        self.budget.add_patch(matrix)
        return self.moving(matrix)

    @staticmethod
    def _text(axes: Axes, y: float, *, x: float = 0, text: str = "", **look) -> Text:
        look = {"va": "center_baseline", "color": theme.INK, "fontsize": theme.TEXT} | look
        return axes.text(x, y, text, **look)

    def update(self, data: Widths) -> Self:
        longest = max(layer.match.ratio for layer in data.layers)
        self.limits(self.budget, x=(0, next((reach for reach in self.reaches if longest <= reach), longest)))
        for layer, matrices in zip(data.layers, self.matrices, strict=True):
            length = layer.match.ratio / layer.matrices
            for i, matrix in enumerate(matrices):
                matrix.set(x=i * length, width=length)
        plain, _, equal, ruled = data.layers
        for layer, width in zip((plain, equal, ruled), self.widths, strict=True):
            length = layer.match.ratio / layer.matrices
            width.set(x=length / 2, text=f"d × {layer.width}", visible=length > 0.15 * self.budget.get_xlim()[1])
        for layer, ratio in zip((equal, ruled), self.ratios, strict=True):
            ratio.set_text(f"{layer.match.ratio:.4f}")
        self._update_steps(data)
        return self

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
