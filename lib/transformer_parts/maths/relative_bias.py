"""Positions as a bias on the scores: T5's buckets of learned scalars, and ALiBi's slopes.

Both add a number to the logit of query i and key j that depends on the relative position j − i (and on the head)
alone.  Queries and keys stay as they are, so nothing about positions is stored in a KV cache.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.t5_buckets import t5_bucket, t5_bucket_starts, t5_curve

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


def relative_positions(L: int, S: int | None = None) -> NDArray[np.int64]:
    """Return key position minus query position, j − i, the last query standing where the last key stands.

    Parameters
    ----------
    L : int
        Number of queries.
    S : int, optional
        Number of keys, at least L; L if not given.  When decoding, S − L keys come from the cache.

    Returns
    -------
    (L, S) ndarray of int
        Negative for keys before the query.

    Raises
    ------
    ValueError
        If L < 1 or S < L.

    References
    ----------
    Raffel et al., arXiv:1910.10683, §2.1 (the "offset between the key and query").

    Examples
    --------
    >>> relative_positions(2, 4)
    array([[-2, -1,  0,  1],
           [-3, -2, -1,  0]])
    """
    L = require.integer("L", L)
    S = L if S is None else require.integer("S", S, minimum=L)
    return np.arange(S) - np.arange(S - L, S)[:, None]


def t5_bias(
    table: ArrayLike, L: int, S: int | None = None, *, bidirectional: bool = True, max_distance: int = 128
) -> NDArray:
    r"""Return T5's bias: for each head the learned scalar of the bucket of j − i.

    .. math:: B_{h,i,j} = \text{table}[\,b(j-i),\, h\,]

    It is added to the logits q·k, which T5 does not divide by √K: the factor is in the initial weights of W_q.  All
    layers of an encoder, and all of a decoder, share one table.

    Parameters
    ----------
    table : (num_buckets, H) array_like
        The learned scalars.
    L, S : int
        As for `relative_positions`.
    bidirectional, max_distance
        As for `t5_bucket_starts`.

    Returns
    -------
    (H, L, S) ndarray
        In the floating dtype of `table`.

    Raises
    ------
    ValueError
        If `table` is not finite or has no two axes, or as for the functions named.

    References
    ----------
    Raffel et al., arXiv:1910.10683, §2.1.

    Examples
    --------
    >>> t5_bias(np.arange(4.0)[:, None], 3, bidirectional=False, max_distance=4)[0]
    array([[0., 0., 0.],
           [1., 0., 0.],
           [2., 1., 0.]])
    """
    table = require.array("table", table)
    require.ndim("table", table, 2)
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
    n_heads : int
        n.

    Returns
    -------
    (n_heads,) ndarray
        Positive, in the order of the heads; for an n that is no power of two that is not the order of their size.

    Raises
    ------
    ValueError
        If `n_heads` is no positive integer.

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
    between = single_sequence_slopes(2 * p)[::2]
    return np.concatenate([single_sequence_slopes(p), between[: n_heads - p]])


def single_sequence_slopes(n_heads: int) -> NDArray[np.float64]:
    r"""Return the geometric sequence of the paper, 2^(−8h/n) for h = 1 … n.

    For an n that is no power of two these are not the slopes of the released code; see `alibi_slopes`.

    Parameters
    ----------
    n_heads : int
        n.

    Returns
    -------
    (n_heads,) ndarray
        From 2^(−8/n) down to 1/256.

    Raises
    ------
    ValueError
        If `n_heads` is no positive integer.

    References
    ----------
    Press, Smith & Lewis, arXiv:2108.12409, §3.

    Examples
    --------
    >>> print(np.array2string(single_sequence_slopes(3), precision=4))
    [0.1575 0.0248 0.0039]
    """
    n = require.integer("n_heads", n_heads)
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def power_of_two_heads(n_heads: int) -> int:
    """Return the largest power of two that is not above n: how many heads have the slopes of a power of two.

    Parameters
    ----------
    n_heads : int
        n.

    Returns
    -------
    int
        p, with p ≤ n < 2p.

    Raises
    ------
    ValueError
        If `n_heads` is no positive integer.

    References
    ----------
    ``get_slopes`` of the code released with Press, Smith & Lewis, arXiv:2108.12409.

    Examples
    --------
    >>> power_of_two_heads(12), power_of_two_heads(16)
    (8, 16)
    """
    return 1 << (require.integer("n_heads", n_heads).bit_length() - 1)


def alibi_bias(slopes: ArrayLike, L: int, S: int | None = None) -> NDArray:
    r"""Return ALiBi's bias, the slope of the head times the distance, negative.

    .. math:: B_{h,i,j} = -m_h \, |i - j|

    It is added to the logits after their division by √K and is not divided itself.

    Parameters
    ----------
    slopes : (…, H) array_like
        m ≥ 0, such as `alibi_slopes`.
    L, S : int
        As for `relative_positions`.

    Returns
    -------
    (…, H, L, S) ndarray
        In the floating dtype of `slopes`.  With a causal mask only j ≤ i is read.

    Raises
    ------
    ValueError
        If a slope is negative or not finite, or as for `relative_positions`.

    References
    ----------
    Press, Smith & Lewis, arXiv:2108.12409, §3.

    Examples
    --------
    >>> alibi_bias([0.5], 3)[0]
    array([[ 0. , -0.5, -1. ],
           [-0.5,  0. , -0.5],
           [-1. , -0.5,  0. ]])
    """
    slopes = _slopes(slopes)
    compute = require.compute_dtype(slopes.dtype)
    distance = np.abs(relative_positions(L, S)).astype(compute)
    return (slopes.astype(compute)[..., None, None] * (0 - distance)).astype(slopes.dtype, copy=False)


def half_distance(slopes: ArrayLike) -> NDArray:
    """Return how many positions further a key of equal score has half the weight: ln 2 / m.

    Parameters
    ----------
    slopes : (…, H) array_like
        m ≥ 0.

    Returns
    -------
    (…, H) ndarray
        In positions; infinite for a slope of 0.

    Raises
    ------
    ValueError
        If a slope is negative or not finite.

    References
    ----------
    From the bias of Press, Smith & Lewis, arXiv:2108.12409, §3.

    Examples
    --------
    >>> print(np.array2string(half_distance([0.5, 2.0**-8]), precision=2))
    [  1.39 177.45]
    """
    slopes = _slopes(slopes)
    compute = require.compute_dtype(slopes.dtype)
    with np.errstate(divide="ignore"):
        return (math.log(2) / slopes.astype(compute)).astype(slopes.dtype, copy=False)


def _slopes(value: ArrayLike) -> NDArray:
    slopes = require.array("slopes", value)
    if slopes.min() < 0:
        raise require.refusal("slopes", repr(float(slopes.min())), "slopes of at least 0 (the bias has the sign)")
    return slopes
