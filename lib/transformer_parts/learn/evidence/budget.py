"""Numbers about parameters, operations and widths of published decoders."""

from dataclasses import replace

import numpy as np

from transformer_parts.maths import budget, rope
from transformer_parts.maths.attention import attention, attention_weights
from transformer_parts.models.configs import PUBLISHED
from transformer_parts.models.excerpt import load_excerpt

__all__ = [
    "count_by_hand",
    "grouped_heads_and_parameters",
    "operations_per_token",
    "tied_head",
    "time_to_train",
    "what_biases_do",
    "what_tying_saves",
    "where_the_parameters_are",
    "width_14336",
]


def count_by_hand() -> dict[str, float]:
    """Count SmolLM2-135M and Llama 3 8B by parts, the first also from its file."""
    numbers = {}
    for short, name in (("smol", "SmolLM2 135M"), ("llama", "Llama 3 8B")):
        counted = budget.count(PUBLISHED[name].config)
        numbers |= {f"{short}_{part}": size for part, size in counted.model.parts.items()}
        numbers |= {
            f"{short}_total": counted.total,
            f"{short}_layer": counted.layer.total,
            f"{short}_layer_attention": counted.layer.attention,
            f"{short}_layer_ffn": counted.layer.feed_forward,
            f"{short}_layer_norms": counted.layer.norms,
        }
    numbers["llama_full"] = 4 * PUBLISHED["Llama 3 8B"].config.d_model ** 2
    in_file = budget.count_tensors(load_excerpt().tensor_shapes).total
    return numbers | {"in_file": in_file, "holds": in_file == numbers["smol_total"]}


def tied_head() -> dict[str, float]:
    """Count SmolLM2-135M with its tied head and as if the head were its own."""
    config = PUBLISHED["SmolLM2 135M"].config
    tied, untied = budget.count(config).total, budget.count(replace(config, tied=False)).total
    flops = [budget.flops_per_token(c, 1).weights for c in (config, replace(config, tied=False))]
    return {
        "tied": tied,
        "untied": untied,
        "more": untied / tied - 1,
        "flops_tied": flops[0] / 1e6,
        "flops_untied": flops[1] / 1e6,
        "holds": flops[0] < flops[1],
    }


def grouped_heads_and_parameters() -> dict[str, float]:
    """Compare Llama 3 8B with itself with a kv head for each query head."""
    grouped = PUBLISHED["Llama 3 8B"].config
    full = replace(grouped, n_kv_heads=grouped.n_heads)
    model = 1 - budget.count(grouped).total / budget.count(full).total
    cache = 1 - budget.kv_cache_bytes(grouped, 1) / budget.kv_cache_bytes(full, 1)
    return {"model": model, "cache": cache, "holds": model > 0.5}


def operations_per_token() -> dict[str, float]:
    """Count the operations of one token of Llama 3 8B, by context, against twice its parameters."""
    config = PUBLISHED["Llama 3 8B"].config
    counted = budget.count(config)
    numbers = {"twice": 2 * counted.total / 1e9, "embedding": counted.model.parts["embedding"] / 1e6}
    for context in (1, 8192, 131_072):
        flops = budget.flops_per_token(config, context)
        numbers |= {f"forward_{context}": flops.forward / 1e9, f"attention_{context}": flops.attention / 1e9}
    short, long = budget.flops_per_token(config, 8192), budget.flops_per_token(config, 131_072)
    return numbers | {
        "weights": short.weights / 1e9,
        "more_8192": short.attention / short.weights,
        "more_128k": long.attention / long.weights,
        "training": short.training / 1e9,
        "equal_at": short.weights / (short.attention / 8192),
        "less_than_half": short.attention < short.weights / 2,
        "holds": long.forward < 1.1 * 2 * counted.total,
    }


def where_the_parameters_are() -> dict[str, float]:
    """Take the shares of attention, feed-forward and embedding in three models."""
    numbers = {}
    models = {"gpt2": "GPT-2 small", "llama2": "Llama 2 7B", "llama3": "Llama 3 8B", "smol": "SmolLM2 135M"}
    for short, name in models.items():
        shares = budget.count(PUBLISHED[name].config).model.shares
        numbers |= {f"{short}_{part}": shares[part] for part in ("attention", "feed_forward", "embedding")}
    return numbers | {"holds": numbers["llama3_attention"] > numbers["llama3_feed_forward"]}


def width_14336() -> dict[str, float]:
    """Follow 4096 through the published rule, with and without the multiplier."""
    plain = budget.llama_d_ff(4096, multiple_of=1024)
    rule = budget.llama_d_ff(4096, multiple_of=1024, multiplier=1.3)
    match = budget.match_budget("gated", 4096, rule.d_ff, multiple_of=1024)
    aligned = [budget.llama_d_ff(4096, multiple_of=2**i).d_ff for i in range(16)]
    return {
        "two_thirds": rule.two_thirds,
        "multiplied": rule.multiplied,
        "width": rule.d_ff,
        "aligned_alone": plain.d_ff,
        "ratio": match.ratio,
        "of_d": rule.ratio,
        "holds": rule.d_ff in aligned,
    }


def what_tying_saves() -> dict[str, float]:
    """Compare the head's share in three models, and let a tied head read embeddings with no layer between."""
    numbers = {}
    for short, name in (("smol", "SmolLM2 135M"), ("llama8", "Llama 3 8B"), ("llama70", "Llama 3 70B")):
        config = replace(PUBLISHED[name].config, tied=False)
        numbers[short] = budget.count(config).model.parts["embedding"] / budget.count(config).total
    embedding = np.random.default_rng(7).standard_normal((2000, 64))
    itself = float(np.mean((embedding @ embedding.T).argmax(axis=1) == np.arange(2000)))
    return numbers | {"itself": itself, "holds": numbers["smol"] > 10 * numbers["llama70"]}


def time_to_train() -> dict[str, float]:
    """Compare 6ND of Llama 2 7B and its 2T tokens with the GPU hours that its paper gives."""
    config, tokens, peak = PUBLISHED["Llama 2 7B"].config, 2e12, 312e12
    six = 6 * budget.count(config).total * tokens
    exact = budget.flops_per_token(config, 2048).training * tokens  # the mean context of 4096 tokens
    used = six / (184_320 * 3600 * peak)
    days = six / (1024 * peak * 0.4) / 86_400
    return {
        "six": six,
        "exact": exact,
        "more": exact / six,
        "used": used,
        "days": days,
        "factor": 1 / used,
        "holds": 0.3 < used < 0.5,
    }


def what_biases_do() -> dict[str, float]:
    """Add biases to keys and values of one head, with RoPE and without; count those of GPT-2 small."""
    rng = np.random.default_rng(8)
    (query, key, value), (on_key, on_value) = rng.standard_normal((3, 1, 12, 16)), rng.standard_normal((2, 16))
    turned = [rope.rotate(x, np.arange(12)) for x in (query, key, key + on_key)]
    without = np.abs(attention_weights(query, key + on_key) - attention_weights(query, key)).max()
    with_rope = np.abs(attention_weights(turned[0], turned[2]) - attention_weights(turned[0], turned[1])).max()
    moved = attention(query, key, value + on_value) - attention(query, key, value)
    config = PUBLISHED["GPT-2 small"].config
    bare = replace(config, qkv_bias=False, output_bias=False, ffn_bias=False)
    return {
        "without": float(without),
        "with_rope": float(with_rope),
        "on_value": (off := float(np.abs(moved - on_value).max())),
        "share": 1 - budget.count(bare).total / budget.count(config).total,
        "holds": bool(without < 1e-12),
        "value_holds": off < 1e-12,
    }
