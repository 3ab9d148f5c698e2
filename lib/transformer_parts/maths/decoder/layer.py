"""One decoder layer, plainly written for every kind of part, and the layer of today's models with its weights."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.attention import attention_weights, blockwise, weigh
from transformer_parts.maths.decoder.config import StackConfig, layer_shapes, parameter_counts, random_layer
from transformer_parts.maths.decoder.steps import Note, Step, pass_on, recorder
from transformer_parts.maths.feedforward import ACTIVATIONS
from transformer_parts.maths.norms import layer_norm, rms_norm

__all__ = ["DecoderLayer", "Layer"]

# The number of a branch in the names of the steps: norm1, sum2.
_NUMBER = MappingProxyType({"attn": 1, "ffn": 2})


class Layer:
    r"""One decoder layer of any kind, each step written out.

    .. math::
        U &= X + \operatorname{Attn}(\operatorname{Norm}_1(X)), & Y &= U + \operatorname{FFN}(\operatorname{Norm}_2(U))
            && \text{(pre)} \\
        U &= \operatorname{Norm}_1(X + \operatorname{Attn}(X)), & Y &= \operatorname{Norm}_2(U + \operatorname{FFN}(U))
            && \text{(post)}

    Attention holds its weights whole, L·S numbers for each head; `DecoderLayer` computes them block by block.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Names and shapes as `config.layer_shapes` has them.  They are not checked.
    config : StackConfig; sizes and kinds

    Source: Pre and post: Xiong et al., arXiv:2002.04745, §3.1 and table 1; the others: `norm_placement`.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> Layer(random_layer(config), config)(np.ones((2, 3, 8))).shape
    (2, 3, 8)
    """

    def __init__(self, weights: Mapping[str, NDArray], config: StackConfig):
        self.weights, self.config = weights, config

    def __call__(
        self,
        x: NDArray,
        positions: NDArray | None = None,
        *,
        causal: bool | None = None,
        mask: NDArray | None = None,
        note: Note = pass_on,
    ) -> NDArray:
        """Return Y, the layer's output.

        Parameters
        ----------
        x : (…, L, D) ndarray; the residual stream
        positions : (L,) or (…, L) ndarray, optional; 0 … L−1 if not given
        causal : bool, optional
            No token sees a later one.  The config's if not given.
        mask : (…, H, L, L) ndarray of bool, optional; True = may attend
        note : function (name, value), optional; called with each intermediate tensor, which it returns

        Returns
        -------
        (…, L, D) ndarray
        """
        positions = np.arange(x.shape[-2]) if positions is None else positions
        causal = self.config.causal if causal is None else causal
        query, key, value = self.project(note("x", x), positions, note)
        return self.finish(x, query, key, value, causal=causal, mask=mask, note=note)

    def project(
        self, x: NDArray, positions: NDArray | None = None, note: Note = pass_on
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Return the queries, keys and values of tokens; queries and keys are turned if positions are given.

        Between this and `finish` a KV cache takes the keys and values in.

        Parameters
        ----------
        x : (…, L, D) ndarray; the residual stream, not yet normalised
        positions : (L,) or (…, L) ndarray, optional
        note : function (name, value), optional; as in a call of the layer

        Returns
        -------
        query : (…, H, L, K) ndarray
        key, value : (…, G, L, K) ndarrays

        Examples
        --------
        >>> layer = DecoderLayer.random(d_model=8, n_heads=2, n_kv_heads=1, d_ff=16)
        >>> [part.shape for part in layer.project(np.ones((3, 8)), np.arange(3))]
        [(2, 3, 4), (1, 3, 4), (1, 3, 4)]
        """
        c = self.config
        x = note("attn_in", self._read("attn", x, note))  # (…, L, D)
        query, key, value = self.products(x, "w_q", "w_k", "w_v")
        query = note("q", to_heads(query, c.n_heads))  # (…, H, L, K)
        key = note("k", to_heads(key, c.n_kv_heads))  # (…, G, L, K)
        value = note("v", to_heads(value, c.n_kv_heads))  # (…, G, L, K)
        if c.qk_norm:
            query, key = self.norm("q_norm", query, note), self.norm("k_norm", key, note)
        if c.rope_base is not None and positions is not None:
            query = note("q_rotated", self._turn(query, positions))
            key = note("k_rotated", self._turn(key, positions))
        return query, key, value

    def finish(
        self,
        x: NDArray,
        query: NDArray,
        key: NDArray,
        value: NDArray,
        *,
        causal: bool = True,
        mask: NDArray | None = None,
        note: Note = pass_on,
    ) -> NDArray:
        """Return the layer's output from the stream and what `project` (and a cache) made of it.

        Parameters
        ----------
        x : (…, L, D) ndarray; the residual stream
        query : (…, H, L, K) ndarray; turned
        key, value : (…, G, S, K) ndarrays
            Turned keys, and values, of S ≥ L tokens of which the last L are those of the stream.
        causal, mask, note
            As in a call of the layer.

        Returns
        -------
        (…, L, D) ndarray

        Examples
        --------
        >>> layer, x = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16), np.eye(3, 8)
        >>> query, key, value = layer.project(x, np.arange(3))
        >>> bool(np.allclose(layer.finish(x[2:], query[:, 2:], key, value), layer(x)[2:]))
        True
        """
        added = self.attend(query, key, value, causal=causal, mask=mask, note=note)  # (…, L, D)
        u = note("U", self._add("attn", x, added, note))  # (…, L, D)
        added = self.feed_forward(u, note)  # (…, L, D)
        return note("Y", self._add("ffn", u, added, note))  # (…, L, D)

    def attend(
        self,
        query: NDArray,
        key: NDArray,
        value: NDArray,
        *,
        causal: bool = True,
        mask: NDArray | None = None,
        note: Note = pass_on,
    ) -> NDArray:
        """Return what attention adds to the residual stream.

        Parameters
        ----------
        query : (…, H, L, K) ndarray
        key, value : (…, G, S, K) ndarrays
        causal, mask, note
            As in `finish`.

        Returns
        -------
        (…, L, D) ndarray

        Examples
        --------
        >>> layer = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16)
        >>> query, key, value = layer.project(np.ones((3, 8)), np.arange(3))
        >>> layer.attend(query[:, 2:], key, value).shape
        (1, 8)
        """
        query, key = note("query", query), note("key", key)
        weights = attention_weights(query, key, causal=causal, mask=mask, scale=self.config.scale)
        weights = note("weights", weights)  # (…, H, L, S), and each row sums to 1
        mixed = note("mixed", weigh(weights, value))  # (…, H, L, K)
        joined = note("joined", merge_heads(mixed))  # (…, L, H·K)
        return note("attention", linear(joined, self.weights["w_o"]))  # (…, L, D)

    def feed_forward(self, u: NDArray, note: Note = pass_on) -> NDArray:
        """Return what the feed-forward layer adds to the residual stream.

        Parameters
        ----------
        u : (…, L, D) ndarray; the residual stream after attention, not yet normalised
        note : function (name, value), optional; as in a call of the layer

        Returns
        -------
        (…, L, D) ndarray

        Examples
        --------
        >>> DecoderLayer.random(d_model=8, n_heads=2, d_ff=16).feed_forward(np.ones((3, 8))).shape
        (3, 8)
        """
        w, x = self.weights, note("ffn_in", self._read("ffn", u, note))  # (…, L, D)
        if self.config.gated:
            gate, up = self.products(x, "w_gate", "w_up")  # (…, L, F)
            gate = note("gate", self.activate(note("gate.input", gate)))  # (…, L, F)
            product = note("product", gate * note("up", up))  # (…, L, F)
            return note("ffn", linear(product, w["w_down"]))  # (…, L, D)
        hidden = note("hidden.input", linear(x, w["w_in"]))  # (…, L, F)
        hidden = note("hidden", self.activate(hidden))  # (…, L, F)
        return note("ffn", linear(hidden, w["w_out"]))  # (…, L, D)

    def _read(self, branch: str, x: NDArray, note: Note) -> NDArray:
        """Return what a branch, "attn" or "ffn", reads: the stream, normalised if the norm stands before it."""
        if self.config.placement in ("pre", "sandwich"):
            return note(f"norm{_NUMBER[branch]}", self.norm(f"{branch}_norm", x, note))
        return x

    def _add(self, branch: str, x: NDArray, added: NDArray, note: Note) -> NDArray:
        """Return the stream with what a branch adds; the formulas are those of `norm_placement`."""
        if self.config.placement == "pre":
            return x + added
        if self.config.placement == "sandwich":
            return x + self.norm(f"{branch}_norm_out", added, note)
        kept = x if self.config.placement == "post" else self.config.alpha * x
        return self.norm(f"{branch}_norm", note(f"sum{_NUMBER[branch]}", kept + added), note)

    def norm(self, name: str, x: NDArray, note: Note = pass_on) -> NDArray:
        """Return `x` normalised by the norm whose gain is called `name`; `models.variants` exchanges this step.

        Parameters
        ----------
        name : str
        x : (…, D) ndarray
        note : function, optional; called with each intermediate tensor

        Returns
        -------
        (…, D) ndarray
        """
        return normalized(self.weights, name, note(f"{name}.input", x), self.config)

    def _turn(self, x: NDArray, positions: NDArray) -> NDArray:
        """Return heads (…, n, L, K) turned by the tokens' positions, (L,) or (…, L)."""
        at = positions[..., None, :] if positions.ndim > 1 else positions
        return rope.rotate(x, at, **self.config.rotation)

    def activate(self, hidden: NDArray) -> NDArray:
        """Return the activation of the gate, or of the hidden layer; `models.variants` exchanges this step.

        Parameters
        ----------
        hidden : (…, L, F) ndarray

        Returns
        -------
        (…, L, F) ndarray
        """
        return ACTIVATIONS[self.config.ffn](hidden)

    def products(self, x: NDArray, *names: str) -> list[NDArray]:
        """Return x @ w for each of the weights named; `models.fused_layer` computes them as one product.

        Parameters
        ----------
        x : (…, L, D) ndarray
        *names : str

        Returns
        -------
        list of (…, L, n) ndarray
        """
        return [linear(x, self.weights[name]) for name in names]


@dataclass(frozen=True, eq=False, kw_only=True)
class DecoderLayer(Layer):
    r"""The decoder layer of today's models: pre-norm, RoPE, grouped heads, SwiGLU, no biases.

    .. math::
        U &= X + \operatorname{Attn}(\operatorname{RMSNorm}_1(X)) \\
        Y &= U + \operatorname{SwiGLU}(\operatorname{RMSNorm}_2(U))

    Its arguments are checked, and attention takes bounded memory.

    Parameters
    ----------
    attn_norm, ffn_norm : (D,) array_like; gains of the norms before attention and before the feed-forward layer
    w_q : (D, H·K) array_like; column h·K + c makes channel c of head h; all weights multiply from the right, ``x @ w``
    w_k, w_v : (D, G·K) array_like
    w_o : (H·K, D) array_like
    w_gate, w_up : (D, F) array_like
    w_down : (F, D) array_like
    n_heads, n_kv_heads : int; H and G; H is a multiple of G
    rope_base : float; base of RoPE's frequencies
    layout : {"interleaved", "split"}
        Which channels of a head make a pair.  It must be the one that w_q and w_k were trained with.
    rotary_dim : int, optional; turn only so many channels of a head
    inv_freq : (P,) array_like, optional; frequencies in radians per position, instead of those of `rope_base`
    scale : float, optional; of the attention scores; 1/√K if not given
    eps : float; ε of both norms

    Notes
    -----
    Weights keep their dtype and memory, except that 16-bit ones are widened to float32 once, here.  `weights` is the
    mapping of all of them by name, and `config` a `StackConfig` of the settings.

    References
    ----------
    Touvron et al., "LLaMA", arXiv:2302.13971, §2.2; Ainslie et al., "GQA", arXiv:2305.13245, §2.2;
    pre-norm: Xiong et al., arXiv:2002.04745, §3.

    Examples
    --------
    >>> layer = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, seed=1)
    >>> layer(np.ones((2, 3, 8))).shape
    (2, 3, 8)
    >>> layer.parameter_counts()
    {'attention': 256, 'ffn': 384, 'norms': 16, 'total': 656}
    """

    attn_norm: NDArray = field(repr=False)
    w_q: NDArray = field(repr=False)
    w_k: NDArray = field(repr=False)
    w_v: NDArray = field(repr=False)
    w_o: NDArray = field(repr=False)
    ffn_norm: NDArray = field(repr=False)
    w_gate: NDArray = field(repr=False)
    w_up: NDArray = field(repr=False)
    w_down: NDArray = field(repr=False)
    n_heads: int
    n_kv_heads: int
    rope_base: float = 10000.0
    layout: str = "interleaved"
    rotary_dim: int | None = None
    inv_freq: NDArray | None = field(default=None, repr=False)
    scale: float | None = None
    eps: float = 1e-6

    def __post_init__(self) -> None:
        weights = {}
        for name in (f.name for f in fields(DecoderLayer) if f.name.startswith("w_") or f.name.endswith("_norm")):
            w = require.array(name, getattr(self, name))
            weights[name] = w.astype(require.compute_dtype(w.dtype), copy=False)
        w_q, n_heads = weights["w_q"], require.integer("n_heads", self.n_heads)
        if w_q.shape[-1] % (2 * n_heads):
            wanted = f"a last axis that n_heads = {n_heads} divides into even widths"
            raise require.refusal("w_q", f"shape {w_q.shape}", wanted)
        config = StackConfig(
            vocab_size=1,
            n_layers=1,
            d_model=weights["attn_norm"].shape[-1],
            n_heads=n_heads,
            n_kv_heads=self.n_kv_heads,
            head_dim=w_q.shape[-1] // n_heads,
            d_ff=weights["w_gate"].shape[-1],
            rope_base=self.rope_base,
            inv_freq=self.inv_freq,
            layout=self.layout,
            rotary_dim=self.rotary_dim,
            scale=self.scale,
            eps=self.eps,
        )
        for name, shape in layer_shapes(config).items():
            require.shape(name, weights[name], shape, "by attn_norm, w_q, w_gate and the numbers of heads")
            if weights[name].dtype != w_q.dtype:
                raise require.refusal(name, str(weights[name].dtype), f"{w_q.dtype}, as w_q")
        settings = ("n_heads", "n_kv_heads", "rope_base", "layout", "rotary_dim", "scale", "eps")
        kept = weights | {"weights": weights, "config": config} | {name: getattr(config, name) for name in settings}
        kept["inv_freq"] = None if config.inv_freq is None else np.array(config.inv_freq)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @classmethod
    def random(
        cls,
        *,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_kv_heads: int | None = None,
        head_dim: int | None = None,
        seed: int | np.random.Generator = 0,
        std: float = 0.02,
        dtype: DTypeLike = np.float64,
        **settings: object,
    ) -> Self:
        """Return a layer with weights drawn from N(0, std²) and gains of 1.

        Parameters
        ----------
        d_model, n_heads, d_ff : int; D, H and F
        n_kv_heads : int, optional; G; H if not given
        head_dim : int, optional; K; D/H if not given
        seed : int or numpy Generator
            The same integer gives the same layer.  All matrices are drawn one after the other from one stream.
        std : float; standard deviation of the weights
        dtype : dtype; A floating one; 16-bit draws are rounded, then widened to float32 as all 16-bit weights are
        **settings; `rope_base`, `layout` and the like

        Returns
        -------
        DecoderLayer

        Source: as of `config.random_layer`, which draws the weights.

        Examples
        --------
        >>> DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, layout="split").w_gate.shape
        (8, 16)
        """
        sizes = {"d_model": d_model, "n_heads": n_heads, "d_ff": d_ff, "n_kv_heads": n_kv_heads, "head_dim": head_dim}
        config = StackConfig(vocab_size=1, n_layers=1, **sizes)
        if not isinstance(seed, np.random.Generator):
            seed = np.random.default_rng(require.integer("seed", seed, minimum=0))
        weights = random_layer(config, std=std, seed=seed, dtype=dtype)
        return cls(**weights, n_heads=config.n_heads, n_kv_heads=config.n_kv_heads, **settings)

    @property
    def head_dim(self) -> int:
        """K, the width of a head."""
        return self.config.head_dim

    def parameter_counts(self) -> dict[str, int]:
        """Return how many parameters each part of the layer has, and their total, as `config.parameter_counts`.

        Returns
        -------
        dict of str to int
        """
        return parameter_counts(self.config)

    def __call__(
        self,
        x: ArrayLike,
        positions: ArrayLike | None = None,
        *,
        causal: bool = True,
        mask: ArrayLike | None = None,
        note: Note = pass_on,
    ) -> NDArray:
        """Return Y, the layer's output.

        Parameters
        ----------
        x : (…, L, D) array_like; the residual stream
        positions : (L,) or broadcastable to (…, L) array_like, optional
            0 … L−1 if not given.  They turn queries and keys; who may see whom is decided by order alone.
        causal : bool; no token sees a later one
        mask : array_like of bool, optional; broadcasts to (…, H, L, L); True = may attend
        note : function (name, value), optional; called with each intermediate tensor, which it returns

        Returns
        -------
        (…, L, D) ndarray; in the dtype of `x` (integers: float64); 16-bit ones are computed in float32

        Examples
        --------
        >>> x = np.ones((3, 8))
        >>> y = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16)(x)
        >>> bool(np.allclose(y[0], y[2], rtol=0, atol=1e-15))  # equal tokens mix to equal values at any position
        True
        """
        x = require.array("x", x, min_ndim=2)
        require.last_axis("x", x, self.config.d_model, "attn_norm")
        causal = require.boolean("causal", causal)
        require.function("note", note)
        *lead, length, _ = x.shape
        if positions is not None:
            positions = require.array("positions", positions)
            require.last_axis("positions", positions, length, "the L of x")
            require.broadcasts("positions", positions.shape, (*lead, length), "the (…, L) of x")
        if mask is not None:
            mask = require.mask("mask", mask, (*lead, self.n_heads, length, length), "(…, H, L, L)")
        stream = x.astype(require.compute_dtype(x.dtype), copy=False)
        return super().__call__(stream, positions, causal=causal, mask=mask, note=note).astype(x.dtype, copy=False)

    def trace(
        self,
        x: ArrayLike,
        positions: ArrayLike | None = None,
        *,
        causal: bool = True,
        mask: ArrayLike | None = None,
    ) -> list[Step]:
        """Run the layer and return its intermediate tensors in the order of their computation.

        Parameters
        ----------
        x, positions, causal, mask
            As for a call of the layer.

        Returns
        -------
        list of Step
            x, norm1, q, k, v, q_rotated, k_rotated, scores, weights, mixed, attention, U, norm2, gate (after
            SiLU), up, product, ffn, Y.  Only a trace holds scores and weights, L·L numbers for each head.

        Examples
        --------
        >>> steps = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16).trace(np.ones((3, 8)))
        >>> [(step.name, step.axes, step.value.shape) for step in steps[7:9]]
        [('scores', '… H L S', (2, 3, 3)), ('weights', '… H L S', (2, 3, 3))]
        """
        steps: list[Step] = []
        self(x, positions, causal=causal, mask=mask, note=recorder(steps, self.weights, self.config))
        return steps

    def attend(
        self,
        query: NDArray,
        key: NDArray,
        value: NDArray,
        *,
        causal: bool = True,
        mask: NDArray | None = None,
        note: Note = pass_on,
    ) -> NDArray:
        """Return what `Layer.attend` does, block by block; only a `note` gets the weights whole."""
        if note is not pass_on:
            query, key = note("query", query), note("key", key)
            note("weights", attention_weights(query, key, causal=causal, mask=mask, scale=self.scale))
        mixed = note("mixed", blockwise(query, key, value, causal=causal, mask=mask, scale=self.scale))
        return note("attention", linear(merge_heads(mixed), self.w_o))


def normalized(weights: Mapping[str, NDArray], name: str, x: NDArray, config: StackConfig) -> NDArray:
    """Return the config's norm of `x` over its last axis, with the gain (and bias) called `name`."""
    if config.norm == "rms":
        return rms_norm(x, weights[name], config.eps)
    return layer_norm(x, weights[name], weights[f"{name}_bias"], config.eps)


def linear(x: NDArray, w: NDArray) -> NDArray:
    """Return x @ w as one product for all positions.

    Parameters
    ----------
    x : (…, L, D) ndarray
    w : (D, F) ndarray

    Returns
    -------
    (…, L, F) ndarray

    Examples
    --------
    >>> linear(np.ones((2, 3, 4)), np.ones((4, 5))).shape
    (2, 3, 5)
    """
    return x @ w if x.ndim == 2 else (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], w.shape[-1])


def to_heads(x: NDArray, n_heads: int) -> NDArray:
    """Return (…, L, n·K) as heads (…, n, L, K), each of them contiguous: channel h·K + c is channel c of head h."""
    return np.ascontiguousarray(x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2))


def merge_heads(x: NDArray) -> NDArray:
    """Return heads (…, n, L, K) side by side, (…, L, n·K): `to_heads` undone."""
    *lead, n_heads, length, width = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, length, n_heads * width)
