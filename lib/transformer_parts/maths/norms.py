"""LayerNorm and RMSNorm over the last axis, as fast as memory allows.

Both run through blocks of rows small enough that every pass after the first finds its data in the cache.
A row's statistic, needed anyway, also shows whether the row is valid: NaN, infinity, overflow and underflow of the
squares all show in it, so that the entries themselves are checked only where something is wrong.  A row's result does
not depend on the other rows, to the last bit.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.precision import FORMATS, round_to, stored

BLOCK_BYTES = 384 * 1024  # of rows at a time: a block and its result fit in a core's L2 cache (1 MiB and more)


def rms_norm(x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6) -> NDArray:
    r"""Divide each row by its root mean square.

    .. math:: y_i = \frac{x_i}{\sqrt{\tfrac1D \sum_j x_j^2 + \varepsilon}}\, \gamma_i

    Parameters
    ----------
    x : array_like, shape (..., D)
        Finite numbers.  float16 and bfloat16 are computed in float32, the product with γ included, and rounded once.
    weight : array_like, shape (D,), optional; the gain γ; ones if not given
    eps : float
        ε > 0, in units of x².  It is never rounded to zero, so a row of zeros stays zero for any ε.

    Returns
    -------
    ndarray, shape (..., D)
        In the dtype of `x` (integers: float64).  Where the product with γ exceeds that dtype it is infinite, and NumPy
        warns.

    Notes
    -----
    ``rms_norm(c * x) == rms_norm(x)`` for c > 0 holds in the limit ε → 0 alone: scaling x by c is scaling ε
    by 1/c².  There is no mean to subtract; ``layer_norm(x) == rms_norm(x - mean(x))``, at the same ε.

    Source: Zhang & Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467, §4, eq. 4.

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
            total = np.vecdot(rows, rows) / width + eps  # one number a row
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

    The variance is the biased one (1/D, not 1/(D−1)).  Each position is normalised separately, in training and
    in inference alike; there are no running averages.

    Parameters
    ----------
    x : array_like, shape (..., D)
        Finite numbers.  float16 and bfloat16 are computed in float32 and rounded once.
    weight, bias : array_like, shape (D,), optional; the gain γ and the shift β; ones and zeros if not given
    eps : float
        ε > 0, in units of x².  A row of equal entries gives exactly β, for any ε.

    Returns
    -------
    ndarray, shape (..., D)

    Source: Ba, Kiros & Hinton, "Layer Normalization", arXiv:1607.06450, §3, eq. 3 (the gain and the bias: §3.1, eq. 4).

    Examples
    --------
    >>> layer_norm([1.0, 0.0, 0.0, 0.0], eps=1e-12).round(3).tolist()
    [1.732, -0.577, -0.577, -0.577]
    """
    x, eps = require.floating("x", x), require.number("eps", eps, above=0)
    weight, bias = _per_channel("weight", weight, x), _per_channel("bias", bias, x)
    y, width = np.empty(x.shape, x.dtype), np.float64(x.shape[-1])
    ones = np.ones(x.shape[-1], require.compute_dtype(x.dtype))
    least_spread = np.sqrt(np.finfo(ones.dtype).eps)  # for a mean of 1; less may be the mean's rounding
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
    """Return which rows' statistic + ε is NaN, overflowed, or so small that squares may have vanished."""
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


class Moments(NamedTuple):
    """Mean, root mean square and standard deviation of each row; RMS² = mean² + σ².

    Attributes
    ----------
    mean, rms, std : ndarray, shape (...); μ, RMS and the biased (1/D) standard deviation σ, float64
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
    x : array_like, shape (..., D); finite numbers, of any size: the squares are taken of rows scaled to about 1

    Returns
    -------
    Moments : three arrays of shape (...), float64

    Source: Zhang & Sennrich, arXiv:1910.07467, eqs. 2 (μ, σ) and 4 (RMS).

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


@require.door
def center(x: ArrayLike) -> NDArray:
    """Subtract each row's mean: project onto the plane through the origin that is perpendicular to (1, …, 1).

    Parameters
    ----------
    x : array_like, shape (..., D)

    Returns
    -------
    ndarray, shape (..., D)

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
    x, y : array_like, shape (..., D); finite numbers; leading axes broadcast

    Returns
    -------
    ndarray, shape (...); from 0 to π; NaN where a vector is zero and so has no direction

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


@require.door
def rms_norm_cast_first(x: ArrayLike, weight: ArrayLike, eps: float = 1e-6, *, dtype: str = "bfloat16") -> NDArray:
    """RMSNorm in the order of Llama's code: round the normalised row, multiply by γ, round again.

    Parameters
    ----------
    x : array_like, shape (..., D); rounded to `dtype` first, as the layer receives it
    weight : array_like, shape (D,); γ, rounded to `dtype` as it is stored
    eps : float; ε > 0
    dtype : {"bfloat16", "float16", "float32"}
        The format the model runs in.  Normalising is done in float32.

    Returns
    -------
    ndarray, shape (..., D); values of `dtype`, held as float32

    See Also
    --------
    rms_norm_cast_last : The other order.

    Source: ``LlamaRMSNorm`` in Hugging Face transformers; ``RMSNorm`` in Meta's llama/model.py.

    Examples
    --------
    >>> rms_norm_cast_first([1.0, 2.0, 3.0], [1.1, 1.1, 1.1]).tolist()
    [0.51171875, 1.0234375, 1.53125]
    """
    x, weight = stored("x", x, dtype), stored("weight", weight, dtype)
    require.shape("weight", weight, x.shape[-1:], "the last axis of x")
    return round_to(round_to(rms_norm(x, eps=eps), dtype) * weight, dtype)


@require.door
def rms_norm_cast_last(x: ArrayLike, weight: ArrayLike, eps: float = 1e-6, *, dtype: str = "bfloat16") -> NDArray:
    """RMSNorm in the order of Gemma's code: normalise and multiply by 1 + w in float32, round once.

    Parameters
    ----------
    x : array_like, shape (..., D); rounded to `dtype` first, as the layer receives it
    weight : array_like, shape (D,); w = γ − 1, rounded to `dtype` as it is stored: weights near 0 are finer than
        gains near 1, and weight decay pulls the gain to 1 instead of to 0
    eps : float; ε > 0
    dtype : {"bfloat16", "float16", "float32"}; the format the model runs in

    Returns
    -------
    ndarray, shape (..., D); values of `dtype`, held as float32

    See Also
    --------
    rms_norm_cast_first : The other order.

    Source: ``GemmaRMSNorm`` in Hugging Face transformers; ``RMSNorm`` in Google's gemma_pytorch, gemma/model.py.

    Examples
    --------
    >>> rms_norm_cast_last([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]).tolist()
    [0.5078125, 1.015625, 1.53125]
    """
    x, weight = stored("x", x, dtype), stored("weight", weight, dtype)
    return round_to(rms_norm(x, 1 + weight, eps=eps), dtype)


def mean_square_in(x: ArrayLike, dtype: str, *, accumulator: str | None = None) -> NDArray:
    """Return the mean of the squares as arithmetic in a 16-bit format gives it: every step is rounded.

    In float16 the square of anything from 256 on is infinite.  In bfloat16 it is not, but a running sum stops
    growing once its last place outweighs the next term: 4096 ones add up to 256.

    Parameters
    ----------
    x : array_like, shape (..., D); rounded to `dtype` first
    dtype : {"bfloat16", "float16", "float32"}
        The format of the squares, and of the sum (taken from left to right) and the mean.
    accumulator : {"bfloat16", "float16", "float32"}, optional
        The format of the sum, if another.  Libraries sum 16-bit numbers in float32, which cures the sum and not the
        squares.

    Returns
    -------
    ndarray, shape (...); values of `dtype`, held as float32; infinite where the format overflows

    Examples
    --------
    >>> [float(mean_square_in([300.0, 300.0], dtype)) for dtype in ("float16", "bfloat16", "float32")]
    [inf, 90112.0, 90000.0]
    """
    accumulator = dtype if accumulator is None else accumulator
    x = stored("x", x, dtype)
    require.one_of("accumulator", accumulator, FORMATS)
    with np.errstate(over="ignore"):
        squares = (x * x).astype(FORMATS[dtype].scalar).astype(FORMATS[accumulator].scalar)
        total = np.add.accumulate(squares, axis=-1)[..., -1].astype(np.float32)
    return round_to(total / np.float32(x.shape[-1]), dtype)


def rms_norm_in(x: ArrayLike, dtype: str, eps: float = 1e-6, *, accumulator: str | None = None) -> NDArray:
    """RMSNorm with every step in a 16-bit format: the mistake that float32 statistics avoid.

    Where the squares overflow, the output is zero whatever the input; where ε rounds to zero (below 3e-8 in
    float16), a row of zeros gives 0/0.

    Parameters
    ----------
    x : array_like, shape (..., D); rounded to `dtype` first
    dtype : {"bfloat16", "float16", "float32"}
    eps : float; ε > 0, rounded to `dtype`
    accumulator : {"bfloat16", "float16", "float32"}, optional; as for `mean_square_in`

    Returns
    -------
    ndarray, shape (..., D); values of `dtype`, held as float32; NaN for a row of zeros whose ε vanished

    Examples
    --------
    >>> rms_norm_in([300.0, 300.0], "float16").tolist()
    [0.0, 0.0]
    """
    mean_square = mean_square_in(x, dtype, accumulator=accumulator)
    eps = round_to(require.number("eps", eps, above=0), dtype).astype(np.float32)
    root = round_to(np.sqrt(round_to(mean_square + eps, dtype)), dtype)[..., None]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return (stored("x", x, dtype) / root).astype(FORMATS[dtype].scalar).astype(np.float32)
