"""Floating formats of 16 and 32 bits: rounding to them, and the distance between their values.

Values of a format are returned as ordinary float32 or float64 numbers, so that one can go on computing with them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require


class Format(NamedTuple):
    """A binary floating format."""

    bits: int  # significant bits, the hidden one counted
    min_exponent: int  # min_exponent, max_exponent: powers of two of the smallest and the largest normal binade
    max_exponent: int
    scalar: type[np.generic]  # the scalar type of arrays that hold the format itself


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "bfloat16": Format(8, -126, 127, ml_dtypes.bfloat16),
        "float16": Format(11, -14, 15, np.float16),
        "float32": Format(24, -126, 127, np.float32),
    }
)


def round_to(x: ArrayLike, dtype: str) -> NDArray:
    """Round to the nearest value of a format, ties to the even one.

    The rounding is done by its definition, in one step from float64.  (A cast from float64 to bfloat16 in
    ml_dtypes 0.6 goes through float32 and so rounds twice: 1 + 2⁻⁸ + 2⁻⁴⁰ becomes 1 instead of 1 + 2⁻⁷.)

    Parameters
    ----------
    x : array_like, shape (...); no NaN; infinities stay
    dtype : {"bfloat16", "float16", "float32"}; 8, 11 or 24 significant bits

    Returns
    -------
    ndarray, shape (...)
        Values of the format, held as float32 where `x` is of 32 or 16 bits, else as float64.  Beyond the format's
        largest value they are infinite; below its smallest normal one they are subnormal, then zero.

    Source: IEEE 754-2019, §4.3.1 (roundTiesToEven).

    Examples
    --------
    >>> round_to([256.0, 257.0, 258.0], "bfloat16").tolist()
    [256.0, 256.0, 258.0]
    """
    form = FORMATS[require.one_of("dtype", dtype, FORMATS)]
    x = require.array("x", x, min_ndim=0, finite=False)
    exact = x.astype(np.float64)
    ulp_exponent = _ulp_exponent(exact, form)
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(exact, -ulp_exponent)), ulp_exponent)
    largest = np.ldexp(2.0 - np.ldexp(1.0, 1 - form.bits), form.max_exponent)
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, exact), rounded)
    return rounded.astype(np.float64 if x.dtype.itemsize > 4 else np.float32)


def spacing(x: ArrayLike, dtype: str) -> NDArray:
    """Return the distance from abs(x) to the format's next larger value (the unit in the last place).

    Parameters
    ----------
    x : array_like, shape (...)
        Numbers within the format's range; between two values of the format, the distance of those two is returned.
    dtype : {"bfloat16", "float16", "float32"}

    Returns
    -------
    ndarray, shape (...); powers of two, float64

    Examples
    --------
    >>> spacing([1.0, 255.0, 256.0, 4095.0], "bfloat16").tolist()
    [0.0078125, 1.0, 2.0, 16.0]
    """
    form = FORMATS[require.one_of("dtype", dtype, FORMATS)]
    exact = require.array("x", x, min_ndim=0).astype(np.float64)
    if (np.abs(exact) >= np.ldexp(1.0, form.max_exponent) * 2).any():
        raise ValueError(f"x: got {np.abs(exact).max():g}, want numbers within {dtype}")
    return np.ldexp(1.0, _ulp_exponent(exact, form))


def _ulp_exponent(exact: NDArray, form: Format) -> NDArray:
    """Return the power of two of the last place at each (finite) entry; zero counts as subnormal."""
    _, exponent = np.frexp(exact)  # |x| in [½, 1) · 2^exponent
    return np.where(exact == 0, form.min_exponent, np.maximum(exponent - 1, form.min_exponent)) - (form.bits - 1)


def stored(name: str, x: ArrayLike, dtype: str) -> NDArray:
    """Return the argument `name` as a model running in `dtype` holds it, in float32; refuse too large entries."""
    rounded = round_to(require.array(name, x), dtype).astype(np.float32)
    if not require.all_finite(rounded):
        raise ValueError(f"{name}: got entries too large for {dtype}, want numbers within it")
    return rounded


PARTS = ("positions", "frequencies", "angles")


def rounded_angles(
    positions: ArrayLike, inv_freq: ArrayLike, dtype: str, *, rounded: str = "positions"
) -> NDArray[np.float64]:
    """Return the angles (…, L, P) that RoPE turns by when one of its three parts is held in a floating format.

    They are rd(m)·θ, m·rd(θ) or rd(m·θ) for `rounded` = "positions", "frequencies" or "angles"; the other parts are
    exact (float64).  A rounded position no longer identifies its token; a rounded frequency has an error that grows
    with the position; a rounded angle is off by up to half a unit in its last place.
    """
    positions = require.array("positions", positions).astype(np.float64)
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64)
    require.ndim("inv_freq", frequencies, 1)
    require.one_of("rounded", rounded, PARTS)
    if rounded == "positions":
        positions = _held("positions", positions, dtype)
    elif rounded == "frequencies":
        frequencies = _held("inv_freq", frequencies, dtype)
    angles = positions[..., None] * frequencies
    return _held("angles", angles, dtype) if rounded == "angles" else angles


@require.door
def angle_errors(
    positions: ArrayLike, inv_freq: ArrayLike, dtype: str, *, rounded: str = "positions"
) -> NDArray[np.float64]:
    """Return by how much `rounded_angles` is off, whichever way.

    Parameters
    ----------
    positions, inv_freq, dtype, rounded : as in `rounded_angles`

    Returns
    -------
    ndarray, shape (..., L, P); radians, not below 0

    Examples
    --------
    >>> angle_errors([257], [1.0, 0.5], "bfloat16").tolist()
    [[1.0, 0.5]]
    """
    angles = rounded_angles(positions, inv_freq, dtype, rounded=rounded)
    exact = np.asarray(positions, np.float64)[..., None] * np.asarray(inv_freq, np.float64)
    return np.abs(angles - exact)


def _held(name: str, x: NDArray, dtype: str) -> NDArray[np.float64]:
    out = round_to(x, dtype)
    if not require.all_finite(out):
        raise require.refusal(name, f"{np.abs(x).max():g}", f"numbers within {dtype}")
    return out
