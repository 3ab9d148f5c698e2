"""LayerNorm and RMSNorm over the last axis, as fast as memory allows.

Both run through blocks of rows small enough that every pass after the first finds its data in the cache.
A row's statistic, needed anyway, also tells whether the row is sound: NaN, infinity, overflow and underflow
of the squares all show in it, so that the entries themselves are looked at only where something is wrong.
A row's result is the same to the last bit whatever rows are beside it.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

BLOCK_BYTES = 384 * 1024  # of rows at a time: a block and its result fit in a core's L2 cache (1 MiB and more)


def rms_norm(x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6) -> NDArray:
    r"""Divide each row by its root mean square.

    .. math:: y_i = \frac{x_i}{\sqrt{\tfrac1D \sum_j x_j^2 + \varepsilon}}\, \gamma_i

    Parameters
    ----------
    x : array_like, shape (..., D)
        Finite numbers.  float16 and bfloat16 are computed in float32, the product with γ included, and
        rounded once.
    weight : array_like, shape (D,), optional
        The gain γ; ones if not given.
    eps : float
        ε > 0, in units of x².  It is never rounded to zero, so a row of zeros stays zero for any ε.

    Returns
    -------
    ndarray, shape (..., D)
        In the dtype of `x` (integers: float64).  Where the product with γ exceeds that dtype it is infinite, and
        NumPy warns.

    Raises
    ------
    ValueError
        If `x` or `weight` is not finite or a shape does not fit, or `eps` is not above 0.

    Notes
    -----
    ``rms_norm(c * x) == rms_norm(x)`` for c > 0 holds in the limit ε → 0 alone: scaling x by c is scaling ε
    by 1/c².  There is no mean to subtract; ``layer_norm(x) == rms_norm(x - mean(x))``, at the same ε.

    References
    ----------
    Zhang & Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467, §4, eq. 4.

    Examples
    --------
    >>> rms_norm([1.0, 3.0], eps=1e-12).round(6).tolist()
    [0.447214, 1.341641]
    """
    x, eps = require.floating("x", x), require.number("eps", eps, above=0)
    weight = _per_channel("weight", weight, x)
    y, width = np.empty(x.shape, x.dtype), np.float64(x.shape[-1])  # float64, and with it each row's statistic
    for rows, out in _blocks(x, y):
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.vecdot(rows, rows) / width + eps
            np.multiply(rows, _column(1 / np.sqrt(total), rows), out=out)
        doubtful = _outside(total, rows.dtype)
        if doubtful.any():
            out[doubtful] = _normalize_with_care(x, rows[doubtful], eps, center=False)
        if weight is not None:
            out *= weight
    return y


def layer_norm(
    x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> NDArray:
    r"""Subtract each row's mean and divide by its standard deviation.

    .. math:: y_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}}\, \gamma_i + \beta_i, \qquad
              \mu = \tfrac1D \sum_j x_j, \quad \sigma^2 = \tfrac1D \sum_j (x_j - \mu)^2

    The variance is the biased one (1/D, not 1/(D−1)).  Each position is normalised by itself, in training and
    in inference alike; there are no running averages.

    Parameters
    ----------
    x : array_like, shape (..., D)
        Finite numbers.  float16 and bfloat16 are computed in float32 and rounded once.
    weight, bias : array_like, shape (D,), optional
        The gain γ and the shift β; ones and zeros if not given.
    eps : float
        ε > 0, in units of x².  A row of equal entries gives exactly β, for any ε.

    Returns
    -------
    ndarray, shape (..., D)
        In the dtype of `x` (integers: float64).

    Raises
    ------
    ValueError
        If `x`, `weight` or `bias` is not finite or a shape does not fit, or `eps` is not above 0.

    References
    ----------
    Ba, Kiros & Hinton, "Layer Normalization", arXiv:1607.06450, §3, eq. 3 (the gain and the bias: §3.1, eq. 4).

    Examples
    --------
    >>> layer_norm([1.0, 0.0, 0.0, 0.0], eps=1e-12).round(3).tolist()
    [1.732, -0.577, -0.577, -0.577]
    """
    x, eps = require.floating("x", x), require.number("eps", eps, above=0)
    weight, bias = _per_channel("weight", weight, x), _per_channel("bias", bias, x)
    y, width = np.empty(x.shape, x.dtype), np.float64(x.shape[-1])
    ones = np.ones(x.shape[-1], require.compute_dtype(x.dtype))
    least_spread = np.sqrt(np.finfo(ones.dtype).eps)  # beside a mean of 1; less may be the mean's rounding
    for rows, out in _blocks(x, y):
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.vecdot(rows, ones) / width
            np.subtract(rows, _column(mean, rows), out=out)
            variance = np.vecdot(out, out) / width
            out *= _column(1 / np.sqrt(variance + eps), rows)
            doubtful = _outside(variance + eps, rows.dtype) | (np.sqrt(variance) < least_spread * np.abs(mean))
        if doubtful.any():
            out[doubtful] = _normalize_with_care(x, rows[doubtful], eps, center=True)
        if weight is not None:
            out *= weight
        if bias is not None:
            out += bias
    return y


def _per_channel(name: str, value: ArrayLike | None, x: NDArray) -> NDArray | None:
    """Check a parameter of shape (D,) and return it in the dtype of the computation."""
    if value is None:
        return None
    value = require.array(name, value)
    require.shape(name, value, x.shape[-1:], "the last axis of x")
    return require.cast(name, value, require.compute_dtype(x.dtype))


def _blocks(x: NDArray, y: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield blocks of rows of `x` and, for each, the array that takes its result.

    The result goes straight into `y`, or, where the computation is wider than the dtype, is rounded into it.
    """
    width, dtype = x.shape[-1], require.compute_dtype(x.dtype)
    x, y = x.reshape(-1, width), y.reshape(-1, width)
    step = max(1, BLOCK_BYTES // (width * dtype.itemsize))
    for start in range(0, len(x), step):
        rows, out = x[start : start + step], y[start : start + step]
        if dtype == x.dtype:
            yield rows, out
        else:
            wide = np.empty(rows.shape, dtype)
            yield rows.astype(dtype), wide
            out[...] = wide


def _column(statistic: NDArray, rows: NDArray) -> NDArray:
    """Return one number per row as a column in the rows' dtype."""
    return statistic.astype(rows.dtype)[:, None]


def _outside(total: NDArray, dtype: np.dtype) -> NDArray:
    """Tell which rows' statistic + ε is NaN, overflowed, or so small that squares may have vanished."""
    limits = np.finfo(dtype)
    return ~((total >= limits.tiny / limits.eps) & (total <= limits.max))


def _normalize_with_care(x: NDArray, rows: NDArray, eps: float, *, center: bool) -> NDArray:
    """Normalise rows whose squares leave the range, or whose mean hides their spread; refuse NaN and infinity.

    Each row is scaled by powers of two (which is exact) until its largest entry is about 1, and ε with it.
    """
    if not np.isfinite(rows).all():
        require.all_numbers("x", x)
    rows = rows.astype(np.result_type(rows.dtype, np.float64))
    root_eps = np.full((len(rows), 1), np.sqrt(eps))
    rows, root_eps = _scaled_to_one(rows, root_eps)
    if center:
        rows -= rows[:, :1]  # equal entries vanish exactly, whatever the rounding of their mean
        rows -= rows.mean(-1, keepdims=True)
        rows, root_eps = _scaled_to_one(rows, root_eps)
    root = np.hypot(np.sqrt(np.mean(rows * rows, -1, keepdims=True)), root_eps)
    return np.divide(rows, root, out=np.zeros_like(rows), where=root > 0)


def _scaled_to_one(rows: NDArray, root_eps: NDArray) -> tuple[NDArray, NDArray]:
    """Divide a row and its √ε by the power of two just above the larger of them."""
    _, exponent = np.frexp(np.maximum(np.abs(rows).max(-1, keepdims=True), root_eps))
    return np.ldexp(rows, -exponent), np.ldexp(root_eps, -exponent)
