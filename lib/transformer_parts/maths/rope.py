"""Rotary position embedding (RoPE): query and key turned by position times angular frequency.

One complex multiplication does it: a pair of channels (a, b) is the complex number a + ib, and turning it by φ
is multiplying it by exp(iφ).

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.2 and §3.4.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rotation

#: The widest head whose frequencies are computed: many times the channels of any published model's whole layer.
MAX_HEAD_DIM = 2**20


def inv_freq(head_dim: int, rope_base: float = 10000.0) -> NDArray[np.float64]:
    r"""Return the angular frequency of each pair of channels, fastest first.

    .. math:: \theta_i = \text{base}^{-2i/K}, \quad 0 \le i < K/2

    Parameters
    ----------
    head_dim : int
        K, the number of channels that are turned; even and at most `MAX_HEAD_DIM`, 1,048,576.
    rope_base : float
        The base, above 0.

    Returns
    -------
    ndarray, shape (P,)
        Radians per position.  The first is 1 whatever the base.

    Raises
    ------
    ValueError
        If `head_dim` is odd, above `MAX_HEAD_DIM` or not a positive integer, or `rope_base` is not a finite
        number above 0 or is so small (below 10⁻³⁰⁸) that a frequency exceeds float64.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.2.2 (the definition of Θ beside equation 15; counted there from i = 1).

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
    inv_freq : array_like, shape (P,)
        Radians per position, all above 0.

    Returns
    -------
    ndarray, shape (P,)
        Positions per turn.

    Raises
    ------
    ValueError
        If a frequency is not a finite number above 0, or is so small (below 3.5·10⁻³⁰⁸) that its
        wavelength exceeds float64.

    References
    ----------
    B. Peng et al., "YaRN", arXiv 2309.00071v2, §2.3 (equation 13).

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
    x : array_like, shape (..., L, K)
        Queries or keys.
    positions : array_like, shape (L,) or broadcastable to (..., L)
        m, the position of each vector; fractions and negative numbers are allowed.
    rope_base : float
        Base of the frequencies; not read where `inv_freq` is given.
    inv_freq : array_like, shape (rotary_dim/2,), optional
        Radians per position for each pair, instead of ``inv_freq(rotary_dim, rope_base)``.
    layout : {"interleaved", "split"}
        Which channels make a pair.
    rotary_dim : int, optional
        Turn only the first `rotary_dim` channels (even) and pass the others through; all K by default.

    Returns
    -------
    ndarray, shape (..., L, K)
        The turned vectors, in the dtype of `x` (integers become float64).  Angles are computed in float64
        whatever the dtype, so that position 100000 is as exact as position 1.

    Raises
    ------
    ValueError
        If the number of turned channels is odd, a shape does not fit, an entry is not finite, or the layout is
        unknown.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.2.2 (equations 14 and 15) and §3.4.2 (equation 34).

    Examples
    --------
    >>> rotate([[1.0, 2.0]], [1], inv_freq=[np.pi / 2]).round(12).tolist()
    [[-2.0, 1.0]]
    """
    x = require.array("x", x, min_ndim=2)
    require.one_of("layout", layout, rotation.LAYOUTS)
    if rotary_dim is None:
        require.even_last_axis("x", x)
    frequencies = frequencies_for(x.shape[-1], rope_base, inv_freq, rotary_dim)
    positions = require.array("positions", positions)
    require.last_axis("positions", positions, x.shape[-2], f"the L of x {x.shape}")
    require.broadcasts("positions", positions.shape, x.shape[:-1], f"the shape of x {x.shape} without its last axis")

    dtype = require.compute_dtype(x.dtype)
    turned = 2 * len(frequencies)
    source = x.astype(dtype, order="C", copy=False)
    out = np.empty(x.shape, dtype)
    phases = rotation.phases_of(rotation.angles(positions, frequencies), dtype)
    turn = rotation.turn_interleaved if layout == "interleaved" else rotation.turn_split
    turn(source[..., :turned], phases, out[..., :turned])
    out[..., turned:] = source[..., turned:]
    return out.astype(x.dtype, copy=False)


def frequencies_for(
    head_dim: int, rope_base: float, inv_freq: ArrayLike | None, rotary_dim: int | None
) -> NDArray[np.float64]:
    """Return the frequencies that `rotate` turns by: those given, or the ones of the base.

    Parameters
    ----------
    head_dim : int
        K, the width of the vectors.
    rope_base : float
        Base; not read where `inv_freq` is given.
    inv_freq : array_like, shape (rotary_dim/2,), optional
        Frequencies in radians per position.
    rotary_dim : int, optional
        How many of the K channels are turned; all by default.

    Returns
    -------
    ndarray, shape (rotary_dim/2,)
        Radians per position.

    Raises
    ------
    ValueError
        If the number of turned channels is odd or above K, or `inv_freq` has another length than it needs.

    Examples
    --------
    >>> frequencies_for(8, 10000.0, None, 4).tolist()
    [1.0, 0.01]
    """
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
    query, key : array_like, shape (..., K)
        Before the rotation; leading axes broadcast.
    offsets : array_like, shape (N,)
        Δ, position of the key minus position of the query.  Whole, evenly spaced offsets are the fastest: the
        angle-addition formula makes one small matrix product of them.
    rope_base, inv_freq, layout, rotary_dim
        As in `rotate`.
    scale : float, optional
        Factor of the inner product; 1/√K by default.

    Returns
    -------
    ndarray, shape (..., N)
        The scores, computed in float64 and returned in the dtype of query and key (where they differ, in the
        wider one, at least float32).

    Raises
    ------
    ValueError
        If query and key differ in width, a shape does not fit, an entry is not finite, or the layout is unknown.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.2.2 (equation 16) and §3.4.3 (equation 35, as complex numbers).

    Examples
    --------
    >>> [f"{s:.4f}" for s in scores_by_offset([1, 2], [2, 1], [0, 1], inv_freq=[np.pi / 2])]
    ['2.8284', '2.1213']
    """
    query, key = rotation.query_and_key(query, key)
    require.one_of("layout", layout, rotation.LAYOUTS)
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
    products = rotation.to_pairs(query[..., :turned], layout).conj() * rotation.to_pairs(key[..., :turned], layout)
    scores = rotation.sums_of_turned(products, offsets, frequencies)
    scores += (query[..., turned:] * key[..., turned:]).sum(axis=-1)[..., None]
    scores *= scale
    return scores.astype(dtype, copy=False)
