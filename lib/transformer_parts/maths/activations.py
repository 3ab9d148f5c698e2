"""Activations of the feed-forward layer: ReLU, GELU (exact and by tanh), sigmoid and SiLU, with their derivatives.

Each is written so that it neither overflows nor loses its relative precision where it is nearly zero:
``1 + tanh(z)`` and ``1 + erf(z)`` cancel to nothing for negative z, and forms without the sum do not.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.activations_derivatives import (
    gelu_derivative,
    gelu_tanh_derivative,
    relu_derivative,
    sigmoid_derivative,
    silu_derivative,
    swish_derivative,
)
from transformer_parts.maths.elementwise import MOST_BETA, blockwise, logistic, normal_distribution, steepened

__all__ = [
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "relu",
    "relu_derivative",
    "sigmoid",
    "sigmoid_derivative",
    "silu",
    "silu_derivative",
    "swish",
    "swish_derivative",
]


def relu(x: ArrayLike) -> NDArray:
    """Return max(x, 0).

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers.

    Returns
    -------
    ndarray, shape (...)
        In the dtype of `x` (integers: float64), as for every function of this module.

    Raises
    ------
    ValueError
        If `x` is not finite.

    References
    ----------
    Nair & Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", ICML 2010, §2.

    Examples
    --------
    >>> relu([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.0, 3.0]
    """
    return blockwise(lambda t: np.maximum(t, 0), x)


def sigmoid(x: ArrayLike) -> NDArray:
    r"""Return the logistic function.

    .. math:: \sigma(x) = \frac{1}{1 + e^{-x}}

    Far below zero the form exp(min(x, 0)) / (1 + exp(−\|x\|)) is taken, in which nothing overflows, so that
    the value keeps its digits as long as the dtype can hold it.

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers.

    Returns
    -------
    ndarray, shape (...)
        Between 0 and 1, in the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` is not finite.

    References
    ----------
    Dauphin et al., "Language Modeling with Gated Convolutional Networks", arXiv:1612.08083, §2 (as a gate).

    Examples
    --------
    >>> [f"{s:.6g}" for s in sigmoid([-1000.0, -40.0, 0.0, 1.0])]
    ['0', '4.24835e-18', '0.5', '0.731059']
    """
    return blockwise(logistic, x)


def silu(x: ArrayLike) -> NDArray:
    r"""Return x·σ(x), the sigmoid linear unit, also called Swish (with β = 1).

    Its minimum is −0.2785, at x = −1.2785: it is neither monotone nor bounded, and not a probability.

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers.

    Returns
    -------
    ndarray, shape (...)
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` is not finite.

    References
    ----------
    Hendrycks & Gimpel, arXiv:1606.08415, §2 (SiLU); Elfwing et al., arXiv:1702.03118, §2;
    Ramachandran et al., arXiv:1710.05941, §4 (Swish).

    Examples
    --------
    >>> silu([-1.0, 0.0, 1.0]).round(6).tolist()
    [-0.268941, 0.0, 0.731059]
    """
    return blockwise(lambda t: t * logistic(t), x)


def swish(x: ArrayLike, beta: float = 1.0) -> NDArray:
    r"""Return x·σ(βx): SiLU at β = 1, x/2 at β = 0, and nearer to ReLU the larger β is.

    Its minimum is −0.2785/β, at x = −1.2785/β.  At β = 1.702 it is within 0.0204 of GELU.

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers.
    beta : float
        β, from 0 to 1000.

    Returns
    -------
    ndarray, shape (...)
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` is not finite or `beta` is out of its range.

    References
    ----------
    Ramachandran et al., "Searching for Activation Functions", arXiv:1710.05941, §4;
    Hendrycks & Gimpel, arXiv:1606.08415, §2 (β = 1.702).

    Examples
    --------
    >>> swish([-1.0, 0.0, 1.0], beta=1.702).round(6).tolist()
    [-0.154204, 0.0, 0.845796]
    """
    beta = require.number("beta", beta, minimum=0, maximum=MOST_BETA)
    return blockwise(lambda t: t * logistic(steepened(t, beta)), x)


def gelu(x: ArrayLike) -> NDArray:
    r"""Return x·Φ(x), Φ the distribution function of the standard normal: the exact GELU.

    .. math:: \tfrac{x}{2}\bigl(1 + \operatorname{erf}(x/\sqrt2)\bigr)
              = \tfrac{x}{2}\operatorname{erfc}(-x/\sqrt2)

    NumPy has no error function.  This one is the standard library's ``math.erfc``, called entry by entry in
    double precision: right to the last digits, and more than ten times slower than `gelu_tanh`.

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers.

    Returns
    -------
    ndarray, shape (...)
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` is not finite.

    References
    ----------
    Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2.

    Examples
    --------
    >>> gelu([-1.0, 0.0, 1.0]).round(6).tolist()
    [-0.158655, 0.0, 0.841345]
    """

    def exact(t: NDArray) -> NDArray:
        t = t.astype(np.result_type(t.dtype, np.float64))
        return t * normal_distribution(t)

    return blockwise(exact, x)


def gelu_tanh(x: ArrayLike) -> NDArray:
    r"""Return the approximation of GELU by tanh, which GPT-2 and Gemma use.

    .. math:: \tfrac{x}{2}\bigl(1 + \tanh z\bigr) = x\,\sigma(2z), \qquad
              z = \sqrt{2/\pi}\,\bigl(x + 0.044715\,x^3\bigr)

    It differs from `gelu` by at most 4.73e-4, at \|x\| = 2.699.

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers.

    Returns
    -------
    ndarray, shape (...)
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` is not finite.

    References
    ----------
    Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2.

    Examples
    --------
    >>> gelu_tanh([-1.0, 0.0, 1.0]).round(6).tolist()
    [-0.158808, 0.0, 0.841192]
    """

    def by_tanh(t: NDArray) -> NDArray:
        near = np.clip(t, -100, 100)  # beyond, the sigmoid is 0 or 1 in any dtype, and a cube could overflow
        return t * logistic(math.sqrt(8 / math.pi) * near * (1 + 0.044715 * near * near))

    return blockwise(by_tanh, x)
