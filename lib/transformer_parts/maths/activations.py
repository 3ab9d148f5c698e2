"""Activations of the feed-forward layer: ReLU, GELU (exact and by tanh), sigmoid and SiLU, with their derivatives.

Each is written so that it neither overflows nor loses its relative precision where it is nearly zero:
``1 + tanh(z)`` and ``1 + erf(z)`` cancel to nothing for negative z, and forms without the sum do not.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = [
    "Extreme",
    "dead_probability",
    "dead_units",
    "fraction_dead",
    "gelu",
    "gelu_derivative",
    "gelu_tanh",
    "gelu_tanh_derivative",
    "largest_difference",
    "random_units",
    "relu",
    "relu_derivative",
    "sigmoid",
    "sigmoid_derivative",
    "silu",
    "silu_derivative",
    "slope_rms",
    "swish",
    "swish_derivative",
    "swish_minimum",
    "tabulated",
]


def relu(x: ArrayLike) -> NDArray:
    """Return max(x, 0).

    Parameters
    ----------
    x : array_like, shape (...)

    Returns
    -------
    ndarray, shape (...); in the dtype of `x` (integers: float64), as for every function of this module

    Source: Nair & Hinton, "Rectified Linear Units Improve Restricted Boltzmann Machines", ICML 2010, §2.

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

    Returns
    -------
    ndarray, shape (...); between 0 and 1, in the dtype of `x`

    Source: Dauphin et al., "Language Modeling with Gated Convolutional Networks", arXiv:1612.08083, §2 (as a gate).

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

    Returns
    -------
    ndarray, shape (...)

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
    beta : float; β, from 0 to 1000

    Returns
    -------
    ndarray, shape (...)

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

    Returns
    -------
    ndarray, shape (...)

    Source: Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2.

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

    Returns
    -------
    ndarray, shape (...)

    Source: Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2.

    Examples
    --------
    >>> gelu_tanh([-1.0, 0.0, 1.0]).round(6).tolist()
    [-0.158808, 0.0, 0.841192]
    """

    def by_tanh(t: NDArray) -> NDArray:
        near = np.clip(t, -100, 100)  # beyond, the sigmoid is 0 or 1 in any dtype, and a cube could overflow
        return t * logistic(math.sqrt(8 / math.pi) * near * (1 + 0.044715 * near * near))

    return blockwise(by_tanh, x)


def relu_derivative(x: ArrayLike) -> NDArray:
    """Return 1 where x > 0 and 0 elsewhere.

    At 0 itself ReLU has none; 0 is taken, the subgradient that frameworks take too.

    Parameters
    ----------
    x : array_like, shape (...); finite numbers: what the activation was applied to

    Returns
    -------
    ndarray, shape (...); in the dtype of `x` (integers: float64), as for every function of this module

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

    Returns
    -------
    ndarray, shape (...)

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

    Returns
    -------
    ndarray, shape (...)

    Source: Elfwing et al., arXiv:1702.03118, §2 (there dSiLU, itself used as an activation).

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
    beta : float; β, from 0 to 1000

    Returns
    -------
    ndarray, shape (...)

    Source: Ramachandran et al., "Searching for Activation Functions", arXiv:1710.05941, §4.

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

    Returns
    -------
    ndarray, shape (...)

    Source: Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2 (the function).

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

    Returns
    -------
    ndarray, shape (...)

    Source: Hendrycks & Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415, §2 (the function).

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


_LAMBERT_OF_1_OVER_E = 0.2784645427610738
"""W(1/e), the solution of w·e^w = 1/e."""


class Extreme(NamedTuple):
    """A place on the x axis and the value there.

    Attributes
    ----------
    x, value : float; the place and the value
    """

    x: float
    value: float


@require.door
def swish_minimum(beta: float = 1.0) -> Extreme:
    r"""Return where Swish is lowest, and how low.

    With t = βx the slope is zero where 1 + e^t + t = 0, so t = −1 − W(1/e) = −1.2785, and there t·σ(t) = t + 1:
    the lowest point of SiLU lies on the line y = x + 1.

    Parameters
    ----------
    beta : float
        β > 0, at most 1000.  (At β = 0, x/2 has no lowest point.)

    Returns
    -------
    Extreme : x = −1.2785/β and the value −0.2785/β

    Examples
    --------
    >>> x, value = swish_minimum()
    >>> round(x, 4), round(value, 4)
    (-1.2785, -0.2785)
    """
    beta = require.number("beta", beta, above=0, maximum=MOST_BETA)
    return Extreme(-(1 + _LAMBERT_OF_1_OVER_E) / beta, -_LAMBERT_OF_1_OVER_E / beta)


@require.door
def largest_difference(
    first: Callable[[NDArray], NDArray], second: Callable[[NDArray], NDArray], *, low: float = -8.0, high: float = 8.0
) -> Extreme:
    """Return where two functions are furthest apart between `low` and `high`, and first − second there.

    A grid finds the place to a thousandth of the range, a second one around it to a few millionths.  Of places equally
    far apart (to rounding) the rightmost counts.

    Parameters
    ----------
    first, second : function; elementwise
    low, high : float; the range, within ±1e300

    Returns
    -------
    Extreme : the place, and the difference with its sign

    Examples
    --------
    >>> x, value = largest_difference(gelu, gelu_tanh)
    >>> f"{value:.2e} at {x:.3f}"
    '-4.73e-04 at 2.699'
    """
    low = require.number("low", low, minimum=-1e300)
    high = require.number("high", high, above=low, maximum=1e300)
    at, width = (low + high) / 2, high - low
    for _ in range(2):
        grid = np.linspace(max(low, at - width / 2), min(high, at + width / 2), 1001)
        difference = require.applied("first", first, grid) - require.applied("second", second, grid)
        size = np.abs(difference)
        place = len(grid) - 1 - int((size[::-1] >= size.max() * (1 - 1e-9)).argmax())
        at, width = grid[place], width / 500
    return Extreme(float(at), float(difference[place]))


@require.door
def random_units(n_units: int, n_samples: int, d_model: int = 64, seed: int = 0) -> NDArray[np.float64]:
    """Return the pre-activations of units with random directions over random inputs.

    Weights are unit vectors, inputs are standard normal, the bias is 0: every pre-activation is standard normal, and
    those of one unit over the inputs are independent.

    Parameters
    ----------
    n_units, n_samples : int; how many units, and how many inputs
    d_model : int; D, the width of an input
    seed : int

    Returns
    -------
    ndarray, shape (n_samples, n_units)
        Float64.  Fewer inputs of the same seed are the first rows.

    Examples
    --------
    >>> random_units(n_units=3, n_samples=2).shape
    (2, 3)
    """
    n_units, n_samples = require.integer("n_units", n_units), require.integer("n_samples", n_samples)
    d_model = require.integer("d_model", d_model)
    require.sizes(n_samples=n_samples, n_units=n_units)
    require.sizes(n_samples=n_samples, d_model=d_model)
    require.sizes(d_model=d_model, n_units=n_units)
    rng = np.random.default_rng(require.integer("seed", seed, minimum=0))
    weights = rng.standard_normal((d_model, n_units))
    weights /= np.linalg.norm(weights, axis=0)
    return rng.standard_normal((n_samples, len(weights))) @ weights


def dead_units(pre: ArrayLike) -> NDArray[np.bool_]:
    """Return which units are dead over a data set: none of its inputs brings their pre-activation above 0.

    ReLU then gives 0 for every input and has slope 0 at every input: no gradient of this data set reaches the unit's
    weights and bias.

    Parameters
    ----------
    pre : array_like, shape (..., F); pre-activations of F units; all axes but the last run over the inputs

    Returns
    -------
    ndarray of bool, shape (F,); True where the unit is dead

    Source: Voita et al., "Neurons in Large Language Models: Dead, N-gram, Positional", arXiv:2309.04827.

    Examples
    --------
    >>> dead_units([[-1.0, -1.0, 2.0], [-3.0, 0.5, 1.0]]).tolist()
    [True, False, False]
    """
    return _largest(pre) <= 0


def fraction_dead(pre: ArrayLike, biases: ArrayLike) -> NDArray[np.float64]:
    """Return which part of the units is dead if a number is added to every pre-activation, for several numbers.

    Parameters
    ----------
    pre : array_like, shape (..., F); pre-activations of F units; all axes but the last run over the inputs
    biases : array_like, shape (...); the numbers to add

    Returns
    -------
    ndarray, the shape of `biases`; between 0 and 1

    Examples
    --------
    >>> fraction_dead([[-1.0, 2.0], [-3.0, 1.0]], [0.0, -2.0, 1.5]).tolist()
    [0.5, 1.0, 0.0]
    """
    largest = np.sort(_largest(pre))
    biases = require.array("biases", biases, min_ndim=0)
    return np.searchsorted(largest, -biases, side="right") / len(largest)


def dead_probability(bias: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    r"""Return the probability that a unit of bias b with standard normal w·x is dead over n independent inputs.

    .. math:: \Phi(-b)^n

    Parameters
    ----------
    bias : array_like, shape (...); b, in standard deviations of w·x
    n_samples : int; n, the number of inputs

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> [f"{dead_probability(-3.0, n):.4f}" for n in (1, 100, 1000)]
    ['0.9987', '0.8736', '0.2590']
    """
    bias = np.asarray(require.array("bias", bias, min_ndim=0), np.float64)
    above = np.vectorize(math.erfc, otypes=[float])(-bias / math.sqrt(2)) / 2  # Φ(b), the chance of one input
    with np.errstate(divide="ignore"):
        return np.exp(require.integer("n_samples", n_samples) * np.log1p(-above))


@require.door
def slope_rms(pre: ArrayLike, derivative: Callable[[NDArray], NDArray]) -> NDArray:
    """Return the root mean square, over the inputs, of each unit's slope.

    The gradient of a unit's weights is a sum over the inputs, each term multiplied by the slope there.

    Parameters
    ----------
    pre : array_like, shape (..., F); pre-activations of F units; all axes but the last run over the inputs
    derivative : function; the activation's derivative, elementwise

    Returns
    -------
    ndarray, shape (F,); 0 exactly where the unit has slope 0 at every input; of 16-bit numbers in float32

    Examples
    --------
    >>> slope_rms([[-1.0, -1.0, 2.0], [-3.0, 0.5, 1.0]], relu_derivative).round(6).tolist()
    [0.0, 0.707107, 1.0]
    """
    pre = require.array("pre", pre)
    slopes = require.applied("derivative", derivative, pre).reshape(-1, pre.shape[-1])
    slopes = slopes.astype(require.compute_dtype(slopes.dtype), copy=False)
    return np.sqrt(np.einsum("if,if->f", slopes, slopes) / len(slopes))


@require.door
def tabulated(
    function: Callable[[NDArray], NDArray], *, low: int, high: int, per_unit: int = 512
) -> Callable[[NDArray], NDArray]:
    r"""Return a fast replacement of an elementwise function: straight lines between its values on an even grid.

    They are within :math:`h^2/8\,\max|f''|` of it, with h the distance of the grid's places.

    Parameters
    ----------
    function : function; elementwise, such as `gelu_derivative`, which is slow in NumPy
    low, high : int; where the grid begins and ends; beyond, the value at the end is taken
    per_unit : int; 1/h

    Returns
    -------
    function

    Examples
    --------
    >>> square = tabulated(np.square, low=-1, high=3, per_unit=4)
    >>> square(np.array([-7.0, 0.5, 0.625, 3.0])).tolist()  # within 1/64
    [1.0, 0.25, 0.40625, 9.0]
    """
    low = require.integer("low", low, minimum=-1000)
    high = require.integer("high", high, minimum=low + 1, maximum=1000)
    per_unit = require.integer("per_unit", per_unit)
    require.sizes(high=high - low, per_unit=per_unit)
    values = require.applied("function", function, np.linspace(low, high, (high - low) * per_unit + 1))
    rises = np.append(np.diff(values), 0.0)

    def look_up(x: NDArray) -> NDArray:
        at = np.clip(x, low, high, dtype=np.float64)
        at -= low
        at *= per_unit
        place = at.astype(np.intp)
        at -= place
        at *= rises.take(place)
        at += values.take(place)
        return at

    return look_up


def _largest(pre: ArrayLike) -> NDArray:
    pre = require.array("pre", pre)
    return pre.reshape(-1, pre.shape[-1]).max(0)


BLOCK_ENTRIES = 16 * 1024  # at a time, so that the temporaries of a formula stay in a core's L2 cache

MOST_BETA = 1000.0
"""The steepest Swish: ReLU to within 0.0003, and βx still far from the limits of float32 where σ(βx) is not 0 or 1."""


_erfc = np.frompyfunc(math.erfc, 1, 1)


def normal_distribution(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Φ(t), the distribution function of the standard normal, by the standard library entry by entry."""
    return _erfc(-t / math.sqrt(2)).astype(np.float64) / 2


def blockwise(function: Callable[[NDArray], NDArray], x: ArrayLike) -> NDArray:
    """Apply an elementwise `function` in the dtype of the computation and round its result to the dtype of `x`."""
    x = require.array("x", x, min_ndim=0)
    y = np.empty(x.shape, x.dtype)
    flat, out, dtype = x.reshape(-1), y.reshape(-1), require.compute_dtype(x.dtype)
    for start in range(0, x.size, BLOCK_ENTRIES):
        block = slice(start, start + BLOCK_ENTRIES)
        out[block] = function(flat[block].astype(dtype, copy=False))
    return y


def logistic(t: NDArray) -> NDArray:
    """Return 1/(1 + e^−t) without overflow and with its relative precision wherever it is nearly zero."""
    if t.min() > -80:
        odds = np.exp(-t)
        odds += 1
        return 1 / odds
    return np.exp(np.minimum(t, 0)) / (1 + np.exp(-np.abs(t)))  # half as fast; nothing here can overflow


def steepened(t: NDArray, beta: float) -> NDArray:
    """Return βt, cut where its sigmoid is 0 or 1 in any dtype anyway, so that it cannot overflow."""
    return np.clip(t, -2e4, 2e4) * beta if beta > 1 else t * beta
