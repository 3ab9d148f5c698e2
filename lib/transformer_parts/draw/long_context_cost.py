"""What a long context costs at least: bytes, and seconds, against its length."""

from dataclasses import dataclass
from typing import Self

from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View


@dataclass(frozen=True, kw_only=True)
class CostByLength:
    """Costs of one sequence at every length.

    Attributes
    ----------
    lengths : ndarray, shape (N,)
        Tokens.
    cache_bytes, full_bytes : ndarray, shape (N,)
        Bytes of keys and values: as chosen, and with 16 bits, no window and a kv head for each query head.
    weight_bytes : int
        Of all parameters.
    prefill_seconds, token_seconds : ndarray, shape (N,)
        The least that the prompt takes, and one new token after it.
    length : int
        The chosen place on the curves.
    attention_share : float
        Attention's share of the prompt's operations there.
    at : tuple of float
        Cache, cache without savings, seconds of the prompt and of a token, at that place.
    """

    lengths: NDArray
    cache_bytes: NDArray
    full_bytes: NDArray
    weight_bytes: int
    prefill_seconds: NDArray
    token_seconds: NDArray
    length: int
    attention_share: float
    at: tuple[float, float, float, float]


class CostByLengthView(View[CostByLength]):
    """Above, bytes: weights blue, cache gold, dashed without any saving; below, seconds: prompt red, token black."""

    size = (680, 480)

    def build(self) -> None:
        self.bytes_axes = self._axes(0.575, y=r"$\mathrm{B}$", limits=(1e6, 1e14))
        self.bytes_axes.tick_params(labelbottom=False)
        self.time_axes = self._axes(0.12, x="$L$", y=r"$\mathrm{s}$", limits=(1e-6, 1e8))
        self.full = self._line(self.bytes_axes, color=theme.THIRD, linestyle=(0, (4, 2)))
        self.cache = self._line(self.bytes_axes, color=theme.THIRD)
        self.weights = self._line(self.bytes_axes, color=theme.FIRST)
        self.prefill = self._line(self.time_axes, color=theme.SECOND)
        self.token = self._line(self.time_axes, color=theme.INK)
        self.places = [
            self._line(axes, color=theme.INK, linewidth=theme.THIN) for axes in (self.bytes_axes, self.time_axes)
        ]
        self.marks = [
            self._line(line.axes, color=line.get_color(), linestyle="", marker=marker, markersize=9, **look)
            for line, marker, look in (
                (self.cache, "^", {}),
                (self.full, "^", {"markerfacecolor": theme.PAPER}),
                (self.prefill, "s", {}),
                (self.token, "D", {}),
            )
        ]

    def _axes(self, bottom: float, *, limits, x: str = "", y: str = ""):
        axes = theme.style(self.fig.add_axes((0.115, bottom, 0.865, 0.4)), x=x, y=y)
        axes.set(xscale="log", yscale="log", xlim=(512, 2**21), ylim=limits)
        axes.set_xticks([4**i * 1024 for i in range(6)], ["1K", "4K", "16K", "64K", "256K", "1M"])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(LogLocator(100, numticks=9))
        axes.yaxis.set_minor_locator(LogLocator(10, numticks=17))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_label_coords(-0.085, 0.5)
        return axes

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **{"linewidth": theme.LINE} | look)
        return self.moving(line)

    def update(self, data: CostByLength) -> Self:
        ends = data.lengths[[0, -1]]
        self.weights.set_data(ends, [data.weight_bytes] * 2)
        self.cache.set_data(data.lengths, data.cache_bytes)
        self.full.set_data(data.lengths, data.full_bytes)
        self.prefill.set_data(data.lengths, data.prefill_seconds)
        self.token.set_data(data.lengths, data.token_seconds)
        for place in self.places:
            place.set_data([data.length] * 2, place.axes.get_ylim())
        for mark, value in zip(self.marks, data.at, strict=True):
            mark.set_data([data.length], [value])
        return self
