"""One decoder layer of exchangeable parts, step by step: each tensor with its weights and its operations.

`decoder.DecoderLayer` is the layer as it is used.  Here every part can be exchanged for another, nothing is made in
blocks, and the layer's weights are a flat mapping by the names of `stack_config.shapes`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.attention import attention_weights, scores
from transformer_parts.maths.decoder_parts import layer_shapes, parameter_counts, part_of, random_layer
from transformer_parts.maths.gradients import ACTIVATIONS
from transformer_parts.maths.stack_config import StackConfig
from transformer_parts.maths.stack_layer import merge_heads, normalized, to_heads

__all__ = ["VISIBLE", "WalkStep", "layer_shapes", "parameter_counts", "part_of", "random_layer", "visible", "walk"]

#: Which keys a token may attend to: the causal mask, then the mistakes: no mask, one diagonal too far, transposed.
VISIBLE = ("causal", "everything", "one ahead", "wrong way")


class WalkStep(NamedTuple):
    """One intermediate tensor of a layer and what it took to make it.

    Attributes
    ----------
    name : str
        What it is, such as "q" or "weights".
    axes : str
        Its axes in the letters of the package, such as "… H L K".
    value : ndarray
        The tensor; not to be written to.
    uses : tuple of str
        The names of the weights that are used in this step.
    parameters : int
        How many numbers these weights have.
    flops : int
        Operations of the step's matrix product, a multiplication and an addition counted as two; 0 without one.
    """

    name: str
    axes: str
    value: NDArray
    uses: tuple[str, ...] = ()
    parameters: int = 0
    flops: int = 0


def visible(sees: str, L: int) -> NDArray[np.bool_]:
    """Return which of L keys each of L queries may attend to: True = may.

    Parameters
    ----------
    sees : str
        One of `VISIBLE`.
    L : int
        How many tokens.

    Returns
    -------
    (L, L) ndarray of bool

    Raises
    ------
    ValueError
        If `sees` is unknown or `L` is less than 1.

    Examples
    --------
    >>> visible("one ahead", 3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    require.one_of("sees", sees, VISIBLE)
    L = require.integer("L", L)
    if sees == "wrong way":
        return np.tri(L, dtype=bool).T
    return np.tri(L, k={"causal": 0, "one ahead": 1, "everything": L}[sees], dtype=bool)


def walk(weights: Mapping[str, NDArray], x: ArrayLike, config: StackConfig, *, sees: str = "causal") -> list[WalkStep]:
    r"""Run one layer and return every tensor in the order of its computation.

    .. math::
        U &= X + \operatorname{Attn}(\operatorname{Norm}_1(X)), & Y &= U + \operatorname{FFN}(\operatorname{Norm}_2(U))
            && \text{(pre)} \\
        U &= \operatorname{Norm}_1(X + \operatorname{Attn}(X)), & Y &= \operatorname{Norm}_2(U + \operatorname{FFN}(U))
            && \text{(post)}

    Parameters
    ----------
    weights : mapping of str to ndarray
        Names and shapes as `layer_shapes` has them.
    x : (…, L, D) array_like
        The residual stream; positions are 0 … L−1.
    config : StackConfig
        `placement` "pre" or "post", no `qk_norm`.
    sees : str
        One of `VISIBLE`; the config's `causal` isn't read.

    Returns
    -------
    list of WalkStep
        Pre, gated, with RoPE: x, norm1, q, k, v, q_rotated, k_rotated, scores, weights, mixed, attention, U, norm2,
        gate (activated), up, product, ffn, Y.  Without RoPE the rotated ones are missing; a plain feed-forward layer
        has one hidden tensor in place of gate, up and product; post has sum1 before U and sum2 before Y instead of
        norm1 and norm2.

    Raises
    ------
    ValueError
        If a weight is missing, not finite or of another shape, `x` does not fit, or the kind of layer is not among
        these.

    References
    ----------
    Pre and post: Xiong et al., arXiv:2002.04745, §3.1 and table 1; SwiGLU: Shazeer, arXiv:2002.05202, §2.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> steps = walk(random_layer(config), np.ones((2, 3, 8)), config)
    >>> [(step.name, step.value.shape, step.parameters, step.flops) for step in steps[7:9]]
    [('scores', (2, 2, 3, 3), 0, 288), ('weights', (2, 2, 3, 3), 0, 0)]
    """
    weights = _checked(weights, config)
    x = require.array("x", x, min_ndim=2)
    require.last_axis("x", x, config.d_model, "d_model")
    steps: list[WalkStep] = []

    def note(name: str, axes: str, value: NDArray, *uses: str, flops: int = 0) -> NDArray:
        steps.append(WalkStep(name, axes, value, uses, sum(weights[use].size for use in uses), flops))
        return value

    def product(name: str, axes: str, left: NDArray, use: str, after: Callable = lambda y: y) -> NDArray:
        value = after(left @ weights[use])
        return note(name, axes, value, use, flops=2 * left.size * weights[use].shape[1])

    def norm(name: str, value: NDArray, which: str) -> NDArray:
        names = [n for n in (f"{which}_norm", f"{which}_norm_bias") if n in weights]
        return note(name, "… L D", normalized(weights, f"{which}_norm", value, config), *names)

    pre = config.placement == "pre"
    note("x", "… L D", x)
    into = norm("norm1", x, "attn") if pre else x
    added = _attend(into, config, visible(sees, x.shape[-2]), note, product)
    u = note("U", "… L D", x + added) if pre else norm("U", note("sum1", "… L D", x + added), "attn")
    into = norm("norm2", u, "ffn") if pre else u
    if config.gated:
        gate = product("gate", "… L F", into, "w_gate", ACTIVATIONS[config.ffn])
        hidden = note("product", "… L F", gate * product("up", "… L F", into, "w_up"))
        added = product("ffn", "… L D", hidden, "w_down")
    else:
        hidden = product("hidden", "… L F", into, "w_in", ACTIVATIONS[config.ffn])
        added = product("ffn", "… L D", hidden, "w_out")
    if pre:
        note("Y", "… L D", u + added)
    else:
        norm("Y", note("sum2", "… L D", u + added), "ffn")
    return steps


def _attend(x: NDArray, config: StackConfig, mask: NDArray, note: Callable, product: Callable) -> NDArray:
    """Return what attention adds, noting each tensor on the way."""

    def heads(n: int) -> Callable:
        return lambda y: to_heads(y, n)

    query = product("q", "… H L K", x, "w_q", heads(config.n_heads))
    key = product("k", "… G S K", x, "w_k", heads(config.n_kv_heads))
    value = product("v", "… G S K", x, "w_v", heads(config.n_kv_heads))
    if config.rope_base is not None:
        at, turn = np.arange(x.shape[-2]), {"rope_base": config.rope_base, "inv_freq": config.inv_freq}
        query = note("q_rotated", "… H L K", rope.rotate(query, at, **turn))
        key = note("k_rotated", "… G S K", rope.rotate(key, at, **turn))
    pairs = 2 * query.size * x.shape[-2]
    note("scores", "… H L S", scores(query, key), flops=pairs)
    weights = note("weights", "… H L S", attention_weights(query, key, mask=mask))
    shared = config.n_heads // config.n_kv_heads
    mixed = note("mixed", "… H L K", weights @ np.repeat(value, shared, axis=-3), flops=pairs)
    return product("attention", "… L D", merge_heads(mixed), "w_o")


def _checked(weights: Mapping[str, NDArray], config: StackConfig) -> dict[str, NDArray]:
    if not isinstance(config, StackConfig):
        raise require.refusal("config", f"a {type(config).__name__}", "a StackConfig")
    require.one_of("placement", config.placement, ("pre", "post"))
    if config.qk_norm:
        raise require.refusal("qk_norm", "True", "False: the walk has no norm of queries and keys")
    found = {}
    for name, size in layer_shapes(config).items():
        if name not in weights:
            raise require.refusal("weights", f"no {name}", f"{name} of shape {size}")
        found[name] = require.array(name, weights[name])
        require.shape(name, found[name], size, "by the config")
    return found
