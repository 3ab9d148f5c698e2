"""The weights and settings of one decoder layer: checked against each other, drawn, counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transformer_parts.maths import require, rope

_WEIGHTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attn_norm": ("D",),
        "w_q": ("D", "H·K"),
        "w_k": ("D", "G·K"),
        "w_v": ("D", "G·K"),
        "w_o": ("H·K", "D"),
        "ffn_norm": ("D",),
        "w_gate": ("D", "F"),
        "w_up": ("D", "F"),
        "w_down": ("F", "D"),
    }
)

_PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attention": ("w_q", "w_k", "w_v", "w_o"),
        "ffn": ("w_gate", "w_up", "w_down"),
        "norms": ("attn_norm", "ffn_norm"),
    }
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DecoderWeights:
    """What `decoder.DecoderLayer` computes with.

    Parameters
    ----------
    attn_norm, ffn_norm : (D,) array_like
        Gains of the norms before attention and before the feed-forward layer.
    w_q : (D, H·K) array_like
        Column h·K + c makes channel c of head h; all weights multiply from the right, ``x @ w``.
    w_k, w_v : (D, G·K) array_like
    w_o : (H·K, D) array_like
    w_gate, w_up : (D, F) array_like
    w_down : (F, D) array_like
    n_heads, n_kv_heads : int
        H and G; H is a multiple of G.
    rope_base : float
        Base of RoPE's frequencies.
    layout : {"interleaved", "split"}
        Which channels of a head make a pair.  It must be the one that w_q and w_k were trained with.
    rotary_dim : int, optional
        Turn only so many channels of a head.
    inv_freq : (P,) array_like, optional
        Frequencies in radians per position, instead of those of `rope_base`.
    scale : float, optional
        Of the attention scores; 1/√K if not given.
    eps : float
        ε of both norms.

    Notes
    -----
    Weights keep their dtype and memory, except that 16-bit ones are widened to float32 once, here.

    Examples
    --------
    >>> DecoderWeights.random(d_model=8, n_heads=2, n_kv_heads=1, d_ff=16).head_dim
    4
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
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in _WEIGHTS:
            w = require.array(name, kept[name])
            kept[name] = w.astype(require.compute_dtype(w.dtype), copy=False)
        _check_heads(kept)
        _check_weights(kept)
        kept["eps"] = require.number("eps", self.eps, above=0)
        kept["layout"] = require.one_of("layout", self.layout, rope.LAYOUTS)
        head_dim = kept["w_q"].shape[1] // kept["n_heads"]
        if self.scale is not None:
            kept["scale"] = require.number("scale", self.scale)
        # RoPE refuses what it cannot turn by; with the base alone it goes on making the frequencies itself.
        frequencies = rope.frequencies_for(head_dim, self.rope_base, self.inv_freq, self.rotary_dim)
        kept["inv_freq"] = None if self.inv_freq is None else frequencies
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def head_dim(self) -> int:
        """K, the width of a head."""
        return self.w_q.shape[1] // self.n_heads

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
        d_model, n_heads, d_ff : int
            D, H and F.
        n_kv_heads : int, optional
            G; H if not given.
        head_dim : int, optional
            K; D/H if not given.
        seed : int or numpy Generator
            The same integer gives the same layer.
        std : float
            Standard deviation of the weights.
        dtype : dtype
            A floating one; 16-bit draws are rounded, then widened to float32 as all 16-bit weights are.
        **settings
            `rope_base`, `layout` and the like.

        Returns
        -------
        DecoderLayer

        Raises
        ------
        ValueError
            If a size is not a positive integer or the sizes do not divide.

        References
        ----------
        Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, §4.1: N(0, 0.02).

        Examples
        --------
        >>> DecoderWeights.random(d_model=8, n_heads=2, d_ff=16, layout="split").w_gate.shape
        (8, 16)
        """
        n_heads = require.integer("n_heads", n_heads)
        n_kv_heads = n_heads if n_kv_heads is None else require.integer("n_kv_heads", n_kv_heads)
        d_ff, std = require.integer("d_ff", d_ff), require.number("std", std, minimum=0)
        if head_dim is None:
            head_dim = require.integer("d_model", d_model, multiple_of=n_heads) // n_heads
        head_dim = require.integer("head_dim", head_dim, minimum=2, multiple_of=2)
        sizes = {"D": require.integer("d_model", d_model), "F": d_ff}
        sizes |= {"H·K": n_heads * head_dim, "G·K": n_kv_heads * head_dim}
        dtype = np.dtype(dtype)
        if not require.is_floating(dtype):
            raise ValueError(f"dtype: got {dtype}, want a floating one")
        if not isinstance(seed, np.random.Generator):
            seed = require.integer("seed", seed, minimum=0)
        rng = np.random.default_rng(seed)
        weights = {
            name: np.ones(d_model) if len(axes) == 1 else rng.normal(0.0, std, [sizes[a] for a in axes])
            for name, axes in _WEIGHTS.items()
        }
        weights = {name: w.astype(dtype, copy=False) for name, w in weights.items()}
        return cls(**weights, n_heads=n_heads, n_kv_heads=n_kv_heads, **settings)

    def parameter_counts(self) -> dict[str, int]:
        """Return how many parameters each part of the layer has, and their total.

        Returns
        -------
        dict
            attention (4·D² where H·K = G·K = D), ffn (3·D·F), norms (2·D) and total.  Embeddings, the final norm
            and the head belong to the model, not to a layer.

        Examples
        --------
        >>> DecoderWeights.random(d_model=8, n_heads=2, n_kv_heads=1, d_ff=16).parameter_counts()["attention"]
        192
        """
        counts = {part: sum(getattr(self, name).size for name in names) for part, names in _PARTS.items()}
        return counts | {"total": sum(counts.values())}


def _check_heads(kept: dict) -> None:
    kept["n_kv_heads"] = require.integer("n_kv_heads", kept["n_kv_heads"])
    kept["n_heads"] = require.integer("n_heads", kept["n_heads"], multiple_of=kept["n_kv_heads"])
    w_q, n_heads = kept["w_q"], kept["n_heads"]
    if w_q.shape[-1] % n_heads:
        raise ValueError(f"w_q: got shape {w_q.shape}, want a last axis that n_heads = {n_heads} divides")


def _check_weights(kept: dict) -> None:
    """Hold every weight against the sizes that attn_norm (D), w_q (H·K) and w_gate (F) give."""
    width = kept["w_q"].shape[-1]
    sizes = {"D": kept["attn_norm"].shape[-1], "H·K": width, "F": kept["w_gate"].shape[-1]}
    sizes["G·K"] = width // kept["n_heads"] * kept["n_kv_heads"]
    for name, axes in _WEIGHTS.items():
        why = f"({', '.join(axes)}) by attn_norm, w_q, w_gate and the numbers of heads"
        require.shape(name, kept[name], tuple(sizes[axis] for axis in axes), why)
        if kept[name].dtype != kept["w_q"].dtype:
            raise ValueError(f"{name}: got {kept[name].dtype}, want {kept['w_q'].dtype}, as w_q")
