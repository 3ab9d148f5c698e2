"""Rotary position embedding (RoPE): query and key turned by position times angular frequency.

One complex multiplication does it: a pair of channels (a, b) is the complex number a + ib, and turning it by φ
is multiplying it by exp(iφ).

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.2 and §3.4.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

#: The widest head whose frequencies are computed: many times the channels of any published model's whole layer.
MAX_HEAD_DIM = 2**20

LARGEST_ANGLE = 1e30
"""In radians; far beyond 2⁵³, where float64 tells no angle from the next turn's."""

LAYOUTS = ("interleaved", "split")

# The split layout works on slices of this many bytes, so that its passes after the first read from cache.
_BLOCK_BYTES = 1 << 17


def inv_freq(head_dim: int, rope_base: float = 10000.0) -> NDArray[np.float64]:
    r"""Return the angular frequency of each pair of channels, fastest first.

    .. math:: \theta_i = \text{base}^{-2i/K}, \quad 0 \le i < K/2

    Parameters
    ----------
    head_dim : int; K, the number of channels that are turned; even and at most `MAX_HEAD_DIM`, 1,048,576
    rope_base : float; the base, above 0 and so large (about 10⁻³⁰⁸) that float64 holds every frequency

    Returns
    -------
    ndarray, shape (P,)
        Radians per position.  The first is 1 whatever the base.

    Source: RoFormer, arXiv 2104.09864, §3.2.2 (the definition of Θ beside equation 15; counted there from i = 1).

    Examples
    --------
    >>> inv_freq(4).tolist()
    [1.0, 0.01]
    """
    head_dim = require.integer("head_dim", head_dim, minimum=2, multiple_of=2, maximum=MAX_HEAD_DIM)
    return _frequencies(head_dim, rope_base)


def wavelengths(inv_freq: ArrayLike) -> NDArray[np.float64]:
    r"""Return how many positions each pair takes for one whole turn.

    .. math:: \lambda_i = 2\pi / \theta_i = 2\pi \cdot \text{base}^{2i/K}

    Parameters
    ----------
    inv_freq : array_like, shape (P,); radians per position, above 0; float64 must hold every wavelength

    Returns
    -------
    ndarray, shape (P,); positions per turn

    Source: B. Peng et al., "YaRN", arXiv 2309.00071v2, §2.3 (equation 13).

    Examples
    --------
    >>> [f"{x:.4f}" for x in wavelengths([1.0, 0.01])]
    ['6.2832', '628.3185']
    """
    frequencies = require.cast("inv_freq", require.array("inv_freq", inv_freq), np.float64)
    slowest = require.number("inv_freq", float(frequencies.min()), above=0)
    with np.errstate(over="ignore"):
        turns = 2 * np.pi / frequencies
    if not require.all_finite(turns):
        raise require.refusal("inv_freq", repr(slowest), "frequencies whose wavelengths are within float64")
    return turns


def rotate(
    x: ArrayLike,
    positions: ArrayLike,
    *,
    rope_base: float = 10000.0,
    inv_freq: ArrayLike | None = None,
    layout: str = "interleaved",
    rotary_dim: int | None = None,
) -> NDArray:
    r"""Turn each pair of channels of queries or keys by position times its angular frequency.

    .. math::
        \begin{pmatrix} y_a \\ y_b \end{pmatrix} =
        \begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\ \sin m\theta_i & \cos m\theta_i \end{pmatrix}
        \begin{pmatrix} x_a \\ x_b \end{pmatrix}

    where pair i is the channels (a, b) = (2i, 2i+1) in the interleaved layout and (i, i + rotary_dim/2) in the
    split layout.  Lengths are kept; there is nothing to train.

    Parameters
    ----------
    x : array_like, shape (..., L, K); queries or keys
    positions : array_like, shape (L,) or broadcastable to (..., L)
        m, the position of each vector; fractions and negative numbers are allowed.
    rope_base : float; base of the frequencies; ignored if `inv_freq` is given
    inv_freq : array_like, shape (rotary_dim/2,), optional
        Radians per position for each pair, instead of ``inv_freq(rotary_dim, rope_base)``.
    layout : {"interleaved", "split"}; which channels make a pair
    rotary_dim : int, optional
        Turn only the first `rotary_dim` channels (even) and pass the others through; all K by default.

    Returns
    -------
    ndarray, shape (..., L, K)
        The turned vectors, in the dtype of `x` (integers become float64).  Angles are computed in float64 whatever the
        dtype, so that position 100000 is as exact as position 1.

    Source: RoFormer, arXiv 2104.09864, §3.2.2 (equations 14 and 15) and §3.4.2 (equation 34).

    Examples
    --------
    >>> rotate([[1.0, 2.0]], [1], inv_freq=[np.pi / 2]).round(12).tolist()
    [[-2.0, 1.0]]
    """
    x = require.array("x", x, min_ndim=2)
    require.one_of("layout", layout, LAYOUTS)
    if rotary_dim is None:
        require.even_last_axis("x", x)
    frequencies = frequencies_for(x.shape[-1], rope_base, inv_freq, rotary_dim)
    positions = require.array("positions", positions).astype(np.float64, copy=False)
    require.last_axis("positions", positions, x.shape[-2], f"the L of x {x.shape}")
    require.broadcasts("positions", positions.shape, x.shape[:-1], f"the shape of x {x.shape} without its last axis")

    dtype = require.compute_dtype(x.dtype)
    turned = 2 * len(frequencies)
    source = x.astype(dtype, order="C", copy=False)
    out = np.empty(x.shape, dtype)
    phases = phases_of(angles_of(positions, frequencies), dtype)  # (…, L, P)
    turn = turn_interleaved if layout == "interleaved" else turn_split
    try:
        with np.errstate(over="raise", invalid="raise"):
            turn(source[..., :turned], phases, out[..., :turned])
            out[..., turned:] = source[..., turned:]
            return out.astype(x.dtype, copy=False)
    except FloatingPointError:
        largest = np.abs(source).max()
        raise require.refusal("x", f"entries up to {largest:.3g}", f"turned ones within {x.dtype.name}") from None


def frequencies_for(
    head_dim: int, rope_base: float, inv_freq: ArrayLike | None, rotary_dim: int | None
) -> NDArray[np.float64]:
    """Return the frequencies (rotary_dim/2,) that `rotate` turns by: those given, or the ones of the base."""
    if rotary_dim is None:
        rotary_dim = require.integer("head_dim", head_dim, minimum=2, multiple_of=2)
    else:
        rotary_dim = require.integer("rotary_dim", rotary_dim, minimum=2, multiple_of=2, maximum=head_dim)
    if inv_freq is None:
        return _frequencies(rotary_dim, rope_base)
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64, copy=False)
    require.ndim("inv_freq", frequencies, 1)
    require.last_axis("inv_freq", frequencies, rotary_dim // 2, f"the pairs of {rotary_dim} turned channels")
    return frequencies


def _frequencies(channels: int, rope_base: float) -> NDArray[np.float64]:
    rope_base = require.number("rope_base", rope_base, above=0)
    with np.errstate(over="ignore"):
        frequencies = rope_base ** (-np.arange(0, channels, 2) / channels)
    if not require.all_finite(frequencies):
        raise require.refusal("rope_base", repr(rope_base), "a base whose frequencies are within float64")
    return frequencies


@require.door
def scores_by_offset(
    query: ArrayLike,
    key: ArrayLike,
    offsets: ArrayLike,
    *,
    rope_base: float = 10000.0,
    inv_freq: ArrayLike | None = None,
    layout: str = "interleaved",
    rotary_dim: int | None = None,
    scale: float | None = None,
) -> NDArray:
    r"""Return the score of a query and a key at each offset between them, without turning either.

    .. math::
        s(\Delta) = \text{scale} \cdot \sum_i q^{(i)\mathsf T} R(\Delta\theta_i)\, k^{(i)}
        = (R(m\theta)q)^{\mathsf T} (R(n\theta)k) \cdot \text{scale}, \quad \Delta = n - m

    Channels that are not turned add the same amount at every offset.

    Parameters
    ----------
    query, key : array_like, shape (..., K); before the rotation; leading axes broadcast
    offsets : array_like, shape (N,)
        Δ, position of the key minus position of the query.  Whole, evenly spaced offsets are the fastest: the
        angle-addition formula makes one small matrix product of them.
    rope_base, inv_freq, layout, rotary_dim : as in `rotate`
    scale : float, optional; factor of the inner product; 1/√K by default

    Returns
    -------
    ndarray, shape (..., N); the scores, computed in float64 and returned in the dtype of query and key (where they
        differ, in the wider one, at least float32)

    Source: RoFormer, arXiv 2104.09864, §3.2.2 (equation 16) and §3.4.3 (equation 35, as complex numbers).

    Examples
    --------
    >>> [f"{s:.4f}" for s in scores_by_offset([1, 2], [2, 1], [0, 1], inv_freq=[np.pi / 2])]
    ['2.8284', '2.1213']
    """
    query, key = query_and_key(query, key)
    require.one_of("layout", layout, LAYOUTS)
    if rotary_dim is None:
        require.even_last_axis("query", query)
    frequencies = frequencies_for(query.shape[-1], rope_base, inv_freq, rotary_dim)
    offsets = require.array("offsets", offsets).astype(np.float64, copy=False)
    require.ndim("offsets", offsets, 1)
    scale = query.shape[-1] ** -0.5 if scale is None else require.number("scale", scale)

    dtype = query.dtype
    if key.dtype != dtype:
        dtype = np.result_type(require.compute_dtype(dtype), require.compute_dtype(key.dtype))
    query, key = query.astype(np.float64, copy=False), key.astype(np.float64, copy=False)
    turned = 2 * len(frequencies)
    products = to_pairs(query[..., :turned], layout).conj() * to_pairs(key[..., :turned], layout)  # (…, P)
    scores = sums_of_turned(products, offsets, frequencies)  # (…, N)
    scores += (query[..., turned:] * key[..., turned:]).sum(axis=-1)[..., None]
    scores *= scale
    return scores.astype(dtype, copy=False)


def angles(positions: ArrayLike, inv_freq: ArrayLike) -> NDArray[np.float64]:
    """Return the angle by which each pair is turned at each position, in float64.

    Parameters
    ----------
    positions : array_like, shape (..., L); positions; fractions and negative numbers are allowed
    inv_freq : array_like, shape (P,); radians per position

    Returns
    -------
    ndarray, shape (..., L, P); radians, not reduced to one turn

    Examples
    --------
    >>> angles([0, 3], [1.0, 0.01]).tolist()
    [[0.0, 0.0], [3.0, 0.03]]
    """
    positions = require.array("positions", positions).astype(np.float64, copy=False)
    frequencies = require.array("inv_freq", inv_freq).astype(np.float64, copy=False)
    require.ndim("inv_freq", frequencies, 1)
    return angles_of(positions, frequencies)


def angles_of(positions: NDArray[np.float64], frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `angles` of positions (…, L) and frequencies (P,) that have been checked."""
    with np.errstate(over="ignore", invalid="ignore"):
        angles = positions[..., None] * frequencies
        if not np.dot(angles.ravel(), angles.ravel()) < LARGEST_ANGLE**2:
            largest = np.abs(angles).max()
            raise require.refusal("positions times inv_freq", f"{largest:.3g}", f"at most {LARGEST_ANGLE:g} in all")
    return angles


def query_and_key(query: ArrayLike, key: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return queries and keys (…, K), each in its own dtype, as arrays of one width whose leading axes broadcast."""
    query, key = require.array("query", query), require.array("key", key)
    require.last_axis("key", key, query.shape[-1], f"query {query.shape} has")
    require.broadcasts_with("key's leading axes", key.shape[:-1], query.shape[:-1], "those of query")
    return query, key


def to_pairs(x: NDArray, layout: str = "interleaved") -> NDArray:
    """Return the pairs of channels of a real array as complex numbers a + ib.

    Parameters
    ----------
    x : ndarray, shape (..., 2P); vectors whose channels are all paired
    layout : {"interleaved", "split"}; which channels make a pair

    Returns
    -------
    ndarray, shape (..., P); complex64 for float32 and narrower, otherwise complex128

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
    length : float; at least 0
    direction : float; radians, counter-clockwise from the first channel

    Returns
    -------
    ndarray, shape (2,)

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
    angle : ndarray; radians
    dtype : dtype; what the phases are to be multiplied with: float32, float64 or longdouble

    Returns
    -------
    ndarray, of the shape of `angle`; complex64 for float32, complex128 for float64

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
    x : ndarray, shape (..., L, 2P); vectors whose channels are all paired, 2i with 2i+1, contiguous along the last axis
    phases : ndarray, broadcastable to (..., L, P); the complex numbers, of the precision of `x`
    out : ndarray, shape (..., L, 2P); where the result goes: of the dtype of `x`, contiguous along the last axis

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

    x and out are (…, L, 2P), of one dtype, channel i paired with i + P; the complex `phases` are (L, P), or broadcast
    to (…, L, P) and have three axes or more.  The leading axes of `out` must become one without a copy.
    """
    length, turned = x.shape[-2:]
    halves = (2, turned // 2)
    cos = np.concatenate([phases.real, phases.real], axis=-1).reshape(*phases.shape[:-1], *halves)  # (…, L, 2, P)
    sin = np.concatenate([-phases.imag, phases.imag], axis=-1).reshape(cos.shape)
    if cos.ndim > 3:
        cos, sin = (np.broadcast_to(f, (*x.shape[:-1], *halves)).reshape(-1, length, *halves) for f in (cos, sin))
    x, out = x.reshape(-1, length, *halves), out.reshape(-1, length, *halves, copy=False)
    rows = min(length, max(1, _BLOCK_BYTES // (turned * x.itemsize)))
    stack = max(1, _BLOCK_BYTES // (length * turned * x.itemsize))
    scratch = np.empty((stack, rows, *halves), x.dtype)
    for start in range(0, length, rows):  # outside: the cosines and sines of these rows stay in cache for all heads
        for first in range(0, len(x), stack):
            block = (slice(first, first + stack), slice(start, start + rows))
            at = block if cos.ndim > 3 else block[1:]
            part, result = x[block], out[block]
            unturned = np.multiply(part, cos[at], out=scratch[: part.shape[0], : part.shape[1]])
            result[...] = part[..., ::-1, :]
            result *= sin[at]
            result += unturned


def sums_of_turned(products: NDArray, offsets: NDArray, inv_freq: NDArray) -> NDArray[np.float64]:
    r"""Return the real part of a sum of complex numbers (…, P), each turned by offset times its frequency: (…, N).

    .. math:: \operatorname{Re} \sum_i c_i \exp(i \Delta\theta_i)

    N evenly spaced offsets, laid out as a grid of about √N by √N, are Δ = r + t with r one of the grid's row starts and
    t a step within the row.  exp(iΔθ) = exp(irθ)·exp(itθ) then makes the N·P sines and cosines into 2·√N·P of them and
    one matrix product.
    """
    count = len(offsets)
    side = int(np.ceil(np.sqrt(count)))
    steps = np.diff(offsets[:2]) if count > 1 else np.zeros(1)
    if count < 16 or not np.array_equal(offsets, offsets[0] + steps * np.arange(count)):
        side = 1
    starts, within = offsets[::side], offsets[:side] - offsets[0]
    rows = products[..., None, :] * phases_of(angles_of(starts, inv_freq), np.dtype(np.float64))  # (…, N/side, P)
    columns = phases_of(angles_of(within, inv_freq), np.dtype(np.float64))  # (side, P)
    # The real part alone, by real numbers: half the multiplications of the complex product.
    real_rows = np.concatenate([rows.real, -rows.imag], axis=-1)  # (…, N/side, 2P)
    grid = real_rows @ np.concatenate([columns.real, columns.imag], axis=-1).T  # (…, N/side, side)
    return grid.reshape(*products.shape[:-1], -1)[..., :count].copy()
