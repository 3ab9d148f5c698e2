"""LongRoPE as published: the factors of Phi-3-mini-128k-instruct, one for each pair of a head, fastest first.

`SHORT` is for inputs up to `TRAINED_LENGTH`, `LONG` for longer ones.  They are those of the first release (April
2024, ``config.json``, MIT licence; a later release has others), here to the five digits they were searched to: the
file's 1.0299999713897705 is 1.03 in float32.

References
----------
M. Abdin et al., "Phi-3 Technical Report", arXiv 2404.14219; Y. Ding et al., "LongRoPE", arXiv 2402.13753.
"""

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require

HEAD_DIM = 96
ROPE_BASE = 10000.0
TRAINED_LENGTH = 4096
EXTENDED_LENGTH = 131072

SHORT = (
    *(1.05,) * 3, *(1.1,) * 2, 1.15, 1.2, 1.25, 1.3, 1.35, 1.5, *(2.0,) * 21, *(2.05,) * 3, *(2.1,) * 3, *(2.15,) * 2,
    2.35, 2.55, *(2.6,) * 2, 2.75, *(2.85,) * 2, 2.95,
)  # fmt: skip
LONG = (
    1.03, 1.05, 1.05, 1.08, 1.23, 1.23, 1.3, 1.45, 1.6, 1.65, 1.9, 2.86, 3.69, 5.42, 5.49, 5.49, 9.09, 11.58, 15.66,
    15.77, 15.79, 18.36, 21.99, 23.08, 30.01, 32.35, 32.59, 35.56, 39.95, 53.84, 56.2, 57.95, 59.29, 59.77, 59.92,
    61.19, 61.96, 62.5, 63.37, 63.48, 63.48, 63.66, 63.85, 64.08, 64.76, 64.8, 64.81, 64.81,
)  # fmt: skip


def factors_for(pairs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the short and the long list, resampled for a head of another width.

    A pair's factor is read at its place between the fastest and the slowest pair, linearly between the published
    numbers.  For the model's own 48 pairs these are the published lists.

    Parameters
    ----------
    pairs : int
        P, at least 1.

    Returns
    -------
    short, long : ndarray, shape (P,)
        The lists.

    Raises
    ------
    ValueError
        If `pairs` is not a positive integer.

    Examples
    --------
    >>> factors_for(2)
    (array([1.05, 2.95]), array([ 1.03, 64.81]))
    """
    pairs = require.integer("pairs", pairs)
    places = np.linspace(0, len(LONG) - 1, pairs)
    return np.interp(places, np.arange(len(SHORT)), SHORT), np.interp(places, np.arange(len(LONG)), LONG)
