"""A small decoder that is trained while one looks, then tried beyond its trained length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import numpy as np
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

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
