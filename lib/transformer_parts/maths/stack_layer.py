"""One layer of a decoder of any kind, run forward so that it can be run backward.

Where `decoder.DecoderLayer` is the layer of today's models, without a tape and in bounded memory, this one has every
placement, norm and feed-forward kind of `StackConfig` and keeps what the backward pass will read.  Both are wired
from the same parts, and a test holds them equal where they describe the same layer.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import norm_placement, rope
from transformer_parts.maths.attention import attention_weights, split_heads
from transformer_parts.maths.gradients import ACTIVATIONS
from transformer_parts.maths.norms import layer_norm, rms_norm
from transformer_parts.maths.stack_config import StackConfig

__all__ = ["around", "layer_forward", "merge_heads", "normalized", "to_heads"]

Weights = Mapping[str, NDArray]
Kept = dict[str, NDArray]


def layer_forward(weights: Weights, x: NDArray, config: StackConfig) -> tuple[NDArray, Kept]:
    """Return the output of one decoder layer, and what its backward pass needs.

    Parameters
    ----------
    weights : mapping of str to ndarray
        The layer's own parameters, by their names in `shapes` without ``layers.i.``.
    x : ndarray, shape (..., L, D)
        The residual stream; token i stands at position i and, where the config is causal, sees none after it.
    config : StackConfig
        Sizes and kinds.

    Returns
    -------
    y : ndarray, shape (..., L, D)
        The stream after the layer.
    kept : dict of str to ndarray
        By name: of each norm its input (``attn_norm``, ``q_norm``, …); of attention ``attn_in`` (…, L, D), ``query``
        (…, H, L, K) and ``key`` (…, G, L, K), both turned, ``value``, ``weights`` (…, H, L, L) and ``mixed``
        (…, L, HK); of the feed-forward layer ``ffn_in``, then ``gate``, ``activated`` and ``up``, or ``hidden`` and
        ``activated``, each (…, L, F); and ``u``, the stream between the two.

    References
    ----------
    As for `decoder.DecoderLayer` and the placements of `residual`.

    Examples
    --------
    >>> from transformer_parts.maths.stack_config import shapes
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> layer = {name.split(".")[-1]: np.full(shape, 0.5) for name, shape in shapes(config).items()}
    >>> y, kept = layer_forward(layer, np.ones((3, 8)), config)
    >>> y.shape, kept["weights"].shape
    ((3, 8), (2, 3, 3))
    """
    kept: Kept = {}

    def norm(name: str) -> Callable[[NDArray], NDArray]:
        def run(x: NDArray) -> NDArray:
            kept[name] = x
            return normalized(weights, name, x, config)

        return run

    def attention(x: NDArray) -> NDArray:
        kept["attn_in"] = x
        query, key, value = (_linear(x, weights[name]) for name in ("w_q", "w_k", "w_v"))
        query = to_heads(query, config.n_heads)
        key, value = to_heads(key, config.n_kv_heads), to_heads(value, config.n_kv_heads)
        if config.qk_norm:
            query, key = norm("q_norm")(query), norm("k_norm")(key)
        if config.rope_base is not None:
            at = np.arange(x.shape[-2])
            turn = {"rope_base": config.rope_base, "inv_freq": config.inv_freq}
            query, key = (rope.rotate(part, at, **turn) for part in (query, key))
        kept["query"], kept["key"], kept["value"] = query, key, value
        kept["weights"] = mixing = attention_weights(query, key, causal=config.causal)
        rows = split_heads(mixing, config.n_kv_heads)
        mixed = rows.reshape(*rows.shape[:-3], -1, rows.shape[-1]) @ value  # a group's queries share its values
        kept["mixed"] = merge_heads(mixed.reshape(query.shape))
        return _linear(kept["mixed"], weights["w_o"])

    def feed_forward(x: NDArray) -> NDArray:
        kept["ffn_in"] = x
        activation = ACTIVATIONS[config.ffn]
        if not config.gated:
            kept["hidden"] = _linear(x, weights["w_in"])
            kept["activated"] = activation(kept["hidden"])
            return _linear(kept["activated"], weights["w_out"])
        kept["gate"], kept["up"] = _linear(x, weights["w_gate"]), _linear(x, weights["w_up"])
        kept["activated"] = activation(kept["gate"])
        return _linear(kept["activated"] * kept["up"], weights["w_down"])

    kept["u"] = around(x, attention, norm("attn_norm"), norm("attn_norm_out"), config)
    return around(kept["u"], feed_forward, norm("ffn_norm"), norm("ffn_norm_out"), config), kept


def around(
    x: NDArray,
    branch: norm_placement.Part,
    norm: norm_placement.Part,
    norm_out: norm_placement.Part,
    config: StackConfig,
) -> NDArray:
    """Put the norms around a branch as the config's placement has them.

    Parameters
    ----------
    x : ndarray, shape (..., D)
        The residual stream.
    branch, norm, norm_out : function
        F, its norm, and its outer norm, which only a sandwich calls.
    config : StackConfig
        Its `placement` and `alpha` are read.

    Returns
    -------
    ndarray, shape (..., D)

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=8, d_model=2, n_heads=1, d_ff=4, placement="deepnorm")
    >>> around(np.array([3.0, 4.0]), lambda x: x, lambda x: x / 10, None, config).round(6).tolist()
    [0.9, 1.2]
    """
    if config.placement == "pre":
        return norm_placement.pre_norm(x, branch, norm)
    if config.placement == "sandwich":
        return norm_placement.sandwich_norm(x, branch, norm, norm_out)
    if config.placement == "post":
        return norm_placement.post_norm(x, branch, norm)
    return norm_placement.deep_norm(x, branch, norm, config.alpha)


def normalized(weights: Weights, name: str, x: NDArray, config: StackConfig) -> NDArray:
    """Return the config's norm of `x`, with the gain (and bias) called `name`.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Parameters; `name` and, of LayerNorm, `name` + "_bias" are read.
    name : str
        The norm's.
    x : ndarray, shape (..., D)
        What is normalised, over the last axis.
    config : StackConfig
        Its `norm` and `eps` are read.

    Returns
    -------
    ndarray, shape (..., D)

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=2, n_heads=1, d_ff=4, eps=1e-12)
    >>> normalized({"final_norm": np.ones(2)}, "final_norm", np.array([1.0, 3.0]), config).round(6).tolist()
    [0.447214, 1.341641]
    """
    if config.norm == "rms":
        return rms_norm(x, weights[name], config.eps)
    return layer_norm(x, weights[name], weights[f"{name}_bias"], config.eps)


def to_heads(x: NDArray, n_heads: int) -> NDArray:
    """Return (…, L, n·K) as heads (…, n, L, K), each of them contiguous.

    Parameters
    ----------
    x : ndarray, shape (..., L, n·K)
        Channel h·K + c is channel c of head h.
    n_heads : int
        n.

    Returns
    -------
    ndarray, shape (..., n, L, K)

    Examples
    --------
    >>> to_heads(np.arange(8.0).reshape(2, 4), 2).tolist()
    [[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]
    """
    return np.ascontiguousarray(x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2))


def merge_heads(x: NDArray) -> NDArray:
    """Return heads (…, n, L, K) side by side, (…, L, n·K): `to_heads` undone.

    Parameters
    ----------
    x : ndarray, shape (..., n, L, K)
        Heads.

    Returns
    -------
    ndarray, shape (..., L, n·K)

    Examples
    --------
    >>> merge_heads(to_heads(np.arange(8.0).reshape(2, 4), 2)).tolist()
    [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    """
    *lead, n_heads, length, width = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, length, n_heads * width)


def _linear(x: NDArray, w: NDArray) -> NDArray:
    """Return x @ w as one product for all positions."""
    return (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], w.shape[-1])
