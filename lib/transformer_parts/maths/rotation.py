"""Pairs of channels as complex numbers, and the multiplication that turns them.

A pair of channels (a, b) is the complex number a + ib; turning it counter-clockwise by φ is multiplying it by
exp(iφ).  `rope` builds on this.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

LAYOUTS = ("interleaved", "split")

# The split layout works on slices of this many bytes, so that its passes after the first read from cache.
_BLOCK_BYTES = 1 << 18


def angles(positions: ArrayLike, inv_freq: ArrayLike) -> NDArray[np.float64]:
    """Return the angle by which each pair is turned at each position, in float64.

    Parameters
    ----------
    positions : array_like, shape (..., L)
        Positions; fractions and negative numbers are allowed.
    inv_freq : array_like, shape (P,)
        Radians per position.

    Returns
    -------
    ndarray, shape (..., L, P)
        Radians, not reduced to one turn.

    Raises
    ------
    ValueError
        If an entry is not finite, an angle exceeds float64 or `inv_freq` is not one-dimensional.

    Examples
    --------
    >>> angles([0, 3], [1.0, 0.01]).tolist()
    [[0.0, 0.0], [3.0, 0.03]]
    """
    positions = require.array("positions", positions).astype(np.float64, copy=False)
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64, copy=False)
    require.ndim("inv_freq", frequencies, 1)
    with np.errstate(over="ignore"):
        return require.array("positions times inv_freq", positions[..., None] * frequencies)


def query_and_key(query: ArrayLike, key: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return queries and keys as arrays of one width whose leading axes broadcast.

    Parameters
    ----------
    query, key : array_like, shape (..., K)
        Vectors, before or after the rotation.

    Returns
    -------
    query, key : ndarray, shape (..., K)
        Each in its own dtype (integers become float64) and with its own leading axes.

    Raises
    ------
    ValueError
        If the widths differ, the leading axes do not broadcast or an entry is not finite.

    Examples
    --------
    >>> query, key = query_and_key([1, 2], [[2, 1], [0, 1]])
    >>> (query * key).sum(axis=-1).tolist()
    [4.0, 2.0]
    """
    query, key = require.array("query", query), require.array("key", key)
    require.last_axis("key", key, query.shape[-1], f"query {query.shape} has")
    require.broadcasts_with("key's leading axes", key.shape[:-1], query.shape[:-1], "those of query")
    return query, key


def to_pairs(x: NDArray, layout: str = "interleaved") -> NDArray:
    """Return the pairs of channels of a real array as complex numbers a + ib.

    Parameters
    ----------
    x : ndarray, shape (..., 2P)
        Vectors whose channels are all paired.
    layout : {"interleaved", "split"}
        Which channels make a pair.

    Returns
    -------
    ndarray, shape (..., P)
        complex64 for float32 and narrower, otherwise complex128.

    Raises
    ------
    ValueError
        If the last axis is odd or the layout unknown.

    Examples
    --------
    >>> to_pairs(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [(1+2j), (3+4j)]
    >>> to_pairs(np.array([1.0, 2.0, 3.0, 4.0]), "split").tolist()
    [(1+3j), (2+4j)]
    """
    x = require.array("x", x)
    require.one_of("layout", layout, LAYOUTS)
    pairs = require.integer("the last axis of x", x.shape[-1], minimum=2, multiple_of=2) // 2
    if layout == "interleaved":
        return x[..., 0::2] + 1j * x[..., 1::2]
    return x[..., :pairs] + 1j * x[..., pairs:]


def from_polar(length: float, direction: float) -> NDArray[np.float64]:
    """Return the pair of channels of a given length and direction.

    Parameters
    ----------
    length : float
        At least 0.
    direction : float
        Radians, counter-clockwise from the first channel.

    Returns
    -------
    ndarray, shape (2,)
        The pair.

    Raises
    ------
    ValueError
        If the length is negative or a number is not finite.

    Examples
    --------
    >>> from_polar(2.0, np.pi / 2).round(12).tolist()
    [0.0, 2.0]
    """
    length = require.number("length", length, minimum=0)
    direction = require.number("direction", direction)
    return length * np.array([np.cos(direction), np.sin(direction)])


def phases_of(angle: NDArray[np.float64], dtype: np.dtype) -> NDArray:
    """Return exp(i·angle) for vectors of a dtype.

    For float32 the angle is brought into one turn in float64 before it is rounded, so that the rounding costs
    1.2e-7 rad at any position; the float32 sine and cosine then take a quarter of the time.

    Parameters
    ----------
    angle : ndarray
        Radians.
    dtype : dtype
        What the phases are to be multiplied with: float32, float64 or longdouble.

    Returns
    -------
    ndarray, of the shape of `angle`
        complex64 for float32, complex128 for float64.

    Examples
    --------
    >>> phases_of(np.array([0.0, np.pi]), np.dtype(np.float32)).round(6).real.tolist()
    [1.0, -1.0]
    """
    if dtype == np.float32:
        angle = angle - 2 * np.pi * np.rint(angle / (2 * np.pi))
    angle = angle.astype(dtype, copy=False)
    out = np.empty(angle.shape, np.result_type(angle.dtype, np.complex64))
    np.cos(angle, out=out.real)
    np.sin(angle, out=out.imag)
    return out


def turn_interleaved(x: NDArray, phases: NDArray, out: NDArray) -> None:
    """Write x·phases to `out`, both read as complex numbers in place.

    Parameters
    ----------
    x : ndarray, shape (..., L, 2P)
        Vectors whose channels are all paired, 2i with 2i+1, contiguous along the last axis.
    phases : ndarray, broadcastable to (..., L, P)
        The complex numbers, of the precision of `x`.
    out : ndarray, shape (..., L, 2P)
        Where the result goes: of the dtype of `x`, contiguous along the last axis.

    Examples
    --------
    >>> out = np.empty((1, 2))
    >>> turn_interleaved(np.array([[1.0, 2.0]]), np.array([[1j]]), out)
    >>> out.tolist()
    [[-2.0, 1.0]]
    """
    np.multiply(x.view(phases.dtype), phases, out=out.view(phases.dtype))


def turn_split(x: NDArray, phases: NDArray, out: NDArray) -> None:
    """Write x·cos + (halves of x exchanged)·(∓sin) to `out`, block by block so that the passes stay in cache.

    Parameters
    ----------
    x : ndarray, shape (..., L, 2P)
        Vectors whose channels are all paired, i with i+P.
    phases : ndarray, shape (L, P), or broadcastable to (..., L, P) and of three axes or more
        The complex numbers, of the precision of `x`.
    out : ndarray, shape (..., L, 2P)
        Where the result goes: of the dtype of `x`.

    Raises
    ------
    ValueError
        If the leading axes of `out` cannot be made one without copying it.

    Examples
    --------
    >>> out = np.empty((1, 4))
    >>> turn_split(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[1j, 1.0]]), out)
    >>> out.tolist()
    [[-3.0, 2.0, 1.0, 4.0]]
    """
    length, turned = x.shape[-2:]
    half = turned // 2
    cos = np.concatenate([phases.real, phases.real], axis=-1)
    sin = np.concatenate([-phases.imag, phases.imag], axis=-1)
    if cos.ndim > 2:
        cos, sin = (np.broadcast_to(part, x.shape).reshape(-1, length, turned) for part in (cos, sin))
    x, out = x.reshape(-1, length, turned), out.reshape(-1, length, turned, copy=False)
    rows = min(length, max(1, _BLOCK_BYTES // (turned * x.itemsize)))
    stack = max(1, _BLOCK_BYTES // (length * turned * x.itemsize))
    scratch = np.empty((stack, rows, turned), x.dtype)
    for first in range(0, len(x), stack):
        for start in range(0, length, rows):
            block = (slice(first, first + stack), slice(start, start + rows))
            at = block if cos.ndim > 2 else block[1:]
            part = x[block]
            np.multiply(part, cos[at], out=out[block])
            exchanged = scratch[: part.shape[0], : part.shape[1]]
            exchanged[..., :half], exchanged[..., half:] = part[..., half:], part[..., :half]
            exchanged *= sin[at]
            out[block] += exchanged


def sums_of_turned(products: NDArray, offsets: NDArray, inv_freq: NDArray) -> NDArray[np.float64]:
    r"""Return the real part of a sum of complex numbers, each turned by offset times its frequency.

    .. math:: \operatorname{Re} \sum_i c_i \exp(i \Delta\theta_i)

    N evenly spaced offsets, laid out as a grid of about √N by √N, are Δ = r + t with r one of the grid's row
    starts and t a step within the row.  exp(iΔθ) = exp(irθ)·exp(itθ) then makes the N·P sines and cosines into
    2·√N·P of them and one matrix product.

    Parameters
    ----------
    products : ndarray of complex, shape (..., P)
        c, for RoPE the conjugate of the query's pair times the key's.
    offsets : ndarray, shape (N,)
        Δ.
    inv_freq : ndarray, shape (P,)
        θ, radians per position.

    Returns
    -------
    ndarray, shape (..., N)
        The sums, in float64.

    Examples
    --------
    >>> sums_of_turned(np.array([1 + 0j]), np.array([0.0, 2.0]), np.array([np.pi / 2])).tolist()
    [1.0, -1.0]
    """
    count = len(offsets)
    side = int(np.ceil(np.sqrt(count)))
    steps = np.diff(offsets[:2]) if count > 1 else np.zeros(1)
    if count < 16 or not np.array_equal(offsets, offsets[0] + steps * np.arange(count)):
        side = 1
    starts, within = offsets[::side], offsets[:side] - offsets[0]
    rows = products[..., None, :] * phases_of(angles(starts, inv_freq), np.dtype(np.float64))
    columns = phases_of(angles(within, inv_freq), np.dtype(np.float64))
    # The real part alone, by real numbers: half the multiplications of the complex product.
    real_rows = np.concatenate([rows.real, -rows.imag], axis=-1)
    grid = real_rows @ np.concatenate([columns.real, columns.imag], axis=-1).T
    return grid.reshape(*products.shape[:-1], -1)[..., :count].copy()
