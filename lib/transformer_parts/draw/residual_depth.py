"""The gradient of one layer at initialisation against the depth of the decoder, for all four placements."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.view import View

#: Colour, marker, dashes and symbol of each placement.
LOOKS = (
    ("pre", theme.FIRST, "o", "-"),
    ("post", theme.SECOND, "s", (0, (5, 2))),
    ("sandwich", theme.THIRD, "^", (0, (2, 1.5))),
    ("deepnorm", theme.INK, "D", (0, (6, 2, 1, 2))),
)


@dataclass(frozen=True)
class ByDepth:
    """A number of each placement at each depth, over seeds.

    Attributes
    ----------
    depths : ndarray of int, shape (N,)
        Numbers of layers.
    values : dict of str to ndarray, shape (seeds, N)
        By placement.
    marked : int
        Index of the depth that the table reads.
    """

    depths: NDArray
    values: dict[str, NDArray]
    marked: int

    def mean(self, placement: str) -> NDArray:
        """Mean over the seeds at each depth."""
        return self.values[placement].mean(axis=0)

    def slope(self, placement: str) -> float:
        """Exponent of the depth by least squares over the depths from 4 on: −1/2 is 1/√L."""
        deep = self.depths >= 4
        return float(np.polyfit(np.log(self.depths[deep]), np.log(self.mean(placement)[deep]), 1)[0])


class ByDepthView(View[ByDepth]):
    """Means as lines, the range over the seeds as a band; the thin grey lines fall as 1/√L."""

    size = (680, 420)
    decades = (-3, 3)

    def build(self) -> None:
        self.axes = theme.style(self.fig.add_axes((0.115, 0.135, 0.865, 0.84)), x="$L$")
        self.axes.set(xscale="log", yscale="log", xlim=(0.9, 72), ylim=(1e-2, 10))
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
