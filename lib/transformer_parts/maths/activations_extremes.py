"""Where activations are lowest, and where two of them are furthest apart."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.elementwise import MOST_BETA

_LAMBERT_OF_1_OVER_E = 0.2784645427610738
"""W(1/e), the solution of w·e^w = 1/e."""


class Extreme(NamedTuple):
    """A place on the x axis and the value there.

    Attributes
    ----------
    x, value : float
        The place and the value.
    """

    x: float
    value: float


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
    Extreme
        x = −1.2785/β and the value −0.2785/β.

    Raises
    ------
    ValueError
        If `beta` is not above 0 and at most 1000.

    Examples
    --------
    >>> x, value = swish_minimum()
    >>> round(x, 4), round(value, 4)
    (-1.2785, -0.2785)
    """
    beta = require.number("beta", beta, above=0, maximum=MOST_BETA)
    return Extreme(-(1 + _LAMBERT_OF_1_OVER_E) / beta, -_LAMBERT_OF_1_OVER_E / beta)


def largest_difference(
    first: Callable[[NDArray], NDArray], second: Callable[[NDArray], NDArray], *, low: float = -8.0, high: float = 8.0
) -> Extreme:
    """Return where two functions are furthest apart between `low` and `high`, and first − second there.

    A grid finds the place to a thousandth of the range, a second one around it to a few millionths.  Of places equally
    far apart (to rounding) the rightmost counts.

    Parameters
    ----------
    first, second : function
        Elementwise functions.
    low, high : float
        The range, within ±1e300.

    Returns
    -------
    Extreme
        The place, and the difference with its sign.

    Raises
    ------
    ValueError
        If a function can't be called, the difference is not finite, a limit is out of range, or `high` is not above
        `low`.

    Examples
    --------
    >>> from transformer_parts.maths.activations import gelu, gelu_tanh
    >>> x, value = largest_difference(gelu, gelu_tanh)
    >>> f"{value:.2e} at {x:.3f}"
    '-4.73e-04 at 2.699'
    """
    require.function("first", first)
    require.function("second", second)
    low = require.number("low", low, minimum=-1e300)
    high = require.number("high", high, above=low, maximum=1e300)
    at, width = (low + high) / 2, high - low
    for _ in range(2):
        grid = np.linspace(max(low, at - width / 2), min(high, at + width / 2), 1001)
        difference = require.array("first - second", first(grid) - second(grid))
        size = np.abs(difference)
        place = len(grid) - 1 - int((size[::-1] >= size.max() * (1 - 1e-9)).argmax())
        at, width = grid[place], width / 500
    return Extreme(float(at), float(difference[place]))
