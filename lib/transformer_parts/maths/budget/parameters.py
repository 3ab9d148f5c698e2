"""Where a decoder's parameters are: a tally by part, per layer and for the whole model."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Literal

from transformer_parts.maths import require

__all__ = [
    "Count",
    "DecoderConfig",
    "Tally",
    "attention_parameters",
    "count",
    "count_tensors",
    "ffn_parameters",
    "formulas",
    "part_of",
]

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
    """The sizes of a dense decoder; every instance is valid.

    Parameters
    ----------
    d_model : int; D, the width of the residual stream
    n_layers : int
    n_heads : int; H, query heads
    d_ff : int
        F, hidden width of the feed-forward layer: of *one* of the two branches where it is gated.  (The Gemma reports
        print both branches together, 2F.)
    vocab_size : int
        V, rows of the embedding as stored, padding included.  0: the layers alone, no embedding and no head.
    n_kv_heads : int, optional
        G, key/value heads; divides H.  Default H (multi-head); 1 is multi-query.
    head_dim : int, optional
        K.  Default D/H, which must then be an integer.  H·K may differ from D.
    ffn : {"gated", "mlp"}; three matrices (SwiGLU, GEGLU, …) or two (ReLU, GELU)
    tied : bool; the head is the embedding read the other way and adds nothing
    norm : {"rms", "layer"}; the kind of every norm
    norms_per_layer : {1, 2, 4}
        2: one for each branch, before or after it.  4: before and after (sandwich).  1: both branches in parallel.
    final_norm : bool; one more norm before the head
    qk_norm : bool; two norms over K in each layer, one for the queries and one for the keys, shared by the heads
    max_positions : int
        Rows of a learned position table; 0 where positions cost no parameters (RoPE, ALiBi, sinusoidal).
    qkv_bias, output_bias, ffn_bias : bool
        Biases of the query/key/value projections, of attention's output projection, of the feed-forward layer.
    head_bias : bool; a bias of the head, one number for each row of the vocabulary, tied or not
    norm_bias : bool, optional
        The β of LayerNorm.  Default: with "layer"; RMSNorm has none.

    Notes
    -----
    ``None`` is filled in when the config is made, so `n_kv_heads`, `head_dim` and `norm_bias` always read as
    values; ``dataclasses.replace`` keeps these values.

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
    head_bias: bool = False

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
        for name in ("tied", "final_norm", "qk_norm", "qkv_bias", "output_bias", "ffn_bias", "head_bias"):
            checked[name] = require.boolean(name, getattr(self, name))
        norm_bias = self.norm == "layer" if self.norm_bias is None else require.boolean("norm_bias", self.norm_bias)
        if norm_bias and self.norm == "rms":
            raise require.refusal("norm_bias", "True", 'False, or norm="layer": RMSNorm has no bias')
        checked["norm_bias"] = norm_bias
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Tally:
    """Parameters by part.

    Attributes
    ----------
    embedding : int; the token table, V·D
    positions : int; a learned position table; 0 for RoPE and other schemes without one
    attention : int; query, key, value and output projections, with their biases
    feed_forward : int; both or all three matrices, with their biases
    norms : int; the weights and biases of every norm, QK-norm and the final one included
    head : int
        The matrix from D to the vocabulary, none where the token table is read as it (tied), and the head's bias.

    Examples
    --------
    >>> layer = Tally(attention=256, feed_forward=384, norms=16)
    >>> layer.total, f"{layer.shares['feed_forward']:.3f}"
    (656, '0.585')
    """

    embedding: int = 0
    positions: int = 0
    attention: int = 0
    feed_forward: int = 0
    norms: int = 0
    head: int = 0

    @property
    def parts(self) -> dict[str, int]:
        """The parts by name, in the order in which a token meets them."""
        return asdict(self)

    @property
    def total(self) -> int:
        """All parts."""
        return sum(self.parts.values())

    @property
    def non_embedding(self) -> int:
        """Without embedding, learned positions and head: the N of Kaplan et al., arXiv:2001.08361, §1.3.

        Their formula for it (§2.1) leaves out norms and biases as well.
        """
        return self.attention + self.feed_forward + self.norms

    @property
    def shares(self) -> dict[str, float]:
        """Each part over the total (all 0 in an empty tally)."""
        return {part: number / (self.total or 1) for part, number in self.parts.items()}


# What the tensors of each part are called within their layer, and outside the layers: in GGUF files, in Hugging
# Face files of Llama-like models, and in those of GPT-2.
_IN_LAYER = MappingProxyType(
    {
        "attention": (
            *("attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output"),
            *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
            *("attn.c_attn", "attn.c_proj"),
        ),
        "feed_forward": (
            *("ffn_gate", "ffn_up", "ffn_down"),
            *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
            *("mlp.c_fc", "mlp.c_proj"),
        ),
        "norms": (
            *("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm", "attn_q_norm", "attn_k_norm"),
            *("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm"),
            *("post_feedforward_layernorm", "self_attn.q_norm", "self_attn.k_norm"),
            *("ln_1", "ln_2"),
        ),
    }
)
_OUTSIDE = MappingProxyType(
    {
        "embedding": ("token_embd", "model.embed_tokens", "transformer.wte", "wte"),
        "positions": ("position_embd", "transformer.wpe", "wpe"),
        "norms": ("output_norm", "model.norm", "transformer.ln_f", "ln_f"),
        "head": ("output", "lm_head"),
    }
)
_NAME = re.compile(r"(?P<layer>(?:blk|model\.layers|transformer\.h|h)\.\d+\.)?(?P<stem>.+)\.(?:weight|bias)")


def part_of(name: str) -> str:
    """Return the field of `Tally` to which a tensor belongs, by its name with the ending ``.weight`` or ``.bias``.

    Known are the names of GGUF (``TENSOR_NAMES`` in llama.cpp's ``gguf-py/gguf/constants.py``) and of Hugging Face
    files (transformers' ``models/llama``, ``qwen3``, ``gemma2`` and ``gpt2``); any other is refused, so that none is
    left out.
    """
    if isinstance(name, str) and (found := _NAME.fullmatch(name)):
        for part, stems in (_IN_LAYER if found["layer"] else _OUTSIDE).items():
            if found["stem"] in stems:
                return part
    raise require.refusal("name", repr(name), "a tensor's name of a dense Llama-like or GPT-2 model")


@require.door
def count_tensors(shapes: Mapping[str, Sequence[int]]) -> Tally:
    """Count a real model's parameters by part, from the shapes of its tensors.

    Parameters
    ----------
    shapes : mapping of str to sequence of int
        Each stored tensor's name and shape, in either order of axes; shapes of weights, not of packed bytes.  A tied
        head must not be listed under a second name (files don't; a PyTorch ``state_dict`` does).

    Returns
    -------
    Tally : the whole model

    Examples
    --------
    >>> count_tensors({"token_embd.weight": (576, 49152), "output_norm.weight": (576,)}).parts["embedding"]
    28311552
    """
    if not shapes:
        raise require.refusal("shapes", "no tensors", "at least one")
    parts = dict.fromkeys(Tally().parts, 0)
    for name, shape in shapes.items():
        require.instance(f"shapes[{name!r}]", shape, Sequence)
        parts[part_of(name)] += math.prod(require.integer(f"shapes[{name!r}]", axis) for axis in shape)
    return Tally(**parts)


@dataclass(frozen=True)
class Count:
    """The tally of one layer and that of the whole model."""

    layer: Tally  # one layer's parameters; all layers are alike
    model: Tally  # the whole model's: `n_layers` such layers and what is outside them
    n_layers: int  # how many layers the model has

    @property
    def total(self) -> int:
        """The whole model's parameters."""
        return self.model.total

    @property
    def non_embedding(self) -> int:
        """The whole model's, without embedding, learned positions and head."""
        return self.model.non_embedding


def attention_parameters(
    d_model: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    head_dim: int | None = None,
    *,
    qkv_bias: bool = False,
    output_bias: bool = False,
) -> int:
    """Count one attention layer: D·K·(2H + 2G), and its biases if any.

    Query and output projections are D×HK and HK×D, key and value projections D×GK each.  With G = H and HK = D
    that is 4·D².  QK-norm is counted with the norms; RoPE has no parameters.

    Parameters
    ----------
    d_model : int; D, the width of the residual stream
    n_heads : int; H, query heads
    n_kv_heads : int, optional
        G, key/value heads; divides H.  Default H.
    head_dim : int, optional
        K.  Default D/H, which must then be an integer.
    qkv_bias : bool; biases of the query, key and value projections: K·(H + 2G) more
    output_bias : bool; the output projection's bias: D more

    Returns
    -------
    int; parameters of one layer's attention

    Source: Vaswani et al., arXiv:1706.03762, §3.2.2; Ainslie et al., arXiv:2305.13245, §2.2 (grouped kv heads).

    Examples
    --------
    >>> attention_parameters(8, 2), attention_parameters(4096, 32, 8)
    (256, 41943040)
    """
    d_model, n_heads, n_kv_heads, head_dim = head_sizes(d_model, n_heads, n_kv_heads, head_dim)
    number = d_model * head_dim * (2 * n_heads + 2 * n_kv_heads)
    if require.boolean("qkv_bias", qkv_bias):
        number += head_dim * (n_heads + 2 * n_kv_heads)
    return number + (d_model if require.boolean("output_bias", output_bias) else 0)


def ffn_parameters(kind: Literal["gated", "mlp"], d_model: int, d_ff: int, bias: bool = False) -> int:
    """Count one feed-forward layer: 2·D·F ("mlp") or 3·D·F ("gated"), and its biases if any.

    A gated layer has two matrices into the hidden width and one out of it, a plain one has one and one; each
    matrix has a bias as wide as its output.

    Parameters
    ----------
    kind : {"gated", "mlp"}; gated (SwiGLU, GEGLU, …) or plain (ReLU, GELU)
    d_model : int; D
    d_ff : int; F, the hidden width: of one of the two branches where it is gated
    bias : bool; whether each matrix has a bias: 2·F + D more (gated) or F + D (plain)

    Returns
    -------
    int; parameters of one layer's feed-forward part

    References
    ----------
    Plain: Vaswani et al., arXiv:1706.03762, §3.3, eq. 2.  Gated: Shazeer, "GLU Variants Improve Transformer",
    arXiv:2002.05202, §2, eq. 6.

    Examples
    --------
    >>> ffn_parameters("mlp", 8, 24), ffn_parameters("gated", 8, 16)
    (384, 384)
    """
    matrices = FFN_MATRICES[require.one_of("kind", kind, tuple(FFN_MATRICES))]
    d_model, d_ff = require.integer("d_model", d_model), require.integer("d_ff", d_ff)
    biases = (matrices - 1) * d_ff + d_model if require.boolean("bias", bias) else 0
    return matrices * d_model * d_ff + biases


@require.door
def count(config: DecoderConfig) -> Count:
    """Count the parameters of a decoder by part.

    Embedding V·D, positions max_positions·D, head V·D unless tied, and in each layer attention
    (`attention_parameters`), feed-forward (`ffn_parameters`) and norms, with D weights for each norm, 2·K more
    for QK-norm, twice that where norms have biases.  The final norm is counted with the norms.

    Parameters
    ----------
    config : DecoderConfig

    Returns
    -------
    Count : tallies of a layer and of the model

    References
    ----------
    Kaplan et al., arXiv:2001.08361, §2.1 and table 1 (the same parts, with H = G and without norms and biases);
    Vaswani et al., arXiv:1706.03762, §3.4 (one table as embedding and head).

    Examples
    --------
    >>> config = DecoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, vocab_size=0, final_norm=False)
    >>> layer = count(config).layer
    >>> layer.attention, layer.feed_forward, layer.norms, layer.total
    (256, 384, 16, 656)
    """
    c = config
    per_channel = 2 if c.norm_bias else 1
    layer = Tally(
        attention=attention_parameters(
            c.d_model, c.n_heads, c.n_kv_heads, c.head_dim, qkv_bias=c.qkv_bias, output_bias=c.output_bias
        ),
        feed_forward=ffn_parameters(c.ffn, c.d_model, c.d_ff, c.ffn_bias),
        norms=per_channel * (c.norms_per_layer * c.d_model + (2 * c.head_dim if c.qk_norm else 0)),
    )
    model = Tally(
        embedding=c.vocab_size * c.d_model,
        positions=c.max_positions * c.d_model,
        attention=c.n_layers * layer.attention,
        feed_forward=c.n_layers * layer.feed_forward,
        norms=c.n_layers * layer.norms + (per_channel * c.d_model if c.final_norm else 0),
        head=(0 if c.tied else c.vocab_size * c.d_model) + (c.vocab_size if c.head_bias else 0),
    )
    return Count(layer, model, c.n_layers)


@require.door
def formulas(config: DecoderConfig) -> Mapping[str, str]:
    """Return, for each part of the model's tally, the sum that gives it, with the config's numbers put in.

    Parameters
    ----------
    config : DecoderConfig

    Returns
    -------
    mapping of str to str
        By the names of `Tally`'s fields; with ``·`` read as ``*`` each is an expression of the part's number.

    Examples
    --------
    >>> config = DecoderConfig(
    ...     d_model=576, n_layers=30, n_heads=9, n_kv_heads=3, d_ff=1536, vocab_size=49152, tied=True
    ... )
    >>> for part, formula in formulas(config).items():
    ...     print(f"{part:12} = {formula}")
    embedding    = 49152·576
    positions    = 0
    attention    = 30·(576·64·(2·9 + 2·3))
    feed_forward = 30·(3·576·1536)
    norms        = 30·(2·576) + 576
    head         = 0
    """
    c = config
    attention = f"{c.d_model}·{c.head_dim}·(2·{c.n_heads} + 2·{c.n_kv_heads})"
    if c.qkv_bias:
        attention += f" + {c.head_dim}·({c.n_heads} + 2·{c.n_kv_heads})"
    if c.output_bias:
        attention += f" + {c.d_model}"
    feed_forward = f"{FFN_MATRICES[c.ffn]}·{c.d_model}·{c.d_ff}"
    if c.ffn_bias:
        feed_forward += f" + {FFN_MATRICES[c.ffn] - 1}·{c.d_ff} + {c.d_model}"
    twice = "2·" if c.norm_bias else ""
    norms = f"{twice}{c.norms_per_layer}·{c.d_model}" + (f" + {twice}2·{c.head_dim}" if c.qk_norm else "")
    table = f"{c.vocab_size}·{c.d_model}" if c.vocab_size else "0"
    head = [table] * (not c.tied) + [f"{c.vocab_size}"] * (c.head_bias and c.vocab_size > 0)
    return {
        "embedding": table,
        "positions": f"{c.max_positions}·{c.d_model}" if c.max_positions else "0",
        "attention": f"{c.n_layers}·({attention})",
        "feed_forward": f"{c.n_layers}·({feed_forward})",
        "norms": f"{c.n_layers}·({norms})" + (f" + {twice}{c.d_model}" if c.final_norm else ""),
        "head": " + ".join(head) or "0",
    }
