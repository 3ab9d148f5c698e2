"""Drills about widths and parameters."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from transformer_parts.learn.drills.drill import Drill, Slip
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
        f"The width rule of the Llama code for $d={d}$, `multiple_of={multiple_of}` and"
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


def layer_sizes(rng: np.random.Generator) -> dict[str, int]:
    """Draw the sizes of a layer with grouped heads and a gated feed-forward part."""
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
    draw=layer_sizes,
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


def model_sizes(rng: np.random.Generator) -> dict[str, int]:
    """Draw the sizes of a model of such layers."""
    sizes = layer_sizes(rng)
    return sizes | {"layers": int(rng.integers(4, 25)), "vocabulary": 1000 * int(rng.integers(8, 65))}


def model(d, heads, groups, f, layers, vocabulary, **change) -> DecoderConfig:
    """Return the model of these sizes, its head tied to the embedding."""
    return _layer(d, heads, groups, f, **({"n_layers": layers, "vocab_size": vocabulary, "tied": True} | change))


def _model_total(**change):
    return lambda **sizes: budget.count(replace(model(**sizes), **change)).total


MODEL = Drill(
    name="model_parameters",
    title="Parameters of a model",
    notebook="13_budget",
    kind="count",
    draw=model_sizes,
    task=lambda d, heads, groups, f, layers, vocabulary: (
        f"A decoder of {layers} layers: $d={d}$, {heads} query heads of {d // heads} channels, {groups} kv"
        f" head{'s' * (groups > 1)}, SwiGLU of width {f}, two RMSNorms a layer and a last one, vocabulary"
        f" {vocabulary:,}, head tied to the embedding, RoPE, no biases. How many parameters?"
    ),
    answer=lambda **sizes: budget.count(model(**sizes)).total,
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
            lambda **sizes: budget.count(replace(model(**sizes), n_kv_heads=sizes["heads"])).total,
            "You counted as many kv heads as query heads. W_k and W_v have kv heads · head_dim columns.",
        ),
        Slip(
            "two feed-forward matrices",
            _model_total(ffn="mlp"),
            "A gated layer has three matrices: gate, up and down.",
        ),
    ),
)
