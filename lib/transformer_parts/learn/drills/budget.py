"""Drills about widths and parameters."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from transformer_parts.language import Message, _, plural
from transformer_parts.learn.drills.drill import Drill, Slip
from transformer_parts.maths import budget
from transformer_parts.maths.budget import DecoderConfig

# ---------------------------------------------------------------- the width of a gated layer


def _up(number: Fraction | int, multiple: int) -> int:
    return -int(-number // multiple) * multiple


WIDTH = Drill(
    name="d_ff",
    title=_("d_ff by the published rule"),
    notebook="13_budget",
    kind="count",
    draw=lambda rng: {
        "d": 128 * int(rng.integers(4, 65)),
        "multiple_of": int(rng.choice([128, 256, 512, 1024, 4096])),
        "tenths": int(rng.choice([12, 13, 14, 15, 16])),
    },
    task=lambda d, multiple_of, tenths: _(
        "The width rule of the Llama code for $d={d}$, `multiple_of={multiple_of}` and"
        " `ffn_dim_multiplier={multiplier}`: give the hidden width of the SwiGLU layer.",
        d=d,
        multiple_of=multiple_of,
        multiplier=tenths / 10,
    ),
    answer=lambda d, multiple_of, tenths: budget.llama_d_ff(d, multiple_of=multiple_of, multiplier=tenths / 10).d_ff,
    working=lambda d, multiple_of, tenths: _(
        "$8d/3$ rounded down: {base:,}; times {multiplier} rounded down: {widened:,}; up to a"
        " multiple of {multiple_of}",
        base=8 * d // 3,
        multiplier=tenths / 10,
        widened=8 * d // 3 * tenths // 10,
        multiple_of=multiple_of,
    ),
    slips=(
        Slip(
            _("8d/3 without rounding"),
            lambda d, multiple_of, tenths: Fraction(8 * d // 3 * tenths, 10),
            _("You stopped before the rounding: the width goes up to the next multiple."),
        ),
        Slip(
            _("rounded down"),
            lambda d, multiple_of, tenths: 8 * d // 3 * tenths // 10 // multiple_of * multiple_of,
            _("You rounded down to a multiple; the rule rounds up."),
        ),
        Slip(
            _("multiplier ignored"),
            lambda d, multiple_of, tenths: _up(8 * d // 3, multiple_of),
            _("You left the multiplier out. It comes after 8d/3 and before the rounding."),
        ),
        Slip(
            _("multiplied after rounding"),
            lambda d, multiple_of, tenths: Fraction(_up(8 * d // 3, multiple_of) * tenths, 10),
            _("You rounded up first and multiplied then. The multiplier comes before the rounding."),
        ),
        Slip(
            _("two thirds forgotten"),
            lambda d, multiple_of, tenths: _up(4 * d * tenths // 10, multiple_of),
            _("You began with 4d. A gated layer begins with two thirds of that."),
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


def kv_heads(groups: int) -> Message:
    """Return how many kv heads there are, in words."""
    return plural("{n} kv head", "{n} kv heads", groups)


LAYER = Drill(
    name="layer_parameters",
    title=_("Parameters of one layer"),
    notebook="13_budget",
    kind="count",
    draw=layer_sizes,
    task=lambda d, heads, groups, f: _(
        "A decoder layer: $d={d}$, {heads} query heads of {head_dim} channels, {kv_heads},"
        " SwiGLU of width {f}, two RMSNorms, no biases. How many parameters?",
        d=d,
        heads=heads,
        head_dim=d // heads,
        kv_heads=kv_heads(groups),
        f=f,
    ),
    answer=lambda d, heads, groups, f: budget.count(_layer(d, heads, groups, f)).layer.total,
    working=lambda d, heads, groups, f: _(
        "attention ${d}\\cdot{head_dim}\\cdot(2\\cdot{heads}+2\\cdot{groups})={attention}$, feed-forward"
        " $3\\cdot{d}\\cdot{f}={feed_forward}$, norms $2\\cdot{d}={norms}$; together",
        d=d,
        head_dim=d // heads,
        heads=heads,
        groups=groups,
        attention=2 * d * (d // heads) * (heads + groups),
        f=f,
        feed_forward=3 * d * f,
        norms=2 * d,
    ),
    slips=(
        Slip(
            _("kv heads counted as query heads"),
            lambda d, heads, groups, f: 4 * d * d + 3 * d * f + 2 * d,
            _("You counted as many kv heads as query heads. W_k and W_v have kv heads · head_dim columns."),
        ),
        Slip(
            _("two feed-forward matrices"),
            lambda d, heads, groups, f: 2 * d * d // heads * (heads + groups) + 2 * d * f + 2 * d,
            _("A gated layer has three matrices: gate, up and down."),
        ),
        Slip(
            _("output projection forgotten"),
            lambda d, heads, groups, f: d * d // heads * (heads + 2 * groups) + 3 * d * f + 2 * d,
            _("W_o is missing: attention has four matrices."),
        ),
        Slip(
            _("key and value counted once"),
            lambda d, heads, groups, f: d * d // heads * (2 * heads + groups) + 3 * d * f + 2 * d,
            _("Keys and values have a matrix each."),
        ),
        Slip(
            _("feed-forward of width 4d"),
            lambda d, heads, groups, f: 2 * d * d // heads * (heads + groups) + 8 * d * d + 2 * d,
            _("You took a plain layer of width 4d. Here the width is given, and there are three matrices."),
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
    title=_("Parameters of a model"),
    notebook="13_budget",
    kind="count",
    draw=model_sizes,
    task=lambda d, heads, groups, f, layers, vocabulary: _(
        "A decoder of {layers} layers: $d={d}$, {heads} query heads of {head_dim} channels, {kv_heads},"
        " SwiGLU of width {f}, two RMSNorms a layer and a last one, vocabulary"
        " {vocabulary:,}, head tied to the embedding, RoPE, no biases. How many parameters?",
        layers=layers,
        d=d,
        heads=heads,
        head_dim=d // heads,
        kv_heads=kv_heads(groups),
        f=f,
        vocabulary=vocabulary,
    ),
    answer=lambda **sizes: budget.count(model(**sizes)).total,
    working=lambda d, heads, groups, f, layers, vocabulary: _(
        "layer ${layer}$, times {layers}; embedding ${vocabulary}\\cdot{d}={embedding}$; last norm {d}; together",
        layer=2 * d * (d // heads) * (heads + groups) + 3 * d * f + 2 * d,
        layers=layers,
        vocabulary=vocabulary,
        d=d,
        embedding=vocabulary * d,
    ),
    slips=(
        Slip(
            _("tied head counted twice"),
            _model_total(tied=False),
            _("You counted the head as well. It is tied: the embedding read the other way."),
        ),
        Slip(
            _("embedding forgotten"),
            _model_total(vocab_size=0),
            _("The embedding is missing, vocabulary times d. (Tied, it is also the head, and counts once.)"),
        ),
        Slip(
            _("one layer"),
            _model_total(n_layers=1),
            _("You counted one layer; multiply by their number."),
        ),
        Slip(
            _("kv heads counted as query heads"),
            lambda **sizes: budget.count(replace(model(**sizes), n_kv_heads=sizes["heads"])).total,
            _("You counted as many kv heads as query heads. W_k and W_v have kv heads · head_dim columns."),
        ),
        Slip(
            _("two feed-forward matrices"),
            _model_total(ffn="mlp"),
            _("A gated layer has three matrices: gate, up and down."),
        ),
    ),
)
