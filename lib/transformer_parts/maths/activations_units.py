"""Units of a feed-forward layer over a data set: which of them ReLU leaves dead, and what slope each has.

A unit is one channel of the hidden layer; its pre-activation z = w·x + b is what the activation is applied to.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require


def random_units(n_units: int, n_samples: int, d_model: int = 64, seed: int = 0) -> NDArray[np.float64]:
    """Return the pre-activations of units with random directions over random inputs.

    Weights are unit vectors, inputs are standard normal, the bias is 0: every pre-activation is standard normal, and
    those of one unit over the inputs are independent.

    Parameters
    ----------
    n_units, n_samples : int
        How many units, and how many inputs.
    d_model : int
        D, the width of an input.
    seed : int
        Of the random numbers.

    Returns
    -------
    ndarray, shape (n_samples, n_units)
        Float64.  Fewer inputs of the same seed are the first rows.

    Raises
    ------
    ValueError
        If an argument is not a whole number of at least 1 (`seed`: 0).

    Examples
    --------
    >>> random_units(n_units=3, n_samples=2).shape
    (2, 3)
    """
    n_units, n_samples = require.integer("n_units", n_units), require.integer("n_samples", n_samples)
    rng = np.random.default_rng(require.integer("seed", seed, minimum=0))
    weights = rng.standard_normal((require.integer("d_model", d_model), n_units))
    weights /= np.linalg.norm(weights, axis=0)
    return rng.standard_normal((n_samples, len(weights))) @ weights


def dead_units(pre: ArrayLike) -> NDArray[np.bool_]:
    """Tell which units are dead over a data set: none of its inputs brings their pre-activation above 0.

    ReLU then gives 0 for every input and has slope 0 at every input: no gradient of this data set reaches the unit's
    weights and bias.

    Parameters
    ----------
    pre : array_like, shape (..., F)
        Pre-activations of F units; all axes but the last run over the inputs.

    Returns
    -------
    ndarray of bool, shape (F,)
        True where the unit is dead.

    Raises
    ------
    ValueError
        If `pre` is not finite.

    References
    ----------
    Voita et al., "Neurons in Large Language Models: Dead, N-gram, Positional", arXiv:2309.04827.

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
    pre : array_like, shape (..., F)
        Pre-activations of F units; all axes but the last run over the inputs.
    biases : array_like, shape (...)
        The numbers to add.

    Returns
    -------
    ndarray, the shape of `biases`
        Between 0 and 1.

    Raises
    ------
    ValueError
        If an entry is not finite.

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
    bias : array_like, shape (...)
        b, in standard deviations of w·x.
    n_samples : int
        n, how many inputs are looked at.

    Returns
    -------
    ndarray, shape (...)
        Float64.

    Raises
    ------
    ValueError
        If `bias` is not finite or `n_samples` is below 1.

    Examples
    --------
    >>> [f"{dead_probability(-3.0, n):.4f}" for n in (1, 100, 1000)]
    ['0.9987', '0.8736', '0.2590']
    """
    bias = np.asarray(require.array("bias", bias, min_ndim=0), np.float64)
    above = np.vectorize(math.erfc, otypes=[float])(-bias / math.sqrt(2)) / 2  # Φ(b), the chance of one input
    with np.errstate(divide="ignore"):
        return np.exp(require.integer("n_samples", n_samples) * np.log1p(-above))


def slope_rms(pre: ArrayLike, derivative: Callable[[NDArray], NDArray]) -> NDArray:
    """Return the root mean square, over the inputs, of each unit's slope.

    The gradient of a unit's weights is a sum over the inputs, each term multiplied by the slope there.

    Parameters
    ----------
    pre : array_like, shape (..., F)
        Pre-activations of F units; all axes but the last run over the inputs.
    derivative : function
        The activation's derivative, elementwise.

    Returns
    -------
    ndarray, shape (F,)
        0 exactly where the unit has slope 0 at every input; of 16-bit numbers in float32.

    Raises
    ------
    ValueError
        If `pre` is not finite or `derivative` can't be called.

    Examples
    --------
    >>> from transformer_parts.maths.activations import relu_derivative
    >>> slope_rms([[-1.0, -1.0, 2.0], [-3.0, 0.5, 1.0]], relu_derivative).round(6).tolist()
    [0.0, 0.707107, 1.0]
    """
    pre = require.array("pre", pre)
    require.function("derivative", derivative)
    slopes = derivative(pre).reshape(-1, pre.shape[-1])
    slopes = slopes.astype(require.compute_dtype(slopes.dtype), copy=False)
    return np.sqrt(np.einsum("if,if->f", slopes, slopes) / len(slopes))


def tabulated(
    function: Callable[[NDArray], NDArray], *, low: int, high: int, per_unit: int = 512
) -> Callable[[NDArray], NDArray]:
    r"""Return a fast stand-in for an elementwise function: straight lines between its values on an even grid.

    They are within :math:`h^2/8\,\max|f''|` of it, with h the distance of the grid's places.

    Parameters
    ----------
    function : function
        Elementwise, such as `gelu_derivative`, which is slow in NumPy.
    low, high : int
        Where the grid begins and ends; beyond, the value at the end is taken.
    per_unit : int
        1/h.

    Returns
    -------
    function

    Raises
    ------
    ValueError
        If `function` can't be called, a number is no integer, or `high` is not above `low`.

    Examples
    --------
    >>> square = tabulated(np.square, low=-1, high=3, per_unit=4)
    >>> square(np.array([-7.0, 0.5, 0.625, 3.0])).tolist()  # within 1/64
    [1.0, 0.25, 0.40625, 9.0]
    """
    require.function("function", function)
    low = require.integer("low", low, minimum=-1000)
    high = require.integer("high", high, minimum=low + 1, maximum=1000)
    per_unit = require.integer("per_unit", per_unit)
    values = function(np.linspace(low, high, (high - low) * per_unit + 1))
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
