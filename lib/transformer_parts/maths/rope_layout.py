"""Two layouts of RoPE's pairs over the channels of a head, and the permutation that leads from one to the other.

Interleaved: pair i is the channels 2i and 2i+1.  Split: it is the channels i and i + rotary_dim/2.  The rotation is the
same; only where its planes lie in the head differs.  Scores stay what they are if the channels of queries and keys
move along, which permuting the output channels of W_q and W_k does once and for all.  Nothing else of a model moves.

References
----------
J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", arXiv 2104.09864, §3.4.2 (interleaved).
S. Black et al., "GPT-NeoX-20B", arXiv 2204.06745, §2.1 (rotates the first quarter of each head).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rotation


def pair_indices(head_dim: int, layout: str = "interleaved", *, rotary_dim: int | None = None) -> NDArray[np.intp]:
    r"""Return the two channels of each pair of a head, fastest pair first.

    .. math:: (2i,\; 2i+1) \quad\text{or}\quad (i,\; i + r/2), \qquad 0 \le i < r/2

    Parameters
    ----------
    head_dim : int
        K, the width of the head.
    layout : {"interleaved", "split"}
        Which of the two.
    rotary_dim : int, optional
        r, how many of the first channels are turned (even); all K by default.

    Returns
    -------
    ndarray, shape (r/2, 2)
        Channels that are not turned are in no pair.

    Raises
    ------
    ValueError
        If the number of turned channels is odd or above K, or the layout is unknown.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.4.2 (equation 34).

    Examples
    --------
    >>> pair_indices(6).tolist(), pair_indices(6, "split").tolist()
    ([[0, 1], [2, 3], [4, 5]], [[0, 3], [1, 4], [2, 5]])
    """
    require.one_of("layout", layout, rotation.LAYOUTS)
    channels = np.arange(_turned(head_dim, rotary_dim))
    return channels.reshape(-1, 2) if layout == "interleaved" else channels.reshape(2, -1).T


def permutation(head_dim: int, to: str, *, rotary_dim: int | None = None) -> NDArray[np.intp]:
    """Return the order that takes the channels of a head from the other layout to the layout `to`.

    Channel c of the result is channel ``order[c]`` of what there was: ``x[..., order]``.  To split it lists the even
    channels, then the odd ones.  The two directions are inverse to one another, and differ but for four turned
    channels or two.

    Parameters
    ----------
    head_dim : int
        K, the width of the head.
    to : {"interleaved", "split"}
        The layout that is wanted; the vectors are in the other one.
    rotary_dim : int, optional
        How many of the first channels are turned (even); the others stay where they are.  All K by default.

    Returns
    -------
    ndarray of int, shape (K,)
        Each channel once.

    Raises
    ------
    ValueError
        If the number of turned channels is odd or above K, or the layout is unknown.

    Examples
    --------
    >>> permutation(8, "split").tolist()
    [0, 2, 4, 6, 1, 3, 5, 7]
    >>> permutation(8, "interleaved").tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    >>> permutation(8, "split", rotary_dim=6).tolist()
    [0, 2, 4, 1, 3, 5, 6, 7]
    """
    require.one_of("to", to, rotation.LAYOUTS)
    other = next(layout for layout in rotation.LAYOUTS if layout != to)
    wanted = pair_indices(head_dim, to, rotary_dim=rotary_dim)
    order = np.arange(head_dim)
    order[wanted] = pair_indices(head_dim, other, rotary_dim=rotary_dim)
    return order


def permutation_matrix(order: ArrayLike) -> NDArray[np.float64]:
    r"""Return the matrix that puts the entries of a column vector into an order.

    .. math:: (\Pi x)_c = x_{\text{order}[c]}, \qquad \Pi^{\mathsf T} \Pi = I

    On weights in (out, in) it acts from the left, Π W; on weights in (in, out) its transpose acts from the right,
    W Πᵀ.

    Parameters
    ----------
    order : array_like of int, shape (K,)
        Each of 0 … K−1 once.

    Returns
    -------
    ndarray, shape (K, K)
        A single 1 in each row and column.

    Raises
    ------
    ValueError
        If `order` is no permutation.

    Examples
    --------
    >>> permutation_matrix([0, 2, 1]).astype(int).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    """
    order = np.asarray(order)
    size = order.size
    if order.ndim != 1 or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(size)):
        raise require.refusal("order", f"{order.dtype} of shape {order.shape}", "each whole number from 0 on once")
    return np.eye(size)[order]


def reorder(x: ArrayLike, to: str, *, rotary_dim: int | None = None) -> NDArray:
    """Move the channels of heads from the other layout to the layout `to`.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Queries, keys or a norm's weight over one head (QK-norm): whatever has one number for each channel of a head.
    to : {"interleaved", "split"}
        The layout that is wanted.
    rotary_dim : int, optional
        As in `permutation`.

    Returns
    -------
    ndarray, shape (..., K)
        A new array of the dtype of `x`.  Entries are moved and never computed with: each keeps its bits.

    Raises
    ------
    ValueError
        If the number of turned channels is odd or above K, or the layout is unknown.

    Examples
    --------
    >>> reorder([10, 11, 20, 21, 30, 31], "split").tolist()
    [10, 20, 30, 11, 21, 31]
    """
    x = _entries("x", x)
    return x[..., permutation(x.shape[-1], to, rotary_dim=rotary_dim)]


def convert_projection(
    w: ArrayLike, head_dim: int, to: str, *, rotary_dim: int | None = None, out_axis: int = -1
) -> NDArray:
    """Move the output channels of W_q or W_k, head by head, from the other layout to the layout `to`.

    W_q and W_k (and their biases) are both converted, each with the same `head_dim`; the number of heads, which differs
    between them where kv heads are grouped, follows from it.  W_v and W_o stay as they are.

    Parameters
    ----------
    w : array_like
        Weights whose axis `out_axis` holds the channels of all heads, one head after the other: (D, H·K) in this
        library's convention ``x @ w``, where the columns move; (H·K, D) with ``out_axis=0`` as checkpoints have it,
        where the rows move; (H·K,) for a bias.  Any dtype, quantised ones included.
    head_dim : int
        K, the width of a head.
    to : {"interleaved", "split"}
        The layout that is wanted; the weights are in the other one.
    rotary_dim : int, optional
        As in `permutation`.
    out_axis : int
        The axis of the output channels.

    Returns
    -------
    ndarray, of the shape and dtype of `w`
        A new array.  Entries are moved and never computed with, so that there and back is the same bit for bit.

    Raises
    ------
    ValueError
        If there is no such axis, it is no multiple of `head_dim`, the number of turned channels is odd or above K, or
        the layout is unknown.

    Examples
    --------
    Two heads of four channels, one input; the numbers are head and channel:

    >>> w = [[0, 1, 2, 3, 10, 11, 12, 13]]
    >>> convert_projection(w, 4, "split").tolist()
    [[0, 2, 1, 3, 10, 12, 11, 13]]
    """
    w = _entries("w", w)
    out_axis = require.integer("out_axis", out_axis, minimum=-w.ndim, maximum=w.ndim - 1)
    order = permutation(head_dim, to, rotary_dim=rotary_dim)
    channels = w.shape[out_axis]
    if channels % len(order):
        got = f"{channels} channels along axis {out_axis} of {w.shape}"
        raise require.refusal("w", got, f"a multiple of head_dim {len(order)}")
    heads = np.arange(0, channels, len(order))
    return np.take(w, (heads[:, None] + order).reshape(-1), axis=out_axis)


def _turned(head_dim: int, rotary_dim: int | None) -> int:
    if rotary_dim is None:
        return require.integer("head_dim", head_dim, minimum=2, multiple_of=2)
    head_dim = require.integer("head_dim", head_dim, minimum=2)
    return require.integer("rotary_dim", rotary_dim, minimum=2, multiple_of=2, maximum=head_dim)


def _entries(name: str, x: ArrayLike) -> NDArray:
    """Return `x` as a non-empty array of any numbers, unread: to move them is all that is done."""
    try:
        x = np.asarray(x)
    except ValueError:
        raise require.refusal(name, f"a {type(x).__name__}", "an array whose rows have one length") from None
    if x.dtype.kind not in "biufc" and not require.is_floating(x.dtype):
        raise require.refusal(name, f"an array of {x.dtype}", "numbers")
    if x.size == 0 or x.ndim == 0:
        raise require.refusal(name, f"shape {x.shape}", "at least one axis and no empty one")
    return x
