"""Norm placements by layer: the size of the residual stream, and the gradient that reaches each layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word, apart
from transformer_parts.draw.view import View
from transformer_parts.language import Message, _
from transformer_parts.maths.residual_stream import FirstPass

CHOSEN, COMPARED = theme.FIRST, theme.SECOND

#: What each placement is called.
TITLES = MappingProxyType({"pre": _("Pre"), "post": _("Post"), "sandwich": _("Sandwich"), "deepnorm": _("DeepNorm")})

#: Pixels between the names at the ends of two lines.
_GAP = 15


def at_ends(view: View, axes: Axes, ends: dict[Message, tuple[float, float]], colours: list[str]) -> Iterator[Word]:
    """Yield names at the ends of lines, (x, y) by name, so that none covers another."""
    words = (view.word(name, axes, *end, colour) for (name, end), colour in zip(ends.items(), colours, strict=True))
    yield from apart((word._replace(x=word.x + 4) for word in words), _GAP)


@dataclass(frozen=True)
class Placed:
    """One placement, and the numbers of its first pass."""

    placement: str
    numbers: FirstPass


@dataclass(frozen=True)
class TwoPlacements:
    """Two decoders that differ in the placement of their norms alone."""

    chosen: Placed  # chosen, compared: the first pass of each
    compared: Placed


def by_layer(axes: Axes, colour: str, *, dashed: bool) -> Line2D:
    """Add an empty curve over layers in the look of its colour: marker, and dashes for the second."""
    (line,) = axes.plot(
        [],
        [],
        color=colour,
        linewidth=theme.LINE,
        linestyle=(0, (4, 2)) if dashed else "-",
        marker=theme.MARKERS[colour],
        markersize=6,
    )
    return line


class PlacementLayersView(View[TwoPlacements]):
    """Above, the stream's RMS before the first layer and after each; below, each layer's gradient.

    Both scales are logarithmic, over whole decades.
    """

    size = (680, 460)
    deepest = 8

    def build(self) -> None:
        self.above = theme.style(self.fig.add_axes((0.125, 0.565, 0.855, 0.405)), y=r"$\mathrm{RMS}(x_l)$")
        self.below = theme.style(
            self.fig.add_axes((0.125, 0.125, 0.855, 0.395)), x="$l$", y=r"$\Vert\partial\mathcal{L}/\partial W_l\Vert$"
        )
        for axes in (self.above, self.below):
            axes.set(yscale="log", xlim=(-0.4, self.deepest + 1.3), ylim=(0.1, 10), xticks=range(self.deepest + 1))
            axes.yaxis.set_label_coords(-0.085, 0.5)
            axes.minorticks_off()
        self.above.tick_params(labelbottom=False)
        self.streams = [
            self.moving(by_layer(self.above, colour, dashed=i)) for i, colour in enumerate((CHOSEN, COMPARED))
        ]
        self.gradients = [
            self.moving(by_layer(self.below, colour, dashed=i)) for i, colour in enumerate((CHOSEN, COMPARED))
        ]

    def update(self, data: TwoPlacements) -> Self:
        both = (data.chosen.numbers, data.compared.numbers)
        for numbers, stream, gradient in zip(both, self.streams, self.gradients, strict=True):
            stream.set_data(np.arange(len(numbers.activation_rms)), numbers.activation_rms)
            gradient.set_data(1 + np.arange(len(numbers.ffn_gradient)), numbers.ffn_gradient)
        self.limits(self.above, y=whole_decades(np.concatenate([numbers.activation_rms for numbers in both])))
        self.limits(self.below, y=whole_decades(np.concatenate([numbers.ffn_gradient for numbers in both])))
        return self

    def grips(self, data):
        n_layers = len(data.chosen.numbers.ffn_gradient)
        return {"n_layers": self.grip(self.below, n_layers, self.below.get_ylim()[0], anywhere=True)}

    def words(self, data):
        both = {TITLES[placed.placement]: placed.numbers for placed in (data.compared, data.chosen)}
        colours = [COMPARED, CHOSEN][-len(both) :]
        for axes, ends in (
            (self.above, {name: numbers.activation_rms[-1] for name, numbers in both.items()}),
            (self.below, {name: numbers.ffn_gradient[-1] for name, numbers in both.items()}),
        ):
            n_layers = len(data.chosen.numbers.ffn_gradient)
            yield from at_ends(self, axes, {name: (n_layers, end) for name, end in ends.items()}, colours)


def whole_decades(values: NDArray) -> tuple[float, float]:
    """Return limits in powers of ten around values, two decades apart at least; a value of 1 is drawn above 0.1."""
    low = np.floor(np.log10(0.9 * values.min()))
    high = max(np.ceil(np.log10(1.1 * values.max())), low + 2)
    return float(10**low), float(10**high)


#: Colour, marker, dashes and symbol of each placement.
LOOKS = (
    ("pre", theme.FIRST, "o", "-"),
    ("post", theme.SECOND, "s", (0, (5, 2))),
    ("sandwich", theme.THIRD, "^", (0, (2, 1.5))),
    ("deepnorm", theme.INK, "D", (0, (6, 2, 1, 2))),
)


@dataclass(frozen=True)
class ByDepth:
    """A number of each placement at each depth, over seeds."""

    depths: NDArray  # (N,): numbers of layers
    values: dict[str, NDArray]  # by placement
    marked: int  # index of the depth that the table reads

    def mean(self, placement: str) -> NDArray:
        """Mean over the seeds at each depth."""
        return self.values[placement].mean(axis=0)

    def slope(self, placement: str) -> float:
        """Exponent of the depth by least squares over the depths from 4 on: −1/2 is 1/√L."""
        deep = self.depths >= 4
        return float(np.polyfit(np.log(self.depths[deep]), np.log(self.mean(placement)[deep]), 1)[0])


class PlacementDepthView(View[ByDepth]):
    """Means as lines, the range over the seeds as a band; the thin grey lines fall as 1/√L."""

    size = (680, 420)
    decades = (-3, 3)

    def build(self) -> None:
        self.axes = theme.style(self.fig.add_axes((0.115, 0.135, 0.865, 0.84)), x="$L$")
        self.axes.set(xscale="log", yscale="log", xlim=(0.9, 125), ylim=(1e-2, 10))
        self.axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
        self.axes.minorticks_off()
        span = np.array([1.0, 64.0])
        for height in 10.0 ** np.arange(-2.75, 3, 0.5):
            self.axes.plot(span, height / np.sqrt(span), color=theme.FAINT, linewidth=0.6, linestyle=":", zorder=1)
        self.marker = self.moving(self.axes.axvline(8, color=theme.INK, linewidth=theme.THIN, zorder=1.5))
        self.bands = {}
        self.lines = {}
        for name, colour, marker, dashes in LOOKS:
            band = self.axes.fill_between([1, 2], [1, 1], [1, 1], color=colour, alpha=0.15, linewidth=0)
            (line,) = self.axes.plot(
                [], [], color=colour, marker=marker, linestyle=dashes, linewidth=theme.LINE, markersize=7
            )
            self.bands[name], self.lines[name] = self.moving(band), self.moving(line)
        self.shows = {name: (line,) for name, line in self.lines.items()}

    def update(self, data: ByDepth) -> Self:
        lowest = min(values.min() for values in data.values.values())
        highest = max(values.max() for values in data.values.values())
        limits = 10.0 ** np.floor(np.log10(lowest)), 10.0 ** np.ceil(np.log10(highest))
        self.limits(self.axes, y=tuple(map(float, limits)))
        self.marker.set_xdata([data.depths[data.marked]] * 2)
        for name, values in data.values.items():
            self.lines[name].set_data(data.depths, data.mean(name))
            self.bands[name].set_data(data.depths, values.min(axis=0), values.max(axis=0))
        return self

    def grips(self, data):
        return {
            "depth": self.grip(self.axes, data.depths[data.marked], self.axes.get_ylim()[0], anywhere=True),
        }

    def words(self, data):
        ends = {TITLES[name]: (data.depths[-1], data.mean(name)[-1]) for name, *_look in LOOKS}
        yield from at_ends(self, self.axes, ends, [colour for _name, colour, *_look in LOOKS])
        yield self.word(_("dotted: falls as 1/√L"), self.axes, 0.9, self.axes.get_ylim()[0], up=12)


WARM, COLD = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Run:
    """One setting, recorded with several seeds."""

    loss: NDArray  # (seeds, N): mean over each of N stretches of the run
    # (n_layers + 1,): of the stream before the first layer and after each, at the chosen step (first seed)
    activation_rms: NDArray
    gradient: NDArray  # (n_layers,): norm of the gradient of each layer's parameters there


@dataclass(frozen=True)
class WarmAndCold:
    """The same decoder trained with and without warm-up."""

    warm: Run  # warm, cold: with, and without
    cold: Run
    every: int  # steps in one stretch of the loss
    step: int  # the step at which the numbers by layer were taken
    warmup_steps: int  # how long the warm-up lasts
    chance: float  # the logarithm of the vocabulary, nats


class PlacementRunsView(View[WarmAndCold]):
    """Above the loss; in the middle the stream's RMS, below each layer's gradient, both at the marked step."""

    size = (680, 520)
    n_seeds, n_steps = 5, 160
    rms = (0.0, 8.0)
    gradient = (1e-3, 10.0)

    def build(self) -> None:
        self.loss = theme.style(self.fig.add_axes((0.125, 0.685, 0.845, 0.295)), x="$t$", y=r"$\mathcal{L}$")
        self.loss.set(xlim=(0, 1.2 * self.n_steps), ylim=(0, 3.6), xticks=range(0, self.n_steps + 1, 20))
        self.chance = self.moving(self.loss.axhline(1, color=theme.FAINT, linewidth=theme.THIN, linestyle=":"))
        self.warming = self.moving(
            self.loss.axvspan(0, 1, facecolor=theme.GRID, edgecolor="none", alpha=0.8, zorder=0.6)
        )
        self.marker = self.moving(self.loss.axvline(0, color=theme.INK, linewidth=theme.THIN))
        self.middle = theme.style(self.fig.add_axes((0.125, 0.365, 0.845, 0.215)), y=r"$\mathrm{RMS}(x_l)$")
        self.below = theme.style(
            self.fig.add_axes((0.125, 0.105, 0.845, 0.215)), x="$l$", y=r"$\Vert\partial\mathcal{L}/\partial W_l\Vert$"
        )
        for axes, limits in ((self.middle, self.rms), (self.below, self.gradient)):
            axes.set(xlim=(-0.3, 6.3), ylim=limits, xticks=range(7))
        self.below.set_yscale("log")
        self.below.set_yticks([1e-3, 1e-2, 1e-1, 1, 10])
        self.below.minorticks_off()
        self.middle.tick_params(labelbottom=False)
        for axes in (self.loss, self.middle, self.below):
            axes.yaxis.set_label_coords(-0.085, 0.5)
        self.seeds, self.means, self.streams, self.gradients = [], [], [], []
        for i, colour in enumerate((WARM, COLD)):
            dashes = (0, (4, 2)) if i else "-"
            thin = [self.loss.plot([], [], color=colour, linewidth=0.8, alpha=0.6)[0] for _ in range(self.n_seeds)]
            self.seeds.append([self.moving(line) for line in thin])
            (mean,) = self.loss.plot(
                [], [], color=colour, linewidth=theme.LINE, linestyle=dashes, marker=theme.MARKERS[colour], markersize=5
            )
            self.means.append(self.moving(mean))
            self.streams.append(self.moving(by_layer(self.middle, colour, dashed=bool(i))))
            self.gradients.append(self.moving(by_layer(self.below, colour, dashed=bool(i))))
        self.shows = {
            name: (self.means[i], self.streams[i], self.gradients[i]) for i, name in enumerate(("warm", "cold"))
        }

    def update(self, data: WarmAndCold) -> Self:
        self.chance.set_ydata([data.chance] * 2)
        self.warming.set(x=0, width=data.warmup_steps)
        self.marker.set_xdata([data.step] * 2)
        for i, run in enumerate((data.warm, data.cold)):
            steps = data.every * (np.arange(run.loss.shape[1]) + 0.5)
            for line, loss in zip(self.seeds[i], run.loss, strict=True):
                line.set_data(steps, loss)
            self.means[i].set_data(steps, run.loss.mean(axis=0))
            rms, gradient = np.clip(run.activation_rms, *self.rms), np.clip(run.gradient, *self.gradient)
            self.streams[i].set_data(np.arange(len(rms)), rms)
            self.gradients[i].set_data(1 + np.arange(len(gradient)), gradient)
        return self

    def grips(self, data):
        return {"step": self.grip(self.loss, data.step, 0, anywhere=True)}

    def words(self, data):
        last = data.every * (data.warm.loss.shape[1] - 0.5)
        ends = {_("with warm-up"): data.warm, _("without"): data.cold}
        places = {name: (last, run.loss[:, -1].mean()) for name, run in ends.items()}
        yield from at_ends(self, self.loss, places, [WARM, COLD])
        yield self.word(_("chance"), self.loss, 0.8 * self.n_steps, data.chance, theme.FAINT, "above")
        yield self.word(_("warm-up"), self.loss, 0, 0.2, theme.FAINT)
