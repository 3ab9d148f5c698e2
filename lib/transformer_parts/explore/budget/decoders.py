"""The published decoders in words, and what each has beside its sizes."""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType

from transformer_parts.language import _
from transformer_parts.maths import budget
from transformer_parts.models.configs import PUBLISHED

CUSTOM = _("custom")
FILE = _("SmolLM2 135M, its file")
_WORDS = MappingProxyType({"toy layer": _("toy layer"), "GPT-2 small": _("GPT-2 small")})
#: The names of the published decoders by themselves; a name with words in it is a message.
MODELS: Mapping[str, str] = MappingProxyType({name: _WORDS.get(name, name) for name in PUBLISHED})

_FURTHER: Mapping[str, object] = MappingProxyType(
    {
        "norm": "rms",
        "norms_per_layer": 2,
        "final_norm": True,
        "qk_norm": False,
        "qkv_bias": False,
        "output_bias": False,
        "ffn_bias": False,
        "head_bias": False,
        "max_positions": 0,
    }
)
#: What a reader who compares the numbers of a published decoder should know.
NOTES: Mapping[str, str] = MappingProxyType(
    {
        "GPT-2 small": _(
            "The paper's count is too low, as the README of OpenAI's repository says; counted, it is {count}.",
            count="124M",
        ),
        "GPT-2 XL": _(
            "The paper's count is too low, as the README of OpenAI's repository says; counted, it is {count}.",
            count="1558M",
        ),
        "Llama 2 7B": _("The sizes of Llama 1 7B; the context is twice as long, which costs no parameters."),
        "Llama 2 70B": _(
            "The multiplier spends 86 % of what grouped kv heads save in attention on feed-forward width."
        ),
        "Mistral 7B": _("Attention is windowed to 4096 tokens: no layer's cache or scores grow beyond that."),
        "Phi-2": _(
            "Both branches of a layer read one norm. The head has a bias, {bias} numbers; the card's 2.7B is cut, not"
            " rounded.",
            bias="51,200",
        ),
        "Qwen3 8B": _("QK-norm replaces the query, key and value biases of Qwen2.5."),
        "Gemma 2B": _(
            "The paper's feed-forward width counts both branches ({both}); its vocabulary is 256128, that of the"
            " released config.json 256000. The name leaves the embedding out.",
            both=32768,
        ),
        "Gemma 2 2B": _(
            "The paper's feed-forward width counts both branches ({both}); its vocabulary is 256128, that of the"
            " released config.json 256000. H·K is 2048, not D.",
            both=18432,
        ),
    }
)
# What a decoder has beside its sizes: one entry for each kind among the published ones.
KINDS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        _("RMSNorm, no biases"): _FURTHER,
        _("RMSNorm, biases of q, k, v"): MappingProxyType({**_FURTHER, "qkv_bias": True}),
        _("RMSNorm, QK-norm"): MappingProxyType({**_FURTHER, "qk_norm": True}),
        _("four RMSNorms a layer"): MappingProxyType({**_FURTHER, "norms_per_layer": 4}),
        _("LayerNorm, biases, 1024 positions"): MappingProxyType(
            {
                "norm": "layer",
                "norms_per_layer": 2,
                "final_norm": True,
                "qk_norm": False,
                "qkv_bias": True,
                "output_bias": True,
                "ffn_bias": True,
                "head_bias": False,
                "max_positions": 1024,
            }
        ),
        _("one LayerNorm a layer, biases, the head's too"): MappingProxyType(
            {
                "norm": "layer",
                "norms_per_layer": 1,
                "final_norm": True,
                "qk_norm": False,
                "qkv_bias": True,
                "output_bias": True,
                "ffn_bias": True,
                "head_bias": True,
                "max_positions": 0,
            }
        ),
        _("RMSNorm, but no final one"): MappingProxyType({**_FURTHER, "final_norm": False}),
    }
)


def kind_of(config: budget.DecoderConfig) -> str:
    """Return the name of what a published decoder has beside its sizes."""
    has = {field: value for field, value in asdict(config).items() if field in _FURTHER}
    return next(kind for kind, further in KINDS.items() if has == further)
