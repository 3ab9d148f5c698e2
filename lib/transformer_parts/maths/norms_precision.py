"""RMSNorm in 16-bit formats: the two published orders of rounding, and statistics taken in too narrow a format.

float16's trouble is its range (squares overflow from 256 on), bfloat16's is its precision (8 bits).  Every
published model takes the statistics in float32; they differ in when the result is rounded.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.norms import rms_norm
from transformer_parts.maths.precision import FORMATS, round_to, stored


def rms_norm_cast_first(x: ArrayLike, weight: ArrayLike, eps: float = 1e-6, *, dtype: str = "bfloat16") -> NDArray:
    """RMSNorm in the order of Llama's code: round the normalised row, multiply by γ, round again.

    Parameters
    ----------
    x : array_like, shape (..., D)
        Rounded to `dtype` first, as the layer receives it.
    weight : array_like, shape (D,)
        γ, rounded to `dtype` as it is stored.
    eps : float
        ε > 0.
    dtype : {"bfloat16", "float16", "float32"}
        The format the model runs in.  Normalising is done in float32.

    Returns
    -------
    ndarray, shape (..., D)
        Values of `dtype`, held as float32.

    Raises
    ------
    ValueError
        If an argument is not finite (in `dtype`) or a shape does not fit.

    See Also
    --------
    rms_norm_cast_last : The other order.

    References
    ----------
    ``LlamaRMSNorm`` in Hugging Face transformers; ``RMSNorm`` in Meta's llama/model.py.

    Examples
    --------
    >>> rms_norm_cast_first([1.0, 2.0, 3.0], [1.1, 1.1, 1.1]).tolist()
    [0.51171875, 1.0234375, 1.53125]
    """
    x, weight = stored("x", x, dtype), stored("weight", weight, dtype)
    require.shape("weight", weight, x.shape[-1:], "the last axis of x")
    return round_to(round_to(rms_norm(x, eps=eps), dtype) * weight, dtype)


def rms_norm_cast_last(x: ArrayLike, weight: ArrayLike, eps: float = 1e-6, *, dtype: str = "bfloat16") -> NDArray:
    """RMSNorm in the order of Gemma's code: normalise and multiply by 1 + w in float32, round once.

    Parameters
    ----------
    x : array_like, shape (..., D)
        Rounded to `dtype` first, as the layer receives it.
    weight : array_like, shape (D,)
        w = γ − 1, rounded to `dtype` as it is stored: weights near 0 are finer than gains near 1, and weight decay
        pulls the gain to 1 instead of to 0.
    eps : float
        ε > 0.
    dtype : {"bfloat16", "float16", "float32"}
        The format the model runs in.

    Returns
    -------
    ndarray, shape (..., D)
        Values of `dtype`, held as float32.

    Raises
    ------
    ValueError
        If an argument is not finite (in `dtype`) or a shape does not fit.

    See Also
    --------
    rms_norm_cast_first : The other order.

    References
    ----------
    ``GemmaRMSNorm`` in Hugging Face transformers; ``RMSNorm`` in Google's gemma_pytorch, gemma/model.py.

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
    x : array_like, shape (..., D)
        Rounded to `dtype` first.
    dtype : {"bfloat16", "float16", "float32"}
        The format of the squares, and of the sum (taken from left to right) and the mean.
    accumulator : {"bfloat16", "float16", "float32"}, optional
        The format of the sum, if another.  Libraries sum 16-bit numbers in float32, which cures the sum and not
        the squares.

    Returns
    -------
    ndarray, shape (...)
        Values of `dtype`, held as float32; infinite where the format overflows.

    Raises
    ------
    ValueError
        If `x` is not finite (in `dtype`) or a format is another.

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
    x : array_like, shape (..., D)
        Rounded to `dtype` first.
    dtype : {"bfloat16", "float16", "float32"}
    eps : float
        ε > 0, rounded to `dtype`.
    accumulator : {"bfloat16", "float16", "float32"}, optional
        As for `mean_square_in`.

    Returns
    -------
    ndarray, shape (..., D)
        Values of `dtype`, held as float32; NaN for a row of zeros whose ε vanished.

    Raises
    ------
    ValueError
        If `x` is not finite (in `dtype`), a format is another, or `eps` is not above 0.

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
