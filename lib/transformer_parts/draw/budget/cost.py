"""What a decoder costs to run as the context grows: bytes of weights and cache, and operations per token."""

from dataclasses import dataclass
from typing import Self

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.language import _


@dataclass(frozen=True)
class Cost:
    """Bytes and operations of a decoder against the context, with its kv heads and with one for each query head."""

    contexts: NDArray  # (N,): tokens in the cache
    # cache, full_cache (N,): bytes of keys and values of all sequences: with the chosen kv heads, and with as many as
    # query heads
    cache: NDArray
    full_cache: NDArray
    weights: int  # bytes of all parameters
    weight_flops: int  # operations of a token's products with weights
    attention_flops: NDArray  # (N,): operations of its products with the cached keys and values
    context: int  # the chosen place on the curves
    context_cache: int  # context_cache, context_full_cache, context_attention_flops: the curves' values there
    context_full_cache: int
    context_attention_flops: int
    # parameters, full_parameters: parameters with the chosen kv heads, and with as many as query heads
    parameters: int
    full_parameters: int
    token_cache: int  # bytes of keys and values of one token

    @property
    def even(self) -> float:
        """The context whose cache weighs as much as the weights."""
        return self.weights / self.token_cache


class BudgetCostView(View[Cost]):
    """Above, bytes: weights level, cache rising, dashed with a kv head for each query head; below, operations."""

    size = (680, 500)

    def build(self) -> None:
        self.bytes = self._axes(0.585, (1e4, 1e15), y=r"$\mathrm{B}$")
        self.flops = self._axes(0.115, (1e4, 1e15), x="$S$", y=r"$\mathrm{FLOP}$")
        self.bytes.tick_params(labelbottom=False)
        self.weights = self._line(self.bytes, color=theme.FIRST)
        self.full_cache = self._line(self.bytes, color=theme.THIRD, linestyle=(0, (4, 2)))
        self.cache = self._line(self.bytes, color=theme.THIRD)
        self.weight_flops = self._line(self.flops, color=theme.FIRST)
        self.attention_flops = self._line(self.flops, color=theme.SECOND)
        self.places = [self._line(axes, color=theme.INK, linewidth=theme.THIN) for axes in (self.bytes, self.flops)]
        self.marks = {
            line: self._line(axes, color=line.get_color(), linestyle="", marker=marker, markersize=9, zorder=3, **look)
            for axes, line, marker, look in (
                (self.bytes, self.weights, "o", {}),
                (self.bytes, self.full_cache, "^", {"markerfacecolor": theme.PAPER}),
                (self.bytes, self.cache, "^", {}),
                (self.flops, self.weight_flops, "o", {}),
                (self.flops, self.attention_flops, "s", {}),
            )
        }
        self.even = self._line(self.bytes, color=theme.INK, linestyle="", marker="x", markersize=9, markeredgewidth=2)
        self.shows = {
            "weights": (self.weights, self.marks[self.weights]),
            "cache": (self.cache, self.marks[self.cache]),
            "full_cache": (self.full_cache, self.marks[self.full_cache]),
            "weight_flops": (self.weight_flops, self.marks[self.weight_flops]),
            "attention_flops": (self.attention_flops, self.marks[self.attention_flops]),
            "even": (self.even,),
        }

    def _axes(self, bottom: float, limits: tuple[float, float], *, x: str = "", y: str = "") -> Axes:
        axes = theme.style(self.fig.add_axes((0.105, bottom, 0.83, 0.395)), x=x, y=y)
        axes.set(xscale="log", yscale="log", xlim=(1, 2**20), ylim=limits)
        axes.set_xticks([16**i for i in range(6)], [f"{16**i:,}" for i in range(6)])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(LogLocator(1000, numticks=9))
        axes.yaxis.set_minor_locator(LogLocator(10, numticks=15))
        axes.yaxis.set_minor_formatter(NullFormatter())
        return axes

    def _line(self, axes: Axes, **look) -> Line2D:
        (line,) = axes.plot([], [], **{"linewidth": theme.LINE} | look)
        return self.moving(line)

    def update(self, data: Cost) -> Self:
        ends = data.contexts[[0, -1]]
        self.weights.set_data(ends, [data.weights] * 2)
        self.weight_flops.set_data(ends, [data.weight_flops] * 2)
        self.cache.set_data(data.contexts, data.cache)
        self.full_cache.set_data(data.contexts, data.full_cache)
        self.attention_flops.set_data(data.contexts, data.attention_flops)
        for place, axes in zip(self.places, (self.bytes, self.flops), strict=True):
            place.set_data([data.context] * 2, axes.get_ylim())
        for line, value in (
            (self.weights, data.weights),
            (self.full_cache, data.context_full_cache),
            (self.cache, data.context_cache),
            (self.weight_flops, data.weight_flops),
            (self.attention_flops, data.context_attention_flops),
        ):
            self.marks[line].set_data([data.context], [value])
        self.even.set_data([data.even], [data.weights])
        return self

    def grips(self, data):
        return {"context": self.grip(self.bytes, data.context, 1e14, anywhere=True, down_to=self.flops)}

    def words(self, data):
        yield self.word(_("weights"), self.bytes, 1.2, data.weights, theme.FIRST, up=11)
        yield self.word(_("cache"), self.bytes, 2, data.cache[1], theme.THIRD, "below")
        if data.full_cache[0] > data.cache[0]:
            end = min(data.full_cache[-1], self.bytes.get_ylim()[1] / 8)
            yield self.word(_("cache if G were H"), self.bytes, 2**19, end, theme.THIRD, "left", 9)
        if data.even <= data.contexts[-1]:
            side, up = ("right", -12) if data.even < data.contexts[-1] / 8 else ("left", -32)
            yield self.word(_("cache = weights"), self.bytes, data.even, data.weights, side=side, up=up)
        yield self.word(_("products with weights"), self.flops, 1.2, data.weight_flops, theme.FIRST, up=11)
        cached = data.attention_flops[6]
        yield self.word(_("with cached keys and values"), self.flops, 64, cached, theme.SECOND, up=-20)
