"""Positions, frequencies and angles in 16 bits: what each rounding costs in radians.

`precision` has the rounding itself.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.precision import round_to

PARTS = ("positions", "frequencies", "angles")


def rounded_angles(
    positions: ArrayLike, inv_freq: ArrayLike, dtype: str, *, rounded: str = "positions"
) -> NDArray[np.float64]:
    r"""Return the angles that RoPE turns by when one of its three parts is held in a floating format.

    .. math::
        \operatorname{rd}(m)\,\theta_i, \qquad m \operatorname{rd}(\theta_i), \qquad
        \operatorname{rd}(m\theta_i)

    The other parts are exact (float64).  A rounded position has lost which token it is; a rounded frequency has an
    error that grows with the position; a rounded angle is off by up to half a unit in its last place.

    Parameters
    ----------
    positions : array_like, shape (..., L)
        m.
    inv_freq : array_like, shape (P,)
        θ, radians per position.
    dtype : {"bfloat16", "float16", "float32"}
        The format.
    rounded : {"positions", "frequencies", "angles"}
        What is held in it.

    Returns
    -------
    ndarray, shape (..., L, P)
        Radians.

    Raises
    ------
    ValueError
        If an entry is not finite, or exceeds the format, or a name is unknown.

    Examples
    --------
    >>> rounded_angles([256, 257], [1.0], "bfloat16").ravel().tolist()
    [256.0, 256.0]
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


def angle_errors(
    positions: ArrayLike, inv_freq: ArrayLike, dtype: str, *, rounded: str = "positions"
) -> NDArray[np.float64]:
    """Return by how much `rounded_angles` is off, whichever way.

    Parameters
    ----------
    positions, inv_freq, dtype, rounded
        As in `rounded_angles`.

    Returns
    -------
    ndarray, shape (..., L, P)
        Radians, not below 0.

    Raises
    ------
    ValueError
        As `rounded_angles` does.

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
