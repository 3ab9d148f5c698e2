"""The wavelengths of a head's pairs, against the length a model was trained on and against an offset."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View


@dataclass(frozen=True)
class Spectrum:
    """How long each pair takes for a turn, and where it stands at an offset.

    Attributes
    ----------
    wavelengths : ndarray, shape (P,)
        Positions per turn, fastest first.
    reference : ndarray, shape (P,)
        The same for the base that it is compared with.
    trained_length : int
        How many positions the model has seen.
    offset : int
        A distance between query and key.
    alignment : ndarray, shape (P,)
        cos of the angle by which the offset turns each pair apart: what it adds to the score of q = k, per unit of
        amplitude.
    """

    wavelengths: NDArray
    reference: NDArray
    trained_length: int
    offset: int
    alignment: NDArray

    @property
    def complete(self) -> NDArray:
        """Whether each pair makes a whole turn within the trained length."""
        return self.wavelengths <= self.trained_length


class SpectrumView(View[Spectrum]):
    """Above, the wavelengths on a logarithmic scale; below, where each pair's key points at the offset."""

    size = (680, 420)

    def build(self) -> None:
        self.waves = theme.style(self.fig.add_axes((0.10, 0.40, 0.80, 0.57)), y=r"$\lambda_i$")
        self.waves.set(yscale="log", ylim=(0.7, 2e8))
        self.waves.set_yticks([10.0**power for power in range(0, 9, 2)])
        self.waves.minorticks_off()
        self.waves.tick_params(labelbottom=False)
        self.waves.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        self.cosines = theme.style(self.fig.add_axes((0.10, 0.145, 0.80, 0.215)), x="$i$", y=r"$\cos\,\Delta\theta_i$")
        self.cosines.set(ylim=(-1.15, 1.15), yticks=(-1, 0, 1))
        self.cosines.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.cosines.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        for axes in (self.waves, self.cosines):
            axes.yaxis.set_label_coords(-0.07, 0.5)

        self.unfinished = [
            self.moving(axes.axvspan(0, 1, facecolor=theme.KEY, alpha=0.12, linewidth=0))
            for axes in (self.waves, self.cosines)
        ]
        self.reference = self._line(self.waves, color=theme.FAINT, linewidth=theme.LINE)
        self.trained, self.trained_symbol = self._level(theme.INK, "$L$", "--")
        self.distance, self.distance_symbol = self._level(theme.THIRD, r"$|\Delta|$", "-.")
        self.whole = self._line(self.waves, color=theme.QUERY, linestyle="", marker="o", markersize=5)
        self.partial = self._line(
            self.waves, color=theme.KEY, linestyle="", marker="s", markersize=5.5, markerfacecolor=theme.PAPER
        )
        self.stems = LineCollection([], colors=theme.THIRD, capstyle="butt")
        self.cosines.add_collection(self.stems, autolim=False)
        self.moving(self.stems)
        self.mean = self._line(self.cosines, color=theme.INK, linewidth=theme.LINE, linestyle="--")

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def _level(self, colour: str, symbol: str, dashes: str) -> tuple:
        line = self._line(self.waves, color=colour, linewidth=theme.LINE, linestyle=dashes)
        text = self.waves.text(
            1.02, 1, symbol, color=colour, fontsize=theme.SYMBOL, va="center",
            transform=self.waves.get_yaxis_transform(),
        )  # fmt: skip
        return line, self.moving(text)

    def update(self, data: Spectrum) -> Self:
        pairs = len(data.wavelengths)
        index = np.arange(pairs)
        ends = (-0.6, pairs - 0.4)
        for axes in (self.waves, self.cosines):
            self.limits(axes, x=ends)
        start = int(data.complete.sum()) - 0.5
        for patch in self.unfinished:
            patch.set(x=start, width=0 if data.complete.all() else ends[1] - start)
        self.reference.set_data(index, data.reference)
        self.whole.set_data(index[data.complete], data.wavelengths[data.complete])
        self.partial.set_data(index[~data.complete], data.wavelengths[~data.complete])
        # Two symbols at one height would hide each other.
        apart = np.log10(data.trained_length / data.offset)
        aside = max(0.0, 0.35 - abs(apart) / 2) * (1 if apart >= 0 else -1)
        self.trained.set_data(ends, [data.trained_length] * 2)
        self.trained_symbol.set_y(data.trained_length * 10**aside)
        self.distance.set_data(ends, [data.offset] * 2)
        self.distance_symbol.set_y(data.offset * 10**-aside)
        self.stems.set_segments(np.stack([np.stack([index, 0 * index], -1), np.stack([index, data.alignment], -1)], 1))
        self.stems.set_linewidth(min(12.0, 0.6 * 72 / 100 * 0.80 * self.size[0] / pairs))
        self.mean.set_data(ends, [data.alignment.mean()] * 2)
        return self
