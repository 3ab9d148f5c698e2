"""Positions as a bias on the scores: T5's buckets of learned scalars, and ALiBi's slopes.

Both add a number to the logit of query i and key j that depends on the relative position j − i (and on the head)
alone.  Queries and keys stay as they are, so nothing about positions is stored in a KV cache.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = [
    "alibi_bias",
    "alibi_slopes",
    "half_distance",
    "power_of_two_heads",
    "relative_positions",
    "single_sequence_slopes",
    "t5_bias",
    "t5_bucket",
    "t5_bucket_starts",
    "t5_curve",
]

MOST_BUCKETS = 1024
"""Of T5's buckets; their borders are roots of whole numbers with as many digits as there are buckets."""


def relative_positions(L: int, S: int | None = None) -> NDArray[np.int64]:
    """Return key position minus query position, j − i, the last query aligned with the last key.

    Parameters
    ----------
    L : int; number of queries
    S : int, optional
        Number of keys, at least L; L if not given.  When decoding, S − L keys come from the cache.

    Returns
    -------
    (L, S) ndarray of int; negative for keys before the query

    Source: Raffel et al., arXiv:1910.10683, §2.1 (the "offset between the key and query").

    Examples
    --------
    >>> relative_positions(2, 4)
    array([[-2, -1,  0,  1],
           [-3, -2, -1,  0]])
    """
    L = require.integer("L", L)
    S = L if S is None else require.integer("S", S, minimum=L)
    require.sizes(L=L, S=S)
    return np.arange(S) - np.arange(S - L, S)[:, None]


@require.door
def t5_bias(
    table: ArrayLike, L: int, S: int | None = None, *, bidirectional: bool = True, max_distance: int = 128
) -> NDArray:
    r"""Return T5's bias: for each head the learned scalar of the bucket of j − i.

    .. math:: B_{h,i,j} = \text{table}[\,b(j-i),\, h\,]

    It is added to the logits q·k, which T5 does not divide by √K: the factor is in the initial weights of W_q.  All
    layers of an encoder, and all of a decoder, share one table.

    Parameters
    ----------
    table : (num_buckets, H) array_like; the learned scalars
    L, S : int; as for `relative_positions`
    bidirectional, max_distance : as for `t5_bucket_starts`

    Returns
    -------
    (H, L, S) ndarray; in the floating dtype of `table`

    Source: Raffel et al., arXiv:1910.10683, §2.1.

    Examples
    --------
    >>> t5_bias(np.arange(4.0)[:, None], 3, bidirectional=False, max_distance=4)[0]
    array([[0., 0., 0.],
           [1., 0., 0.],
           [2., 1., 0.]])
    """
    table = require.array("table", table)
    require.ndim("table", table, 2)
    if len(table) < 2 or (require.boolean("bidirectional", bidirectional) and (len(table) < 4 or len(table) % 2)):
        raise require.refusal("table", f"{len(table)} rows", "at least 2, or with bidirectional an even number from 4")
    require.sizes(L=require.integer("L", L), S=L if S is None else require.integer("S", S), heads=table.shape[1])
    offset = relative_positions(L, S)
    buckets = t5_bucket(offset, bidirectional=bidirectional, num_buckets=len(table), max_distance=max_distance)
    return np.ascontiguousarray(table.T)[:, buckets]


def alibi_slopes(n_heads: int) -> NDArray[np.float64]:
    r"""Return ALiBi's slope of each head, by the rule of the authors' code for any number of heads.

    .. math:: m_h = 2^{-8h/n}, \quad h = 1 \dots n, \qquad n \text{ a power of two}

    Otherwise let p be the largest power of two below n: the p slopes of p heads come first, then n − p of the slopes
    of 2p heads: the first, the third, the fifth and so on, which lie between them.

    Parameters
    ----------
    n_heads : int; n

    Returns
    -------
    (n_heads,) ndarray
        Positive, in the order of the heads; for an n that is no power of two that is not the order of their size.

    References
    ----------
    Press, Smith & Lewis, "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation",
    arXiv:2108.12409, §3; other n: ``get_slopes`` of the code released with it.

    Examples
    --------
    >>> print(np.array2string(1 / alibi_slopes(8)))
    [  2.   4.   8.  16.  32.  64. 128. 256.]
    >>> print(np.array2string(alibi_slopes(3), precision=4))
    [0.0625 0.0039 0.25  ]
    """
    p = power_of_two_heads(n_heads)
    require.sizes(n_heads=n_heads, sequences=2)
    between = single_sequence_slopes(2 * p)[::2]
    return np.concatenate([single_sequence_slopes(p), between[: n_heads - p]])


def single_sequence_slopes(n_heads: int) -> NDArray[np.float64]:
    r"""Return the geometric sequence of the paper, 2^(−8h/n) for h = 1 … n.

    For an n that is no power of two these are not the slopes of the released code; see `alibi_slopes`.

    Parameters
    ----------
    n_heads : int; n

    Returns
    -------
    (n_heads,) ndarray; from 2^(−8/n) down to 1/256

    Source: Press, Smith & Lewis, arXiv:2108.12409, §3.

    Examples
    --------
    >>> print(np.array2string(single_sequence_slopes(3), precision=4))
    [0.1575 0.0248 0.0039]
    """
    n = require.integer("n_heads", n_heads)
    require.sizes(n_heads=n)
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def power_of_two_heads(n_heads: int) -> int:
    """Return the largest power of two that is not above n: how many heads have the slopes of a power of two.

    Parameters
    ----------
    n_heads : int; n

    Returns
    -------
    int; p, with p ≤ n < 2p

    Source: ``get_slopes`` of the code released with Press, Smith & Lewis, arXiv:2108.12409.

    Examples
    --------
    >>> power_of_two_heads(12), power_of_two_heads(16)
    (8, 16)
    """
    return 1 << (require.integer("n_heads", n_heads).bit_length() - 1)


@require.door
def alibi_bias(slopes: ArrayLike, L: int, S: int | None = None) -> NDArray:
    r"""Return ALiBi's bias, the slope of the head times the distance, negative.

    .. math:: B_{h,i,j} = -m_h \, |i - j|

    It is added to the logits after their division by √K and is not divided itself.

    Parameters
    ----------
    slopes : (…, H) array_like; m ≥ 0, such as `alibi_slopes`
    L, S : int; as for `relative_positions`

    Returns
    -------
    (…, H, L, S) ndarray
        In the floating dtype of `slopes`.  With a causal mask only j ≤ i is read.

    Source: Press, Smith & Lewis, arXiv:2108.12409, §3.

    Examples
    --------
    >>> alibi_bias([0.5], 3)[0]
    array([[ 0. , -0.5, -1. ],
           [-0.5,  0. , -0.5],
           [-1. , -0.5,  0. ]])
    """
    slopes = _slopes(slopes)
    require.sizes(slopes=slopes.size, L=require.integer("L", L), S=L if S is None else require.integer("S", S))
    compute = require.compute_dtype(slopes.dtype)
    distance = np.abs(relative_positions(L, S)).astype(compute)
    return (slopes.astype(compute)[..., None, None] * (0 - distance)).astype(slopes.dtype, copy=False)


def half_distance(slopes: ArrayLike) -> NDArray:
    """Return how many positions further a key of equal score has half the weight: ln 2 / m.

    Parameters
    ----------
    slopes : (…, H) array_like; m ≥ 0

    Returns
    -------
    (…, H) ndarray; in positions; infinite for a slope of 0

    Source: From the bias of Press, Smith & Lewis, arXiv:2108.12409, §3.

    Examples
    --------
    >>> print(np.array2string(half_distance([0.5, 2.0**-8]), precision=2))
    [  1.39 177.45]
    """
    slopes = _slopes(slopes)
    compute = require.compute_dtype(slopes.dtype)
    with np.errstate(divide="ignore", over="ignore"):
        return (math.log(2) / slopes.astype(compute)).astype(slopes.dtype, copy=False)


def _slopes(value: ArrayLike) -> NDArray:
    slopes = require.array("slopes", value)
    if slopes.min() < 0:
        raise require.refusal("slopes", repr(float(slopes.min())), "slopes of at least 0 (the bias has the sign)")
    return slopes


def t5_bucket_starts(
    num_buckets: int = 32, max_distance: int = 128, *, bidirectional: bool = True
) -> NDArray[np.int64]:
    r"""Return the smallest distance of each of T5's buckets in one direction.

    Of the n buckets of a direction the first e = ⌊n/2⌋ hold one distance each, and bucket e + k begins at

    .. math:: d_k = \Bigl\lceil e \,(M/e)^{k/(n-e)} \Bigr\rceil, \qquad M = \text{max\_distance}

    The roots are compared in whole numbers, so that no rounding of a logarithm moves a border.

    Parameters
    ----------
    num_buckets : int; buckets in all: of both directions, n = num_buckets/2 each, or of the one, n = num_buckets; n ≥ 2
    max_distance : int
        M > e.  All distances from M on share the last bucket; it begins before M.
    bidirectional : bool; whether keys after the query have buckets of their own (an encoder's case)

    Returns
    -------
    (n,) ndarray of int; of two equal numbers the first bucket holds no distance

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
    relative_position : array_like of int; j − i, of any shape; see `relative_positions`
    bidirectional, num_buckets, max_distance
        As for `t5_bucket_starts`.  T5 has 32 and 128; its encoder is bidirectional, its decoder is not.

    Returns
    -------
    ndarray of int
        Of the same shape; from 0 to num_buckets − 1.  Bidirectional, n itself never occurs: distance 0 is bucket 0.

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


@require.door
def t5_curve(
    distance: ArrayLike, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> NDArray:
    """Return what `t5_bucket` rounds down: d up to e, then a straight line in ln d that reaches n at max_distance.

    Parameters
    ----------
    distance : array_like; d ≥ 0, not only whole numbers
    bidirectional, num_buckets, max_distance : as for `t5_bucket_starts`

    Returns
    -------
    ndarray
        Of the shape of `distance`.  Beyond max_distance it goes on, where the bucket does not.

    Source: Raffel et al., arXiv:1910.10683, §2.1.

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
    least, step = (4, 2) if both else (2, 1)
    n = require.integer("num_buckets", num_buckets, minimum=least, multiple_of=step, maximum=MOST_BUCKETS)
    n = n // 2 if both else n
    return n, n // 2, require.integer("max_distance", max_distance, minimum=n // 2 + 1)


def _integers(name: str, value: ArrayLike, most: int) -> NDArray[np.int64]:
    """Return whole numbers, cut to at most `most` in size."""
    out = require.as_array(name, value)
    if out.dtype.kind not in "iu":
        raise require.refusal(name, f"an array of {out.dtype}", "integers")
    wide = out.astype(np.uint64 if out.dtype.kind == "u" else np.int64)
    return np.maximum(np.minimum(wide, most).astype(np.int64), -most)
