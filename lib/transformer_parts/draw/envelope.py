"""Curves with more points than a picture has columns: the smallest, mean and largest value of each column."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Envelope(NamedTuple):
    """A curve over columns of equal width, no point left out.

    Attributes
    ----------
    middles : ndarray, shape (N,)
        The middle of each column.
    lowest, mean, highest : ndarray, shape (N,)
        Of the values in each column.
    """

    middles: NDArray
    lowest: NDArray
    mean: NDArray
    highest: NDArray


def window_of(count: int, columns: int) -> int:
    """Return the width, in points, with which `count` points fill at most `columns` columns.

    Examples
    --------
    >>> window_of(129, 600), window_of(8193, 600)
    (1, 14)
    """
    return -(-count // columns)


def envelope(first: float, values: ArrayLike, window: int) -> Envelope:
    """Return the envelope of values at `first`, `first` + 1, …, over columns of `window` values.

    The last column may hold fewer values; it is as wide as the others.

    Examples
    --------
    >>> envelope(-1, [1.0, 5.0, 2.0], 2)
    Envelope(middles=array([-0.5,  1.5]), lowest=array([1., 2.]), mean=array([3., 2.]), highest=array([5., 2.]))
    """
    values = np.asarray(values)
    starts = np.arange(0, len(values), window)
    return Envelope(
        middles=first + starts + (window - 1) / 2,
        lowest=np.minimum.reduceat(values, starts),
        mean=np.add.reduceat(values, starts) / np.diff(starts, append=len(values)),
        highest=np.maximum.reduceat(values, starts),
    )
