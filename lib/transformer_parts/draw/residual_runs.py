"""A short recorded run with warm-up and one without: the loss by step, and at one step the numbers by layer."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.residual import by_layer
from transformer_parts.draw.view import View

WARM, COLD = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Run:
    """One setting, recorded with several seeds.

    Attributes
    ----------
    loss : ndarray, shape (seeds, N)
        Mean over each of N stretches of the run.
    activation_rms : ndarray, shape (n_layers + 1,)
        Of the stream before the first layer and after each, at the step that is looked at (first seed).
    gradient : ndarray, shape (n_layers,)
        Norm of the gradient of each layer's parameters there.
    """

    loss: NDArray
    activation_rms: NDArray
    gradient: NDArray


@dataclass(frozen=True)
class WarmAndCold:
    """The same decoder trained with and without warm-up.

    Attributes
    ----------
    warm, cold : Run
        With, and without.
    every : int
        Steps in one stretch of the loss.
    step : int
        The step at which the numbers by layer were taken.
    warmup_steps : int
        How long the warm-up lasts.
    chance : float
        The logarithm of the vocabulary, nats.
    """

    warm: Run
    cold: Run
    every: int
    step: int
    warmup_steps: int
    chance: float


class WarmUpView(View[WarmAndCold]):
    """Above the loss; in the middle the stream's RMS, below each layer's gradient, both at the marked step."""

    size = (680, 520)
    n_seeds, n_steps = 2, 160
    rms = (0.0, 8.0)
    gradient = (1e-3, 10.0)

    def build(self) -> None:
        self.loss = theme.style(self.fig.add_axes((0.125, 0.685, 0.845, 0.295)), x="$t$", y=r"$\mathcal{L}$")
        self.loss.set(xlim=(0, self.n_steps), ylim=(0, 3.6))
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
