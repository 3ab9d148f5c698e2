"""What a RoPE score is made of: one cosine per pair of channels, their sum, and its bound.

`rope_statistics` has what scores are over many contents and many offsets.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.4.3.
F. Barbero et al., "Round and Round We Go! What makes Rotary Positional Encodings useful?", arXiv 2410.06205.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths.rope import scores_by_offset
from transformer_parts.maths.rope_statistics import random_scores
from transformer_parts.maths.rope_waves import PairWaves, pair_waves, products_of, turns_at, window_factor

__all__ = ["PairWaves", "decay_bound", "pair_scores", "pair_waves", "random_scores", "scores_by_offset"]


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
    window : int
        Take the mean over so many neighbouring whole offsets, of which `offsets` are the middles.

    Returns
    -------
    ndarray, shape (..., P, N)
        The contributions.

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite the layout is unknown or `window` is not a
        positive integer.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.4.3 (equation 35).

    Examples
    --------
    >>> pair_scores([1, 2, 3, 4], [2, 1, 0, 1], [0], [1.0, 0.01]).tolist()
    [[2.0], [2.0]]
    """
    products = products_of(query, key, layout)
    turns, scale = turns_at(offsets, inv_freq, products.shape[-1], scale)
    factor = scale * window_factor(inv_freq, window)
    return factor[:, None] * (products[..., None] * turns).real


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
    products = products_of(query, key, layout)
    turns, scale = turns_at(offsets, inv_freq, products.shape[-1], scale)
    steps = np.abs(np.diff(products, axis=-1, append=0)).max(axis=-1)
    partial_sums = np.abs(np.cumsum(turns, axis=0)).sum(axis=0)
    return abs(scale) * steps[..., None] * partial_sums
