"""What reading queries and keys in the wrong layout does to their scores, offset by offset.

`rope_layout` has the layouts themselves and the permutation between them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope, rope_layout, rotation


class Reading(NamedTuple):
    """Scores as they were trained and as some code computes them.

    Attributes
    ----------
    right, read, difference : ndarray, shape (..., N)
        The score at each offset in the trained layout, the score that comes out, and read − right.
    """

    right: NDArray
    read: NDArray
    difference: NDArray


def read_scores(
    query: ArrayLike,
    key: ArrayLike,
    offsets: ArrayLike,
    order: ArrayLike,
    layout: str,
    *,
    trained: str = "interleaved",
    rope_base: float = 10000.0,
    rotary_dim: int | None = None,
) -> Reading:
    """Return the scores of one query and key as trained, and after their channels were put in an order and turned.

    Parameters
    ----------
    query, key : array_like, shape (..., K)
        Before the rotation, in the layout `trained`.
    offsets : array_like, shape (N,)
        Position of the key minus position of the query.
    order : array_like of int, shape (K,)
        What was done to the rows of W_q and W_k: channel c is now what was channel ``order[c]``.
    layout : {"interleaved", "split"}
        Which channels the code pairs.
    trained : {"interleaved", "split"}
        Which channels were paired when the weights were trained.
    rope_base, rotary_dim
        As in `rope.rotate`.

    Returns
    -------
    Reading
        The difference is 0 at offset 0 whatever the order (up to the rounding of a sum in another order), and at every
        offset where order and layout fit.

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite, `order` is no permutation or a layout is unknown.

    Examples
    --------
    >>> wrong = read_scores([1, 2, 3, 4], [2, 1, 0, 1], [0, 2], [0, 1, 2, 3], "split")
    >>> [f"{s:.6f}" for s in (*wrong.right, *wrong.read)]
    ['4.000000', '2.501254', '4.000000', '5.331144']
    """
    query, key = require.array("query", query), require.array("key", key)
    order = _permutation_of(order, query.shape[-1])
    settings = {"rope_base": rope_base, "rotary_dim": rotary_dim}
    right = rope.scores_by_offset(query, key, offsets, layout=trained, **settings)
    read = rope.scores_by_offset(query[..., order], key[..., order], offsets, layout=layout, **settings)
    return Reading(right, read, read - right)


def agreement(
    pairs: ArrayLike, other: ArrayLike, inv_freq: ArrayLike, head_dim: int, offsets: ArrayLike
) -> NDArray[np.float64]:
    r"""Return how far two pairings make the same score of random content: their correlation at each offset.

    .. math:: \rho(\Delta) = \tfrac{1}{K} \operatorname{tr}\bigl(R(\Delta)^{\mathsf T} R'(\Delta)\bigr)

    with R and R′ the K × K rotations of the two pairings.  For queries and keys of independent entries of mean 0 the
    two scores have correlation ρ; for entries of variance 1 their difference has the standard deviation √(2 − 2ρ).

    Parameters
    ----------
    pairs, other : array_like of int, shape (P, 2)
        The channels of each pair, in the same K channels; pair i of both turns by ``inv_freq[i]``.
    inv_freq : array_like, shape (P,)
        Radians per position.
    head_dim : int
        K; channels in no pair are not turned.
    offsets : array_like, shape (N,)
        Position of the key minus position of the query.

    Returns
    -------
    ndarray, shape (N,)
        From −1 to 1; 1 at offset 0.

    Raises
    ------
    ValueError
        If `pairs` or `other` are not P pairs of distinct channels below K, or an entry is not finite.

    Examples
    --------
    >>> pairs, other = ([[0, 1], [2, 3]], [[0, 2], [1, 3]])
    >>> [f"{x:.3f}" for x in agreement(pairs, other, [1.0, 0.01], 4, [0, 1, 2, 4])]
    ['1.000', '0.593', '0.085', '0.030']
    """
    inv_freq = require.array("inv_freq", inv_freq)
    head_dim = require.integer("head_dim", head_dim, minimum=2)
    offsets = require.array("offsets", offsets)
    require.ndim("offsets", offsets, 1)
    first = _partners(_pairs("pairs", pairs, inv_freq, head_dim), inv_freq, head_dim)
    second = _partners(_pairs("other", other, inv_freq, head_dim), inv_freq, head_dim)
    # cos a cos b on the diagonal; ± sin a sin b off it, where both pair a channel with the same partner.  Each is half
    # the sum or the difference of cos(a − b) and cos(a + b).
    shared = np.where(first.partner == second.partner, first.sign * second.sign, 0.0)
    waves = np.concatenate([1 + shared, 1 - shared]) / (2 * head_dim)
    speeds = np.concatenate([first.speed - second.speed, first.speed + second.speed])
    return rotation.sums_of_turned(waves, offsets, speeds)


def difference_std(query: ArrayLike, key: ArrayLike, agreement: ArrayLike) -> NDArray[np.float64]:
    r"""Return how large the difference of two readings typically is, for content of the size of `query` and `key`.

    .. math:: \frac{|q|\,|k|}{K} \sqrt{2 - 2\rho}

    is the standard deviation of the difference of the scores (scaled by 1/√K) over all directions of q and of k.

    Parameters
    ----------
    query, key : array_like, shape (K,)
        Only their lengths count.
    agreement : array_like
        ρ, from `agreement`.

    Returns
    -------
    ndarray, of the shape of `agreement`
        At least 0.

    Raises
    ------
    ValueError
        If query and key differ in shape, or an agreement is outside −1 … 1.

    Examples
    --------
    >>> difference_std([1, 1], [1, -1], [1.0, 0.5]).round(12).tolist()
    [0.0, 1.0]
    """
    query, key = require.array("query", query), require.array("key", key)
    require.ndim("query", query, 1)
    require.shape("key", key, query.shape, "as query has")
    agreement = require.array("agreement", agreement)
    # Rounding may put a correlation of 1 a last digit above it.
    if np.abs(agreement).max() > 1 + 1e-9:
        raise require.refusal("agreement", str(agreement.max()), "correlations, from -1 to 1")
    size = np.linalg.norm(query) * np.linalg.norm(key) / len(query)
    return size * np.sqrt(np.maximum(0, 2 - 2 * agreement))


def rms_by_distance(values: ArrayLike) -> NDArray[np.float64]:
    """Return the root mean square of a square matrix's entries at each distance i − j of query i and key j.

    Parameters
    ----------
    values : array_like, shape (L, L)
        One number for each query (row) and key (column); entries above the diagonal are not read.

    Returns
    -------
    ndarray, shape (L,)
        Entry d is over the L − d entries with i − j = d.

    Raises
    ------
    ValueError
        If `values` is not square.

    Examples
    --------
    >>> rms_by_distance([[3, 9], [7, 4]]).round(4).tolist()
    [3.5355, 7.0]
    """
    values = require.array("values", values, min_ndim=2)
    require.shape("values", values, ("L", values.shape[-2]), "one row and one column for each token")
    return np.array([np.sqrt(np.mean(np.square(np.diagonal(values, -d)))) for d in range(len(values))])


def total_variation(weights: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    r"""Return how much weight lies elsewhere in one distribution than in the other, :math:`\tfrac12\sum_j|p_j-p'_j|`.

    Parameters
    ----------
    weights, other : array_like, shape (..., S)
        Attention weights; rows sum to 1.

    Returns
    -------
    ndarray, shape (...)
        From 0 (the same) to 1 (nothing in common).

    Raises
    ------
    ValueError
        If the shapes differ or an entry is not finite.

    Examples
    --------
    >>> float(total_variation([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]))
    0.5
    """
    weights, other = require.array("weights", weights), require.array("other", other)
    require.shape("other", other, weights.shape, "as weights has")
    return np.abs(weights - other).sum(axis=-1) / 2


class _Partners(NamedTuple):
    """For each channel: its frequency, the other channel of its pair (itself if it is not turned), the sine's sign."""

    speed: NDArray
    partner: NDArray
    sign: NDArray


def _partners(pairs: NDArray, inv_freq: NDArray, head_dim: int) -> _Partners:
    speed, sign, partner = np.zeros(head_dim), np.zeros(head_dim), np.arange(head_dim)
    for here, there, side in ((0, 1, -1), (1, 0, 1)):
        speed[pairs[:, here]], sign[pairs[:, here]] = inv_freq, side
        partner[pairs[:, here]] = pairs[:, there]
    return _Partners(speed, partner, sign)


def _pairs(name: str, pairs: ArrayLike, inv_freq: NDArray, head_dim: int) -> NDArray:
    pairs = np.asarray(pairs)
    if pairs.dtype.kind not in "iu" or pairs.shape != (len(inv_freq), 2):
        raise require.refusal(
            name, f"{pairs.dtype} of shape {pairs.shape}", f"whole numbers of shape ({len(inv_freq)}, 2)"
        )
    if pairs.min() < 0 or pairs.max() >= head_dim or len(np.unique(pairs)) != pairs.size:
        raise require.refusal(name, str(pairs.tolist()), f"distinct channels below {head_dim}")
    return pairs


def _permutation_of(order: ArrayLike, size: int) -> NDArray:
    rope_layout.permutation_matrix(order)
    order = np.asarray(order)
    require.last_axis("order", order, size, "the channels of query")
    return order
