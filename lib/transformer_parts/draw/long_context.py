"""Measured loss by position, within and beyond the trained length, by method of context extension."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

FEWEST, MOST = 1.5, 8.0
#: Half heights of the axes for differences.
REACHES = (0.25, 1.0, 6.0)


@dataclass(frozen=True, kw_only=True)
class LossByPosition:
    """The mean loss of each block of positions."""

    block: int  # block, trained_length: positions in a block, and of the training
    trained_length: int
    losses: Mapping[str, NDArray]  # by method, in nats a token
    method: str  # method, beside: the method drawn in blue, and the one in black
    beside: str
    relative: bool  # whether what is drawn in black is taken away from all


class LongContextLossView(View[LossByPosition]):
    """Blue dots: the chosen method; black: the one it is compared with; grey lines: the others.

    The ground is grey where training had not been.
    """

    size = (680, 400)

    def build(self) -> None:
        self.axes = theme.style(self.fig.add_axes((0.1, 0.145, 0.86, 0.83)), x="$m$", y=r"$-\ln p$")
        self.axes.yaxis.set_label_coords(-0.07, 0.5)
        self.axes.set_xticks(range(0, 16385, 2048), [f"{place:,}" for place in range(0, 16385, 2048)])
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


class LongContextCostsView(View[CostByLength]):
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


#: Colour, marker and dash of each method.
LOOKS = MappingProxyType(
    {
        "plain": (theme.INK, "D", "-"),
        "position_interpolation": (theme.THIRD, "^", "--"),
        "ntk_aware": (theme.SECOND, "s", "-."),
        "yarn": (theme.FIRST, "o", "-"),
    }
)


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What has been trained and tried so far."""

    steps: NDArray  # steps, losses (N,): of the training, in nats
    losses: NDArray
    last: int  # steps of the whole training
    lengths: Sequence[int]  # lengths that are tried; the first is that of the training
    # by method, the share of the repeated tokens predicted correctly; NaN if not yet evaluated
    accuracy: Mapping[str, NDArray]
    recorded: Mapping[str, NDArray]  # the same of the recorded run of this seed


class LiveExtensionView(View[Extension]):
    """Left, the loss over the steps of training; right, accuracy by length and method: filled now, hollow recorded."""

    size = (680, 340)

    def build(self) -> None:
        self.loss_axes = theme.style(self.fig.add_axes((0.085, 0.165, 0.375, 0.80)), x="$t$", y=r"$\mathcal{L}$")
        self.loss_axes.set(ylim=(0, 5))
        self.loss_axes.axhline(np.log(64), color=theme.FAINT, linestyle=":", linewidth=1.5)
        self.accuracy_axes = theme.style(self.fig.add_axes((0.555, 0.165, 0.43, 0.80)), x="$L$", y="%")
        self.accuracy_axes.set(xscale="log", ylim=(-3, 103))
        self.accuracy_axes.xaxis.set_minor_locator(NullLocator())
        (line,) = self.loss_axes.plot([], [], color=theme.INK, linewidth=theme.THIN, marker=".", markersize=4)
        self.loss = self.moving(line)
        self.now, self.recorded = {}, {}
        for name, (colour, marker, dash) in LOOKS.items():
            look = {"color": colour, "marker": marker, "markersize": 7}
            (then,) = self.accuracy_axes.plot([], [], linestyle=":", markerfacecolor="none", linewidth=1, **look)
            (now,) = self.accuracy_axes.plot([], [], linestyle=dash, linewidth=theme.LINE, **look)
            self.recorded[name], self.now[name] = self.moving(then), self.moving(now)

    def update(self, data: Extension) -> Self:
        self.limits(self.loss_axes, x=(0, data.last))
        self.limits(self.accuracy_axes, x=(data.lengths[0] * 0.85, data.lengths[-1] * 1.18))
        if list(self.accuracy_axes.get_xticks()) != list(data.lengths):
            self.accuracy_axes.set_xticks(data.lengths, [str(length) for length in data.lengths])
            self.redraw_background()
        self.loss.set_data(data.steps, data.losses)
        for name in LOOKS:
            self.now[name].set_data(data.lengths, 100 * data.accuracy[name])
            self.recorded[name].set_data(data.lengths, 100 * data.recorded[name])
        return self


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
        self.depth_axes = theme.style(self.fig.add_axes((0.108, 0.145, 0.43, 0.83)), x="$m/L$", y=r"$\ln p$")
        self.depth_axes.set(xlim=(0, 1), ylim=(LOWEST - 0.15, 0.1))
        self.length_axes = theme.style(self.fig.add_axes((0.585, 0.145, 0.4, 0.83)), x="$L$")
        self.length_axes.set(xscale="log", ylim=(LOWEST - 0.15, 0.1), xlim=(850, 15000))
        self.length_axes.set_xticks([1024, 2048, 4096, 8192, 12288], ["1K", "2K", "4K", "8K", "12K"])
        self.length_axes.minorticks_off()
        self.length_axes.tick_params(labelleft=False)
        self.depth_axes.yaxis.set_label_coords(-0.165, 0.5)
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
