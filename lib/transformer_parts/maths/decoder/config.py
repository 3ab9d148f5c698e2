"""What a decoder of any depth is made of, the names and shapes of its parameters, and one layer drawn at random."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.budget import DecoderConfig, count
from transformer_parts.maths.feedforward import GLU_FAMILY
from transformer_parts.maths.norm_placement import deepnorm_alpha_beta

__all__ = [
    "FFN_KINDS",
    "PLACEMENTS",
    "RESIDUAL_PROJECTIONS",
    "StackConfig",
    "parameter_counts",
    "random_layer",
    "shapes",
]

Value = TypeVar("Value")

PLAIN_FFN = ("relu", "gelu", "gelu_tanh", "silu")
FFN_KINDS = (*PLAIN_FFN, *GLU_FAMILY)
"""Feed-forward layers: two matrices with an activation between them, or three with a gate."""

PLACEMENTS = ("pre", "post", "sandwich", "deepnorm")
"""Where the norms of a layer stand; `norm_placement` has the formulas."""

RESIDUAL_PROJECTIONS = ("w_o", "w_down", "w_out")
"""The last matrix of each branch, by the last part of its name: what writes to the residual stream."""

MOST_PARAMETERS = 2**29
"""The most parameters of a decoder that is run here: 4 GiB in float64."""

# The norms of each branch, by what follows "attn" or "ffn" in their names.
_NORMS = MappingProxyType(
    {"pre": ("_norm",), "post": ("_norm",), "deepnorm": ("_norm",), "sandwich": ("_norm", "_norm_out")}
)


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The sizes and the kinds of parts of a decoder that can be run and trained; whatever is set down is valid.

    Parameters
    ----------
    vocab_size : int; V
    n_layers : int; how many decoder layers
    d_model : int; D, the width of the residual stream
    n_heads : int; H, query heads
    d_ff : int; F, hidden width of the feed-forward layer: of one of the two branches where it is gated
    n_kv_heads : int, optional
        G, key/value heads; divides H.  Default H.
    head_dim : int, optional
        K.  Default D/H, which must then be an integer.
    ffn : {"relu", "gelu", "gelu_tanh", "silu", "glu", "bilinear", "reglu", "geglu", "swiglu"}
        The first four are plain layers with that activation, the others the gated ones of `GLU_FAMILY`.
    norm : {"rms", "layer"}
        What every norm is.  LayerNorm has a bias.
    placement : {"pre", "post", "sandwich", "deepnorm"}
        Where the norms stand; "pre" and "sandwich" have one more after the last layer.
    rope_base : float or None
        Base of RoPE's frequencies; ``None``: no RoPE, so that positions are known by the causal mask alone.
    inv_freq : tuple of float, optional; RoPE's frequencies in radians per position, one for each pair of a head,
        instead of those of `rope_base`: the ones of `context_extension`, say
    layout : {"interleaved", "split"}; which channels of a head make a pair that RoPE turns
    rotary_dim : int, optional; turn only so many channels of a head
    scale : float, optional; of the attention scores; 1/√K if not given
    qk_norm : bool; A norm of the same kind over each head's queries and keys, its gain shared by the heads, before RoPE
    tied : bool; the head is the embedding read the other way
    eps : float; ε of every norm
    causal : bool
        Whether a token sees itself and those before it alone.  Without the mask the loss can be made small by
        looking at the answer.
    alpha : float, optional
        DeepNorm's α.  Default: the one for the depth, `norm_placement.deepnorm_alpha_beta`.

    Notes
    -----
    There are no biases but LayerNorm's.  `budget.parameters.DecoderConfig` describes what can be counted, published
    models included; this describes what `stack` can run.  `budget` turns the second into the first.

    ``None`` is filled in when the config is made, and ``dataclasses.replace`` keeps what was filled in: after a change
    of `d_model` or `n_heads` give it ``head_dim=None`` (and ``n_kv_heads=None``), of DeepNorm's depth ``alpha=None``.

    Examples
    --------
    >>> config = StackConfig(vocab_size=64, n_layers=2, d_model=64, n_heads=2, d_ff=160)
    >>> config.head_dim, config.final_norm, config.gated
    (32, True, True)
    """

    vocab_size: int
    n_layers: int
    d_model: int
    n_heads: int
    d_ff: int
    n_kv_heads: int | None = None
    head_dim: int | None = None
    ffn: str = "swiglu"
    norm: str = "rms"
    placement: str = "pre"
    rope_base: float | None = 10000.0
    inv_freq: tuple[float, ...] | None = None
    layout: str = "interleaved"
    rotary_dim: int | None = None
    scale: float | None = None
    qk_norm: bool = False
    tied: bool = True
    eps: float = 1e-5
    causal: bool = True
    alpha: float | None = None

    def __post_init__(self) -> None:
        require.integer("vocab_size", self.vocab_size)
        require.one_of("ffn", self.ffn, FFN_KINDS)
        require.one_of("norm", self.norm, ("rms", "layer"))
        require.one_of("placement", self.placement, PLACEMENTS)
        sizes = self.budget  # checks the sizes and fills in the two that follow from others
        if (parameters := count(sizes).total) > MOST_PARAMETERS:
            got = f"{sizes.d_model} with other sizes that make {parameters} parameters"
            raise require.refusal("d_model", got, f"at most {MOST_PARAMETERS}")
        checked = {
            name: getattr(sizes, name)
            for name in ("vocab_size", "n_layers", "d_model", "n_heads", "d_ff", "n_kv_heads", "head_dim")
        }
        checked["qk_norm"], checked["tied"] = sizes.qk_norm, sizes.tied
        checked["causal"] = require.boolean("causal", self.causal)
        checked["eps"] = require.number("eps", self.eps, above=0)
        checked["layout"] = require.one_of("layout", self.layout, rope.LAYOUTS)
        if self.scale is not None:
            checked["scale"] = require.number("scale", self.scale)
        if self.rope_base is not None:
            checked["rope_base"] = require.number("rope_base", self.rope_base, above=0)
            require.integer("head_dim", sizes.head_dim, minimum=2, multiple_of=2)
            frequencies = rope.frequencies_for(sizes.head_dim, self.rope_base, self.inv_freq, self.rotary_dim)
            if self.inv_freq is not None:
                checked["inv_freq"] = tuple(frequencies.tolist())
        elif self.inv_freq is not None:
            raise require.refusal("inv_freq", "frequencies without RoPE", "a rope_base, or None")
        if self.placement == "deepnorm":
            by_depth = deepnorm_alpha_beta(sizes.n_layers).alpha
            checked["alpha"] = by_depth if self.alpha is None else require.number("alpha", self.alpha, above=0)
        elif self.alpha is not None:
            raise require.refusal("alpha", repr(self.alpha), f'None, or placement="deepnorm" (not {self.placement!r})')
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def gated(self) -> bool:
        """Whether the feed-forward layer has a gate."""
        return self.ffn in GLU_FAMILY

    @property
    def final_norm(self) -> bool:
        """Whether a norm stands before the head: where the last layer does not end in one."""
        return self.placement in ("pre", "sandwich")

    @cached_property
    def rotation(self) -> Mapping[str, object]:
        """The keywords of `rope.rotate` by which queries and keys are turned, with the frequencies made."""
        frequencies = rope.frequencies_for(self.head_dim, self.rope_base, self.inv_freq, self.rotary_dim)
        frequencies.flags.writeable = False
        settings = {"rope_base": self.rope_base, "layout": self.layout, "rotary_dim": self.rotary_dim}
        return MappingProxyType(settings | {"inv_freq": frequencies})

    @property
    def budget(self) -> DecoderConfig:
        """The same decoder as `budget.parameters.count` takes it."""
        return DecoderConfig(
            d_model=self.d_model,
            n_layers=self.n_layers,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            vocab_size=self.vocab_size,
            n_kv_heads=self.n_kv_heads,
            head_dim=self.head_dim,
            ffn="gated" if self.gated else "mlp",
            tied=self.tied,
            norm=self.norm,
            norms_per_layer=2 * len(_NORMS[self.placement]),
            final_norm=self.final_norm,
            qk_norm=self.qk_norm,
        )


@require.door
def shapes(config: StackConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every parameter, in the order of the forward pass.

    Weights, gradients and an optimizer's state are all flat mappings by these names.

    Parameters
    ----------
    config : StackConfig; sizes and kinds

    Returns
    -------
    dict of str to tuple of int
        ``embedding`` (V, D); for each layer i, ``layers.i.`` and a name as in `decoder.DecoderLayer`: ``attn_norm``
        (D,), ``w_q`` (D, HK), ``w_k`` and ``w_v`` (D, GK), ``q_norm`` and ``k_norm`` (K,), ``w_o`` (HK, D),
        ``ffn_norm`` (D,), then ``w_gate`` and ``w_up`` (D, F) and ``w_down`` (F, D), or ``w_in`` (D, F) and
        ``w_out`` (F, D); ``final_norm`` (D,); ``head`` (D, V) unless tied.  A sandwich's outer norms are
        ``attn_norm_out`` and ``ffn_norm_out``; each LayerNorm's bias is called like it, with ``_bias`` added.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, n_kv_heads=1, d_ff=16)
    >>> for name, shape in shapes(config).items():
    ...     print(name, shape)
    embedding (5, 8)
    layers.0.attn_norm (8,)
    layers.0.w_q (8, 8)
    layers.0.w_k (8, 4)
    layers.0.w_v (8, 4)
    layers.0.w_o (8, 8)
    layers.0.ffn_norm (8,)
    layers.0.w_gate (8, 16)
    layers.0.w_up (8, 16)
    layers.0.w_down (16, 8)
    final_norm (8,)
    """
    found = {"embedding": (config.vocab_size, config.d_model)}
    for i in range(config.n_layers):
        found |= {f"layers.{i}.{name}": shape for name, shape in layer_shapes(config).items()}
    if config.final_norm:
        found |= _norm(config, "final_norm", config.d_model)
    if not config.tied:
        found["head"] = (config.d_model, config.vocab_size)
    return found


def layer_shapes(config: StackConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight of one layer: those of `shapes` without ``layers.i.``."""
    c = config
    width, queries, keys = c.d_model, c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim

    def norms(branch: str) -> dict[str, tuple[int, ...]]:
        return {name: size for end in _NORMS[c.placement] for name, size in _norm(c, f"{branch}{end}", width).items()}

    layer = norms("attn") | {"w_q": (width, queries), "w_k": (width, keys), "w_v": (width, keys)}
    if c.qk_norm:
        layer |= _norm(c, "q_norm", c.head_dim) | _norm(c, "k_norm", c.head_dim)
    layer |= {"w_o": (queries, width)} | norms("ffn")
    if c.gated:
        return layer | {"w_gate": (width, c.d_ff), "w_up": (width, c.d_ff), "w_down": (c.d_ff, width)}
    return layer | {"w_in": (width, c.d_ff), "w_out": (c.d_ff, width)}


def _norm(config: StackConfig, name: str, size: int) -> dict[str, tuple[int, ...]]:
    return {name: (size,)} | ({f"{name}_bias": (size,)} if config.norm == "layer" else {})


def layer_weights(weights: Mapping[str, Value], layer: int) -> dict[str, Value]:
    """Return what stands by one layer's names in a decoder's weights or gradients, without ``layers.i.``."""
    prefix = f"layers.{layer}."
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def part_of(name: str) -> str:
    """Return the part of a layer that a weight belongs to: "attention", "ffn" or "norms".

    Parameters
    ----------
    name : str; as `layer_shapes` has it

    Returns
    -------
    str

    Examples
    --------
    >>> part_of("w_q"), part_of("w_down"), part_of("ffn_norm")
    ('attention', 'ffn', 'norms')
    """
    if "norm" in name:
        return "norms"
    return "attention" if name in ("w_q", "w_k", "w_v", "w_o") else "ffn"


@require.door
def parameter_counts(config: StackConfig) -> dict[str, int]:
    """Return how many parameters each part of one layer has, and their total.

    Parameters
    ----------
    config : StackConfig; sizes and kinds

    Returns
    -------
    dict
        attention (4·D² where H·K = G·K = D), ffn (3·D·F with a gate), norms (2·D; biases of LayerNorm with them) and
        total.  Embeddings, the final norm and the head belong to the model, not to a layer.

    Examples
    --------
    >>> parameter_counts(StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16))
    {'attention': 256, 'ffn': 384, 'norms': 16, 'total': 656}
    """
    counts = {"attention": 0, "ffn": 0, "norms": 0}
    for name, size in layer_shapes(config).items():
        counts[part_of(name)] += math.prod(size)
    return counts | {"total": sum(counts.values())}


@require.door
def random_layer(
    config: StackConfig,
    *,
    std: float = 0.02,
    seed: int | np.random.Generator = 0,
    dtype: DTypeLike = np.float64,
) -> dict[str, NDArray]:
    """Return one layer's weights from N(0, std²), with gains of 1 and biases of 0.

    Parameters
    ----------
    config : StackConfig; sizes and kinds
    std : float; standard deviation
    seed : int or numpy Generator
        A Generator draws the matrices one after the other.  With an integer each matrix has a stream of random
        numbers of its own, so that exchanging one part leaves the weights of all others as they were.
    dtype : dtype; A floating one

    Returns
    -------
    dict of str to ndarray; by the names of `layer_shapes`

    Source: Radford et al., "Improving Language Understanding by Generative Pre-Training", 2018, §4.1: N(0, 0.02).

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> random_layer(config)["w_up"].shape
    (8, 16)
    """
    std, dtype = abs(require.number("std", std, minimum=0)), require.dtype("dtype", dtype)  # −0.0, too, is 0
    one_stream = isinstance(seed, np.random.Generator)
    seed = seed if one_stream else require.integer("seed", seed, minimum=0)
    weights = {}
    for name, size in layer_shapes(config).items():
        if part_of(name) == "norms":
            weights[name] = np.full(size, 0.0 if name.endswith("_bias") else 1.0, dtype)
        else:
            rng = seed if one_stream else np.random.default_rng([seed, *name.encode()])
            weights[name] = rng.normal(0.0, std, size).astype(dtype, copy=False)
    return weights
