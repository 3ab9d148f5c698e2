"""Small whole numbers at many places, as shapes in one collection: so many texts would take ten times as long."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, Transform
from numpy.typing import ArrayLike

from transformer_parts.draw import theme


class NumberMarks(PathCollection):
    """Numbers from 0 to below `count`, each centred on its place.

    Parameters
    ----------
    axes : Axes
        Where they stand; places may lie outside.
    count : int
        How many numbers there are.
    coordinates : Transform, optional
        What places are given in; fractions of the width and height of `axes` by default.
    """

    def __init__(self, axes: Axes, count: int, coordinates: Transform | None = None):
        super().__init__(
            [],
            offsets=np.empty((0, 2)),
            offset_transform=coordinates or axes.transAxes,
            facecolor=theme.INK,
            linewidth=0,
        )
        self._shapes = tuple(_centred(str(number)) for number in range(count))
        self.set_transform(Affine2D().scale(axes.figure.dpi / 72))
        self.set_clip_on(False)
        axes.add_collection(self, autolim=False)

    def set_numbers(self, numbers: ArrayLike, places: ArrayLike) -> None:
        """Show `numbers`, shape (N,), at `places`, shape (N, 2)."""
        self.set_paths([self._shapes[number] for number in numbers])
        self.set_offsets(places)


def _centred(text: str) -> Path:
    path = TextPath((0, 0), text, size=theme.TEXT)
    return path.transformed(Affine2D().translate(*-path.get_extents().get_points().mean(axis=0)))
