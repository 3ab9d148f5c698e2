"""A heat map that fills its axes, coloured and enlarged to device pixels by table look-ups.

Matplotlib's own image resamples whatever it draws: for 64 x 600 cells that took 10 ms a frame, look-ups take 2.
"""

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from numpy.typing import NDArray

from transformer_parts.draw import theme


class HeatMap(Artist):
    """Cells around zero, in the diverging colours of the theme, the first row on top.

    Parameters
    ----------
    axes : Axes
        Where it is drawn; the cells fill the axes, whatever their limits are.
    """

    def __init__(self, axes: Axes):
        super().__init__()
        colours = colormaps[theme.DIVERGING](np.linspace(0, 1, 255), bytes=True)
        self._table = np.ascontiguousarray(colours).view(np.uint32).ravel()
        self._colours = np.zeros((1, 1), np.uint32)
        axes.add_artist(self)

    def set_cells(self, cells: NDArray, largest: float) -> None:
        """Show `cells`, shape (rows, columns), on a scale from -`largest` to `largest`.

        The colour goes with the square root of the size, so that a small cell beside a large one is still seen.
        """
        size = np.minimum(np.abs(cells) / (largest or 1.0), 1.0)
        scaled = np.copysign(100 * np.sqrt(size), cells) + 127.5
        self._colours = self._table[scaled.astype(np.uint8)]
        self.stale = True

    def draw(self, renderer: RendererBase) -> None:
        """Draw every cell as a rectangle of whole device pixels."""
        box = self.axes.bbox
        left, bottom, right, top = (round(edge) for edge in box.extents)
        size = top - bottom, right - left
        # The renderer counts rows from the bottom.
        rows, columns = (np.arange(n) * have // n for n, have in zip(size, self._colours.shape, strict=True))
        pixels = self._colours[np.ix_(rows[::-1], columns)].view(np.uint8).reshape(*size, 4)
        context = renderer.new_gc()
        renderer.draw_image(context, left, bottom, pixels)
        context.restore()
        self.stale = False
