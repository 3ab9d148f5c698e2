"""The wave that each pair of channels adds to a RoPE score, and its mean over neighbouring offsets.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.4.3.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rotation

__all__ = ["PairWaves", "pair_waves", "window_factor"]


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
    products = products_of(query, key, layout)
    return PairWaves(np.abs(products), np.angle(products))


def window_factor(inv_freq: ArrayLike, window: int) -> NDArray[np.float64]:
    r"""Return by how much the mean over `window` neighbouring whole offsets shrinks the wave of each pair.

    .. math::
        \frac1w \sum_{j=0}^{w-1} \cos\bigl((\Delta + j - \tfrac{w-1}{2})\theta + \phi\bigr)
        = \frac{\sin(w\theta/2)}{w \sin(\theta/2)} \cos(\Delta\theta + \phi)

    A picture whose columns are many offsets wide shows these means: a pair that turns often within a column
    fades out, instead of being seen at a speed it does not have.

    Parameters
    ----------
    inv_freq : array_like, shape (P,)
        Radians per position.
    window : int
        w, how many neighbouring whole offsets.

    Returns
    -------
    ndarray, shape (P,)
        From −1 to 1; 1 for a window of one offset.

    Raises
    ------
    ValueError
        If a frequency is not finite or `window` is not a positive integer.

    Examples
    --------
    >>> [f"{x:.4f}" for x in window_factor([1.0, 0.01], 2)]  # (cos(-1/2) + cos(1/2)) / 2, and so on
    ['0.8776', '1.0000']
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
    query, key = (x.astype(np.float64, copy=False) for x in rotation.query_and_key(query, key))
    require.even_last_axis("query", query)
    return rotation.to_pairs(query, layout).conj() * rotation.to_pairs(key, layout)


def turns_at(
    offsets: ArrayLike, inv_freq: ArrayLike, pairs: int, scale: float | None
) -> tuple[NDArray[np.complex128], float]:
    """Return exp(iΔθ), shape (P, N), and the scale, 1/√(2P) where it is not given."""
    offsets = require.array("offsets", offsets)
    require.ndim("offsets", offsets, 1)
    frequencies = require.array("inv_freq", inv_freq)
    require.last_axis("inv_freq", frequencies, pairs, "the pairs of query and key")
    scale = (2 * pairs) ** -0.5 if scale is None else require.number("scale", scale)
    return rotation.phases_of(rotation.angles(offsets, frequencies).T, np.dtype(np.float64)), scale
