"""What a RoPE score is made of: one cosine per pair of channels, their sum, and its bound.

Then what scores are over many contents and many offsets.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.4.3.
F. Barbero et al., "Round and Round We Go! What makes Rotary Positional Encodings useful?", arXiv 2410.06205.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.rope import scores_by_offset

__all__ = [
    "DistanceCounts",
    "PairWaves",
    "content_scores",
    "decay_bound",
    "distance_counts",
    "pair_scores",
    "pair_waves",
    "r_squared",
    "random_scores",
    "scores_by_offset",
    "similar_key",
    "window_factor",
]


@require.door
def pair_scores(
    query: ArrayLike,
    key: ArrayLike,
    offsets: ArrayLike,
    inv_freq: ArrayLike,
    *,
    layout: str = "interleaved",
    scale: float | None = None,
    window: int = 1,
) -> NDArray[np.float64]:
    r"""Return what each pair of channels adds to the score at each offset.

    .. math:: s_i(\Delta) = \text{scale} \cdot q^{(i)\mathsf T} R(\Delta\theta_i)\, k^{(i)}

    Their sum over the pairs is `scores_by_offset`.

    Parameters
    ----------
    query, key : array_like, shape (..., K); before the rotation; leading axes broadcast
    offsets : array_like, shape (N,); position of the key minus position of the query
    inv_freq : array_like, shape (P,); radians per position
    layout : {"interleaved", "split"}; which channels make a pair
    scale : float, optional; factor of the inner product; 1/√K by default
    window : int; take the mean over so many neighbouring whole offsets, of which `offsets` are the middles

    Returns
    -------
    ndarray, shape (..., P, N); the contributions

    Source: RoFormer, arXiv 2104.09864, §3.4.3 (equation 35).

    Examples
    --------
    >>> pair_scores([1, 2, 3, 4], [2, 1, 0, 1], [0], [1.0, 0.01]).tolist()
    [[2.0], [2.0]]
    """
    products = products_of(query, key, layout)
    turns, scale = turns_at(offsets, inv_freq, products.shape[-1], scale)
    factor = scale * window_factor(inv_freq, window)
    return factor[:, None] * (products[..., None] * turns).real  # (P, 1) · ((…, P, 1) · (P, N))


@require.door
def decay_bound(
    query: ArrayLike,
    key: ArrayLike,
    offsets: ArrayLike,
    inv_freq: ArrayLike,
    *,
    layout: str = "interleaved",
    scale: float | None = None,
) -> NDArray[np.float64]:
    r"""Return RoFormer's upper bound of the score's size at each offset.

    .. math::
        |s(\Delta)| \le \text{scale} \cdot \max_i |h_{i+1} - h_i| \sum_{j=1}^{P} |S_j|, \quad
        S_j = \sum_{i<j} e^{i\Delta\theta_i}

    with h the conjugate of the query's pair times the key's and :math:`h_P = 0`.  A bound says how large a score
    can be, not how large it is.

    Parameters
    ----------
    query, key, offsets, inv_freq, layout, scale : as in `pair_scores`

    Returns
    -------
    ndarray, shape (..., N); the bound, never below the size of the score

    Source: RoFormer, arXiv 2104.09864, §3.4.3 (equations 36 and 37, by Abel summation).

    Examples
    --------
    >>> decay_bound([1, 0, 1, 0], [1, 0, 1, 0], [0], [1.0, 0.01], scale=1.0).tolist()
    [3.0]
    """
    products = products_of(query, key, layout)
    turns, scale = turns_at(offsets, inv_freq, products.shape[-1], scale)
    steps = np.abs(np.diff(products, axis=-1, append=0)).max(axis=-1)  # (…)
    partial_sums = np.abs(np.cumsum(turns, axis=0)).sum(axis=0)  # (N,)
    return abs(scale) * steps[..., None] * partial_sums


class PairWaves(NamedTuple):
    """The wave of each pair: ``amplitude · cos(offset · inv_freq + phase)``, before any scale."""

    amplitude: NDArray[np.float64]  # (..., P): the largest product of the two pairs
    phase: NDArray[np.float64]  # (..., P): radians from −π to π


@require.door
def pair_waves(query: ArrayLike, key: ArrayLike, *, layout: str = "interleaved") -> PairWaves:
    r"""Return the amplitude and phase with which each pair of channels adds to the score.

    .. math::
        q^{(i)\mathsf T} R(\Delta\theta_i)\, k^{(i)} = |q^{(i)}|\,|k^{(i)}| \cos(\Delta\theta_i + \phi_i)

    with φ the angle from the query's pair to the key's.

    Parameters
    ----------
    query, key : array_like, shape (..., K); before the rotation, K even; leading axes broadcast
    layout : {"interleaved", "split"}; which channels make a pair

    Returns
    -------
    PairWaves : ``amplitude``, shape (..., P), and ``phase``, shape (..., P), in radians from −π to π

    Source: RoFormer, arXiv 2104.09864, §3.4.3 (equation 35).

    Examples
    --------
    >>> waves = pair_waves([1.0, 0.0], [0.0, 2.0])
    >>> waves.amplitude.tolist(), f"{waves.phase[0]:.4f}"
    ([2.0], '1.5708')
    """
    products = products_of(query, key, layout)
    return PairWaves(np.abs(products), np.angle(products))


@require.door
def window_factor(inv_freq: ArrayLike, window: int) -> NDArray[np.float64]:
    r"""Return by how much the mean over `window` neighbouring whole offsets shrinks the wave of each pair, −1 to 1.

    .. math::
        \frac1w \sum_{j=0}^{w-1} \cos\bigl((\Delta + j - \tfrac{w-1}{2})\theta + \phi\bigr)
        = \frac{\sin(w\theta/2)}{w \sin(\theta/2)} \cos(\Delta\theta + \phi)

    A picture whose columns are many offsets wide shows these means: a pair that turns often within a column fades out,
    instead of appearing at a speed that it does not have.
    """
    half = require.array("inv_freq", inv_freq).astype(np.float64) / 2
    window = require.integer("window", window)
    divisor = window * np.sin(half)
    whole_turns = np.abs(np.sin(half)) < 1e-9
    # Where a pair makes whole turns from offset to offset, the quotient's limit.
    limit = np.cos(window * half) / np.cos(half)
    return np.where(whole_turns, limit, np.sin(window * half) / np.where(whole_turns, 1.0, divisor))


def products_of(query: ArrayLike, key: ArrayLike, layout: str) -> NDArray[np.complex128]:
    """Return the conjugate of each pair of the query times that of the key, shape (..., P)."""
    query, key = (x.astype(np.float64, copy=False) for x in rope.query_and_key(query, key))
    require.even_last_axis("query", query)
    return rope.to_pairs(query, layout).conj() * rope.to_pairs(key, layout)


def turns_at(
    offsets: ArrayLike, inv_freq: ArrayLike, pairs: int, scale: float | None
) -> tuple[NDArray[np.complex128], float]:
    """Return exp(iΔθ), shape (P, N), and the scale, 1/√(2P) where it is not given."""
    offsets = require.array("offsets", offsets).astype(np.float64, copy=False)
    require.ndim("offsets", offsets, 1)
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64, copy=False)
    require.ndim("inv_freq", frequencies, 1)
    require.last_axis("inv_freq", frequencies, pairs, "the pairs of query and key")
    scale = (2 * pairs) ** -0.5 if scale is None else require.number("scale", scale)
    return rope.phases_of(rope.angles_of(offsets, frequencies).T, np.dtype(np.float64)), scale


@require.door
def similar_key(query: ArrayLike, other: ArrayLike, similarity: float) -> NDArray:
    r"""Return a key that resembles a query as much as asked.

    .. math:: k = \rho\, q + \sqrt{1 - \rho^2}\, z

    For independent standard normal q and z each channel of k is standard normal too, with correlation ρ to q's.

    Parameters
    ----------
    query : array_like, shape (..., K); q
    other : array_like, shape (..., K); z, what the key is made of where it does not resemble the query
    similarity : float; ρ, from −1 to 1

    Returns
    -------
    ndarray, shape (..., K); the key, of the wider dtype of the two

    Examples
    --------
    >>> similar_key([1.0, 2.0], [-2.0, 1.0], 1.0).tolist(), similar_key([1.0, 2.0], [-2.0, 1.0], 0.0).tolist()
    ([1.0, 2.0], [-2.0, 1.0])
    """
    query, other = require.array("query", query), require.array("other", other)
    require.last_axis("other", other, query.shape[-1], f"query {query.shape} has")
    require.broadcasts_with("other's leading axes", other.shape[:-1], query.shape[:-1], "those of query")
    similarity = require.number("similarity", similarity, minimum=-1, maximum=1)
    try:
        dtype = np.result_type(query, other)
    except TypeError:  # float16 with bfloat16: neither holds the other
        dtype = np.dtype(np.float32)
    query, other = (x.astype(require.compute_dtype(dtype)) for x in (query, other))
    return (similarity * query + math.sqrt(1 - similarity**2) * other).astype(dtype, copy=False)


@require.door
def random_scores(
    offsets: ArrayLike, inv_freq: ArrayLike, *, similarity: float = 1.0, scale: float | None = None, window: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return mean and standard deviation of the score over standard normal queries and keys.

    Each channel of query and key is standard normal, with correlation ρ between the two.  Then

    .. math::
        \operatorname{E} s(\Delta) = 2\rho\,\text{scale} \sum_i \cos\Delta\theta_i, \qquad
        \operatorname{Var} s(\Delta) = \text{scale}^2 \sum_i \left(4\rho^2\cos^2\Delta\theta_i + 2(1-\rho^2)\right)

    so that for ρ = 0 the spread is the same at every offset: nothing decays.

    Parameters
    ----------
    offsets : array_like, shape (N,); position of the key minus position of the query
    inv_freq : array_like, shape (P,); radians per position
    similarity : float; ρ, from −1 to 1
    scale : float, optional; factor of the inner product; 1/√K with K = 2P by default
    window : int; take the mean, of the scores' mean and of their variance, over so many neighbouring whole offsets,
        of which `offsets` are the middles

    Returns
    -------
    mean, deviation : ndarray, shape (N,); over the draws, not over the offsets

    Examples
    --------
    >>> mean, deviation = random_scores([0, 100], [1.0, 0.01], similarity=0.0)
    >>> mean.tolist(), deviation.tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64, copy=False)
    require.ndim("inv_freq", frequencies, 1)
    similarity = require.number("similarity", similarity, minimum=-1, maximum=1)
    turns, scale = turns_at(offsets, frequencies, len(frequencies), scale)
    cosines = turns.real * window_factor(frequencies, window)[:, None]
    # cos² = (1 + cos of twice the angle) / 2
    squares = (1 + (2 * turns.real**2 - 1) * window_factor(2 * frequencies, window)[:, None]) / 2
    mean = 2 * similarity * scale * cosines.sum(axis=0)
    variance = (4 * similarity**2 * squares + 2 * (1 - similarity**2)).sum(axis=0)
    return mean, abs(scale) * np.sqrt(variance)


@require.door
def content_scores(
    queries: ArrayLike,
    keys: ArrayLike,
    offsets: ArrayLike,
    inv_freq: ArrayLike,
    *,
    layout: str = "interleaved",
    scale: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return mean and standard deviation of the score over every query with every key, at each offset.

    The mean is the score of the mean query with the mean key, because the score is linear in each.  The variance is
    a quadratic form: a score is :math:`u(\Delta)^{\mathsf T} c` with :math:`u = (\cos\Delta\theta_i,
    -\sin\Delta\theta_i)` and c the real and imaginary parts of the pairs' products, so that

    .. math:: \operatorname{Var} s(\Delta) = u(\Delta)^{\mathsf T} \operatorname{Cov}(c)\, u(\Delta)

    Parameters
    ----------
    queries : array_like, shape (L, K); before the rotation
    keys : array_like, shape (S, K); before the rotation
    offsets : array_like, shape (N,); position of the key minus position of the query
    inv_freq : array_like, shape (P,); radians per position
    layout : {"interleaved", "split"}; which channels make a pair
    scale : float, optional; factor of the inner product; 1/√K by default

    Returns
    -------
    mean, deviation : ndarray, shape (N,); over the L·S contents, all set at the same offset

    Examples
    --------
    >>> mean, deviation = content_scores([[1, 0], [0, 1]], [[1, 0]], [0], [1.0], scale=1.0)
    >>> mean.tolist(), deviation.tolist()
    ([0.5], [0.5])
    """
    queries = require.array("queries", queries).astype(np.float64, copy=False)
    keys = require.array("keys", keys).astype(np.float64, copy=False)
    require.ndim("queries", queries, 2)
    require.ndim("keys", keys, 2)
    require.last_axis("keys", keys, queries.shape[-1], f"queries {queries.shape} has")
    products = rope.to_pairs(queries, layout).conj()[:, None] * rope.to_pairs(keys, layout)
    products = products.reshape(-1, products.shape[-1])  # (L·S, P)
    turns, scale = turns_at(offsets, inv_freq, products.shape[-1], scale)
    mean = scale * (products.mean(axis=0) @ turns).real
    parts = np.concatenate([products.real, products.imag], axis=-1)  # (L·S, 2P)
    parts -= parts.mean(axis=0)
    directions = np.concatenate([turns.real, -turns.imag])  # (2P, N)
    variance = (directions * (parts.T @ parts / len(parts) @ directions)).sum(axis=0)
    return mean, abs(scale) * np.sqrt(np.maximum(variance, 0))


class DistanceCounts(NamedTuple):
    """How often scores are negative, and how often a step away from offset 0 raises them.

    Attributes
    ----------
    negative, offsets : int; offsets with a score below 0, of all offsets
    rising, steps : int; steps from |Δ| to |Δ| + 1 that raise the score, of all such steps
    """

    negative: int
    offsets: int
    rising: int
    steps: int


@require.door
def distance_counts(scores: ArrayLike) -> DistanceCounts:
    """Count the offsets with negative scores and the steps away from offset 0 that raise the score.

    Parameters
    ----------
    scores : array_like, shape (2N + 1,); scores at the whole offsets −N … N

    Returns
    -------
    DistanceCounts : of 2N + 1 offsets and 2N steps

    Examples
    --------
    >>> distance_counts([3.0, -1.0, 2.0, 1.0, 0.5])
    DistanceCounts(negative=1, offsets=5, rising=1, steps=4)
    """
    scores = require.array("scores", scores)
    require.ndim("scores", scores, 1)
    if len(scores) % 2 == 0:
        raise ValueError(f"scores: got {len(scores)} numbers, want an odd number of them, for the offsets −N … N")
    middle = len(scores) // 2
    steps = np.concatenate([np.diff(scores[middle:]), np.diff(scores[middle::-1])])
    return DistanceCounts(int((scores < 0).sum()), len(scores), int((steps > 0).sum()), len(steps))


@require.door
def r_squared(scores: ArrayLike, predicted: ArrayLike) -> float:
    r"""Return the share of the variance of scores that predictions explain.

    .. math:: R^2 = 1 - \frac{\sum (s - p)^2}{\sum (s - \bar s)^2}

    Parameters
    ----------
    scores, predicted : array_like, of one shape; what is, not all equal, and what was predicted

    Returns
    -------
    float; 1 for a perfect prediction, 0 for one as good as the mean; below 0 for a worse one

    Examples
    --------
    >>> r_squared([1.0, 2.0, 3.0], [1.0, 2.0, 2.0])
    0.5
    """
    scores, predicted = require.array("scores", scores), require.array("predicted", predicted)
    require.shape("predicted", predicted, scores.shape, "as scores has")
    deviations = scores.astype(np.float64) - scores.mean(dtype=np.float64)
    total = float((deviations**2).sum())
    if total == 0:
        raise ValueError(f"scores: got {scores.flat[0]} everywhere, want scores that differ")
    return 1 - float(((scores.astype(np.float64) - predicted) ** 2).sum()) / total
