r"""Backward passes of the single parts: linear map, embedding, RoPE, softmax, cross-entropy.

A function ``part_backward`` takes the gradient of the loss with respect to the part's output, :math:`\bar y` (the
argument `grad`), and what the forward pass read, and returns the gradients with respect to that.  The others stand in
`gradients_norms`, `gradients_attention`, `gradients_feedforward`, `gradients_residual` and `gradients_layer`; those
of a whole decoder come from `stack.loss_and_gradients`.

Gradients have the dtype of the computation: that of the arrays, and float32 for 16-bit ones.  Entries are judged by
what they produce: a NaN or an infinity shows in some gradient, so that the arguments are searched only then.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.cross_entropy import checked_targets, log_softmax
from transformer_parts.maths.gradients_operands import finite, in_one_dtype, products_backward

__all__ = [
    "cross_entropy_backward",
    "embedding_backward",
    "linear_backward",
    "rotate_backward",
    "softmax_backward",
]


def linear_backward(grad: ArrayLike, x: ArrayLike, w: ArrayLike) -> tuple[NDArray, NDArray]:
    r"""Return the gradients of y = x @ w.

    .. math:: \bar x = \bar y\, W^\top, \qquad \bar W = \sum_\text{positions} x^\top \bar y

    A bias, if there is one, has the gradient :math:`\sum_\text{positions} \bar y`.

    Parameters
    ----------
    grad : array_like, shape (..., E)
        Gradient of the output.
    x : array_like, shape (..., D)
        The input.
    w : array_like, shape (D, E)
        The weights.

    Returns
    -------
    grad_x : ndarray, shape (..., D)
    grad_w : ndarray, shape (D, E)

    Raises
    ------
    ValueError
        If a shape does not fit or an entry is not finite.

    References
    ----------
    Rumelhart, Hinton & Williams, "Learning representations by back-propagating errors", Nature 323, 1986, eq. 6
    and 7.

    Examples
    --------
    >>> grad_x, grad_w = linear_backward([1.0], x=[2.0, 3.0], w=[[4.0], [5.0]])
    >>> grad_x.tolist(), grad_w.tolist()
    ([4.0, 5.0], [[2.0], [3.0]])
    """
    grad, x, w = in_one_dtype(grad=grad, x=x, w=w)
    require.shape("w", w, (x.shape[-1], grad.shape[-1]), "the last axes of x and grad")
    require.shape("grad", grad, (*x.shape[:-1], "E"), "the leading axes of x")
    return finite(products_backward(grad, x, w), grad=grad, x=x, w=w)


def embedding_backward(grad: ArrayLike, tokens: ArrayLike, vocab_size: int) -> NDArray:
    r"""Return the gradient of an embedding's table: each row's is the sum over the places where its token stands.

    .. math:: \bar E_v = \sum_{t:\,\text{token}_t = v} \bar y_t

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the looked-up vectors.
    tokens : array_like of int, shape (...)
        From 0 to V − 1.
    vocab_size : int
        V.

    Returns
    -------
    ndarray, shape (V, D)
        Zeros in the rows of tokens that do not occur.

    Raises
    ------
    ValueError
        If a token is out of range, a shape does not fit or an entry is not finite.

    Examples
    --------
    >>> embedding_backward([[1.0], [2.0], [4.0]], tokens=[2, 0, 2], vocab_size=3).tolist()
    [[2.0], [0.0], [5.0]]
    """
    (grad,) = in_one_dtype(grad=grad)
    tokens = require.indices("tokens", tokens, require.integer("vocab_size", vocab_size))
    require.shape("tokens", tokens, grad.shape[:-1], "that of grad without its last axis")
    order = np.argsort(tokens, axis=None, kind="stable")  # equal tokens side by side, so that runs can be summed
    found, starts = np.unique(tokens.reshape(-1)[order], return_index=True)
    table = np.zeros((vocab_size, grad.shape[-1]), grad.dtype)
    table[found] = np.add.reduceat(grad.reshape(-1, grad.shape[-1])[order], starts)
    return finite((table,), grad=grad)[0]


def rotate_backward(
    grad: ArrayLike,
    positions: ArrayLike,
    *,
    rope_base: float = 10000.0,
    inv_freq: ArrayLike | None = None,
    layout: str = "interleaved",
    rotary_dim: int | None = None,
) -> NDArray:
    r"""Return the gradient of `rope.rotate`'s input: the gradient of the output turned by the negative angle.

    .. math:: \bar x = R(m\theta)^\top \bar y = R(-m\theta)\, \bar y

    A rotation's transpose is its inverse, so nothing of the forward pass is needed but the positions.

    Parameters
    ----------
    grad : array_like, shape (..., L, K)
        Gradient of the turned vectors.
    positions : array_like, shape (L,) or broadcastable to (..., L)
        Those of the forward pass.
    rope_base, inv_freq, layout, rotary_dim
        As in the forward pass.

    Returns
    -------
    ndarray, shape (..., L, K)

    Raises
    ------
    ValueError
        As `rope.rotate` does.

    References
    ----------
    RoFormer, arXiv 2104.09864, §3.2.2: the rotation matrix is orthogonal.

    Examples
    --------
    >>> rotate_backward([[-2.0, 1.0]], [1], inv_freq=[np.pi / 2]).round(12).tolist()
    [[1.0, 2.0]]
    """
    (grad,) = in_one_dtype(grad=grad)
    negative = -require.array("positions", positions)
    settings = {"rope_base": rope_base, "inv_freq": inv_freq, "layout": layout, "rotary_dim": rotary_dim}
    return rope.rotate(grad, negative, **settings)


def softmax_backward(grad: ArrayLike, weights: ArrayLike, axis: int = -1) -> NDArray:
    r"""Return the gradient of a softmax's logits from its result.

    .. math:: \bar x_i = p_i \bigl(\bar p_i - \sum_j p_j \bar p_j\bigr)

    Where a weight is 0 (a masked key, a logit of −inf) the gradient is 0.

    Parameters
    ----------
    grad : array_like, shape (...)
        Gradient of the weights, :math:`\bar p`.
    weights : array_like, shape (...)
        p, what `softmax` returned.
    axis : int
        The axis along which the weights sum to 1.

    Returns
    -------
    ndarray, shape (...)
        Sums to 0 along the axis: a constant added to the logits changes nothing.

    Raises
    ------
    ValueError
        If the shapes differ, an entry is not finite or there is no such axis.

    References
    ----------
    Dao et al., "FlashAttention", arXiv:2205.14135, appendix B.2.

    Examples
    --------
    >>> softmax_backward([1.0, 0.0], weights=[0.25, 0.75]).tolist()
    [0.1875, -0.1875]
    """
    grad, weights = in_one_dtype(grad=grad, weights=weights)
    require.shape("grad", grad, weights.shape, "that of weights")
    axis = require.integer("axis", axis, minimum=-grad.ndim, maximum=grad.ndim - 1)
    with np.errstate(all="ignore"):
        if axis in (-1, grad.ndim - 1):
            mean = np.vecdot(weights, grad)[..., None]
        else:
            mean = np.sum(weights * grad, axis=axis, keepdims=True)
        out = grad - mean
        out *= weights
    return finite((out,), grad=grad, weights=weights)[0]


def cross_entropy_backward(logits: ArrayLike, targets: ArrayLike) -> NDArray:
    r"""Return the gradient of `cross_entropy`'s logits: softmax minus one-hot, over the number of targets.

    .. math:: \bar z_t = \tfrac1n \bigl(\operatorname{softmax}(z_t) - e_{y_t}\bigr)

    Parameters
    ----------
    logits : array_like, shape (..., V)
        z, finite.
    targets : array_like of int, shape (...)
        y, from 0 to V − 1; −1 where a position does not count: its gradient is 0.

    Returns
    -------
    ndarray, shape (..., V)

    Raises
    ------
    ValueError
        As `cross_entropy` does.

    References
    ----------
    Goodfellow et al., "Deep Learning", 2016, §6.2.2.3.

    Examples
    --------
    >>> cross_entropy_backward([[0.0, 0.0], [3.0, 0.0]], [1, -1]).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    (logits,) = in_one_dtype(logits=logits)
    require.all_numbers("logits", logits)
    targets, counted = checked_targets(targets, logits)
    rows = np.exp(log_softmax(logits[counted]))
    rows[np.arange(len(rows)), targets[counted]] -= 1
    rows /= len(rows)
    out = np.zeros(logits.shape, logits.dtype)
    out[counted] = rows
    return out
