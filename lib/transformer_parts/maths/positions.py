"""Absolute positions as vectors that are added to the token embeddings: the sinusoidal table and a learned one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = [
    "lookup",
    "shift_error",
    "shift_inner_product",
    "shift_matrix",
    "sinusoidal",
    "sinusoidal_at",
]


def sinusoidal(seq_len: int, d_model: int, base: float = 10000.0) -> NDArray[np.float64]:
    r"""Return the sinusoidal table of the positions 0 … L − 1.

    .. math:: PE_{p,2i} = \sin(p\,\theta_i), \quad PE_{p,2i+1} = \cos(p\,\theta_i), \qquad
              \theta_i = \text{base}^{-2i/D}, \quad 0 \le i < D/2

    Parameters
    ----------
    seq_len : int; L
    d_model : int; D, even
    base : float; above 0; the wavelengths run from 2π towards 2π·base

    Returns
    -------
    (L, D) ndarray; to be added to embeddings (…, L, D)

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.5.

    Examples
    --------
    >>> print(np.array2string(sinusoidal(2, 4), precision=6))
    [[0.       1.       0.       1.      ]
     [0.841471 0.540302 0.01     0.99995 ]]
    """
    require.sizes(seq_len=require.integer("seq_len", seq_len), d_model=require.integer("d_model", d_model))
    return sinusoidal_at(np.arange(seq_len), d_model, base)


def sinusoidal_at(positions: ArrayLike, d_model: int, base: float = 10000.0) -> NDArray[np.float64]:
    """Return the rows of the sinusoidal table at any positions: those of a decoded token, beyond L, negative ones.

    Parameters
    ----------
    positions : (…) array_like
    d_model, base : as for `sinusoidal`

    Returns
    -------
    (…, D) ndarray; float64

    Source: Vaswani et al., arXiv:1706.03762, §3.5.

    Examples
    --------
    >>> print(np.array2string(sinusoidal_at([-1, 1], 2), precision=4))
    [[-0.8415  0.5403]
     [ 0.8415  0.5403]]
    """
    frequencies = _frequencies(d_model, base)
    positions = require.array("positions", positions, min_ndim=0).astype(np.float64)
    require.sizes(positions=positions.size, d_model=d_model)
    angles = positions[..., None] * frequencies  # (…, D/2)
    table = np.empty((*positions.shape, d_model))
    np.sin(angles, out=table[..., 0::2])
    np.cos(angles, out=table[..., 1::2])
    return table


def shift_matrix(k: float, d_model: int, base: float = 10000.0) -> NDArray[np.float64]:
    r"""Return the matrix that moves every position's vector on by k: PE[p + k] = M PE[p] for every p.

    .. math:: \begin{pmatrix} \sin((p+k)\theta_i) \\ \cos((p+k)\theta_i) \end{pmatrix} =
              \begin{pmatrix} \cos k\theta_i & \sin k\theta_i \\ -\sin k\theta_i & \cos k\theta_i \end{pmatrix}
              \begin{pmatrix} \sin p\theta_i \\ \cos p\theta_i \end{pmatrix}

    A rotation for each pair of channels, and zero between pairs.  Rows of a table are moved by ``table @ M.T``.

    Parameters
    ----------
    k : float; positions to move on; negative: back
    d_model, base : as for `sinusoidal`

    Returns
    -------
    (D, D) ndarray; orthogonal; its transpose moves back by k

    References
    ----------
    Vaswani et al., arXiv:1706.03762, §3.5 ("for any fixed offset k, PE_{pos+k} can be represented as a linear
    function of PE_{pos}").

    Examples
    --------
    >>> print(np.array2string(shift_matrix(1, 2), precision=4))
    [[ 0.5403  0.8415]
     [-0.8415  0.5403]]
    """
    angles = require.number("k", k) * _frequencies(d_model, base)
    require.sizes(d_model=d_model, columns=d_model)
    sines, cosines = np.arange(0, d_model, 2), np.arange(1, d_model, 2)
    out = np.zeros((d_model, d_model))
    out[sines, sines] = out[cosines, cosines] = np.cos(angles)
    out[sines, cosines] = np.sin(angles)
    out[cosines, sines] = -np.sin(angles)
    return out


@require.door
def shift_error(
    matrix: ArrayLike, k: float, positions: ArrayLike, d_model: int, base: float = 10000.0
) -> NDArray[np.float64]:
    """Return how far a matrix misses PE[p + k] from PE[p], at each position: the largest entry of the difference.

    Parameters
    ----------
    matrix : (D, D) array_like; such as ``shift_matrix(k, D)``
    k : float; positions to move on
    positions : (…) array_like; p
    d_model, base : as for `sinusoidal`

    Returns
    -------
    (…) ndarray; max |PE[p + k] − M PE[p]|

    Source: The claim of Vaswani et al., arXiv:1706.03762, §3.5, as a number.

    Examples
    --------
    >>> bool(shift_error(shift_matrix(3, 4), 3, [0, 50], 4).max() < 1e-14)
    True
    """
    k = require.number("k", k)
    rows = sinusoidal_at(positions, d_model, base)
    matrix = require.array("matrix", matrix)
    require.shape("matrix", matrix, (d_model, d_model), "(d_model, d_model)")
    moved = sinusoidal_at(require.array("positions", positions, min_ndim=0).astype(np.float64) + k, d_model, base)
    return np.abs(moved - rows @ matrix.T).max(axis=-1)


def shift_inner_product(shifts: ArrayLike, d_model: int, base: float = 10000.0) -> NDArray[np.float64]:
    r"""Return PE[p]·PE[p + k] for each shift k; it depends on no position p.

    .. math:: \sum_i \cos(k\,\theta_i)

    Parameters
    ----------
    shifts : (…) array_like; k
    d_model, base : as for `sinusoidal`

    Returns
    -------
    (…) ndarray; at most D/2, the squared length of every vector of the table, which is its value at k = 0

    Source: Follows from Vaswani et al., arXiv:1706.03762, §3.5, by sin a sin b + cos a cos b = cos(a − b).

    Examples
    --------
    >>> print(np.array2string(shift_inner_product([0, 1, -1], 4), precision=4))
    [2.     1.5403 1.5403]
    """
    frequencies = _frequencies(d_model, base)
    shifts = require.array("shifts", shifts, min_ndim=0).astype(np.float64)
    return np.cos(shifts[..., None] * frequencies).sum(axis=-1)


def lookup(table: ArrayLike, positions: ArrayLike) -> NDArray:
    """Return the rows of a learned table at the positions; a position outside the table has no value.

    Parameters
    ----------
    table : (L, D) array_like; one learned vector for each position from 0 to L − 1; L·D parameters
    positions : (…) array_like of int; nothing wraps around: −1 is as far outside as L is

    Returns
    -------
    (…, D) ndarray; in the floating dtype of `table`; a copy

    References
    ----------
    Gehring et al., "Convolutional Sequence to Sequence Learning", arXiv:1705.03122, §3.1, which Vaswani et al.,
    arXiv:1706.03762, §3.5, compare with; Devlin et al., "BERT", arXiv:1810.04805, §3.

    Examples
    --------
    >>> lookup([[0.5, 1.0], [1.5, 2.0]], [1, 0])
    array([[1.5, 2. ],
           [0.5, 1. ]])
    """
    table = require.array("table", table)
    require.ndim("table", table, 2)
    positions = require.as_array("positions", positions)
    if positions.dtype.kind not in "iu":
        raise require.refusal("positions", f"an array of {positions.dtype}", "integers")
    outside = (positions < 0) | (positions >= len(table))
    if outside.any():
        raise require.refusal(
            "positions", str(positions[outside][0]), f"0 to {len(table) - 1}, the rows that the table has"
        )
    return table[positions]


def _frequencies(d_model: int, base: float) -> NDArray[np.float64]:
    d_model = require.integer("d_model", d_model, minimum=2, multiple_of=2)
    require.sizes(d_model=d_model)
    return require.number("base", base, above=0) ** (-np.arange(0, d_model, 2) / d_model)
