r"""Backward passes of the single parts: linear map, embedding, RoPE, softmax, attention, feed-forward layers, norms.

A function ``part_backward`` takes the gradient of the loss with respect to the part's output, :math:`\bar y` (the
argument `grad`), and what the forward pass read, and returns the gradients with respect to that.  The others stand
beside their forward passes in `cross_entropy` and `norm_placement`; those of a layer and of a whole decoder are in
`decoder`.

Gradients have the dtype of the computation: that of the arrays, and float32 for 16-bit ones.  Entries are judged by
what they produce: a NaN or an infinity shows in some gradient, so that the arguments are searched only then.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.activations import (
    gelu_derivative,
    gelu_tanh_derivative,
    relu_derivative,
    sigmoid_derivative,
    silu_derivative,
)
from transformer_parts.maths.attention import split_heads
from transformer_parts.maths.require import finite, in_one_dtype

__all__ = [
    "DERIVATIVES",
    "AttentionGradients",
    "FfnGradients",
    "GluGradients",
    "attention_backward",
    "embedding_backward",
    "ffn_backward",
    "glu_backward",
    "layer_norm_backward",
    "linear_backward",
    "rms_norm_backward",
    "rotate_backward",
    "softmax_backward",
]


def linear_backward(grad: ArrayLike, x: ArrayLike, w: ArrayLike) -> tuple[NDArray, NDArray]:
    r"""Return the gradients of y = x @ w.

    .. math:: \bar x = \bar y\, W^\top, \qquad \bar W = \sum_\text{positions} x^\top \bar y

    A bias, if there is one, has the gradient :math:`\sum_\text{positions} \bar y`.

    Parameters
    ----------
    grad : array_like, shape (..., E); gradient of the output
    x : array_like, shape (..., D); the input
    w : array_like, shape (D, E); the weights

    Returns
    -------
    grad_x : ndarray, shape (..., D)
    grad_w : ndarray, shape (D, E)

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


@require.door
def embedding_backward(grad: ArrayLike, tokens: ArrayLike, vocab_size: int) -> NDArray:
    r"""Return the gradient of an embedding's table: each row's is the sum over the places where its token stands.

    .. math:: \bar E_v = \sum_{t:\,\text{token}_t = v} \bar y_t

    Parameters
    ----------
    grad : array_like, shape (..., D); gradient of the looked-up vectors
    tokens : array_like of int, shape (...); from 0 to V − 1
    vocab_size : int; V

    Returns
    -------
    ndarray, shape (V, D); zeros in the rows of tokens that do not occur

    Examples
    --------
    >>> embedding_backward([[1.0], [2.0], [4.0]], tokens=[2, 0, 2], vocab_size=3).tolist()
    [[2.0], [0.0], [5.0]]
    """
    (grad,) = in_one_dtype(grad=grad)
    tokens = require.indices("tokens", tokens, require.integer("vocab_size", vocab_size))
    require.sizes(vocab_size=vocab_size, width=grad.shape[-1])
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
    grad : array_like, shape (..., L, K); gradient of the turned vectors
    positions : array_like, shape (L,) or broadcastable to (..., L); those of the forward pass
    rope_base, inv_freq, layout, rotary_dim
        As in the forward pass.

    Returns
    -------
    ndarray, shape (..., L, K)

    Source: RoFormer, arXiv 2104.09864, §3.2.2: the rotation matrix is orthogonal.

    Examples
    --------
    >>> rotate_backward([[-2.0, 1.0]], [1], inv_freq=[np.pi / 2]).round(12).tolist()
    [[1.0, 2.0]]
    """
    (grad,) = in_one_dtype(grad=grad)
    negative = -require.array("positions", positions)
    settings = {"rope_base": rope_base, "inv_freq": inv_freq, "layout": layout, "rotary_dim": rotary_dim}
    try:
        return rope.rotate(grad, negative, **settings)
    except ValueError as error:
        raise ValueError(str(error).replace("x:", "grad:", 1)) from None


def softmax_backward(grad: ArrayLike, weights: ArrayLike, axis: int = -1) -> NDArray:
    r"""Return the gradient of a softmax's logits from its result.

    .. math:: \bar x_i = p_i \bigl(\bar p_i - \sum_j p_j \bar p_j\bigr)

    Where a weight is 0 (a masked key, a logit of −inf) the gradient is 0.

    Parameters
    ----------
    grad : array_like, shape (...); gradient of the weights, :math:`\bar p`
    weights : array_like, shape (...); p, what `attention` returned
    axis : int; the axis along which the weights sum to 1

    Returns
    -------
    ndarray, shape (...); sums to 0 along the axis: a constant added to the logits changes nothing

    Source: Dao et al., "FlashAttention", arXiv:2205.14135, appendix B.2.

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


class AttentionGradients(NamedTuple):
    """Gradients of attention's arguments.

    Attributes
    ----------
    query : (…, H, L, K) ndarray
    key : (…, G, S, K) ndarray; the sum over the query heads that share the head
    value : (…, G, S, Kv) ndarray; likewise
    bias : (…, H, L, S) ndarray; of what was added to the scaled scores; 0 where the mask was False
    """

    query: NDArray
    key: NDArray
    value: NDArray
    bias: NDArray


def attention_backward(
    grad: ArrayLike,
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    weights: ArrayLike,
    *,
    scale: float | None = None,
) -> AttentionGradients:
    r"""Return the gradients of `attention` from its arguments and its weights.

    .. math::
        \bar V = P^\top \bar Y, \quad \bar P = \bar Y V^\top, \quad
        \bar S = P \odot \bigl(\bar P - \operatorname{rowsum}(P \odot \bar P)\bigr), \quad
        \bar Q = \text{scale} \cdot \bar S K, \quad \bar K = \text{scale} \cdot \bar S^\top Q

    No mask is needed: where it was False the weight P is 0, and so is the gradient of the score.

    Parameters
    ----------
    grad : (…, H, L, Kv) array_like; gradient of the output
    query : (…, H, L, K) array_like
    key : (…, G, S, K) array_like; H is a multiple of G; query head h reads key head h // (H // G)
    value : (…, G, S, Kv) array_like
    weights : (…, H, L, S) array_like
        P, as `attention_weights` gives it for the mask, bias and scale of the forward pass.
    scale : float, optional; that of the forward pass; 1/√K if not given

    Returns
    -------
    AttentionGradients

    References
    ----------
    Dao et al., "FlashAttention", arXiv:2205.14135, appendix B.2; grouped heads: Ainslie et al., arXiv:2305.13245.

    Examples
    --------
    >>> found = attention_backward([[[1.0]]], [[[2.0]]], [[[0.0], [3.0]]], [[[0.0], [4.0]]], [[[0.5, 0.5]]])
    >>> found.query.item(), found.value.ravel().tolist()
    (3.0, [0.5, 0.5])
    """
    given = {"grad": grad, "query": query, "key": key, "value": value, "weights": weights}
    grad, query, key, value, weights = in_one_dtype(**given)
    for name, x in zip(given, (grad, query, key, value, weights), strict=True):
        if x.ndim < 3:
            raise require.refusal(name, f"shape {x.shape}", "at least 3 axes")
    *lead, n_heads, length, width = query.shape
    n_groups, n_keys = key.shape[-3:-1]
    if n_heads % n_groups:
        raise require.refusal("query", f"{n_heads} heads", f"a multiple of the {n_groups} heads of key")
    require.shape("key", key, (*lead, n_groups, n_keys, width), "leading axes and width of query")
    require.shape("value", value, (*lead, n_groups, n_keys, "Kv"), "as key")
    require.shape("weights", weights, (*lead, n_heads, length, n_keys), "(…, H, L, S) of query and key")
    require.shape("grad", grad, (*lead, n_heads, length, value.shape[-1]), "(…, H, L, Kv) of query and value")
    scale = 1 / math.sqrt(width) if scale is None else require.number("scale", scale)

    # The query heads of a group are rows of one product with the group's only key and value.
    def rows(x: NDArray) -> NDArray:
        x = split_heads(x, n_groups)
        return x.reshape(*x.shape[:-3], -1, x.shape[-1])

    with np.errstate(over="ignore", invalid="ignore"):
        of_scores = (rows(grad) @ value.swapaxes(-1, -2)).reshape(weights.shape)
        of_scores -= np.vecdot(weights, of_scores)[..., None]  # as `softmax_backward` does
        of_scores *= weights
        # The scale is multiplied into the key and the query, which are smaller than the scores.
        of_query = (rows(of_scores) @ (key * scale)).reshape(query.shape)
        of_key = rows(of_scores).swapaxes(-1, -2) @ rows(query * scale)
        of_value = rows(weights).swapaxes(-1, -2) @ rows(grad)
    finite((of_query, of_key, of_value), grad=grad, query=query, key=key, value=value, weights=weights)
    return AttentionGradients(of_query, of_key, of_value, of_scores)


DERIVATIVES: Mapping[str, Callable[[NDArray], NDArray]] = MappingProxyType(
    {
        "relu": relu_derivative,
        "gelu": gelu_derivative,
        "gelu_tanh": gelu_tanh_derivative,
        "silu": silu_derivative,
        "glu": sigmoid_derivative,
        "bilinear": np.ones_like,
        "reglu": relu_derivative,
        "geglu": gelu_derivative,
        "swiglu": silu_derivative,
    }
)
"""The derivatives of `feedforward.ACTIVATIONS`."""


class FfnGradients(NamedTuple):
    """Gradients of a plain feed-forward layer's arguments.

    Attributes
    ----------
    x : (..., D) ndarray
    w_in : (D, F) ndarray
    w_out : (F, D) ndarray
    b_in : (F,) ndarray
    b_out : (D,) ndarray
    """

    x: NDArray
    w_in: NDArray
    w_out: NDArray
    b_in: NDArray
    b_out: NDArray


class GluGradients(NamedTuple):
    """Gradients of a gated feed-forward layer's arguments.

    Attributes
    ----------
    x : (..., D) ndarray
    w_gate, w_up : (D, F) ndarrays
    w_down : (F, D) ndarray
    """

    x: NDArray
    w_gate: NDArray
    w_up: NDArray
    w_down: NDArray


@require.door
def ffn_backward(
    grad: ArrayLike,
    x: ArrayLike,
    w_in: ArrayLike,
    w_out: ArrayLike,
    *,
    kind: str,
    hidden: ArrayLike,
    activated: ArrayLike,
) -> FfnGradients:
    r"""Return the gradients of a plain feed-forward layer, y = f(h) W_out + b_out with h = x W_in + b_in.

    .. math::
        \bar h = f'(h) \odot \bar y\, W_\text{out}^\top, \quad \bar W_\text{out} = \sum f(h)^\top \bar y, \quad
        \bar W_\text{in} = \sum x^\top \bar h, \quad \bar x = \bar h\, W_\text{in}^\top

    Parameters
    ----------
    grad : array_like, shape (..., D); gradient of the output
    x : array_like, shape (..., D); the input
    w_in : array_like, shape (D, F)
    w_out : array_like, shape (F, D)
    kind : str; A name in `DERIVATIVES`: which f
    hidden, activated : array_like, shape (..., F); h and f(h), kept from the forward pass

    Returns
    -------
    FfnGradients

    Examples
    --------
    >>> found = ffn_backward([1.0], [2.0], [[3.0]], [[4.0]], kind="relu", hidden=[6.0], activated=[6.0])
    >>> found.x.item(), found.w_in.item(), found.w_out.item(), found.b_in.item()
    (12.0, 8.0, 6.0, 4.0)
    """
    require.one_of("kind", kind, tuple(DERIVATIVES))
    given = {"grad": grad, "x": x, "w_in": w_in, "w_out": w_out, "hidden": hidden, "activated": activated}
    grad, x, w_in, w_out, hidden, activated = in_one_dtype(**given)
    _check_shapes(grad, x, {"w_in": w_in}, {"w_out": w_out}, hidden=hidden, activated=activated)
    of_hidden, of_w_out = products_backward(grad, activated, w_out)
    of_hidden *= DERIVATIVES[kind](hidden)
    of_x, of_w_in = products_backward(of_hidden, x, w_in)
    given = {"grad": grad, "x": x, "w_in": w_in, "w_out": w_out, "activated": activated}
    return FfnGradients(*finite((of_x, of_w_in, of_w_out, _summed(of_hidden), _summed(grad)), **given))


@require.door
def glu_backward(
    grad: ArrayLike,
    x: ArrayLike,
    w_gate: ArrayLike,
    w_up: ArrayLike,
    w_down: ArrayLike,
    *,
    kind: str,
    gate: ArrayLike,
    activated: ArrayLike,
    up: ArrayLike,
) -> GluGradients:
    r"""Return the gradients of a gated feed-forward layer, y = (f(g) ⊙ u) W_down with g = x W_gate and u = x W_up.

    .. math::
        \bar h = \bar y\, W_\text{down}^\top, \quad \bar g = \bar h \odot u \odot f'(g), \quad
        \bar u = \bar h \odot f(g), \quad \bar x = \bar g\, W_\text{gate}^\top + \bar u\, W_\text{up}^\top

    The up branch passes its gradient through f(g) alone, with no derivative of f: Dauphin et al.'s linear path.

    Parameters
    ----------
    grad : array_like, shape (..., D); gradient of the output
    x : array_like, shape (..., D); the input
    w_gate, w_up : array_like, shape (D, F)
    w_down : array_like, shape (F, D)
    kind : str; A name in `DERIVATIVES`, such as "swiglu": which f
    gate, activated, up : array_like, shape (..., F); g, f(g) and u, kept from the forward pass

    Returns
    -------
    GluGradients

    References
    ----------
    Dauphin et al., "Language Modeling with Gated Convolutional Networks", arXiv:1612.08083, §3 (gradients of gates);
    Shazeer, arXiv:2002.05202, §2.

    Examples
    --------
    >>> kept = {"gate": [6.0], "activated": [6.0], "up": [2.0]}
    >>> found = glu_backward([1.0], [2.0], [[3.0]], [[1.0]], [[4.0]], kind="reglu", **kept)
    >>> found.x.item(), found.w_gate.item(), found.w_up.item(), found.w_down.item()
    (48.0, 16.0, 48.0, 12.0)
    """
    require.one_of("kind", kind, tuple(DERIVATIVES))
    given = {"grad": grad, "x": x, "w_gate": w_gate, "w_up": w_up, "w_down": w_down}
    given |= {"gate": gate, "activated": activated, "up": up}
    grad, x, w_gate, w_up, w_down, gate, activated, up = in_one_dtype(**given)
    into, kept = {"w_gate": w_gate, "w_up": w_up}, {"gate": gate, "activated": activated, "up": up}
    _check_shapes(grad, x, into, {"w_down": w_down}, **kept)
    of_hidden, of_w_down = products_backward(grad, activated * up, w_down)
    of_gate = DERIVATIVES[kind](gate)
    of_gate *= up
    of_gate *= of_hidden
    of_hidden *= activated  # now that of u
    through_gate, of_w_gate = products_backward(of_gate, x, w_gate)
    through_up, of_w_up = products_backward(of_hidden, x, w_up)
    through_gate += through_up
    given = {"grad": grad, "x": x, **into, "w_down": w_down, **kept}
    return GluGradients(*finite((through_gate, of_w_gate, of_w_up, of_w_down), **given))


def _check_shapes(grad: NDArray, x: NDArray, into: Mapping, out: Mapping, **kept: NDArray) -> None:
    ((last, w_out),) = out.items()
    for name, w in into.items():
        require.shape(name, w, (x.shape[-1], w_out.shape[0]), f"the last axis of x and the first of {last}")
    require.shape("grad", grad, (*x.shape[:-1], w_out.shape[-1]), f"as x and {last} have it")
    for name, value in kept.items():
        require.shape(name, value, (*x.shape[:-1], w_out.shape[0]), "(…, F) of x and the weights")


def _summed(x: NDArray) -> NDArray:
    return x.reshape(-1, x.shape[-1]).sum(0)


def rms_norm_backward(
    grad: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6
) -> tuple[NDArray, NDArray]:
    r"""Return the gradients of `rms_norm`.

    With :math:`r = (\tfrac1D \sum_j x_j^2 + \varepsilon)^{-1/2}`, :math:`\hat x = r x` and
    :math:`g = \gamma \odot \bar y`:

    .. math:: \bar x = r \bigl(g - \hat x\, \tfrac1D \textstyle\sum_j g_j \hat x_j\bigr), \qquad
              \bar\gamma = \sum_\text{rows} \bar y \odot \hat x

    The subtracted term takes away what would only lengthen x, which the norm undoes.  The factor r is why a stream
    that has grown passes a smaller gradient on.

    Parameters
    ----------
    grad : array_like, shape (..., D); gradient of the output
    x : array_like, shape (..., D); the input
    weight : array_like, shape (D,), optional; the gain γ; ones if not given
    eps : float; ε > 0

    Returns
    -------
    grad_x : ndarray, shape (..., D)
    grad_weight : ndarray, shape (D,)

    References
    ----------
    Zhang & Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467, §4.2 (gradients, with their scale
    invariance).

    Examples
    --------
    >>> grad_x, grad_weight = rms_norm_backward([1.0, 0.0], [1.0, 3.0], eps=1e-12)
    >>> grad_x.round(6).tolist(), grad_weight.round(6).tolist()
    ([0.402492, -0.134164], [0.447214, 0.0])
    """
    grad, x, weight, eps = _checked(grad, x, weight, eps)
    with np.errstate(over="ignore", invalid="ignore"):
        r = _inverse_root(np.vecdot(x, x) / np.float64(x.shape[-1]), eps, x.dtype)
        return _finite(_through(grad, x * r, r, weight), r, grad, x, weight)


def layer_norm_backward(
    grad: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-5
) -> tuple[NDArray, NDArray, NDArray]:
    r"""Return the gradients of `layer_norm`.

    With :math:`r = (\sigma^2 + \varepsilon)^{-1/2}`, :math:`\hat x = r (x - \mu)` and
    :math:`g = \gamma \odot \bar y`:

    .. math:: \bar x = r \bigl(g - \tfrac1D \textstyle\sum_j g_j - \hat x\, \tfrac1D \sum_j g_j \hat x_j\bigr),
              \qquad \bar\gamma = \sum_\text{rows} \bar y \odot \hat x, \quad \bar\beta = \sum_\text{rows} \bar y

    Parameters
    ----------
    grad : array_like, shape (..., D); gradient of the output
    x : array_like, shape (..., D); the input
    weight : array_like, shape (D,), optional; the gain γ; ones if not given
    eps : float; ε > 0

    Returns
    -------
    grad_x : ndarray, shape (..., D); each row sums to 0, as a shift of x changes nothing
    grad_weight, grad_bias : ndarrays, shape (D,)

    References
    ----------
    Ba, Kiros & Hinton, "Layer Normalization", arXiv:1607.06450, §3, eq. 3; Xu et al., "Understanding and Improving
    Layer Normalization", arXiv:1911.07013, §3 (the gradient through mean and variance).

    Examples
    --------
    >>> grad_x, grad_weight, grad_bias = layer_norm_backward([1.0, 0.0, 0.0], [1.0, 0.0, 2.0], eps=1e-12)
    >>> grad_x.round(6).tolist(), grad_weight.tolist(), grad_bias.tolist()
    ([0.816497, -0.408248, -0.408248], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    """
    grad, x, weight, eps = _checked(grad, x, weight, eps)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = x - x.mean(-1, keepdims=True)
        r = _inverse_root(np.vecdot(centred, centred) / np.float64(x.shape[-1]), eps, x.dtype)
        centred *= r
        grad_x, grad_weight = _through(grad, centred, r, weight, center=True)
        return _finite((grad_x, grad_weight, _rows(grad).sum(0)), r, grad, x, weight)


def _through(
    grad: NDArray, normed: NDArray, r: NDArray, weight: NDArray | None, *, center: bool = False
) -> tuple[NDArray, NDArray]:
    grad_weight = np.einsum("id,id->d", _rows(grad), _rows(normed))
    g = grad if weight is None else grad * weight
    along = np.vecdot(g, normed)[..., None] / g.dtype.type(g.shape[-1])
    mean = g.mean(-1, keepdims=True) if center else None
    normed *= along
    grad_x = np.subtract(g, normed, out=normed)
    if center:
        grad_x -= mean
    grad_x *= r
    return grad_x, grad_weight


def _finite(results: tuple, r: NDArray, grad: NDArray, x: NDArray, weight: NDArray | None) -> tuple:
    """Refuse what isn't finite, and an x so large that 1/RMS has become 0."""
    if not r.all():
        require.all_numbers("x", x)
        raise require.refusal("x", f"entries up to {np.abs(x).max():.3g}", f"squares within {x.dtype.name}")
    return finite(results, grad=grad, x=x, **({} if weight is None else {"weight": weight}))


def _inverse_root(mean_square: NDArray, eps: float, dtype: np.dtype) -> NDArray:
    return (1 / np.sqrt(mean_square + eps)).astype(dtype)[..., None]


def _rows(x: NDArray) -> NDArray:
    return x.reshape(-1, x.shape[-1])


def _checked(grad: ArrayLike, x: ArrayLike, weight: ArrayLike | None, eps: float):
    given = {"grad": grad, "x": x} | ({} if weight is None else {"weight": weight})
    grad, x, *rest = in_one_dtype(**given)
    require.shape("grad", grad, x.shape, "that of x")
    if rest:
        require.shape("weight", rest[0], x.shape[-1:], "the last axis of x")
    return grad, x, rest[0] if rest else None, require.number("eps", eps, above=0)


def products_backward(grad: NDArray, x: NDArray, w: NDArray) -> tuple[NDArray, NDArray]:
    """Return what `linear_backward` does, of arrays that fit and are not checked: one product for all positions."""
    rows = grad.reshape(-1, grad.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        return (rows @ w.T).reshape(x.shape), x.reshape(-1, x.shape[-1]).T @ rows
