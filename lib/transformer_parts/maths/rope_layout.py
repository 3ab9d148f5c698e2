"""Two layouts of RoPE's pairs over the channels of a head, and the permutation that leads from one to the other.

Interleaved: pair i is the channels 2i and 2i+1.  Split: it is the channels i and i + rotary_dim/2.  The rotation is the
same; only where its planes lie in the head differs.  Scores stay what they are if the channels of queries and keys
move along, which permuting the output channels of W_q and W_k does once and for all.  Nothing else of a model moves.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.4.2 (interleaved).
S. Black et al., "GPT-NeoX-20B", arXiv 2204.06745, §2.1 (rotates the first quarter of each head).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope


def pair_indices(head_dim: int, layout: str = "interleaved", *, rotary_dim: int | None = None) -> NDArray[np.intp]:
    r"""Return the two channels of each pair of a head, fastest pair first.

    .. math:: (2i,\; 2i+1) \quad\text{or}\quad (i,\; i + r/2), \qquad 0 \le i < r/2

    Parameters
    ----------
    head_dim : int; K, the width of the head
    layout : {"interleaved", "split"}; which of the two
    rotary_dim : int, optional; r, how many of the first channels are turned (even); all K by default

    Returns
    -------
    ndarray, shape (r/2, 2); channels that are not turned are in no pair

    Source: RoFormer, arXiv 2104.09864, §3.4.2 (equation 34).

    Examples
    --------
    >>> pair_indices(6).tolist(), pair_indices(6, "split").tolist()
    ([[0, 1], [2, 3], [4, 5]], [[0, 3], [1, 4], [2, 5]])
    """
    require.one_of("layout", layout, rope.LAYOUTS)
    channels = np.arange(_turned(head_dim, rotary_dim))
    return channels.reshape(-1, 2) if layout == "interleaved" else channels.reshape(2, -1).T


def permutation(head_dim: int, to: str, *, rotary_dim: int | None = None) -> NDArray[np.intp]:
    """Return the order that takes the channels of a head from the other layout to the layout `to`.

    Channel c of the result is channel ``order[c]`` of what there was: ``x[..., order]``.  To split it lists the even
    channels, then the odd ones.  The two directions are inverse to one another, and differ but for four turned
    channels or two.

    Parameters
    ----------
    head_dim : int; K, the width of the head
    to : {"interleaved", "split"}; the wanted layout; the vectors are in the other one
    rotary_dim : int, optional
        How many of the first channels are turned (even); the others stay where they are.  All K by default.

    Returns
    -------
    ndarray of int, shape (K,); each channel once

    Examples
    --------
    >>> permutation(8, "split").tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    >>> permutation(8, "interleaved").tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    >>> permutation(8, "split", rotary_dim=6).tolist()
    [0, 2, 4, 1, 3, 5, 6, 7]
    """
    require.one_of("to", to, rope.LAYOUTS)
    other = next(layout for layout in rope.LAYOUTS if layout != to)
    wanted = pair_indices(head_dim, to, rotary_dim=rotary_dim)
    order = np.arange(head_dim)
    order[wanted] = pair_indices(head_dim, other, rotary_dim=rotary_dim)
    return order


def permutation_matrix(order: ArrayLike) -> NDArray[np.float64]:
    r"""Return the matrix that puts the entries of a column vector into an order.

    .. math:: (\Pi x)_c = x_{\text{order}[c]}, \qquad \Pi^{\mathsf T} \Pi = I

    On weights in (out, in) it acts from the left, Π W; on weights in (in, out) its transpose acts from the right, W Πᵀ.

    Parameters
    ----------
    order : array_like of int, shape (K,); each of 0 … K−1 once

    Returns
    -------
    ndarray, shape (K, K); a single 1 in each row and column

    Examples
    --------
    >>> permutation_matrix([0, 2, 1]).astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    order = require.permutation("order", order)
    require.sizes(order=len(order), columns=len(order))
    return np.eye(len(order))[order]


def reorder(x: ArrayLike, to: str, *, rotary_dim: int | None = None) -> NDArray:
    """Move channels (…, K), of queries, keys or a norm's weight over a head, from the other layout to the layout `to`.

    Entries are moved and never computed with: each keeps its bits.
    """
    x = _entries("x", x)
    return x[..., permutation(x.shape[-1], to, rotary_dim=rotary_dim)]


def convert_projection(
    w: ArrayLike, head_dim: int, to: str, *, rotary_dim: int | None = None, out_axis: int = -1
) -> NDArray:
    """Move the output channels of W_q or W_k, head by head, from the other layout to the layout `to`.

    W_q and W_k (and their biases) are both converted, each with the same `head_dim`; the number of heads, which differs
    between them where kv heads are grouped, follows from it.  W_v and W_o stay as they are.

    Parameters
    ----------
    w : array_like
        Weights whose axis `out_axis` holds the channels of all heads, one head after the other: (D, H·K) in this
        library's convention ``x @ w``, where the columns move; (H·K, D) with ``out_axis=0`` as checkpoints have it,
        where the rows move; (H·K,) for a bias.  Any dtype, quantised ones included.
    head_dim : int; K, the width of a head
    to : {"interleaved", "split"}; the wanted layout; the weights are in the other one
    rotary_dim : int, optional; as in `permutation`
    out_axis : int; the axis of the output channels

    Returns
    -------
    ndarray, of the shape and dtype of `w`
        A new array.  Entries are moved and never computed with, so that there and back is the same bit for bit.

    Examples
    --------
    Two heads of four channels, one input; the numbers are head and channel:

    >>> w = [[0, 1, 2, 3, 10, 11, 12, 13]]
    >>> convert_projection(w, 4, "split").tolist()
    [[0, 2, 1, 3, 10, 12, 11, 13]]
    """
    w = _entries("w", w)
    out_axis = require.integer("out_axis", out_axis, minimum=-w.ndim, maximum=w.ndim - 1)
    order = permutation(head_dim, to, rotary_dim=rotary_dim)
    channels = w.shape[out_axis]
    if channels % len(order):
        got = f"{channels} channels along axis {out_axis} of {w.shape}"
        raise require.refusal("w", got, f"a multiple of head_dim {len(order)}")
    heads = np.arange(0, channels, len(order))
    return np.take(w, (heads[:, None] + order).reshape(-1), axis=out_axis)


def _turned(head_dim: int, rotary_dim: int | None) -> int:
    if rotary_dim is None:
        return require.integer("head_dim", head_dim, minimum=2, multiple_of=2, maximum=rope.MAX_HEAD_DIM)
    head_dim = require.integer("head_dim", head_dim, minimum=2, maximum=rope.MAX_HEAD_DIM)
    return require.integer("rotary_dim", rotary_dim, minimum=2, multiple_of=2, maximum=head_dim)


def _entries(name: str, x: ArrayLike) -> NDArray:
    """Return `x` as a non-empty array of any numbers, without checking them: they are only moved."""
    x = require.as_array(name, x)
    if x.dtype.kind not in "biufc" and not require.is_floating(x.dtype):
        raise require.refusal(name, f"an array of {x.dtype}", "numbers")
    if x.size == 0 or x.ndim == 0:
        raise require.refusal(name, f"shape {x.shape}", "at least one axis and no empty one")
    return x


class Reading(NamedTuple):
    """Scores as they were trained and as some code computes them."""

    # right, read, difference (..., N): the score at each offset in the trained layout, the score that comes out, and
    # read − right
    right: NDArray
    read: NDArray
    difference: NDArray


@require.door
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
    query, key : array_like, shape (..., K); before the rotation, in the layout `trained`
    offsets : array_like, shape (N,); position of the key minus position of the query
    order : array_like of int, shape (K,)
        What was done to the rows of W_q and W_k: channel c is now what was channel ``order[c]``.
    layout : {"interleaved", "split"}; which channels the code pairs
    trained : {"interleaved", "split"}; which channels were paired when the weights were trained
    rope_base, rotary_dim : as in `rope.rotate`

    Returns
    -------
    Reading; the difference is 0 at offset 0 whatever the order (up to the rounding of a sum in another order), and
        at every offset where order and layout fit

    Examples
    --------
    >>> wrong = read_scores([1, 2, 3, 4], [2, 1, 0, 1], [0, 2], [0, 1, 2, 3], "split")
    >>> [f"{s:.6f}" for s in (*wrong.right, *wrong.read)]
    ['4.000000', '2.501254', '4.000000', '5.331144']
    """
    query, key = require.array("query", query), require.array("key", key)
    order = require.permutation("order", order)
    require.last_axis("order", order, query.shape[-1], "the channels of query")
    settings = {"rope_base": rope_base, "rotary_dim": rotary_dim}
    right = rope.scores_by_offset(query, key, offsets, layout=trained, **settings)
    read = rope.scores_by_offset(query[..., order], key[..., order], offsets, layout=layout, **settings)
    return Reading(right, read, read - right)


@require.door
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
    inv_freq : array_like, shape (P,); radians per position
    head_dim : int; K; channels in no pair are not turned
    offsets : array_like, shape (N,); position of the key minus position of the query

    Returns
    -------
    ndarray, shape (N,); from −1 to 1; 1 at offset 0

    Examples
    --------
    >>> pairs, other = ([[0, 1], [2, 3]], [[0, 2], [1, 3]])
    >>> [f"{x:.3f}" for x in agreement(pairs, other, [1.0, 0.01], 4, [0, 1, 2, 4])]
    ['1.000', '0.593', '0.085', '0.030']
    """
    inv_freq = require.array("inv_freq", inv_freq)
    require.ndim("inv_freq", inv_freq, 1)
    head_dim = require.integer("head_dim", head_dim, minimum=2, maximum=rope.MAX_HEAD_DIM)
    offsets = require.array("offsets", offsets)
    require.ndim("offsets", offsets, 1)
    first = _partners(_pairs("pairs", pairs, inv_freq, head_dim), inv_freq, head_dim)
    second = _partners(_pairs("other", other, inv_freq, head_dim), inv_freq, head_dim)
    # cos a cos b on the diagonal; ± sin a sin b off it, where both pair a channel with the same partner.  Each is half
    # the sum or the difference of cos(a − b) and cos(a + b).
    shared = np.where(first.partner == second.partner, first.sign * second.sign, 0.0)
    waves = np.concatenate([1 + shared, 1 - shared]) / (2 * head_dim)  # (2K,)
    speeds = np.concatenate([first.speed - second.speed, first.speed + second.speed])
    return rope.sums_of_turned(waves, offsets, speeds)


@require.door
def difference_std(query: ArrayLike, key: ArrayLike, agreement: ArrayLike) -> NDArray[np.float64]:
    r"""Return how large the difference of two readings typically is, for content of the size of `query` and `key`.

    .. math:: \frac{|q|\,|k|}{K} \sqrt{2 - 2\rho}

    is the standard deviation of the difference of the scores (scaled by 1/√K) over all directions of q and of k.

    Parameters
    ----------
    query, key : array_like, shape (K,); only their lengths count
    agreement : array_like; ρ, from `agreement`

    Returns
    -------
    ndarray, of the shape of `agreement`; at least 0

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


@require.door
def rms_by_distance(values: ArrayLike) -> NDArray[np.float64]:
    """Return the root mean square of a square matrix's entries at each distance i − j of query i and key j.

    Parameters
    ----------
    values : array_like, shape (L, L)
        One number for each query (row) and key (column); entries above the diagonal are not read.

    Returns
    -------
    ndarray, shape (L,); entry d is over the L − d entries with i − j = d

    Examples
    --------
    >>> rms_by_distance([[3, 9], [7, 4]]).round(4).tolist()
    [3.5355, 7.0]
    """
    values = require.array("values", values, min_ndim=2)
    require.shape("values", values, ("L", values.shape[-2]), "one row and one column for each token")
    return np.array([np.sqrt(np.mean(np.square(np.diagonal(values, -d)))) for d in range(len(values))])


@require.door
def total_variation(weights: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    r"""Return how much weight lies elsewhere in one distribution than in the other, :math:`\tfrac12\sum_j|p_j-p'_j|`.

    Parameters
    ----------
    weights, other : array_like, shape (..., S); attention weights; rows sum to 1

    Returns
    -------
    ndarray, shape (...); from 0 (the same) to 1 (nothing in common)

    Examples
    --------
    >>> float(total_variation([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]))
    0.5
    """
    weights, other = require.array("weights", weights), require.array("other", other)
    require.shape("other", other, weights.shape, "as weights has")
    return np.abs(weights - other).sum(axis=-1) / 2


class _Partners(NamedTuple):
    """How the pairs treat each channel of a head; all fields are (K,)."""

    speed: NDArray  # its frequency; 0 if it is not turned
    partner: NDArray  # the other channel of its pair; itself if it is not turned
    sign: NDArray  # of the sine


def _partners(pairs: NDArray, inv_freq: NDArray, head_dim: int) -> _Partners:
    speed, sign, partner = np.zeros(head_dim), np.zeros(head_dim), np.arange(head_dim)
    for here, there, side in ((0, 1, -1), (1, 0, 1)):
        speed[pairs[:, here]], sign[pairs[:, here]] = inv_freq, side
        partner[pairs[:, here]] = pairs[:, there]
    return _Partners(speed, partner, sign)


def _pairs(name: str, pairs: ArrayLike, inv_freq: NDArray, head_dim: int) -> NDArray:
    pairs = require.as_array(name, pairs)
    if pairs.dtype.kind not in "iu" or pairs.shape != (len(inv_freq), 2):
        raise require.refusal(
            name, f"{pairs.dtype} of shape {pairs.shape}", f"whole numbers of shape ({len(inv_freq)}, 2)"
        )
    if pairs.min() < 0 or pairs.max() >= head_dim or len(np.unique(pairs)) != pairs.size:
        raise require.refusal(name, str(pairs.tolist()), f"distinct channels below {head_dim}")
    return pairs
