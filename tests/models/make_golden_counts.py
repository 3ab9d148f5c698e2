"""Write golden_counts.json: parameters of the published models, counted on transformers' own modules.

Sizes are typed here a second time, from the models' config.json files, in Hugging Face's terms; nothing of this
library is imported.  Each model is built on torch's meta device, which allocates nothing.

    python tests/models/make_golden_counts.py
"""

import json
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden_counts.json")


def _llama(**kwargs):
    return "Llama", {"tie_word_embeddings": False, **kwargs}


_LLAMA_7B = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
}
_LLAMA_70B = {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
}
_LLAMA_3_8B = {**_LLAMA_7B, "intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256}

MODELS = {
    "GPT-2 small": (
        "GPT2",
        {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024},
    ),
    "GPT-2 XL": ("GPT2", {"n_embd": 1600, "n_layer": 48, "n_head": 25, "vocab_size": 50257, "n_positions": 1024}),
    "Llama 1 7B": _llama(**_LLAMA_7B),
    "Llama 2 7B": _llama(**_LLAMA_7B),
    "Llama 2 13B": _llama(
        hidden_size=5120,
        intermediate_size=13824,
        num_hidden_layers=40,
        num_attention_heads=40,
        num_key_value_heads=40,
        vocab_size=32000,
    ),
    "Llama 2 70B": _llama(**_LLAMA_70B, vocab_size=32000),
    "Llama 3 8B": _llama(**_LLAMA_3_8B),
    "Llama 3 70B": _llama(**_LLAMA_70B, vocab_size=128256),
    "Mistral 7B": ("Mistral", {**_LLAMA_3_8B, "vocab_size": 32000, "tie_word_embeddings": False}),
    "Phi-2": (
        "Phi",
        {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "vocab_size": 51200,
            "tie_word_embeddings": False,
        },
    ),
    "Qwen2.5 7B": (
        "Qwen2",
        {
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
            "tie_word_embeddings": False,
        },
    ),
    "Qwen3 8B": (
        "Qwen3",
        {
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151936,
            "tie_word_embeddings": False,
            "attention_bias": False,
        },
    ),
    "Gemma 2B": (
        "Gemma",
        {
            "hidden_size": 2048,
            "intermediate_size": 16384,
            "num_hidden_layers": 18,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "vocab_size": 256000,
        },
    ),
    "Gemma 2 2B": (
        "Gemma2",
        {
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 26,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 256000,
        },
    ),
    "SmolLM2 135M": _llama(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152,
        tie_word_embeddings=True,
    ),
    # the layer of our worked example; the smallest whole model that contains it, of which the layer alone is counted
    "toy layer": _llama(
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        vocab_size=3,
    ),
}


def build(name: str):
    """Build a model, or the toy layer, on the meta device."""
    import torch
    import transformers

    kind, sizes = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**sizes)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    return model.model.layers if name == "toy layer" else model


def part(owner: str, module) -> str:
    """Tell the part of the parameter's owner by its class, and by the name of the block it stands in."""
    if "Embedding" in {c.__name__ for c in type(module).__mro__}:
        return "positions" if owner.endswith("wpe") else "embedding"
    if "Norm" in type(module).__name__:
        return "norms"
    if owner == "lm_head":
        return "head"
    if "attn" in owner:
        return "attention"
    if ".mlp." in owner:
        return "feed_forward"
    raise LookupError(f"{owner}: a {type(module).__name__} of no known part")


def count(name: str) -> dict:
    """Count each distinct parameter once."""
    model, parts, seen = build(name), {}, set()
    for owner, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                key = part(owner, module)
                parts[key] = parts.get(key, 0) + parameter.numel()
    total = sum(p.numel() for p in model.parameters())
    return {"total": total, "parts": dict(sorted(parts.items()))}


if __name__ == "__main__":
    counts = {name: count(name) for name in MODELS}
    GOLDEN.write_text(json.dumps(counts, indent=1) + "\n")
