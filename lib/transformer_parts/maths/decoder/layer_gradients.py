"""One decoder layer run forward so that it can be run backward, and its backward pass."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import norm_placement
from transformer_parts.maths.decoder.config import StackConfig
from transformer_parts.maths.decoder.layer import Layer, merge_heads, to_heads
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

Weights = Mapping[str, NDArray]

KEPT = frozenset({"attn_in", "query", "key", "v", "weights", "joined", "U", "ffn_in", "gate", "up", "hidden"})
"""The steps of a layer that its backward pass reads, or that are watched in training; so is each ``….input``."""


def layer_forward(weights: Weights, x: NDArray, config: StackConfig) -> tuple[NDArray, dict[str, NDArray]]:
    """Return the output of one decoder layer, and by name what its backward pass needs: `KEPT` and all ``….input``."""
    kept: dict[str, NDArray] = {}

    def keep(name: str, value: NDArray) -> NDArray:
        if name in KEPT or name.endswith(".input"):
            kept[name] = value
        return value

    return Layer(weights, config)(x, note=keep), kept


def layer_backward(
    grad: NDArray, weights: Weights, kept: Mapping[str, NDArray], config: StackConfig
) -> tuple[NDArray, dict[str, NDArray]]:
    """Return the gradient at a layer's input, and those of its weights by their names.

    The parts' backward passes in reverse order; where a tensor was read more than once (by w_q, w_k and w_v; by the
    branch and the stream) the gradients of its readers are added.
    """
    gradients: dict[str, NDArray] = {}

    def norm(name: str) -> Callable[[NDArray], NDArray]:
        def run(grad: NDArray) -> NDArray:
            found, of_parameters = normalized_backward(weights, name, grad, kept[f"{name}.input"], config)
            gradients.update(of_parameters)
            return found

        return run

    def linear(name: str, grad: NDArray, x: NDArray) -> NDArray:
        found, gradients[name] = linear_backward(grad, x, weights[name])
        return found

    def attention(grad: NDArray) -> NDArray:
        mixed = to_heads(linear("w_o", grad, kept["joined"]), config.n_heads)
        found = attention_backward(mixed, kept["query"], kept["key"], kept["v"], kept["weights"], scale=config.scale)
        query, key = found.query, found.key
        if config.rope_base is not None:
            at = np.arange(grad.shape[-2])
            query, key = (rotate_backward(part, at, **config.rotation) for part in (query, key))
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
            hidden = {"gate": kept["gate.input"], "activated": kept["gate"], "up": kept["up"]}
            found = glu_backward(grad, kept["ffn_in"], *matrices, kind=config.ffn, **hidden)
        else:
            hidden = {"hidden": kept["hidden.input"], "activated": kept["hidden"]}
            found = ffn_backward(grad, kept["ffn_in"], *matrices, kind=config.ffn, **hidden)
        gradients.update({name: getattr(found, name) for name in names})
        return found.x

    grad = around_backward(grad, feed_forward, norm("ffn_norm"), norm("ffn_norm_out"), config)
    return around_backward(grad, attention, norm("attn_norm"), norm("attn_norm_out"), config), gradients


def around_backward(
    grad: NDArray, branch_backward: Part, norm_backward: Part, norm_out_backward: Part, config: StackConfig
) -> NDArray:
    """Return the gradient at the input of a branch with its norms around it, as the config's placement has them."""
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
    """Return the gradients of `layer.normalized`: at its input, and of the parameters called `name`."""
    if config.norm == "rms":
        found, of_gain = rms_norm_backward(grad, x, weights[name], config.eps)
        return found, {name: of_gain}
    found, of_gain, of_bias = layer_norm_backward(grad, x, weights[name], config.eps)
    return found, {name: of_gain, f"{name}_bias": of_bias}
