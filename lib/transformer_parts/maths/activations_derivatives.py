"""The derivatives of the activations, as a backward pass needs them.

A derivative x ↦ s(x)·(1 + …) is written so that it neither overflows nor loses its relative precision in the tails,
where it is nearly zero.  Near its own root a derivative has the absolute precision of the dtype.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.elementwise import MOST_BETA, blockwise, logistic, normal_distribution, steepened


def relu_derivative(x: ArrayLike) -> NDArray:
    """Return 1 where x > 0 and 0 elsewhere.

    At 0 itself ReLU has none; 0 is taken, the subgradient that frameworks take too.

    Parameters
    ----------
    x : array_like, shape (...)
        Finite numbers: what the activation was applied to.

    Returns
    -------
    ndarray, shape (...)
        In the dtype of `x` (integers: float64), as for every function of this module.

    Raises
    ------
    ValueError
        If `x` is not finite.

    Examples
    --------
    >>> relu_derivative([-2.0, 0.0, 3.0]).tolist()
    [0.0, 0.0, 1.0]
    """
    return blockwise(lambda t: t > 0, x)


def sigmoid_derivative(x: ArrayLike) -> NDArray:
    r"""Return σ(x)·σ(−x), at most 1/4, at 0.

    It is σ(1 − σ), without the 1 − σ that leaves no digit where σ is nearly 1.

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

    Examples
    --------
    >>> [f"{s:.6g}" for s in sigmoid_derivative([-1.0, 0.0, 40.0])]
    ['0.196612', '0.25', '4.24835e-18']
    """

    def even(t: NDArray) -> NDArray:
        small = np.exp(-np.abs(t))
        return small / (1 + small) ** 2

    return blockwise(even, x)


def silu_derivative(x: ArrayLike) -> NDArray:
    r"""Return the derivative of SiLU.

    .. math:: \sigma(x)\,\bigl(1 + x\,\sigma(-x)\bigr)

    It is negative below x = −1.2785 and exceeds 1 above x = 1.2785; its largest value is 1.0998, at 2.3994.

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
    Elfwing et al., arXiv:1702.03118, §2 (there dSiLU, itself used as an activation).

    Examples
    --------
    >>> silu_derivative([-1.0, 0.0, 1.0]).round(6).tolist()
    [0.072329, 0.5, 0.927671]
    """
    return blockwise(lambda t: logistic(t) * (1 + t * logistic(-t)), x)


def swish_derivative(x: ArrayLike, beta: float = 1.0) -> NDArray:
    r"""Return the derivative of Swish with respect to x.

    .. math:: \sigma(\beta x)\,\bigl(1 + \beta x\,\sigma(-\beta x)\bigr)

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
    Ramachandran et al., "Searching for Activation Functions", arXiv:1710.05941, §4.

    Examples
    --------
    >>> swish_derivative([-1.0, 0.0, 1.0], beta=0.0).tolist()
    [0.5, 0.5, 0.5]
    """
    beta = require.number("beta", beta, minimum=0, maximum=MOST_BETA)

    def slope(t: NDArray) -> NDArray:
        u = steepened(t, beta)
        return logistic(u) * (1 + u * logistic(-u))

    return blockwise(slope, x)


def gelu_derivative(x: ArrayLike) -> NDArray:
    r"""Return the derivative of the exact GELU.

    .. math:: \Phi(x) + x\,\varphi(x), \qquad \varphi(x) = e^{-x^2/2} / \sqrt{2\pi}

    It is negative below x = −0.7518 and exceeds 1 above x = 0.7518; its largest value is 1.1289, at √2.

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
    Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2 (the function).

    Examples
    --------
    >>> gelu_derivative([-1.0, 0.0, 1.0]).round(6).tolist()
    [-0.083315, 0.5, 1.083315]
    """

    def exact(t: NDArray) -> NDArray:
        t = t.astype(np.result_type(t.dtype, np.float64))
        near = np.clip(t, -200, 200)  # beyond, the density is 0 in any dtype, and a square could overflow
        return normal_distribution(t) + near * np.exp(-near * near / 2) / math.sqrt(2 * math.pi)

    return blockwise(exact, x)


def gelu_tanh_derivative(x: ArrayLike) -> NDArray:
    r"""Return the derivative of GELU's approximation by tanh (of the approximation itself, not of GELU).

    .. math:: \sigma(u)\,\bigl(1 + x\,u'\,\sigma(-u)\bigr), \qquad
              u = \sqrt{8/\pi}\,\bigl(x + 0.044715\,x^3\bigr), \quad
              u' = \sqrt{8/\pi}\,\bigl(1 + 0.134145\,x^2\bigr)

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
    Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2 (the function).

    Examples
    --------
    >>> gelu_tanh_derivative([-1.0, 0.0, 1.0]).round(6).tolist()
    [-0.082964, 0.5, 1.082964]
    """

    def by_tanh(t: NDArray) -> NDArray:
        near = np.clip(t, -100, 100)  # beyond, the sigmoid is 0 or 1 in any dtype, and a cube could overflow
        square = 0.044715 * near * near
        u, slope = (math.sqrt(8 / math.pi) * factor for factor in (near * (1 + square), 1 + 3 * square))
        return logistic(u) * (1 + near * slope * logistic(-u))

    return blockwise(by_tanh, x)
