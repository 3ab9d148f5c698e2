"""Softmax, and the entropy of what it gives."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = ["entropy", "softmax"]


def softmax(x: ArrayLike, axis: int = -1) -> NDArray:
    r"""Turn each slice of `x` into positive weights that sum to 1.

    .. math:: \operatorname{softmax}(x)_i = e^{x_i - m} / \sum_j e^{x_j - m}, \qquad m = \max_j x_j

    Subtracting the maximum changes nothing mathematically and keeps every exponential at 1 or below.

    Parameters
    ----------
    x : (…) array_like
        Logits; −inf (weight 0) is allowed.
    axis : int
        The axis along which the weights sum to 1.

    Returns
    -------
    (…) ndarray
        Of the shape and floating dtype of `x`.

    Raises
    ------
    ValueError
        If `x` has NaN or +inf, if a slice holds nothing but −inf, or if there is no such axis.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.1.

    Examples
    --------
    >>> print(np.array2string(softmax([0.0, np.log(3.0), -np.inf]), precision=4))
    [0.25 0.75 0.  ]
    """
    x = logits("x", x)
    axis = require.integer("axis", axis, minimum=-x.ndim, maximum=x.ndim - 1)
    largest = x.max(axis=axis, keepdims=True)
    if (largest == -np.inf).any():
        where = tuple(np.argwhere(np.squeeze(largest == -np.inf, axis))[0].tolist())
        raise ValueError(
            f"x: got nothing but -inf in the slice {where} along axis {axis % x.ndim}, want a finite entry"
        )
    compute = require.compute_dtype(x.dtype)
    out = np.subtract(x, largest, dtype=compute)
    np.exp(out, out=out)
    out /= out.sum(axis=axis, keepdims=True)
    return out.astype(x.dtype, copy=False)


def entropy(weights: ArrayLike, axis: int = -1) -> NDArray:
    r"""Return the entropy of attention weights, in nats.

    .. math:: H(p) = -\sum_j p_j \ln p_j, \qquad 0 \ln 0 = 0

    It runs from 0 (one key has all the weight) to ln S (all S keys have the same); e^H is the number of keys
    that are effectively read.

    Parameters
    ----------
    weights : (…, S) array_like
        Weights that are not negative and sum to 1 along `axis`.
    axis : int
        The axis to sum over.

    Returns
    -------
    (…) ndarray
        Without that axis, in the floating dtype of `weights`.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or a sum is not 1 (logits were passed, say).

    References
    ----------
    Shannon, "A Mathematical Theory of Communication", 1948, §6.

    Examples
    --------
    >>> print(np.array2string(entropy([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]), precision=4))
    [0.6931 0.    ]
    """
    weights = require.array("weights", weights)
    axis = require.integer("axis", axis, minimum=-weights.ndim, maximum=weights.ndim - 1)
    p = weights.astype(require.compute_dtype(weights.dtype), copy=False)
    if p.min() < 0:
        raise ValueError(f"weights: got {p.min():g}, want no negative weight")
    off = np.abs(p.sum(axis=axis) - 1).max()
    if off > max(1e-5, 4 * float(_eps(weights.dtype))):
        raise ValueError(f"weights: got sums along axis {axis % weights.ndim} that miss 1 by {off:.3g}, want sums of 1")
    out = np.log(p, out=np.zeros_like(p), where=p > 0)
    out *= p
    # 0 − sum, so that a sure choice has the entropy 0 rather than −0
    return np.asarray(0 - out.sum(axis=axis)).astype(weights.dtype, copy=False)


def logits(name: str, x: ArrayLike, *, min_ndim: int = 1) -> NDArray:
    """Return `x`, the argument `name`, as a floating array of finite numbers and −inf; refuse NaN and +inf.

    Softmax and what is added to its argument (`attention`'s bias) are checked by it.
    """
    x = require.array(name, x, min_ndim=min_ndim, finite=False)
    if x.max() == np.inf:
        raise ValueError(f"{name}: got inf, want finite numbers or -inf")
    return x


def _eps(dtype: np.dtype) -> float:
    """Return the spacing of a floating dtype at 1 (np.finfo does not know bfloat16, which keeps 7 bits)."""
    return 2.0**-7 if dtype.name == "bfloat16" else np.finfo(dtype).eps
