"""The three numbers of a row that tell RMSNorm and LayerNorm apart, and the angle between their outputs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require


class Moments(NamedTuple):
    """Mean, root mean square and standard deviation of each row; RMS² = mean² + σ².

    Attributes
    ----------
    mean, rms, std : ndarray, shape (...)
        μ, RMS and the biased (1/D) standard deviation σ, float64.
    """

    mean: NDArray[np.float64]
    rms: NDArray[np.float64]
    std: NDArray[np.float64]

    @property
    def mean_over_rms(self) -> NDArray[np.float64]:
        """abs(μ) / RMS, from 0 (RMSNorm is LayerNorm) to 1 (all entries equal); NaN for a row of zeros."""
        with np.errstate(invalid="ignore"):
            return np.abs(self.mean) / self.rms


def moments(x: ArrayLike) -> Moments:
    r"""Return mean, root mean square and standard deviation over the last axis.

    .. math:: \mu = \tfrac1D \sum_i x_i, \qquad \mathrm{RMS} = \sqrt{\tfrac1D \sum_i x_i^2}, \qquad
              \sigma = \sqrt{\tfrac1D \sum_i (x_i - \mu)^2}

    Parameters
    ----------
    x : array_like, shape (..., D)
        Finite numbers, of any size: the squares are taken of rows scaled to about 1.

    Returns
    -------
    Moments
        Three arrays of shape (...), float64.

    Raises
    ------
    ValueError
        If `x` is not finite or has no last axis.

    References
    ----------
    Zhang & Sennrich, arXiv:1910.07467, eqs. 2 (μ, σ) and 4 (RMS).

    Examples
    --------
    >>> mean, rms, std = moments([1.0, 3.0])
    >>> f"{mean:.6f} {rms:.6f} {std:.6f}"
    '2.000000 2.236068 1.000000'
    """
    x = require.array("x", x).astype(np.float64)
    _, exponent = np.frexp(np.abs(x).max(-1))
    rows = np.ldexp(x, -exponent[..., None])  # a power of two: exact
    mean = rows.mean(-1)
    # From the first entry on, so that equal entries have no spread at all, whatever the rounding of their mean.
    centred = rows - rows[..., :1]
    centred -= centred.mean(-1, keepdims=True)
    rms, std = (np.sqrt(np.vecdot(y, y) / x.shape[-1]) for y in (rows, centred))
    return Moments(*(np.ldexp(value, exponent) for value in (mean, rms, std)))


def center(x: ArrayLike) -> NDArray:
    """Subtract each row's mean: project onto the plane through the origin that is perpendicular to (1, …, 1).

    Parameters
    ----------
    x : array_like, shape (..., D)
        Finite numbers.

    Returns
    -------
    ndarray, shape (..., D)
        In the dtype of `x` (integers: float64).

    Raises
    ------
    ValueError
        If `x` is not finite or has no last axis.

    Examples
    --------
    >>> center([2.0, 1.0, 0.0]).tolist()
    [1.0, 0.0, -1.0]
    """
    x = require.array("x", x)
    wide = x.astype(require.compute_dtype(x.dtype))
    return (wide - wide.mean(-1, keepdims=True)).astype(x.dtype)


def angle(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64]:
    r"""Return the angle between two vectors, in radians.

    Between ``rms_norm(x)`` and ``layer_norm(x)`` (no γ, no β) it is :math:`\arcsin(|\mu| / \mathrm{RMS})`, so that
    for a small mean the two outputs differ by the fraction abs(μ)/RMS of their length.

    Parameters
    ----------
    x, y : array_like, shape (..., D)
        Finite numbers; leading axes broadcast.

    Returns
    -------
    ndarray, shape (...)
        From 0 to π; NaN where a vector is zero and so has no direction.

    Raises
    ------
    ValueError
        If `x` or `y` is not finite or their shapes do not fit.

    References
    ----------
    Kahan, "How Futile are Mindless Assessments of Roundoff in Floating-Point Computation?" (2006), "Mangled Angles":
    this form keeps its precision at small angles, where arccos of the inner product loses half the digits.

    Examples
    --------
    >>> f"{angle([1.0, 0.0], [3.0, 3.0]):.6f}"
    '0.785398'
    """
    x, y = (require.array(name, value).astype(np.float64) for name, value in (("x", x), ("y", y)))
    require.last_axis("y", y, x.shape[-1], "x")
    require.broadcasts_with("y", y.shape, x.shape, "as x")
    with np.errstate(invalid="ignore"):
        x, y = (v / np.abs(v).max(-1, keepdims=True) for v in (x, y))
        x, y = (v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (x, y))
    return 2 * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1))
