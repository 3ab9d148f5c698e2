"""T5's buckets: which distances share one learned scalar."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = ["t5_bucket", "t5_bucket_starts", "t5_curve"]


def t5_bucket_starts(
    num_buckets: int = 32, max_distance: int = 128, *, bidirectional: bool = True
) -> NDArray[np.int64]:
    r"""Return the smallest distance of each of T5's buckets in one direction.

    Of the n buckets of a direction the first e = ⌊n/2⌋ hold one distance each, and bucket e + k begins at

    .. math:: d_k = \Bigl\lceil e \,(M/e)^{k/(n-e)} \Bigr\rceil, \qquad M = \text{max\_distance}

    The roots are compared in whole numbers, so that no rounding of a logarithm moves a border.

    Parameters
    ----------
    num_buckets : int
        Buckets in all: of both directions, n = num_buckets/2 each, or of the one, n = num_buckets.
    max_distance : int
        M > e.  All distances from M on share the last bucket; it begins before M.
    bidirectional : bool
        Whether keys after the query have buckets of their own (an encoder's case).

    Returns
    -------
    (n,) ndarray of int
        Two equal numbers tell that the first of the two buckets holds no distance.

    Raises
    ------
    ValueError
        If a direction has fewer than 2 buckets or max_distance is not above its exact ones.

    References
    ----------
    Raffel et al., arXiv:1910.10683, §2.1; the borders as in the released code (Mesh TensorFlow,
    ``_relative_position_bucket``).

    Examples
    --------
    >>> t5_bucket_starts().tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    """
    n, exact, furthest = _one_direction(num_buckets, max_distance, bidirectional)
    logarithmic = n - exact
    starts = list(range(exact + 1))
    for k in range(1, logarithmic):
        wanted = furthest**k * exact ** (logarithmic - k)  # d_k to the power n − e
        start = max(exact, math.floor(exact * (furthest / exact) ** (k / logarithmic)) - 1)
        while start**logarithmic < wanted:
            start += 1
        starts.append(start)
    return np.array(starts)


def t5_bucket(
    relative_position: ArrayLike, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> NDArray[np.int64]:
    r"""Return T5's bucket of each relative position, key minus query.

    .. math:: b(d) = \begin{cases} d & d < e \\
              \min\bigl(n-1,\; e + \bigl\lfloor \tfrac{\ln(d/e)}{\ln(M/e)} (n-e) \bigr\rfloor\bigr) & d \ge e
              \end{cases}

    Bidirectional, d = |j − i|, n = num_buckets/2, and keys after the query (j > i) add n.  Causal, d = max(i − j, 0)
    and n = num_buckets: all keys after the query, which a mask hides, are in bucket 0.  In both, e = ⌊n/2⌋.

    Parameters
    ----------
    relative_position : array_like of int
        j − i, of any shape; see `relative_positions`.
    bidirectional, num_buckets, max_distance
        As for `t5_bucket_starts`.  T5 has 32 and 128; its encoder is bidirectional, its decoder is not.

    Returns
    -------
    ndarray of int
        Of the same shape; from 0 to num_buckets − 1.  Bidirectional, n itself never occurs: distance 0 is bucket 0.

    Raises
    ------
    ValueError
        If the relative positions are no integers, or as for `t5_bucket_starts`.

    References
    ----------
    Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    arXiv:1910.10683, §2.1.

    Examples
    --------
    >>> t5_bucket([-128, -8, -1, 0, 1, 8, 128]).tolist()
    [15, 8, 1, 0, 17, 24, 31]
    >>> t5_bucket([-128, -16, -1, 0, 1], bidirectional=False).tolist()
    [31, 16, 1, 0, 0]
    """
    starts = t5_bucket_starts(num_buckets, max_distance, bidirectional=bidirectional)
    offset = _integers("relative_position", relative_position, max_distance)
    if not bidirectional:
        return np.searchsorted(starts, np.maximum(-offset, 0), side="right") - 1
    bucket = np.searchsorted(starts, np.abs(offset), side="right") - 1
    return bucket + len(starts) * (offset > 0)


def t5_curve(
    distance: ArrayLike, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> NDArray:
    """Return what `t5_bucket` rounds down: d up to e, then a straight line in ln d that reaches n at max_distance.

    Parameters
    ----------
    distance : array_like
        d ≥ 0, not only whole numbers.
    bidirectional, num_buckets, max_distance
        As for `t5_bucket_starts`.

    Returns
    -------
    ndarray
        Of the shape of `distance`.  Beyond max_distance it goes on, where the bucket does not.

    Raises
    ------
    ValueError
        If a distance is negative, or as for `t5_bucket_starts`.

    References
    ----------
    Raffel et al., arXiv:1910.10683, §2.1.

    Examples
    --------
    >>> print(np.array2string(t5_curve([3, 8, 32, 128]), precision=4))
    [ 3.  8. 12. 16.]
    """
    n, exact, furthest = _one_direction(num_buckets, max_distance, bidirectional)
    distance = require.array("distance", distance, min_ndim=0)
    if distance.min() < 0:
        raise require.refusal("distance", repr(float(distance.min())), "distances of at least 0")
    line = exact + np.log(np.maximum(distance, exact) / exact) / math.log(furthest / exact) * (n - exact)
    return np.where(distance < exact, distance, line)


def _one_direction(num_buckets: int, max_distance: int, bidirectional: bool) -> tuple[int, int, int]:
    """Return n, e and M: the buckets of one direction, the exact ones among them, and max_distance."""
    both = require.boolean("bidirectional", bidirectional)
    n = require.integer("num_buckets", num_buckets, minimum=4 if both else 2, multiple_of=2 if both else 1)
    n = n // 2 if both else n
    return n, n // 2, require.integer("max_distance", max_distance, minimum=n // 2 + 1)


def _integers(name: str, value: ArrayLike, most: int) -> NDArray[np.int64]:
    """Return whole numbers, cut to at most `most` in size."""
    out = np.asarray(value)
    if out.dtype.kind not in "iu":
        raise require.refusal(name, f"an array of {out.dtype}", "integers")
    wide = out.astype(np.uint64 if out.dtype.kind == "u" else np.int64)
    return np.maximum(np.minimum(wide, most).astype(np.int64), -most)
