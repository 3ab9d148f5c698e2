"""Drills about what a decoder costs to run: bytes of its cache, operations of a token."""

from fractions import Fraction

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.drills.budget import kv_heads, model, model_sizes
from transformer_parts.learn.drills.drill import Drill, Slip
from transformer_parts.maths import budget
from transformer_parts.maths.budget import DecoderConfig

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
    """Return what one decimal unit is of the binary unit in which a number of bytes is printed."""
    power = 3 if number >= 2**30 else 2 if number >= 2**20 else 1
    return Fraction(1000**power, 1024**power)


CACHE = Drill(
    name="kv_bytes",
    title=_("Bytes of a KV cache"),
    notebook="07_cache",
    kind="bytes",
    draw=_cache_sizes,
    task=lambda layers, heads, groups, head_dim, tokens: _(
        "A decoder of {layers} layers with {heads} query heads and {kv_heads} of {head_dim} channels caches in 16"
        " bits. How many bytes does its cache need for {tokens:,} tokens? (Units such as GiB may be used.)",
        layers=layers,
        heads=heads,
        kv_heads=kv_heads(groups),
        head_dim=head_dim,
        tokens=tokens,
    ),
    answer=_cache,
    working=lambda layers, heads, groups, head_dim, tokens: _(
        "$2\\cdot{layers}\\cdot{groups}\\cdot{head_dim}\\cdot2={each}$ bytes for a token, times {tokens:,}",
        layers=layers,
        groups=groups,
        head_dim=head_dim,
        each=4 * layers * groups * head_dim,
        tokens=tokens,
    ),
    slips=(
        Slip(
            _("key or value alone"),
            lambda **sizes: _cache(**sizes) // 2,
            _("A factor 2 is missing: keys and values are both kept, and each number has 2 bytes."),
        ),
        Slip(
            _("query heads counted"),
            lambda **sizes: _cache(**(sizes | {"groups": sizes["heads"]})),
            _("You counted the query heads. Only kv heads are cached."),
        ),
        Slip(
            _("one layer"),
            lambda **sizes: _cache(**(sizes | {"layers": 1})),
            _("That is one layer's cache; each layer has its own."),
        ),
        Slip(
            _("one token"),
            lambda **sizes: _cache(**(sizes | {"tokens": 1})),
            _("That is the cache of one token; multiply by the tokens."),
        ),
        Slip(
            _("bits for bytes"),
            lambda **sizes: _cache(**sizes) * 8,
            _("That is the number of bits. 16 bits are 2 bytes."),
        ),
        Slip(
            _("decimal number, binary unit"),
            lambda **sizes: _cache(**sizes) / _binary(_cache(**sizes)),
            _("You divided by a power of 1000 and wrote a binary unit. 1 GiB is 2³⁰ bytes, 1 GB is 10⁹."),
        ),
        Slip(
            _("binary number, decimal unit"),
            lambda **sizes: _cache(**sizes) * _binary(_cache(**sizes)),
            _("You divided by a power of 1024 and wrote a decimal unit. 1 GiB is 2³⁰ bytes, 1 GB is 10⁹."),
        ),
    ),
)

# ---------------------------------------------------------------- operations


def _flops_sizes(rng: np.random.Generator) -> dict[str, int]:
    return model_sizes(rng) | {"context": 1024 * int(rng.choice([4, 8, 16, 32]))}


def _forward(context, **sizes) -> int:
    return budget.flops_per_token(model(**sizes), context).forward


FLOPS = Drill(
    name="flops_per_token",
    title=_("Operations of one token"),
    notebook="13_budget",
    kind="flops",
    draw=_flops_sizes,
    task=lambda d, heads, groups, f, layers, vocabulary, context: _(
        "A decoder of {layers} layers: $d={d}$, {heads} query heads of {head_dim} channels, {kv_heads}, SwiGLU of"
        " width {f}, vocabulary {vocabulary:,}, head tied. How many floating-point operations does one token's forward"
        " pass cost with {context:,} tokens in the cache, itself included? (Matrix products alone.)",
        layers=layers,
        d=d,
        heads=heads,
        head_dim=d // heads,
        kv_heads=kv_heads(groups),
        f=f,
        vocabulary=vocabulary,
        context=context,
    ),
    answer=_forward,
    working=lambda context, **sizes: _(
        "Two operations for each weight of the layers and of the head: {weights:,}; scores and sums of"
        " values $4\\cdot S\\cdot H d_h$ in each layer: {attention:,}; together",
        weights=budget.flops_per_token(model(**sizes), context).weights,
        attention=budget.flops_per_token(model(**sizes), context).attention,
    ),
    slips=(
        Slip(
            _("multiplications alone"),
            lambda **sizes: _forward(**sizes) // 2,
            _("You counted multiplications. Each comes with an addition: two operations for each weight."),
        ),
        Slip(
            _("attention's products forgotten"),
            lambda context, **sizes: budget.flops_per_token(model(**sizes), context).weights,
            _("The weights' part is right. The products with cached keys and values are missing, 4·S·H·d_h a layer."),
        ),
        Slip(
            _("kv heads in the scores"),
            lambda context, **sizes: (
                budget.flops_per_token(model(**sizes), context).weights
                + 4 * context * sizes["groups"] * sizes["d"] // sizes["heads"] * sizes["layers"]
            ),
            _("You counted kv heads in the scores. Every query head meets every key, grouped or not."),
        ),
        Slip(
            _("embedding counted too"),
            lambda context, **sizes: _forward(context, **sizes) + 2 * sizes["vocabulary"] * sizes["d"],
            _("You counted the embedding beside the head. It is looked up, not multiplied."),
        ),
        Slip(
            _("head forgotten"),
            lambda context, **sizes: _forward(context, **sizes) - 2 * sizes["vocabulary"] * sizes["d"],
            _("The head is missing. Tied or not, it is multiplied out: 2·V·d operations."),
        ),
        Slip(
            _("training"),
            lambda **sizes: 3 * _forward(**sizes),
            _("That is a step of training: forward and backward, three times the forward pass."),
        ),
        Slip(
            _("scores alone"),
            lambda context, **sizes: (
                budget.flops_per_token(model(**sizes), context).weights
                + budget.flops_per_token(model(**sizes), context).attention // 2
            ),
            _("You counted the scores but not the weighted sum of the values, which costs as much."),
        ),
    ),
)
