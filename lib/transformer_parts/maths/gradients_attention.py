"""Backward pass of attention, its weights kept from the forward pass."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.attention_blocks import split_heads
from transformer_parts.maths.gradients_operands import finite, in_one_dtype

__all__ = ["AttentionGradients", "attention_backward"]


class AttentionGradients(NamedTuple):
    """Gradients of attention's arguments.

    Attributes
    ----------
    query : (…, H, L, K) ndarray
    key : (…, G, S, K) ndarray
        The sum over the query heads that share the head.
    value : (…, G, S, Kv) ndarray
        Likewise.
    bias : (…, H, L, S) ndarray
        Of what was added to the scaled scores; 0 where the mask was False.
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
    grad : (…, H, L, Kv) array_like
        Gradient of the output.
    query : (…, H, L, K) array_like
    key : (…, G, S, K) array_like
        H is a multiple of G; query head h reads key head h // (H // G).
    value : (…, G, S, Kv) array_like
    weights : (…, H, L, S) array_like
        P, as `attention_weights` gives it for the mask, bias and scale of the forward pass.
    scale : float, optional
        That of the forward pass; 1/√K if not given.

    Returns
    -------
    AttentionGradients

    Raises
    ------
    ValueError
        If a shape does not fit or an entry is not finite.

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
        scaled = rows(of_scores) * scale
        of_query, of_key = (scaled @ key).reshape(query.shape), scaled.swapaxes(-1, -2) @ rows(query)
        of_value = rows(weights).swapaxes(-1, -2) @ rows(grad)
    finite((of_query, of_key, of_value), grad=grad, query=query, key=key, value=value, weights=weights)
    return AttentionGradients(of_query, of_key, of_value, of_scores)
