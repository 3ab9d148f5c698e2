"""One decoder layer: pre-norm attention with RoPE and grouped heads, then a SwiGLU feed-forward layer."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.activations import silu
from transformer_parts.maths.attention import attention_weights, mix, scores, split_heads
from transformer_parts.maths.decoder_step import Note, Step
from transformer_parts.maths.decoder_weights import DecoderWeights
from transformer_parts.maths.norms import rms_norm

__all__ = ["DecoderLayer", "Step"]


def _no_note(name: str, axes: str, value: NDArray) -> None:
    """Let an intermediate tensor go."""


class DecoderLayer(DecoderWeights):
    r"""The weights and settings of one decoder layer, and its forward pass.

    .. math::
        U &= X + \operatorname{Attn}(\operatorname{RMSNorm}_1(X)) \\
        Y &= U + \operatorname{SwiGLU}(\operatorname{RMSNorm}_2(U))

    There are no biases.  RoPE turns queries and keys and adds no parameter.

    Parameters
    ----------
    attn_norm, w_q, w_k, w_v, w_o, ffn_norm, w_gate, w_up, w_down, n_heads, n_kv_heads, …
        By keyword; `decoder_weights.DecoderWeights` describes each, and `DecoderLayer.random` draws them.

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

    def __call__(
        self,
        x: ArrayLike,
        positions: ArrayLike | None = None,
        *,
        causal: bool = True,
        mask: ArrayLike | None = None,
    ) -> NDArray:
        """Return Y, the layer's output.

        Parameters
        ----------
        x : (…, L, D) array_like
            The residual stream.
        positions : (L,) or broadcastable to (…, L) array_like, optional
            0 … L−1 if not given.  They turn queries and keys; who may see whom is decided by order alone.
        causal : bool
            No token sees a later one.
        mask : array_like of bool, optional
            Broadcasts to (…, H, L, L); True = may attend.

        Returns
        -------
        (…, L, D) ndarray
            In the dtype of `x` (integers: float64); 16-bit ones are computed in float32.

        Examples
        --------
        >>> x = np.ones((3, 8))
        >>> y = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16)(x)
        >>> bool(np.allclose(y[0], y[2], rtol=0, atol=1e-15))  # equal tokens mix to equal values at any position
        True
        """
        return self._run(x, positions, causal, mask, _no_note)

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
        self._run(x, positions, causal, mask, lambda *step: steps.append(Step(*step)))
        return steps

    def project(self, x: NDArray, positions: NDArray, note: Note = _no_note) -> tuple[NDArray, NDArray, NDArray]:
        """Return the rotated queries, the rotated keys and the values of tokens at the given positions.

        With `attend` and `feed_forward` it makes up the layer.  Between this and `attend` a KV cache takes the
        keys and values in.  The three take checked floating arrays of one dtype.

        Parameters
        ----------
        x : (…, L, D) ndarray
            The residual stream, not yet normalised.
        positions : (L,) or (…, L) ndarray
        note : function (name, axes, value), optional
            Called with each intermediate tensor.

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
        normed = self._norm(x, self.attn_norm)
        note("norm1", "… L D", normed)
        query, key, value = self._query_key_value(normed)
        query = _heads(query, self.n_heads)
        key, value = (_heads(part, self.n_kv_heads) for part in (key, value))
        note("q", "… H L K", query)
        note("k", "… G S K", key)
        note("v", "… G S K", value)
        settings = {"rope_base": self.rope_base, "inv_freq": self.inv_freq, "layout": self.layout}
        at = positions[..., None, :] if positions.ndim > 1 else positions
        query, key = (rope.rotate(part, at, rotary_dim=self.rotary_dim, **settings) for part in (query, key))
        note("q_rotated", "… H L K", query)
        note("k_rotated", "… G S K", key)
        return query, key, value

    def attend(
        self,
        query: NDArray,
        key: NDArray,
        value: NDArray,
        *,
        causal: bool = True,
        mask: NDArray | None = None,
        note: Note = _no_note,
    ) -> NDArray:
        """Return what attention adds to the residual stream.

        Parameters
        ----------
        query : (…, H, L, K) ndarray
            Rotated.
        key, value : (…, G, S, K) ndarrays
            Rotated keys, and values, of S ≥ L tokens of which the last L are those of the query.
        causal : bool
            No token sees a later one.
        mask : (…, H, L, S) ndarray of bool, optional
        note : function (name, axes, value), optional
            Called with each intermediate tensor.  Given one, scores and weights are computed whole as well.

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
        if note is not _no_note:
            note("scores", "… H L S", scores(query, key, scale=self.scale))
            weights = attention_weights(query, key, mask=mask, scale=self.scale, causal=causal)
            note("weights", "… H L S", weights)
        *lead, n_heads, length, width = query.shape
        joined = np.empty((*lead, length, n_heads, width), query.dtype)  # the order in which w_o reads the heads
        mixed = joined.swapaxes(-3, -2)
        groups = self.n_kv_heads
        scale = 1 / math.sqrt(width) if self.scale is None else self.scale
        query, out, mask = (None if a is None else split_heads(a, groups) for a in (query, mixed, mask))
        mix(query, key, value, out, scale=scale, mask=mask, causal=causal)
        note("mixed", "… H L K", mixed)
        out = joined.reshape(*lead, length, n_heads * width) @ self.w_o
        note("attention", "… L D", out)
        return out

    def feed_forward(self, u: NDArray, note: Note = _no_note) -> NDArray:
        """Return what the feed-forward layer adds to the residual stream.

        Parameters
        ----------
        u : (…, L, D) ndarray
            The residual stream after attention, not yet normalised.
        note : function (name, axes, value), optional
            Called with each intermediate tensor.

        Returns
        -------
        (…, L, D) ndarray

        Examples
        --------
        >>> DecoderLayer.random(d_model=8, n_heads=2, d_ff=16).feed_forward(np.ones((3, 8))).shape
        (3, 8)
        """
        normed = self._norm(u, self.ffn_norm)
        note("norm2", "… L D", normed)
        gate, up = self._gate_and_up(normed)
        gate = self._activate(gate)
        note("gate", "… L F", gate)
        note("up", "… L F", up)
        product = gate * up
        note("product", "… L F", product)
        out = product @ self.w_down
        note("ffn", "… L D", out)
        return out

    def _norm(self, x: NDArray, weight: NDArray) -> NDArray:
        return rms_norm(x, weight, self.eps)

    def _activate(self, gate: NDArray) -> NDArray:
        return silu(gate)

    def _query_key_value(self, normed: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        return normed @ self.w_q, normed @ self.w_k, normed @ self.w_v

    def _gate_and_up(self, normed: NDArray) -> tuple[NDArray, NDArray]:
        return normed @ self.w_gate, normed @ self.w_up

    def _run(self, x: ArrayLike, positions: ArrayLike | None, causal: bool, mask: ArrayLike | None, note: Note):
        x = require.array("x", x, min_ndim=2)
        require.last_axis("x", x, self.attn_norm.size, "attn_norm")
        causal = require.boolean("causal", causal)
        *lead, length, _ = x.shape
        if positions is None:
            positions = np.arange(length)
        else:
            positions = require.array("positions", positions)
            require.last_axis("positions", positions, length, "the L of x")
            require.broadcasts("positions", positions.shape, (*lead, length), "the (…, L) of x")
        if mask is not None:
            mask = np.asarray(mask)
            if mask.dtype != np.bool_:
                raise ValueError(f"mask: got {mask.dtype}, want bool, True = may attend")
            full = (*lead, self.n_heads, length, length)
            require.broadcasts("mask", mask.shape, full, "(…, H, L, L)")
            mask = np.broadcast_to(mask, full)
        stream = x.astype(require.compute_dtype(x.dtype), copy=False)
        note("x", "… L D", stream)
        query, key, value = self.project(stream, positions, note)
        u = stream + self.attend(query, key, value, causal=causal, mask=mask, note=note)
        note("U", "… L D", u)
        y = u + self.feed_forward(u, note)
        note("Y", "… L D", y)
        return y.astype(x.dtype, copy=False)


def _heads(x: NDArray, n_heads: int) -> NDArray:
    """View (…, L, n·K) as (…, n, L, K)."""
    return x.reshape(*x.shape[:-1], n_heads, -1).swapaxes(-3, -2)
