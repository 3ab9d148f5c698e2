"""Pictures as runs of one colour, and a picture beside another one as the runs in which it differs.

Pictures of axes and curves are long runs of one colour, and those of neighbouring values of a control are the same in
most places: a frame beside the first one of its range takes some kilobytes, without loss.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

#: In place of a colour: here the picture is as the other one.
SAME = 0
#: Longest run of a difference.
LONGEST = 65_535


def runs(pixels: NDArray[np.uint32], longest: int | None = None) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Return the colours and the lengths of the runs of a picture, row by row.

    Examples
    --------
    >>> runs(np.array([[7, 7, 7], [7, 8, 9]], np.uint32))
    (array([7, 8, 9], dtype=uint32), array([4, 1, 1], dtype=int32))
    """
    flat = pixels.ravel()
    is_start = np.empty(flat.size, bool)
    np.not_equal(flat[1:], flat[:-1], out=is_start[1:])
    is_start[:: longest or flat.size] = True
    starts = np.flatnonzero(is_start)
    return flat[starts], np.diff(starts, append=flat.size).astype(np.int32)


def difference(
    pixels: NDArray[np.uint32], beside: NDArray[np.uint32] | None
) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """Return the runs of a picture, with `SAME` for its colours where another one, if any, has them too."""
    if beside is not None:
        pixels = np.where(pixels == beside, np.uint32(SAME), pixels)
    colours, lengths = runs(pixels, LONGEST)
    return colours, lengths.astype(np.uint16)


def packed(colours: NDArray[np.uint32], lengths: NDArray[np.uint16]) -> bytes:
    """Return runs for the page: all colours, then all lengths, little-endian, deflated."""
    return zlib.compress(colours.astype("<u4").tobytes() + lengths.astype("<u2").tobytes(), 1)
