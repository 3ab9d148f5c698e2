"""The sizes that decide how many parameters a decoder has, checked once, when they are set down."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from transformer_parts.maths import require

__all__ = ["DecoderConfig"]

# The kinds of feed-forward layer and how many matrices each has.
FFN_MATRICES = MappingProxyType({"mlp": 2, "gated": 3})


def head_sizes(d_model: int, n_heads: int, n_kv_heads: int | None, head_dim: int | None) -> tuple[int, int, int, int]:
    """Return (d_model, n_heads, n_kv_heads, head_dim), checked and with the two ``None`` filled in.

    ``n_kv_heads=None`` is one key/value head per query head, ``head_dim=None`` is d_model/n_heads, which must
    then be an integer.
    """
    d_model, n_heads = require.integer("d_model", d_model), require.integer("n_heads", n_heads)
    n_kv_heads = n_heads if n_kv_heads is None else require.integer("n_kv_heads", n_kv_heads)
    if n_heads % n_kv_heads:
        raise require.refusal("n_kv_heads", repr(n_kv_heads), f"a divisor of n_heads, which is {n_heads}")
    if head_dim is None and d_model % n_heads:
        wanted = f"a divisor of d_model, which is {d_model}, or a head_dim of its own"
        raise require.refusal("n_heads", repr(n_heads), wanted)
    head_dim = d_model // n_heads if head_dim is None else require.integer("head_dim", head_dim)
    return d_model, n_heads, n_kv_heads, head_dim


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """The sizes of a dense decoder; whatever is set down is valid.

    Parameters
    ----------
    d_model : int
        D, the width of the residual stream.
    n_layers : int
        How many decoder layers.
    n_heads : int
        H, query heads.
    d_ff : int
        F, hidden width of the feed-forward layer: of *one* of the two branches where it is gated.  (The Gemma
        reports print both branches together, 2F.)
    vocab_size : int
        V, rows of the embedding as stored, padding included.  0: the layers alone, no embedding and no head.
    n_kv_heads : int, optional
        G, key/value heads; divides H.  Default H (multi-head); 1 is multi-query.
    head_dim : int, optional
        K.  Default D/H, which must then be an integer.  H·K may differ from D.
    ffn : {"gated", "mlp"}
        Three matrices (SwiGLU, GEGLU, …) or two (ReLU, GELU).
    tied : bool
        The head is the embedding read the other way and adds nothing.
    norm : {"rms", "layer"}
        What every norm is.
    norms_per_layer : {1, 2, 4}
        2: one for each branch, before or after it.  4: before and after (sandwich).  1: both branches in parallel.
    final_norm : bool
        One more norm before the head.
    qk_norm : bool
        Two norms over K in each layer, one for the queries and one for the keys, shared by the heads.
    max_positions : int
        Rows of a learned position table; 0 where positions cost no parameters (RoPE, ALiBi, sinusoidal).
    qkv_bias, output_bias, ffn_bias : bool
        Biases of the query/key/value projections, of attention's output projection, of the feed-forward layer.
    norm_bias : bool, optional
        The β of LayerNorm.  Default: with "layer"; RMSNorm has none.

    Raises
    ------
    ValueError
        For a size that is not an integer in its range, heads that don't divide, an unknown kind, a switch that
        is not a bool, or a bias of RMSNorm.

    Notes
    -----
    ``None`` is filled in when the config is made, so `n_kv_heads`, `head_dim` and `norm_bias` always read as
    values; ``dataclasses.replace`` keeps them as they then stand.

    References
    ----------
    The block: Vaswani et al., arXiv:1706.03762, §3.  G: Ainslie et al., arXiv:2305.13245, §2.2.  Gated: Shazeer,
    arXiv:2002.05202, §2.  RMSNorm, without bias: Zhang and Sennrich, arXiv:1910.07467, §4.

    Examples
    --------
    >>> DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=128256).head_dim
    128
    """

    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    vocab_size: int
    n_kv_heads: int | None = None
    head_dim: int | None = None
    ffn: Literal["gated", "mlp"] = "gated"
    tied: bool = False
    norm: Literal["rms", "layer"] = "rms"
    norms_per_layer: int = 2
    final_norm: bool = True
    qk_norm: bool = False
    max_positions: int = 0
    qkv_bias: bool = False
    output_bias: bool = False
    ffn_bias: bool = False
    norm_bias: bool | None = None

    def __post_init__(self):
        checked = dict(
            zip(
                ("d_model", "n_heads", "n_kv_heads", "head_dim"),
                head_sizes(self.d_model, self.n_heads, self.n_kv_heads, self.head_dim),
                strict=True,
            )
        )
        for name in ("n_layers", "d_ff"):
            checked[name] = require.integer(name, getattr(self, name))
        for name in ("vocab_size", "max_positions"):
            checked[name] = require.integer(name, getattr(self, name), minimum=0)
        require.one_of("ffn", self.ffn, tuple(FFN_MATRICES))
        require.one_of("norm", self.norm, ("rms", "layer"))
        checked["norms_per_layer"] = require.integer("norms_per_layer", self.norms_per_layer)
        if checked["norms_per_layer"] not in (1, 2, 4):
            raise require.refusal("norms_per_layer", repr(checked["norms_per_layer"]), "1, 2 or 4")
        for name in ("tied", "final_norm", "qk_norm", "qkv_bias", "output_bias", "ffn_bias"):
            checked[name] = require.boolean(name, getattr(self, name))
        norm_bias = self.norm == "layer" if self.norm_bias is None else require.boolean("norm_bias", self.norm_bias)
        if norm_bias and self.norm == "rms":
            raise require.refusal("norm_bias", "True", 'False, or norm="layer": RMSNorm has no bias')
        checked["norm_bias"] = norm_bias
        for name, value in checked.items():
            object.__setattr__(self, name, value)
