"""Backgrounds that were drawn once and are laid under the moving artists again."""

from collections import OrderedDict
from collections.abc import Hashable

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

from transformer_parts.draw import frame

#: Bytes kept for one view.
MOST_BYTES = 16_000_000


class Backgrounds:
    """The last backgrounds of a canvas by a key that says what they show.

    A background is axes, ticks and paper: long runs of one colour.  As such it takes a quarter of a megabyte in place
    of five, and half a millisecond in place of the fifty that drawing it takes.
    """

    def __init__(self):
        self.bytes = 0  # what is kept: at most `MOST_BYTES`, and never less than the last background
        self._runs: OrderedDict[Hashable, tuple[NDArray[np.uint32], NDArray[np.int32]]] = OrderedDict()

    def keep(self, key: Hashable, canvas: FigureCanvasAgg) -> None:
        """Keep what the canvas shows."""
        self.drop(key)
        colours, lengths = runs(frame.pixels(canvas))
        self._runs[key] = colours, lengths
        self.bytes += colours.nbytes + lengths.nbytes
        while self.bytes > MOST_BYTES and len(self._runs) > 1:
            self.drop(next(iter(self._runs)))

    def restore(self, key: Hashable, canvas: FigureCanvasAgg) -> bool:
        """Put a background on the canvas, if it is here."""
        if key not in self._runs:
            return False
        self._runs.move_to_end(key)
        pixels = frame.pixels(canvas)
        pixels[...] = np.repeat(*self._runs[key]).reshape(pixels.shape)
        return True

    def drop(self, key: Hashable) -> None:
        """Forget a background."""
        self.bytes -= sum(array.nbytes for array in self._runs.pop(key, ()))

    def clear(self) -> None:
        """Forget all."""
        self._runs.clear()
        self.bytes = 0


def runs(pixels: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Return the colours and the lengths of the runs of a picture, row by row.

    Examples
    --------
    >>> runs(np.array([[7, 7, 7], [7, 8, 9]], np.uint32))
    (array([7, 8, 9], dtype=uint32), array([4, 1, 1], dtype=int32))
    """
    flat = pixels.ravel()
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    return flat[starts], np.diff(starts, append=flat.size).astype(np.int32)
