"""Drills about widths, parameters, bytes and operations."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from transformer_parts.learn.drill import Drill, Slip
from transformer_parts.maths import budget
from transformer_parts.maths.budget import DecoderConfig

# ---------------------------------------------------------------- the width of a gated layer


def _up(number: Fraction | int, multiple: int) -> int:
    return -int(-number // multiple) * multiple


WIDTH = Drill(
    name="d_ff",
    title="d_ff by the published rule",
    notebook="13_budget",
    kind="count",
    draw=lambda rng: {
        "d": 128 * int(rng.integers(4, 65)),
        "multiple_of": int(rng.choice([128, 256, 512, 1024, 4096])),
        "tenths": int(rng.choice([12, 13, 14, 15, 16])),
    },
    task=lambda d, multiple_of, tenths: (
        f"The width rule of the Llama code for $d={d:,}$, `multiple_of={multiple_of}` and"
        f" `ffn_dim_multiplier={tenths / 10}`: give the hidden width of the SwiGLU layer."
    ),
    answer=lambda d, multiple_of, tenths: budget.llama_d_ff(d, multiple_of=multiple_of, multiplier=tenths / 10).d_ff,
    working=lambda d, multiple_of, tenths: (
        f"$8d/3$ rounded down: {8 * d // 3:,}; times {tenths / 10} rounded down: {8 * d // 3 * tenths // 10:,}; up to a"
        f" multiple of {multiple_of}"
    ),
    slips=(
        Slip(
            "8d/3 without rounding",
            lambda d, multiple_of, tenths: Fraction(8 * d // 3 * tenths, 10),
            "You stopped before the rounding: the width goes up to the next multiple.",
        ),
        Slip(
            "rounded down",
            lambda d, multiple_of, tenths: 8 * d // 3 * tenths // 10 // multiple_of * multiple_of,
            "You rounded down to a multiple; the rule rounds up.",
        ),
        Slip(
            "multiplier ignored",
            lambda d, multiple_of, tenths: _up(8 * d // 3, multiple_of),
            "You left the multiplier out. It comes after 8d/3 and before the rounding.",
        ),
        Slip(
            "multiplied after rounding",
            lambda d, multiple_of, tenths: Fraction(_up(8 * d // 3, multiple_of) * tenths, 10),
            "You rounded up first and multiplied then. The multiplier comes before the rounding.",
        ),
        Slip(
            "two thirds forgotten",
            lambda d, multiple_of, tenths: _up(4 * d * tenths // 10, multiple_of),
            "You began with 4d. A gated layer begins with two thirds of that.",
        ),
    ),
)

# ---------------------------------------------------------------- parameters


def _layer_sizes(rng: np.random.Generator) -> dict[str, int]:
    heads = int(rng.choice([4, 6, 8, 12, 16]))
    head_dim = int(rng.choice([16, 32, 64]))
    groups = int(rng.choice([g for g in (1, 2, 3, 4) if heads % g == 0 and g < heads]))
    return {"d": heads * head_dim, "heads": heads, "groups": groups, "f": 32 * int(rng.integers(4, 80))}


def _layer(d, heads, groups, f, **change) -> DecoderConfig:
    sizes = {"d_model": d, "n_layers": 1, "n_heads": heads, "n_kv_heads": groups, "d_ff": f, "vocab_size": 0}
    return DecoderConfig(**(sizes | change))


LAYER = Drill(
    name="layer_parameters",
    title="Parameters of one layer",
    notebook="13_budget",
    kind="count",
    draw=_layer_sizes,
    task=lambda d, heads, groups, f: (
        f"A decoder layer: $d={d}$, {heads} query heads of {d // heads} channels, {groups} kv head{'s' * (groups > 1)},"
        f" SwiGLU of width {f}, two RMSNorms, no biases. How many parameters?"
    ),
    answer=lambda d, heads, groups, f: budget.count(_layer(d, heads, groups, f)).layer.total,
    working=lambda d, heads, groups, f: (
        f"attention ${d}\\cdot{d // heads}\\cdot(2\\cdot{heads}+2\\cdot{groups})"
        f"={2 * d * (d // heads) * (heads + groups)}$, feed-forward $3\\cdot{d}\\cdot{f}={3 * d * f}$, norms"
        f" $2\\cdot{d}={2 * d}$; together"
    ),
    slips=(
        Slip(
            "kv heads counted as query heads",
            lambda d, heads, groups, f: 4 * d * d + 3 * d * f + 2 * d,
            "You counted as many kv heads as query heads. W_k and W_v have kv heads · head_dim columns.",
        ),
        Slip(
            "two feed-forward matrices",
            lambda d, heads, groups, f: 2 * d * d // heads * (heads + groups) + 2 * d * f + 2 * d,
            "A gated layer has three matrices: gate, up and down.",
        ),
        Slip(
            "output projection forgotten",
            lambda d, heads, groups, f: d * d // heads * (heads + 2 * groups) + 3 * d * f + 2 * d,
            "W_o is missing: attention has four matrices.",
        ),
        Slip(
            "key and value counted once",
            lambda d, heads, groups, f: d * d // heads * (2 * heads + groups) + 3 * d * f + 2 * d,
            "Keys and values have a matrix each.",
        ),
        Slip(
            "feed-forward of width 4d",
            lambda d, heads, groups, f: 2 * d * d // heads * (heads + groups) + 8 * d * d + 2 * d,
            "You took a plain layer of width 4d. Here the width is given, and there are three matrices.",
        ),
    ),
)


def _model_sizes(rng: np.random.Generator) -> dict[str, int]:
    sizes = _layer_sizes(rng)
    return sizes | {"layers": int(rng.integers(4, 25)), "vocabulary": 1000 * int(rng.integers(8, 65))}


def _model(d, heads, groups, f, layers, vocabulary, **change) -> DecoderConfig:
    return _layer(d, heads, groups, f, **({"n_layers": layers, "vocab_size": vocabulary, "tied": True} | change))


def _model_total(**change):
    return lambda **sizes: budget.count(replace(_model(**sizes), **change)).total


MODEL = Drill(
    name="model_parameters",
    title="Parameters of a model",
    notebook="13_budget",
    kind="count",
    draw=_model_sizes,
    task=lambda d, heads, groups, f, layers, vocabulary: (
        f"A decoder of {layers} layers: $d={d}$, {heads} query heads of {d // heads} channels, {groups} kv"
        f" head{'s' * (groups > 1)}, SwiGLU of width {f}, two RMSNorms a layer and a last one, vocabulary"
        f" {vocabulary:,}, head tied to the embedding, RoPE, no biases. How many parameters?"
    ),
    answer=lambda **sizes: budget.count(_model(**sizes)).total,
    working=lambda d, heads, groups, f, layers, vocabulary: (
        f"layer ${2 * d * (d // heads) * (heads + groups) + 3 * d * f + 2 * d}$, times {layers}; embedding"
        f" ${vocabulary}\\cdot{d}={vocabulary * d}$; last norm {d}; together"
    ),
    slips=(
        Slip(
            "tied head counted twice",
            _model_total(tied=False),
            "You counted the head as well. It is tied: the embedding read the other way.",
        ),
        Slip(
            "embedding forgotten",
            _model_total(vocab_size=0),
            "The embedding is missing, vocabulary times d. (Tied, it is also the head, and counts once.)",
        ),
        Slip(
            "one layer",
            _model_total(n_layers=1),
            "You counted one layer; multiply by their number.",
        ),
        Slip(
            "kv heads counted as query heads",
            lambda **sizes: budget.count(replace(_model(**sizes), n_kv_heads=sizes["heads"])).total,
            "You counted as many kv heads as query heads. W_k and W_v have kv heads · head_dim columns.",
        ),
        Slip(
            "two feed-forward matrices",
            _model_total(ffn="mlp"),
            "A gated layer has three matrices: gate, up and down.",
        ),
    ),
)

# ---------------------------------------------------------------- bytes of the cache


def _cache_sizes(rng: np.random.Generator) -> dict[str, int]:
    heads = int(rng.choice([8, 16, 32]))
    return {
        "layers": int(rng.integers(12, 81)),
        "heads": heads,
        "groups": int(rng.choice([g for g in (1, 2, 4, 8) if g < heads])),
        "head_dim": int(rng.choice([64, 128])),
        "tokens": 1024 * int(rng.choice([2, 4, 8, 16, 32])),
    }


def _cache(layers, heads, groups, head_dim, tokens) -> int:
    sizes = {"d_model": heads * head_dim, "n_layers": layers, "n_heads": heads, "n_kv_heads": groups}
    return budget.kv_cache_bytes(DecoderConfig(**sizes, d_ff=1, vocab_size=0), tokens)


def _binary(number: int) -> Fraction:
    """Return what one decimal unit is of the binary unit in which a number of bytes is told."""
    power = 3 if number >= 2**30 else 2 if number >= 2**20 else 1
    return Fraction(1000**power, 1024**power)


CACHE = Drill(
    name="kv_bytes",
    title="Bytes of a KV cache",
    notebook="07_cache",
    kind="bytes",
    draw=_cache_sizes,
    task=lambda layers, heads, groups, head_dim, tokens: (
        f"A decoder of {layers} layers with {heads} query heads and {groups} kv head{'s' * (groups > 1)} of"
        f" {head_dim} channels caches in 16 bits. How many bytes does its cache need for {tokens:,} tokens?"
        " (Units such as GiB may be used.)"
    ),
    answer=_cache,
    working=lambda layers, heads, groups, head_dim, tokens: (
        f"$2\\cdot{layers}\\cdot{groups}\\cdot{head_dim}\\cdot2={4 * layers * groups * head_dim}$ bytes for a token,"
        f" times {tokens:,}"
    ),
    slips=(
        Slip(
            "key or value alone",
            lambda **sizes: _cache(**sizes) // 2,
            "A factor 2 is missing: keys and values are both kept, and each number has 2 bytes.",
        ),
        Slip(
            "query heads counted",
            lambda **sizes: _cache(**(sizes | {"groups": sizes["heads"]})),
            "You counted the query heads. Only kv heads are cached.",
        ),
        Slip(
            "one layer",
            lambda **sizes: _cache(**(sizes | {"layers": 1})),
            "That is one layer's cache; each layer has its own.",
        ),
        Slip(
            "one token",
            lambda **sizes: _cache(**(sizes | {"tokens": 1})),
            "That is the cache of one token; multiply by the tokens.",
        ),
        Slip(
            "bits for bytes",
            lambda **sizes: _cache(**sizes) * 8,
            "That is the number of bits. 16 bits are 2 bytes.",
        ),
        Slip(
            "decimal number, binary unit",
            lambda **sizes: _cache(**sizes) / _binary(_cache(**sizes)),
            "You divided by a power of 1000 and wrote a binary unit. 1 GiB is 2³⁰ bytes, 1 GB is 10⁹.",
        ),
        Slip(
            "binary number, decimal unit",
            lambda **sizes: _cache(**sizes) * _binary(_cache(**sizes)),
            "You divided by a power of 1024 and wrote a decimal unit. 1 GiB is 2³⁰ bytes, 1 GB is 10⁹.",
        ),
    ),
)

# ---------------------------------------------------------------- operations


def _flops_sizes(rng: np.random.Generator) -> dict[str, int]:
    return _model_sizes(rng) | {"context": 1024 * int(rng.choice([4, 8, 16, 32]))}


def _forward(context, **sizes) -> int:
    return budget.flops_per_token(_model(**sizes), context).forward


FLOPS = Drill(
    name="flops_per_token",
    title="Operations of one token",
    notebook="13_budget",
    kind="flops",
    draw=_flops_sizes,
    task=lambda d, heads, groups, f, layers, vocabulary, context: (
        f"A decoder of {layers} layers: $d={d}$, {heads} query heads of {d // heads} channels, {groups} kv"
        f" head{'s' * (groups > 1)}, SwiGLU of width {f}, vocabulary {vocabulary:,}, head tied. How many floating-point"
        f" operations does one token's forward pass cost with {context:,} tokens in the cache, itself included? (Matrix"
        " products alone.)"
    ),
    answer=_forward,
    working=lambda context, **sizes: (
        "Two operations for each weight of the layers and of the head:"
        f" {budget.flops_per_token(_model(**sizes), context).weights:,}; scores and sums of values $4\\cdot S\\cdot"
        f" H d_h$ in each layer: {budget.flops_per_token(_model(**sizes), context).attention:,}; together"
    ),
    slips=(
        Slip(
            "multiplications alone",
            lambda **sizes: _forward(**sizes) // 2,
            "You counted multiplications. Each comes with an addition: two operations for each weight.",
        ),
        Slip(
            "attention's products forgotten",
            lambda context, **sizes: budget.flops_per_token(_model(**sizes), context).weights,
            "The weights' part is right. The products with cached keys and values are missing, 4·S·H·d_h a layer.",
        ),
        Slip(
            "kv heads in the scores",
            lambda context, **sizes: (
                budget.flops_per_token(_model(**sizes), context).weights
                + 4 * context * sizes["groups"] * sizes["d"] // sizes["heads"] * sizes["layers"]
            ),
            "You counted kv heads in the scores. Every query head meets every key, grouped or not.",
        ),
        Slip(
            "embedding counted too",
            lambda context, **sizes: _forward(context, **sizes) + 2 * sizes["vocabulary"] * sizes["d"],
            "You counted the embedding beside the head. It is looked up, not multiplied.",
        ),
        Slip(
            "head forgotten",
            lambda context, **sizes: _forward(context, **sizes) - 2 * sizes["vocabulary"] * sizes["d"],
            "The head is missing. Tied or not, it is multiplied out: 2·V·d operations.",
        ),
        Slip(
            "training",
            lambda **sizes: 3 * _forward(**sizes),
            "That is a step of training: forward and backward, three times the forward pass.",
        ),
        Slip(
            "scores alone",
            lambda context, **sizes: (
                budget.flops_per_token(_model(**sizes), context).weights
                + budget.flops_per_token(_model(**sizes), context).attention // 2
            ),
            "You counted the scores but not the weighted sum of the values, which costs as much.",
        ),
    ),
)
