"""Where a decoder's parameters are: a tally by part, per layer and for the whole model.

The other questions of a budget have their own modules and are found here too: `budget_config` (the sizes),
`budget_d_ff` (how wide a gated layer is made), `budget_cost` (operations and cache), `budget_tensors` (the same
tally from the tensors of a real file).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from transformer_parts.maths import require
from transformer_parts.maths.budget_config import FFN_MATRICES, DecoderConfig, head_sizes
from transformer_parts.maths.budget_cost import TokenFlops, flops_per_token, kv_cache_bytes
from transformer_parts.maths.budget_d_ff import (
    BudgetMatch,
    LlamaWidth,
    equal_budget_d_ff,
    ffn_parameters,
    llama_d_ff,
    match_budget,
)
from transformer_parts.maths.budget_tally import Tally
from transformer_parts.maths.budget_tensors import count_tensors

__all__ = [
    "BudgetMatch",
    "Count",
    "DecoderConfig",
    "LlamaWidth",
    "Tally",
    "TokenFlops",
    "attention_parameters",
    "count",
    "count_tensors",
    "equal_budget_d_ff",
    "ffn_parameters",
    "flops_per_token",
    "formulas",
    "kv_cache_bytes",
    "llama_d_ff",
    "match_budget",
]


@dataclass(frozen=True)
class Count:
    """The tally of one layer and that of the whole model.

    Attributes
    ----------
    layer : Tally
        One layer's parameters; all layers are alike.
    model : Tally
        The whole model's: `n_layers` such layers and what stands outside them.
    n_layers : int
        How many layers the model has.
    """

    layer: Tally
    model: Tally
    n_layers: int

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
    d_model : int
        D, the width of the residual stream.
    n_heads : int
        H, query heads.
    n_kv_heads : int, optional
        G, key/value heads; divides H.  Default H.
    head_dim : int, optional
        K.  Default D/H, which must then be an integer.
    qkv_bias : bool
        Biases of the query, key and value projections: K·(H + 2G) more.
    output_bias : bool
        The output projection's bias: D more.

    Returns
    -------
    int
        Parameters of one layer's attention.

    Raises
    ------
    ValueError
        For a size below 1, kv heads that don't divide the heads, heads that don't divide D when `head_dim`
        isn't told, or a switch that is not a bool.

    References
    ----------
    Vaswani et al., arXiv:1706.03762, §3.2.2; Ainslie et al., arXiv:2305.13245, §2.2 (grouped kv heads).

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


def count(config: DecoderConfig) -> Count:
    """Count the parameters of a decoder by part.

    Embedding V·D, positions max_positions·D, head V·D unless tied, and in each layer attention
    (`attention_parameters`), feed-forward (`ffn_parameters`) and norms, with D weights for each norm, 2·K more
    for QK-norm, twice that where norms have biases.  The final norm is counted with the norms.

    Parameters
    ----------
    config : DecoderConfig
        Sizes.

    Returns
    -------
    Count
        Tallies of a layer and of the model.

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
        head=0 if c.tied else c.vocab_size * c.d_model,
    )
    return Count(layer, model, c.n_layers)


def formulas(config: DecoderConfig) -> Mapping[str, str]:
    """Return, for each part of the model's tally, the sum that gives it, with the config's numbers put in.

    Parameters
    ----------
    config : DecoderConfig
        Sizes.

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
    return {
        "embedding": table,
        "positions": f"{c.max_positions}·{c.d_model}" if c.max_positions else "0",
        "attention": f"{c.n_layers}·({attention})",
        "feed_forward": f"{c.n_layers}·({feed_forward})",
        "norms": f"{c.n_layers}·({norms})" + (f" + {twice}{c.d_model}" if c.final_norm else ""),
        "head": "0" if c.tied else table,
    }
