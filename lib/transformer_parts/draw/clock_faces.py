"""Clocks with two hands, as three collections: faces for the pairs of channels, hands of the query and of the key."""

from collections.abc import Callable

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike, NDArray

from transformer_parts.draw import theme

TINTS = LinearSegmentedColormap.from_list("clock faces", ["#cfcfcf", theme.PAPER, "#f3dc9c"])
QUERY_LENGTH, KEY_LENGTH = 0.42, 0.3


class ClockFaces:
    """Clocks of width 0.9 at given places, tinted from grey (−1) over white to gold (1).

    Parameters
    ----------
    axes : Axes
        Where they stand, in the units of its data.
    moving : callable
        `View.moving` of the view.
    """

    def __init__(self, axes: Axes, moving: Callable[[Artist], Artist]):
        faces = EllipseCollection(
            [], [], [], units="xy", offsets=np.empty((0, 2)), offset_transform=axes.transData,
            edgecolor=theme.FAINT, linewidth=theme.THIN, cmap=TINTS, clim=(-1, 1), zorder=1,
        )  # fmt: skip
        axes.add_collection(faces, autolim=False)
        self.faces = moving(faces)
        self.key_hands, self.query_hands = (
            moving(
                axes.add_collection(
                    LineCollection([], colors=colour, linewidths=width, capstyle="round", zorder=3), autolim=False
                )
            )
            for colour, width in ((theme.KEY, 4.5), (theme.QUERY, 2.0))
        )

    def set_clocks(
        self,
        centres: NDArray,
        query_angles: NDArray,
        key_angles: NDArray,
        tints: NDArray,
        *,
        query_lengths: ArrayLike = 1.0,
        key_lengths: ArrayLike = 1.0,
    ) -> None:
        """Show clocks at `centres`, shape (P, 2); angles in radians, lengths of the hands from 0 to 1."""
        count = len(centres)
        self.faces.set(widths=np.full(count, 0.9), heights=np.full(count, 0.9), angles=np.zeros(count))
        self.faces.set_offsets(centres)
        self.faces.set_array(tints)
        for hands, angles, lengths in (
            (self.query_hands, query_angles, QUERY_LENGTH * np.asarray(query_lengths)),
            (self.key_hands, key_angles, KEY_LENGTH * np.asarray(key_lengths)),
        ):
            tips = centres + np.atleast_1d(lengths)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
            hands.set_segments(np.stack([centres, tips], axis=1))
