"""What a decoder costs to run: arithmetic per token, and bytes of its key/value cache."""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

from transformer_parts.maths import require
from transformer_parts.maths.budget.parameters import FFN_MATRICES, DecoderConfig


@dataclass(frozen=True)
class TokenFlops:
    """Floating-point operations for one token's forward pass, matrix products only, in two parts."""

    weights: int  # the products with weight matrices (projections, feed-forward, head), the same at every context
    attention: int  # the two products with the cached keys and values, proportional to the context

    @property
    def forward(self) -> int:
        """Both parts together."""
        return self.weights + self.attention

    @property
    def training(self) -> int:
        """Three times the forward pass.

        Each product has two gradients, one for either factor, and each is a product of the same size.
        Recomputing activations would come on top.
        """
        return 3 * self.forward


def flops_per_token(config: DecoderConfig, context: int) -> TokenFlops:
    """Return the operations of one token that attends to `context` tokens, itself among them.

    A product with an m×n matrix is 2·m·n operations (a multiplication and an addition each), so a layer costs
    2·(D·K·(2H + 2G) + n·D·F), n = 2 or 3, and the head 2·V·D, tied or not: the embedding is looked up for nothing,
    the head is multiplied out.  Scores and their weighted sum of values cost 2·2·context·H·K in each layer;
    grouped kv heads don't lower that, they lower `kv_cache_bytes`.  Norms, softmax, activations, biases and RoPE
    are left out: each lacks one of the widths (D, K or F) that the products multiply by.

    Parameters
    ----------
    config : DecoderConfig
    context : int
        S.  The mean over a causal sequence of L tokens is the value at (L + 1)/2.  Where attention is windowed, no
        layer's part exceeds that of its window: take the layers apart.

    Returns
    -------
    TokenFlops : operations, a multiplication and an addition counted as two

    References
    ----------
    Kaplan et al., arXiv:2001.08361, §2.1; Chowdhery et al. (PaLM), arXiv:2204.02311, appendix B, whose
    12·L·H·Q·T for training is three times the attention part here.

    Examples
    --------
    >>> config = DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=128256)
    >>> flops_per_token(config, 8192)
    TokenFlops(weights=15009316864, attention=4294967296)
    """
    _require_config(config)
    context = require.integer("context", context)
    heads = config.n_heads * config.head_dim
    kv_heads = config.n_kv_heads * config.head_dim
    matrices = 2 * heads + 2 * kv_heads + FFN_MATRICES[config.ffn] * config.d_ff
    return TokenFlops(
        weights=2 * config.d_model * (config.n_layers * matrices + config.vocab_size),
        attention=config.n_layers * 4 * context * heads,
    )


def kv_cache_bytes(config: DecoderConfig, tokens: int, bytes_per_value: float = 2) -> int:
    """Return 2·n_layers·n_kv_heads·head_dim·bytes_per_value·tokens: a key and a value per layer and kv head.

    Parameters
    ----------
    config : DecoderConfig; sizes; neither H nor D enters
    tokens : int
        Cached tokens, over all sequences of the batch.  With windowed attention a layer caches no more than its window:
        take such layers apart.
    bytes_per_value : float
        2 for float16 and bfloat16, 1 for 8 bits, 0.5 for 4 (the scales of a quantized cache come on top).

    Returns
    -------
    int; bytes, exact at any size; a fraction is counted as a whole one

    Source: Shazeer, arXiv:1911.02150, §3 (sharing the kv heads); Ainslie et al., arXiv:2305.13245, §2.2 (in groups).

    Examples
    --------
    >>> config = DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=128256)
    >>> kv_cache_bytes(config, 8192) / 2**30
    1.0
    """
    _require_config(config)
    tokens = require.integer("tokens", tokens, minimum=0, maximum=None)
    size = require.number("bytes_per_value", bytes_per_value, above=0)
    # The decimal that was meant: 0.1 is one tenth, of which ten are one byte and no more.
    exact = int(bytes_per_value) if isinstance(bytes_per_value, Integral) else Fraction(repr(size))
    values = 2 * config.n_layers * config.n_kv_heads * config.head_dim * tokens
    return math.ceil(values * exact)


def _require_config(config: object) -> None:
    if not isinstance(config, DecoderConfig):
        raise require.refusal("config", repr(config), "a DecoderConfig")
