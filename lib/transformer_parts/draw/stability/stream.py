"""The residual stream at initialisation: how its variance grows from branch to branch."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
from transformer_parts.maths.stability import StreamVariance

SCALED, UNSCALED = theme.FIRST, theme.SECOND
DEEPEST = 16


@dataclass(frozen=True)
class Depth:
    """One decoder, drawn with and without the narrower residual projections."""

    scaled: StreamVariance  # scaled, unscaled: along its branches
    unscaled: StreamVariance
    factor: float  # 1/√(2L), by which the first one's residual projections are multiplied
    # standard deviation of w_up times √D: the factor by which such a matrix makes a normalised vector larger
    gain: float

    @property
    def n_layers(self) -> int:
        """L."""
        return len(self.scaled.branches) // 2


class StreamDepthView(View[Depth]):
    """Above, the mean square of the residual stream before and after each branch, on a logarithmic scale, dashed what
    independent branches give; below, the share of each branch in the stream that it has just joined.
    """

    size = (680, 460)

    def build(self) -> None:
        self.variance_axes = self._axes(0.565, r"$\overline{x^2}$")
        self.share_axes = self._axes(0.115, r"$\overline{a^2}\,/\,\overline{x^2}$")
        self.variance_axes.tick_params(labelbottom=False)
        self.variance_axes.set_yscale("log")
        self.variance_axes.yaxis.set_major_locator(LogLocator(10, numticks=9))
        self.variance_axes.yaxis.set_minor_formatter(NullFormatter())
        self.share_axes.set_xlabel(r"$\ell$", fontsize=theme.SYMBOL, labelpad=0)
        self.limits(self.share_axes, y=(-0.03, 1.03))
        self.curves, self.dashed, self.shares = (
            [self._line(axes, colour, **look) for colour in (SCALED, UNSCALED)]
            for axes, look in (
                (self.variance_axes, {}),
                (self.variance_axes, {"linestyle": (0, (4, 2)), "linewidth": theme.THIN, "marker": ""}),
                (self.share_axes, {}),
            )
        )
        self.shows = {
            name: (curve, share)
            for name, curve, share in zip(("scaled", "unscaled"), self.curves, self.shares, strict=True)
        }

    def _axes(self, bottom: float, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.10, bottom, 0.76, 0.355)))
        axes.text(0.0, 1.03, symbol, fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlim(-0.02 * DEEPEST, 1.02 * DEEPEST)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(theme.tick_label))
        return axes

    def _line(self, axes: Axes, colour: str, **look) -> Line2D:
        marker = {"marker": theme.MARKERS[colour], "markersize": 4.5}
        (line,) = axes.plot([], [], color=colour, **{"linewidth": theme.LINE} | marker | look)
        return self.moving(line)

    def update(self, data: Depth) -> Self:
        pair = (data.scaled, data.unscaled)
        values = np.concatenate([part for run in pair for part in (run.stream, run.independent)])
        self.limits(
            self.variance_axes, y=tuple(10.0 ** np.array([np.floor(np.log10(values.min())), _up(values.max())]))
        )
        for run, curve, dashed, share in zip(pair, self.curves, self.dashed, self.shares, strict=True):
            layers = [i / 2 for i in range(len(run.stream))]
            curve.set_data(layers, run.stream)
            dashed.set_data(layers, run.independent)
            share.set_data(layers[1:], run.branches / run.stream[1:])
        return self

    def grips(self, data):
        return {"depth": self.grip(self.variance_axes, data.n_layers, data.unscaled.stream[-1], anywhere=True)}

    def words(self, data):
        for run, text, colour in ((data.unscaled, _("plain"), UNSCALED), (data.scaled, _("narrowed"), SCALED)):
            x, y = self.at(self.variance_axes, data.n_layers, run.stream[-1])
            yield Word(text, x + 6, y, colour)
        for axes, text in (
            (self.variance_axes, _("mean square of the stream; dashed: independent branches")),
            (self.share_axes, _("share of the branch that has just joined")),
        ):
            x, y = self.at(axes, axes.get_xlim()[0], axes.get_ylim()[1])
            yield Word(text, x + 70, y - 10)


def _up(value: float) -> float:
    """Return the exponent of the power of ten above a value, with room for a mark."""
    return float(np.ceil(np.log10(value) + 0.1))
