"""Measured loss by position, within and beyond the trained length, by method of context extension."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Grip, Word, apart
from transformer_parts.draw.view import View
from transformer_parts.language import _

FEWEST, MOST = 1.5, 8.0
#: Half heights of the axes for differences.
REACHES = (0.25, 1.0, 6.0)


@dataclass(frozen=True, kw_only=True)
class LossByPosition:
    """The mean loss of each block of positions."""

    block: int  # block, trained_length: positions in a block, and of the training
    trained_length: int
    losses: Mapping[str, NDArray]  # by method, in nats a token
    names: Mapping[str, str]  # what the methods are called
    method: str  # method, beside: the method drawn in blue, and the one in black
    beside: str
    relative: bool  # whether what is drawn in black is taken away from all


class LongContextLossView(View[LossByPosition]):
    """Blue dots: the chosen method; black: the one it is compared with; grey lines: the others.

    The ground is grey where training had not been.
    """

    size = (680, 400)

    def build(self) -> None:
        self.axes = theme.style(self.fig.add_axes((0.1, 0.145, 0.65, 0.83)), x="$m$", y=r"$-\ln p$")
        self.axes.yaxis.set_label_coords(-0.07, 0.5)
        self.axes.set_xticks(range(0, 16385, 4096), [f"{place:,}" for place in range(0, 16385, 4096)])
        self.unseen = self.moving(
            self.axes.axvspan(0, 1, facecolor=theme.GRID, edgecolor="none", alpha=0.75, zorder=0.6)
        )
        others = LineCollection([], colors=theme.FAINT, linewidths=1.0, zorder=2)
        self.others = self.moving(self.axes.add_collection(others, autolim=False))
        self.zero = self.moving(self.axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN, linestyle=":"))
        self.beside, self.chosen = (
            self.moving(
                self.axes.plot([], [], color=colour, marker=marker, markersize=size, linewidth=width, zorder=3)[0]
            )
            for colour, marker, size, width in ((theme.INK, "", 0, theme.LINE), (theme.FIRST, "o", 5, theme.LINE))
        )
        self.shows = {"method": (self.chosen,), "beside": (self.beside,)}

    def update(self, data: LossByPosition) -> Self:
        count = len(data.losses[data.method])
        places = data.block * (np.arange(count) + 0.5)
        end = data.block * count
        chosen, beside, lowest, highest = data.losses[data.method], data.losses[data.beside], FEWEST, MOST
        base = beside if data.relative else np.zeros(count)
        if data.relative:
            farthest = np.abs(chosen - beside).max()
            highest = next((reach for reach in REACHES if farthest < 0.95 * reach), REACHES[-1])
            lowest = -highest
        # The limits distinguish the two kinds of picture, so that each background keeps its own label.
        self.axes.set_ylabel(r"$-\Delta\,\ln p$" if data.relative else r"$-\ln p$")
        self.limits(self.axes, x=(0, end), y=(lowest, highest))
        self.unseen.set(x=data.trained_length, width=max(0, end - data.trained_length))
        self.zero.set_visible(data.relative)
        self.others.set_segments(
            [
                np.stack([places, losses - base], axis=-1)
                for name, losses in data.losses.items()
                if name not in (data.method, data.beside)
            ]
        )
        self.beside.set_data(places, beside - base)
        self.chosen.set_data(places, chosen - base)
        return self

    def ends(self, data: LossByPosition) -> NDArray:
        """Return where the line of each method ends, (N, 2), in the order of their names."""
        places = [data.block * (len(data.losses[name]) - 0.5) for name in data.names]
        losses = [data.losses[name][-1] - data.relative * data.losses[data.beside][-1] for name in data.names]
        return self.at(self.axes, places, np.clip(losses, *self.axes.get_ylim()))

    def grips(self, data):
        # Differences have other limits for each method, so that a hand would not know where to go.
        if data.relative:
            return {}
        x, y = self.ends(data)[list(data.names).index(data.method)]
        left, top = self.at(self.axes, 0, self.axes.get_ylim()[1])
        return {"method": Grip(x, y, (round(left), round(top), self.size[0] - round(left), round(0.83 * self.size[1])))}

    def words(self, data):
        ends = dict(zip(data.names, self.ends(data)[:, 1].tolist(), strict=True))
        colours = {data.beside: theme.INK, data.method: theme.FIRST}
        x = self.at(self.axes, self.axes.get_xlim()[1], 0)[0]
        yield from apart(Word(data.names[name], x, y, colours.get(name, theme.FAINT)) for name, y in ends.items())
        top = self.axes.get_ylim()[1]
        yield self.word(_("configured to here"), self.axes, data.trained_length, top, side="left", up=-10)


@dataclass(frozen=True, kw_only=True)
class CostByLength:
    """Costs of one sequence at every length."""

    lengths: NDArray  # (N,): tokens
    # cache_bytes, full_bytes (N,): bytes of keys and values: as chosen, and with 16 bits, no window and a kv head for
    # each query head
    cache_bytes: NDArray
    full_bytes: NDArray
    weight_bytes: int  # of all parameters
    # prefill_seconds, token_seconds (N,): the least that the prompt takes, and one new token after it
    prefill_seconds: NDArray
    token_seconds: NDArray
    length: int  # the chosen place on the curves
    attention_share: float  # attention's share of the prompt's operations there
    # cache, cache without savings, seconds of the prompt and of a token, at that place
    at: tuple[float, float, float, float]


#: Ticks of the two scales: symbols of units.
BYTES = MappingProxyType({1e6: "1 MB", 1e9: "1 GB", 1e12: "1 TB"})
SECONDS = MappingProxyType({1e-6: "1 µs", 1e-3: "1 ms", 1.0: "1 s", 60.0: "1 min", 3600.0: "1 h", 86400.0: "1 d"})


class LongContextCostsView(View[CostByLength]):
    """Above, bytes: weights blue, cache gold, dashed without any saving; below, seconds: prompt red, token black."""

    size = (680, 480)

    def build(self) -> None:
        self.bytes_axes = self._axes(0.575, limits=(1e6, 1e14), ticks=BYTES)
        self.bytes_axes.tick_params(labelbottom=False)
        self.time_axes = self._axes(0.12, x="$L$", limits=(1e-6, 1e8), ticks=SECONDS)
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
        cache, full, prefill, token = self.marks
        self.shows = {
            "weights": (self.weights,),
            "cache": (self.cache, cache),
            "full": (self.full, full),
            "prefill": (self.prefill, prefill),
            "token": (self.token, token),
        }

    def _axes(self, bottom: float, *, limits: tuple[float, float], ticks: Mapping[float, str], x: str = ""):
        axes = theme.style(self.fig.add_axes((0.115, bottom, 0.865, 0.4)), x=x)
        axes.set(xscale="log", yscale="log", xlim=(512, 2**21), ylim=limits)
        axes.set_xticks([4**i * 1024 for i in range(6)], ["1K", "4K", "16K", "64K", "256K", "1M"])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.yaxis.set_minor_locator(LogLocator(10, numticks=17))
        axes.yaxis.set_minor_formatter(NullFormatter())
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

    def grips(self, data):
        return {"length": self.grip(self.bytes_axes, data.length, 1e13, anywhere=True, down_to=self.time_axes)}

    def words(self, data):
        first, last = data.lengths[[0, -1]]
        yield self.word(_("weights"), self.bytes_axes, first, data.weight_bytes, theme.FIRST, up=11)
        yield self.word(_("cache"), self.bytes_axes, 1.2 * first, data.cache_bytes[0], theme.THIRD, up=-13)
        full = min(data.full_bytes[-1], 1e14)
        yield self.word(_("cache, nothing saved"), self.bytes_axes, last, full, theme.THIRD, "left", 8)
        yield self.word(_("the prompt"), self.time_axes, last, data.prefill_seconds[-1], theme.SECOND, "left", 8)
        yield self.word(_("one new token"), self.time_axes, last, data.token_seconds[-1], theme.INK, "left", -20)


LOWEST = -4.0


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """What two models make of the hidden numbers."""

    depths: NDArray  # (N,): the depth of each sentence in the text, from 0 to 1
    # plain, yarn (N,): the mean log-probability of a digit of its right number: as trained, and by YaRN
    plain: NDArray
    yarn: NDArray
    others: NDArray  # (2, N): the mean of the other numbers in the place of the right one; NaN where there are none
    chosen: NDArray  # (2, N): whether the right number is the likeliest of all numbers in the text
    lengths: NDArray  # (M,): lengths measured in this way
    by_length: Mapping[str, NDArray]  # the means of all depths, for "plain" and "yarn"
    others_by_length: Mapping[str, NDArray]  # the same of the other numbers
    length: int  # length, trained_length, doors: the chosen length, that of training, and how many numbers there are
    trained_length: int
    doors: int


class LongContextRetrievalView(View[Retrieval]):
    """Left, each hidden number by depth; right, the means by length.

    Blue dots: the model as trained; red squares: YaRN; hollow where another number of the text is likelier.  Dashed on
    the right: the other numbers of the text in the right one's place.  The dotted line is guessing a digit, ln 1/10.
    """

    size = (680, 400)

    def build(self) -> None:
        self.depth_axes = theme.style(self.fig.add_axes((0.108, 0.145, 0.38, 0.79)), x="$m/L$", y=r"$\ln p$")
        self.depth_axes.set(xlim=(0, 1), ylim=(LOWEST - 0.15, 0.1))
        self.length_axes = theme.style(self.fig.add_axes((0.53, 0.145, 0.31, 0.79)), x="$L$")
        self.length_axes.set(xscale="log", ylim=(LOWEST - 0.15, 0.1), xlim=(850, 15000))
        self.length_axes.set_xticks([1024, 2048, 4096, 8192, 12288], ["1K", "2K", "4K", "8K", "12K"])
        self.length_axes.minorticks_off()
        self.length_axes.tick_params(labelleft=False)
        self.depth_axes.yaxis.set_label_coords(-0.185, 0.5)
        for axes in (self.depth_axes, self.length_axes):
            axes.axhline(np.log(0.1), color=theme.FAINT, linestyle=":", linewidth=1.5)
        self.length_axes.axvspan(8192, 15000, facecolor=theme.GRID, edgecolor="none", alpha=0.75, zorder=0.6)
        self.cursor = self.moving(
            self.length_axes.axvline(1024, color=theme.FAINT, linewidth=theme.THIN, linestyle="--", zorder=1)
        )
        self.found, self.missed, self.means, self.others = {}, {}, {}, {}
        # Of two that agree, the smaller red square lies in the blue dot.
        for name, colour, size in (("plain", theme.FIRST, 11), ("yarn", theme.SECOND, 5.5)):
            look = {"color": colour, "marker": theme.MARKERS[colour], "markersize": size, "linestyle": ""}
            self.found[name] = self._line(self.depth_axes, **look)
            self.missed[name] = self._line(self.depth_axes, **look | {"markerfacecolor": "none"})
            self.means[name] = self._line(self.length_axes, **look | {"linestyle": "-"})
            self.others[name] = self._line(self.length_axes, color=colour, linestyle="--", linewidth=theme.THIN)
        self.shows = {name: (self.found[name], self.missed[name], self.means[name]) for name in self.means}

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def update(self, data: Retrieval) -> Self:
        self.cursor.set_xdata([data.length, data.length])
        for name, values, chosen in (("plain", data.plain, data.chosen[0]), ("yarn", data.yarn, data.chosen[1])):
            heights = np.maximum(values, LOWEST)
            self.found[name].set_data(data.depths[chosen], heights[chosen])
            self.missed[name].set_data(data.depths[~chosen], heights[~chosen])
            self.means[name].set_data(data.lengths, np.maximum(data.by_length[name], LOWEST))
            self.others[name].set_data(data.lengths, np.maximum(data.others_by_length[name], LOWEST))
        return self

    def grips(self, data):
        return {"length": self.grip(self.length_axes, data.length, -0.2, anywhere=True)}

    def words(self, data):
        ends = {
            _("as trained"): (theme.FIRST, data.by_length["plain"]),
            "YaRN": (theme.SECOND, data.by_length["yarn"]),
            _("other numbers"): (theme.INK, np.mean([*data.others_by_length.values()], axis=0)),
            _("guessing a digit"): (theme.FAINT, [np.log(0.1)]),
        }
        right = self.length_axes.get_xlim()[1]
        yield from apart(
            self.word(text, self.length_axes, right, max(values[-1], LOWEST), colour)
            for text, (colour, values) in ends.items()
            if np.isfinite(values[-1])
        )
        top = self.depth_axes.get_ylim()[1]
        yield self.word(_("hollow: another number is likelier"), self.depth_axes, -0.02, top, up=9)
        yield self.word(_("grey: beyond {n:,}", n=data.trained_length), self.length_axes, 15000, top, side="left", up=9)
