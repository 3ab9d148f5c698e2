"""Norm placements by layer: the size of the residual stream, and the gradient that reaches each layer."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.maths.residual_statistics import FirstPass

CHOSEN, COMPARED = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Placed:
    """One placement, and the numbers of its first pass."""

    placement: str
    numbers: FirstPass


@dataclass(frozen=True)
class TwoPlacements:
    """Two decoders that differ in the placement of their norms alone.

    Attributes
    ----------
    chosen, compared : Placed
        The first pass of each.
    """

    chosen: Placed
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


class PlacementsView(View[TwoPlacements]):
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
            axes.set(yscale="log", xlim=(-0.4, self.deepest + 0.4), ylim=(0.1, 10), xticks=range(self.deepest + 1))
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


def whole_decades(values: NDArray) -> tuple[float, float]:
    """Return limits in powers of ten around values, two decades apart at least; a value of 1 stands above 0.1."""
    low = np.floor(np.log10(0.9 * values.min()))
    high = max(np.ceil(np.log10(1.1 * values.max())), low + 2)
    return float(10**low), float(10**high)
