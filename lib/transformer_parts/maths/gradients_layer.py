"""Backward pass of one decoder layer of any kind."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import norm_placement
from transformer_parts.maths.gradients import (
    attention_backward,
    ffn_backward,
    glu_backward,
    layer_norm_backward,
    linear_backward,
    rms_norm_backward,
    rotate_backward,
)
from transformer_parts.maths.norm_placement import Part
from transformer_parts.maths.stack_config import StackConfig
from transformer_parts.maths.stack_layer import merge_heads, to_heads

__all__ = ["around_backward", "layer_backward", "normalized_backward"]

Weights = Mapping[str, NDArray]


def layer_backward(
    grad: NDArray, weights: Weights, kept: Mapping[str, NDArray], config: StackConfig
) -> tuple[NDArray, dict[str, NDArray]]:
    r"""Return the gradient at a layer's input, and those of its weights.

    The parts' backward passes in the reverse order of `stack_layer.layer_forward`; where a tensor was read more than
    once (by w_q, w_k and w_v; by the branch and the stream) the gradients of its readers are added.

    Parameters
    ----------
    grad : ndarray, shape (..., L, D)
        Gradient of the loss with respect to the layer's output.
    weights : mapping of str to ndarray
        The layer's own parameters, as in the forward pass.
    kept : mapping of str to ndarray
        What the forward pass kept.
    config : StackConfig
        Sizes and kinds.

    Returns
    -------
    grad_x : ndarray, shape (..., L, D)
    gradients : dict of str to ndarray
        By the names of `weights`.

    Examples
    --------
    >>> from transformer_parts.maths.stack_config import shapes
    >>> from transformer_parts.maths.stack_layer import layer_forward
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name.split(".")[-1]: np.full(shape, 0.5) for name, shape in shapes(config).items()}
    >>> y, kept = layer_forward(weights, np.ones((3, 8)), config)
    >>> grad_x, gradients = layer_backward(np.ones((3, 8)), weights, kept, config)
    >>> grad_x.shape, gradients["w_gate"].shape
    ((3, 8), (8, 16))
    """
    gradients: dict[str, NDArray] = {}

    def norm(name: str) -> Callable[[NDArray], NDArray]:
        def run(grad: NDArray) -> NDArray:
            found, of_parameters = normalized_backward(weights, name, grad, kept[name], config)
            gradients.update(of_parameters)
            return found

        return run

    def linear(name: str, grad: NDArray, x: NDArray) -> NDArray:
        found, gradients[name] = linear_backward(grad, x, weights[name])
        return found

    def attention(grad: NDArray) -> NDArray:
        mixed = to_heads(linear("w_o", grad, kept["mixed"]), config.n_heads)
        found = attention_backward(mixed, kept["query"], kept["key"], kept["value"], kept["weights"])
        query, key = found.query, found.key
        if config.rope_base is not None:
            at = np.arange(grad.shape[-2])
            turn = {"rope_base": config.rope_base, "inv_freq": config.inv_freq}
            query, key = (rotate_backward(part, at, **turn) for part in (query, key))
        if config.qk_norm:
            query, key = norm("q_norm")(query), norm("k_norm")(key)
        x = kept["attn_in"]
        through_query = linear("w_q", merge_heads(query), x)
        through_query += linear("w_k", merge_heads(key), x)
        through_query += linear("w_v", merge_heads(found.value), x)
        return through_query

    def feed_forward(grad: NDArray) -> NDArray:
        names = ("w_gate", "w_up", "w_down") if config.gated else ("w_in", "w_out")
        matrices = (weights[name] for name in names)
        if config.gated:
            hidden = {name: kept[name] for name in ("gate", "activated", "up")}
            found = glu_backward(grad, kept["ffn_in"], *matrices, kind=config.ffn, **hidden)
        else:
            hidden = {name: kept[name] for name in ("hidden", "activated")}
            found = ffn_backward(grad, kept["ffn_in"], *matrices, kind=config.ffn, **hidden)
        gradients.update({name: getattr(found, name) for name in names})
        return found.x

    grad = around_backward(grad, feed_forward, norm("ffn_norm"), norm("ffn_norm_out"), config)
    return around_backward(grad, attention, norm("attn_norm"), norm("attn_norm_out"), config), gradients


def around_backward(
    grad: NDArray, branch_backward: Part, norm_backward: Part, norm_out_backward: Part, config: StackConfig
) -> NDArray:
    """Return the gradient at the input of a branch with its norms around it, as the config's placement has them.

    Parameters
    ----------
    grad : ndarray, shape (..., D)
        Gradient of the output.
    branch_backward, norm_backward, norm_out_backward : function
        Backward passes of F, of its norm, and of its outer norm, which only a sandwich calls.
    config : StackConfig
        Its `placement` and `alpha` are read.

    Returns
    -------
    ndarray, shape (..., D)

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=8, d_model=2, n_heads=1, d_ff=4, placement="deepnorm")
    >>> around_backward(np.array([1.0, 0.0]), lambda g: g, lambda g: g / 10, None, config).round(6).tolist()
    [0.3, 0.0]
    """
    if config.placement == "pre":
        return norm_placement.pre_norm_backward(grad, branch_backward, norm_backward)
    if config.placement == "sandwich":
        return norm_placement.sandwich_norm_backward(grad, branch_backward, norm_backward, norm_out_backward)
    if config.placement == "post":
        return norm_placement.post_norm_backward(grad, branch_backward, norm_backward)
    return norm_placement.deep_norm_backward(grad, branch_backward, norm_backward, config.alpha)


def normalized_backward(
    weights: Weights, name: str, grad: NDArray, x: NDArray, config: StackConfig
) -> tuple[NDArray, dict[str, NDArray]]:
    """Return the gradients of `stack_layer.normalized`: at its input, and of the parameters called `name`.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Parameters.
    name : str
        The norm's.
    grad, x : ndarray, shape (..., D)
        Gradient of its output, and its input.
    config : StackConfig
        Its `norm` and `eps` are read.

    Returns
    -------
    grad_x : ndarray, shape (..., D)
    gradients : dict of str to ndarray

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=2, n_heads=1, d_ff=4, norm="layer")
    >>> weights = {"final_norm": np.ones(2), "final_norm_bias": np.zeros(2)}
    >>> grad_x, found = normalized_backward(weights, "final_norm", np.ones(2), np.array([1.0, 3.0]), config)
    >>> found["final_norm_bias"].tolist()
    [1.0, 1.0]
    """
    if config.norm == "rms":
        found, of_gain = rms_norm_backward(grad, x, weights[name], config.eps)
        return found, {name: of_gain}
    found, of_gain, of_bias = layer_norm_backward(grad, x, weights[name], config.eps)
    return found, {name: of_gain, f"{name}_bias": of_bias}
