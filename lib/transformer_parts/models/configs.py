"""Published decoders: their sizes, the source of these, and the number of parameters that the publication states.

`PUBLISHED` maps a model's name to its entry.  Every entry's count is compared in the tests with that of an
independent implementation built to the same sizes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.budget import DecoderConfig
from transformer_parts.models.weights import GGUFFile


@dataclass(frozen=True, kw_only=True)
class WidthRule:
    """The two parameters of `budget.parameters.llama_d_ff` that a model's published code was given."""

    multiple_of: int
    multiplier: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published decoder."""

    config: DecoderConfig  # its sizes, as the released weights have them
    source: str  # where they are published
    told: str = ""  # the number of parameters in the publication's words; "" where it gives none
    told_non_embedding: str = ""  # the same without embedding and head
    width_rule: WidthRule | None = None  # how d_ff was made, where that is published
    activation: str = "silu"  # what acts in the feed-forward layer: "silu", "gelu" by erf, or "gelu_tanh"
    rope_base: float | None = 10000.0  # of the release; None where positions are a learned table
    rotary_dim: int | None = None  # the channels of a head that RoPE turns, where not all


def _gpt2(d_model: int, n_layers: int, n_heads: int) -> DecoderConfig:
    return DecoderConfig(
        d_model=d_model,
        n_layers=n_layers,
        n_heads=n_heads,
        d_ff=4 * d_model,
        vocab_size=50257,
        ffn="mlp",
        tied=True,
        norm="layer",
        max_positions=1024,
        qkv_bias=True,
        output_bias=True,
        ffn_bias=True,
    )


_LLAMA_7B = DecoderConfig(d_model=4096, n_layers=32, n_heads=32, d_ff=11008, vocab_size=32000)
_GPT2_SOURCE = "Radford et al. 2019, table 2; github.com/openai/gpt-2, src/model.py and hparams.json"
_LLAMA_3_SOURCE = "arXiv:2407.21783, table 3; params.json of the release"

PUBLISHED: Mapping[str, Published] = MappingProxyType(
    {
        "toy layer": Published(
            config=DecoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, vocab_size=0, final_norm=False),
            source="our worked example: one layer alone, no embedding, final norm or head",
        ),
        "GPT-2 small": Published(
            config=_gpt2(768, 12, 12),
            source=_GPT2_SOURCE,
            told="117M",
            activation="gelu_tanh",
            rope_base=None,
        ),
        "GPT-2 XL": Published(
            config=_gpt2(1600, 48, 25),
            source=_GPT2_SOURCE,
            told="1542M",
            activation="gelu_tanh",
            rope_base=None,
        ),
        "Llama 1 7B": Published(
            config=_LLAMA_7B,
            source="arXiv:2302.13971, §2.2 and table 2; github.com/meta-llama/llama (llama_v1), llama/model.py",
            told="6.7B",
            width_rule=WidthRule(multiple_of=256),
        ),
        "Llama 2 7B": Published(
            config=_LLAMA_7B,
            source="arXiv:2307.09288, §2.2 and table 1; params.json of the release",
            told="7B",
            width_rule=WidthRule(multiple_of=256),
        ),
        "Llama 2 13B": Published(
            config=DecoderConfig(d_model=5120, n_layers=40, n_heads=40, d_ff=13824, vocab_size=32000),
            source="arXiv:2307.09288, §2.2 and table 1; params.json of the release",
            told="13B",
            width_rule=WidthRule(multiple_of=256),
        ),
        "Llama 2 70B": Published(
            config=DecoderConfig(d_model=8192, n_layers=80, n_heads=64, n_kv_heads=8, d_ff=28672, vocab_size=32000),
            source="arXiv:2307.09288, §2.2, table 1 and appendix A.2.1; params.json of the release",
            told="70B",
            width_rule=WidthRule(multiple_of=4096, multiplier=1.3),
        ),
        "Llama 3 8B": Published(
            config=DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=128256),
            source=_LLAMA_3_SOURCE,
            told="8B",
            width_rule=WidthRule(multiple_of=1024, multiplier=1.3),
            rope_base=500000.0,
        ),
        "Llama 3 70B": Published(
            config=DecoderConfig(d_model=8192, n_layers=80, n_heads=64, n_kv_heads=8, d_ff=28672, vocab_size=128256),
            source=_LLAMA_3_SOURCE,
            told="70B",
            width_rule=WidthRule(multiple_of=4096, multiplier=1.3),
            rope_base=500000.0,
        ),
        "Mistral 7B": Published(
            config=DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=32000),
            source="arXiv:2310.06825, table 1; config.json of mistralai/Mistral-7B-v0.1",
            told="7B",
        ),
        "Phi-2": Published(
            config=DecoderConfig(
                d_model=2560,
                n_layers=32,
                n_heads=32,
                d_ff=10240,
                vocab_size=51200,
                ffn="mlp",
                norm="layer",
                norms_per_layer=1,
                qkv_bias=True,
                output_bias=True,
                ffn_bias=True,
                head_bias=True,
            ),
            source="config.json and model card of microsoft/phi-2",
            told="2.7B",
            activation="gelu_tanh",
            rotary_dim=32,
        ),
        "Qwen2.5 7B": Published(
            config=DecoderConfig(
                d_model=3584,
                n_layers=28,
                n_heads=28,
                n_kv_heads=4,
                d_ff=18944,
                vocab_size=152064,
                qkv_bias=True,
            ),
            source="arXiv:2412.15115, table 1; config.json and model card of Qwen/Qwen2.5-7B",
            told="7.61B",
            told_non_embedding="6.53B",
            rope_base=1000000.0,
        ),
        "Qwen3 8B": Published(
            config=DecoderConfig(
                d_model=4096,
                n_layers=36,
                n_heads=32,
                n_kv_heads=8,
                head_dim=128,
                d_ff=12288,
                vocab_size=151936,
                qk_norm=True,
            ),
            source="arXiv:2505.09388, §2 and table 1; config.json and model card of Qwen/Qwen3-8B",
            told="8.2B",
            told_non_embedding="6.95B",
            rope_base=1000000.0,
        ),
        "Gemma 2B": Published(
            config=DecoderConfig(
                d_model=2048,
                n_layers=18,
                n_heads=8,
                n_kv_heads=1,
                head_dim=256,
                d_ff=16384,
                vocab_size=256000,
                tied=True,
            ),
            source="arXiv:2403.08295, tables 1 and 2; github.com/google/gemma_pytorch, gemma/config.py",
            told="2B",
            told_non_embedding="1,981,884,416",
            activation="gelu_tanh",
        ),
        "Gemma 2 2B": Published(
            config=DecoderConfig(
                d_model=2304,
                n_layers=26,
                n_heads=8,
                n_kv_heads=4,
                head_dim=256,
                d_ff=9216,
                vocab_size=256000,
                tied=True,
                norms_per_layer=4,
            ),
            source="arXiv:2408.00118, tables 1 and 2; config.json of google/gemma-2-2b",
            told="2.6B",
            told_non_embedding="2,024,517,888",
            activation="gelu_tanh",
        ),
        "SmolLM2 135M": Published(
            config=DecoderConfig(
                d_model=576, n_layers=30, n_heads=9, n_kv_heads=3, d_ff=1536, vocab_size=49152, tied=True
            ),
            source="config.json of HuggingFaceTB/SmolLM2-135M; arXiv:2502.02737",
            told="135M",
            rope_base=100000.0,
        ),
    }
)


@dataclass(frozen=True)
class LlamaSizes:
    """The sizes and constants of a Llama model as its file states them."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    context_length: int
    rope_base: float
    eps: float


def llama_sizes(file: GGUFFile) -> LlamaSizes:
    """Read the sizes; what Llama files may leave out has the value that leaving it out means."""

    def field(name: str, default=None):
        return file.field(f"llama.{name}", default)

    def size(name: str, default=None) -> int:
        return require.integer(f"llama.{name}", field(name, default))

    n_heads, d_model = size("attention.head_count"), size("embedding_length")
    head_dim = size("attention.key_length", field("rope.dimension_count", d_model // n_heads))
    if (turned := field("rope.dimension_count", head_dim)) != head_dim:
        raise ValueError(f"llama.rope.dimension_count: got {turned}, want {head_dim}, the whole head")
    if (scaling := field("rope.scaling.type", "none")) != "none":
        raise ValueError(f"llama.rope.scaling.type: got {scaling!r}, want 'none'")
    eps = field("attention.layer_norm_rms_epsilon")
    return LlamaSizes(
        vocab_size=len(file.texts("tokenizer.ggml.tokens")),
        d_model=d_model,
        n_layers=size("block_count"),
        n_heads=n_heads,
        n_kv_heads=size("attention.head_count_kv", n_heads),
        head_dim=head_dim,
        d_ff=size("feed_forward_length"),
        context_length=size("context_length"),
        rope_base=require.number("llama.rope.freq_base", field("rope.freq_base", 10000.0)),
        # stored in 32 bits: the shortest number that rounds to it is what its makers wrote
        eps=float(str(np.float32(require.number("llama.attention.layer_norm_rms_epsilon", eps)))),
    )


HEAD_DIM = 96
ROPE_BASE = 10000.0
TRAINED_LENGTH = 4096
EXTENDED_LENGTH = 131072

SHORT = (
    *(1.05,) * 3, *(1.1,) * 2, 1.15, 1.2, 1.25, 1.3, 1.35, 1.5, *(2.0,) * 21, *(2.05,) * 3, *(2.1,) * 3, *(2.15,) * 2,
    2.35, 2.55, *(2.6,) * 2, 2.75, *(2.85,) * 2, 2.95,
)  # fmt: skip
LONG = (
    1.03, 1.05, 1.05, 1.08, 1.23, 1.23, 1.3, 1.45, 1.6, 1.65, 1.9, 2.86, 3.69, 5.42, 5.49, 5.49, 9.09, 11.58, 15.66,
    15.77, 15.79, 18.36, 21.99, 23.08, 30.01, 32.35, 32.59, 35.56, 39.95, 53.84, 56.2, 57.95, 59.29, 59.77, 59.92,
    61.19, 61.96, 62.5, 63.37, 63.48, 63.48, 63.66, 63.85, 64.08, 64.76, 64.8, 64.81, 64.81,
)  # fmt: skip


def factors_for(pairs: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the short and the long list, resampled for a head of another width.

    A pair's factor is read at its place between the fastest and the slowest pair, linearly between the published
    numbers.  For the model's own 48 pairs these are the published lists.

    Parameters
    ----------
    pairs : int; P, at least 1

    Returns
    -------
    short, long : ndarray, shape (P,); the lists

    Examples
    --------
    >>> factors_for(2)
    (array([1.05, 2.95]), array([ 1.03, 64.81]))
    """
    pairs = require.integer("pairs", pairs, maximum=2**20)
    places = np.linspace(0, len(LONG) - 1, pairs)
    return np.interp(places, np.arange(len(SHORT)), SHORT), np.interp(places, np.arange(len(LONG)), LONG)
