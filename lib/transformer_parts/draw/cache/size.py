"""Bytes of a cache against its length, for three numbers of kv heads, beside the memory there is."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.language import _, plural


@dataclass(frozen=True)
class CacheBytes:
    """Bytes of a decoder's cache against the tokens in it."""

    n_layers: int  # n_layers, n_heads, n_kv_heads, head_dim: the sizes that decide
    n_heads: int
    n_kv_heads: int
    head_dim: int
    value_bytes: float  # bytes of one number
    tokens: NDArray  # (N,): S
    curves: dict[int, NDArray]  # bytes by number of kv heads: one for each query head, the chosen number, one for all
    length: int  # the chosen S
    held: dict[int, int]  # held, per_token: the curves' values there, and for one token
    per_token: dict[int, int]
    memory: int  # bytes there are for the cache
    fits: dict[int, int]  # how many tokens those hold


class CacheSizeView(View[CacheBytes]):
    """Lines on logarithmic scales: dashed with a kv head for each query head, solid as chosen, dotted with one."""

    size = (680, 380)
    powers = (10, 20, 30, 40)
    looks = MappingProxyType({"all": (0, (5, 2)), "one": (0, (1, 1.6)), "chosen": "-"})

    def build(self) -> None:
        self.axes = theme.style(self.fig.add_axes((0.095, 0.155, 0.845, 0.81)), x="$S$", y=r"$\mathrm{B}$")
        self.axes.set(xscale="log", yscale="log", xlim=(1, 2**20.3), ylim=(2**6, 2**46))
        self.axes.set_xticks([16**i for i in range(6)], [f"{16**i:,}" for i in range(6)])
        self.axes.set_yticks([2.0**p for p in self.powers], [f"$2^{{{p}}}$" for p in self.powers])
        for axis in (self.axes.xaxis, self.axes.yaxis):
            axis.set_minor_formatter(NullFormatter())
        self.axes.xaxis.set_minor_locator(NullLocator())
        self.axes.yaxis.set_minor_locator(LogLocator(2, numticks=41))
        self.axes.tick_params(which="minor", length=0)
        self.lines = {name: self._line(theme.VALUE, linestyle=style) for name, style in self.looks.items()}
        self.marks = {
            name: self._line(
                theme.VALUE, linestyle="", marker="^", markersize=10, zorder=4,
                markerfacecolor=theme.VALUE if name == "chosen" else theme.PAPER,
            )
            for name in self.looks
        }  # fmt: skip
        self.memory = self._line(theme.FIRST, linewidth=theme.LINE)
        self.full = self._line(theme.FIRST, linestyle="", marker="o", markersize=8, zorder=3)
        self.place = self._line(theme.INK, linewidth=theme.THIN)
        self.shows = {name: (self.lines[name], self.marks[name]) for name in self.looks}
        self.shows["memory"] = (self.memory, self.full)

    def _line(self, colour: str, **look):
        (line,) = self.axes.plot([], [], color=colour, **{"linewidth": theme.LINE} | look)
        return self.moving(line)

    def update(self, data: CacheBytes) -> Self:
        heads = {"all": data.n_heads, "one": 1, "chosen": data.n_kv_heads}
        for name, n_kv_heads in heads.items():
            self.lines[name].set_data(data.tokens, data.curves[n_kv_heads])
            self.marks[name].set_data([data.length], [data.held[n_kv_heads]])
        self.memory.set_data(data.tokens[[0, -1]], [data.memory] * 2)
        fits = np.array([data.fits[n] for n in heads.values() if data.fits[n]], dtype=float)
        self.full.set_data(fits, np.full(len(fits), data.memory))
        self.place.set_data([data.length] * 2, self.axes.get_ylim())
        return self

    def grips(self, data):
        return {
            "length": self.grip(self.axes, data.length, data.held[data.n_kv_heads], anywhere=True),
            "memory": self.grip(self.axes, 1, data.memory),
        }

    def words(self, data):
        # Names stand apart along the lines, which may lie close to one another.
        names = {data.n_heads: (_("a kv head for each query head"), 10), 1: (_("one kv head"), 5)}
        chosen = plural("chosen: {n} kv head", "chosen: {n} kv heads", data.n_kv_heads)
        for n_kv_heads, (text, at) in (names | {data.n_kv_heads: (chosen, 12)}).items():
            side = "left" if at == 10 else "right"
            yield self.word(text, self.axes, 2.0**at, data.curves[n_kv_heads][at], theme.VALUE, side, up=-5 * (at > 10))
        memory = _("{memory:g} GiB of memory", memory=data.memory / 2**30)
        yield self.word(memory, self.axes, 2.0**2.5, data.memory, theme.FIRST, "above")
