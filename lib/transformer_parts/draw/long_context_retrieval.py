"""Measured retrieval from long texts: the log-probability of hidden numbers by depth and by length."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

LOWEST = -4.0


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """What two models make of the hidden numbers.

    Attributes
    ----------
    depths : ndarray, shape (N,)
        Where each sentence stands, from 0 to 1.
    plain, yarn : ndarray, shape (N,)
        The mean log-probability of a digit of its right number: as trained, and by YaRN.
    others : ndarray, shape (2, N)
        The mean of the other numbers in the place of the right one; NaN where there are none.
    chosen : ndarray of bool, shape (2, N)
        Whether the right number is the likeliest of all numbers in the text.
    lengths : ndarray, shape (M,)
        Lengths measured in this way.
    by_length : mapping of str to ndarray, shape (M,)
        The means of all depths, for "plain" and "yarn".
    others_by_length : mapping of str to ndarray, shape (M,)
        The same of the other numbers.
    length, trained_length, doors : int
        The chosen length, that of training, and how many numbers there are.
    """

    depths: NDArray
    plain: NDArray
    yarn: NDArray
    others: NDArray
    chosen: NDArray
    lengths: NDArray
    by_length: Mapping[str, NDArray]
    others_by_length: Mapping[str, NDArray]
    length: int
    trained_length: int
    doors: int


class RetrievalView(View[Retrieval]):
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
