"""What a RoPE score is made of: one cosine per pair of channels, their sum, its bound and its spread.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.4.3.
F. Barbero et al., "Round and Round We Go! What makes Rotary Positional Encodings useful?", arXiv 2410.06205.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rotation
from transformer_parts.maths.rope import scores_by_offset

__all__ = ["PairWaves", "decay_bound", "pair_scores", "pair_waves", "random_scores", "scores_by_offset"]


class PairWaves(NamedTuple):
    """The wave of each pair: ``amplitude · cos(offset · inv_freq + phase)``, before any scale.

    Attributes
    ----------
    amplitude : ndarray, shape (..., P)
        The largest product of the two pairs.
    phase : ndarray, shape (..., P)
        Radians from −π to π.

    Examples
    --------
    >>> wave = PairWaves(np.array([2.0]), np.array([0.0]))
    >>> (wave.amplitude * np.cos(3 * np.pi + wave.phase)).tolist()
    [-2.0]
    """

    amplitude: NDArray[np.float64]
    phase: NDArray[np.float64]


def pair_waves(query: ArrayLike, key: ArrayLike, *, layout: str = "interleaved") -> PairWaves:
    r"""Return the amplitude and phase with which each pair of channels adds to the score.

    .. math::
        q^{(i)\mathsf T} R(\Delta\theta_i)\, k^{(i)} = |q^{(i)}|\,|k^{(i)}| \cos(\Delta\theta_i + \phi_i)

    with φ the angle from the query's pair to the key's.

    Parameters
    ----------
    query, key : array_like, shape (..., K)
        Before the rotation, K even; leading axes broadcast.
    layout : {"interleaved", "split"}
        Which channels make a pair.

    Returns
    -------
    PairWaves
        ``amplitude``, shape (..., P), and ``phase``, shape (..., P), in radians from −π to π.

    Raises
    ------
    ValueError
        If query and key differ in width, K is odd, an entry is not finite or the layout is unknown.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.4.3 (equation 35).

    Examples
    --------
    >>> waves = pair_waves([1.0, 0.0], [0.0, 2.0])
    >>> waves.amplitude.tolist(), f"{waves.phase[0]:.4f}"
    ([2.0], '1.5708')
    """
    products = _products(query, key, layout)
    return PairWaves(np.abs(products), np.angle(products))


def pair_scores(
    query: ArrayLike,
    key: ArrayLike,
    offsets: ArrayLike,
    inv_freq: ArrayLike,
    *,
    layout: str = "interleaved",
    scale: float | None = None,
) -> NDArray[np.float64]:
    r"""Return what each pair of channels adds to the score at each offset.

    .. math:: s_i(\Delta) = \text{scale} \cdot q^{(i)\mathsf T} R(\Delta\theta_i)\, k^{(i)}

    Their sum over the pairs is `scores_by_offset`.

    Parameters
    ----------
    query, key : array_like, shape (..., K)
        Before the rotation; leading axes broadcast.
    offsets : array_like, shape (N,)
        Position of the key minus position of the query.
    inv_freq : array_like, shape (P,)
        Radians per position.
    layout : {"interleaved", "split"}
        Which channels make a pair.
    scale : float, optional
        Factor of the inner product; 1/√K by default.

    Returns
    -------
    ndarray, shape (..., P, N)
        The contributions.

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite or the layout is unknown.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.4.3 (equation 35).

    Examples
    --------
    >>> pair_scores([1, 2, 3, 4], [2, 1, 0, 1], [0], [1.0, 0.01]).tolist()
    [[2.0], [2.0]]
    """
    products = _products(query, key, layout)
    turns, scale = _turns(products, offsets, inv_freq, scale)
    return scale * (products[..., None] * turns).real


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
    query, key, offsets, inv_freq, layout, scale
        As in `pair_scores`.

    Returns
    -------
    ndarray, shape (..., N)
        The bound, never below the size of the score.

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite or the layout is unknown.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.4.3 (equations 36 and 37, by Abel summation).

    Examples
    --------
    >>> decay_bound([1, 0, 1, 0], [1, 0, 1, 0], [0], [1.0, 0.01], scale=1.0).tolist()
    [3.0]
    """
    products = _products(query, key, layout)
    turns, scale = _turns(products, offsets, inv_freq, scale)
    steps = np.abs(np.diff(products, axis=-1, append=0)).max(axis=-1)
    partial_sums = np.abs(np.cumsum(turns, axis=0)).sum(axis=0)
    return abs(scale) * steps[..., None] * partial_sums


def random_scores(
    offsets: ArrayLike, inv_freq: ArrayLike, *, similarity: float = 1.0, scale: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return mean and standard deviation of the score over standard normal queries and keys.

    Each channel of query and key is standard normal, with correlation ρ between the two.  Then

    .. math::
        \operatorname{E} s(\Delta) = 2\rho\,\text{scale} \sum_i \cos\Delta\theta_i, \qquad
        \operatorname{Var} s(\Delta) = \text{scale}^2 \sum_i \left(4\rho^2\cos^2\Delta\theta_i + 2(1-\rho^2)\right)

    so that for ρ = 0 the spread is the same at every offset: nothing decays.

    Parameters
    ----------
    offsets : array_like, shape (N,)
        Position of the key minus position of the query.
    inv_freq : array_like, shape (P,)
        Radians per position.
    similarity : float
        ρ, from −1 to 1.
    scale : float, optional
        Factor of the inner product; 1/√K with K = 2P by default.

    Returns
    -------
    mean, deviation : ndarray, shape (N,)
        Over the draws, not over the offsets.

    Raises
    ------
    ValueError
        If an entry is not finite or `similarity` lies outside −1 … 1.

    Examples
    --------
    >>> mean, deviation = random_scores([0, 100], [1.0, 0.01], similarity=0.0)
    >>> mean.tolist(), deviation.tolist()
    ([0.0, 0.0], [1.0, 1.0])
    """
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64, copy=False)
    similarity = require.number("similarity", similarity, minimum=-1, maximum=1)
    turns, scale = _turns(np.zeros(frequencies.shape), offsets, frequencies, scale)
    mean = 2 * similarity * scale * turns.real.sum(axis=0)
    variance = (4 * similarity**2 * turns.real**2 + 2 * (1 - similarity**2)).sum(axis=0)
    return mean, abs(scale) * np.sqrt(variance)


def _products(query: ArrayLike, key: ArrayLike, layout: str) -> NDArray[np.complex128]:
    query, key = (x.astype(np.float64, copy=False) for x in rotation.query_and_key(query, key))
    require.integer("head_dim", query.shape[-1], minimum=2, multiple_of=2)
    return rotation.to_pairs(query, layout).conj() * rotation.to_pairs(key, layout)


def _turns(
    products: NDArray, offsets: ArrayLike, inv_freq: ArrayLike, scale: float | None
) -> tuple[NDArray[np.complex128], float]:
    """Return exp(iΔθ), shape (P, N), and the scale, checked against the pairs of `products`."""
    offsets = require.array("offsets", offsets)
    require.ndim("offsets", offsets, 1)
    frequencies = require.array("inv_freq", inv_freq)
    require.last_axis("inv_freq", frequencies, products.shape[-1], "the pairs of query and key")
    scale = (2 * products.shape[-1]) ** -0.5 if scale is None else require.number("scale", scale)
    return rotation.phases_of(rotation.angles(offsets, frequencies).T, np.dtype(np.float64)), scale
