"""What a long context costs: bytes of the cache, operations of attention, and the time that both take at least."""

from dataclasses import dataclass

from transformer_parts.maths import require
from transformer_parts.maths.budget import DecoderConfig, count, flops_per_token, kv_cache_bytes

__all__ = ["LongContextCost", "long_context_cost", "prefill_attention_flops", "windowed_keys"]


def windowed_keys(length: int, window: int | None = None) -> int:
    r"""Return how many pairs of query and key a causal sequence has, each query seeing the last `window` keys alone.

    .. math:: \sum_{m=1}^{L} \min(m, w) = \begin{cases} L(L+1)/2 & L \le w \\ w(w+1)/2 + (L-w)\,w & L > w \end{cases}

    Parameters
    ----------
    length : int; L
    window : int, optional; w, the query's own key among them; L if not given

    Returns
    -------
    int

    Source: Jiang et al., "Mistral 7B", arXiv:2310.06825, §2 (sliding-window attention and its rolling cache).

    Examples
    --------
    >>> windowed_keys(4), windowed_keys(4, 2), windowed_keys(4, 9)
    (10, 7, 10)
    """
    length = require.integer("length", length)
    window = length if window is None else min(require.integer("window", window), length)
    return window * (window + 1) // 2 + (length - window) * window


@require.door
def prefill_attention_flops(config: DecoderConfig, length: int, window: int | None = None) -> int:
    """Return the operations of attention over a whole sequence, 4·n_layers·H·K for each pair of query and key."""
    return flops_per_token(config, 1).attention * windowed_keys(length, window)


@dataclass(frozen=True)
class LongContextCost:
    """What a decoder costs at one length of the context."""

    weight_bytes: int  # weight_bytes, cache_bytes: of all parameters, and of the keys and values
    cache_bytes: int
    weight_flops: int  # weight_flops, attention_flops: of the whole prompt: the products with weights, and attention
    attention_flops: int
    prefill_seconds: float  # operations over the machine's: the least the prompt takes
    token_seconds: float  # bytes of weights and cache over the machine's bandwidth: the least one new token takes

    @property
    def attention_share(self) -> float:
        """Attention's share of the prompt's operations."""
        return self.attention_flops / (self.attention_flops + self.weight_flops)


@require.door
def long_context_cost(
    config: DecoderConfig,
    length: int,
    *,
    window: int | None = None,
    weight_bits: float = 16,
    cache_bits: float = 16,
    flops_per_second: float = 1e15,
    bytes_per_second: float = 3.35e12,
) -> LongContextCost:
    r"""Return what one sequence of a length costs, by the roofline's two ends.

    .. math:: t_\text{prompt} \ge \frac{\text{operations}}{\text{operations per second}}, \qquad
              t_\text{token} \ge \frac{\text{weights} + \text{cache}}{\text{bandwidth}}

    The prompt is bound by arithmetic, because a weight that is read serves all its tokens; one new token reads all
    weights and all of the cache for few operations and is bound by bandwidth.  Real machines reach a part of both.

    Parameters
    ----------
    config : DecoderConfig
    length : int; tokens of the prompt, and in the cache
    window : int, optional; keys that a query sees in every layer; the cache then keeps no more
    weight_bits, cache_bits : float; bits of a weight and of a cached number; scales of quantisation come on top
    flops_per_second, bytes_per_second : float; the machine's; the defaults are of the size of a present accelerator's

    Returns
    -------
    LongContextCost

    Source: Pope et al., "Efficiently Scaling Transformer Inference", arXiv:2211.05102, §2 (what bounds the two phases).

    Examples
    --------
    >>> config = DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=128256)
    >>> cost = long_context_cost(config, 131072)
    >>> cost.cache_bytes / 2**30, f"{cost.attention_share:.3f}", f"{1e3 * cost.token_seconds:.2f} ms"
    (16.0, '0.696', '9.92 ms')
    """
    length = require.integer("length", length)
    kept = length if window is None else min(length, require.integer("window", window))
    operations = require.number("flops_per_second", flops_per_second, minimum=1e-6)
    bandwidth = require.number("bytes_per_second", bytes_per_second, minimum=1e-6)
    weight_bits = require.number("weight_bits", weight_bits, above=0, maximum=1024)
    cache_bits = require.number("cache_bits", cache_bits, above=0, maximum=1024)
    weight_bytes = round(count(config).total * weight_bits / 8)
    cache_bytes = kv_cache_bytes(config, kept, cache_bits / 8)
    weight_flops = flops_per_token(config, 1).weights * length
    attention_flops = prefill_attention_flops(config, length, window)
    return LongContextCost(
        weight_bytes=weight_bytes,
        cache_bytes=cache_bytes,
        weight_flops=weight_flops,
        attention_flops=attention_flops,
        prefill_seconds=(weight_flops + attention_flops) / operations,
        token_seconds=(weight_bytes + cache_bytes) / bandwidth,
    )
