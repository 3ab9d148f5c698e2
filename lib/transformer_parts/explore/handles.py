"""Handles: what a hand takes hold of in a picture, and the controls that it moves.

The view says where each grip stands (`View.grips`); here stands which control follows it.  The page moves the control
to the value whose grip is nearest to the pointer.  It learns the places from the frames, which all have their grips, or
from a track, which has the places of all values at once.
"""

from typing import NamedTuple

import numpy as np


class Handle(NamedTuple):
    """What a hand takes hold of: the words for it, the one or two controls that it moves, and which directions count.

    `along` is "x" where only the pointer's way across counts (a vertical line), "y" where only up and down does (the
    top of a bar), else "xy".
    """

    label: str
    controls: tuple[str, ...]
    along: str = "xy"


#: Places of a track for each CSS pixel, as a page reads them: whole numbers of two bytes.
PER_PIXEL = 16


def packed(track: np.ndarray) -> bytes:
    """Return the places of a track as a page reads them, those outside of every picture at its farthest edge."""
    return np.clip(np.round(track * PER_PIXEL), -(2**15), 2**15 - 1).astype("<i2").tobytes()
