"""Exercises on parameter budgets (notebook 13)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.budget import DecoderConfig, count, kv_cache_bytes, llama_d_ff


def _parameters_solution(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size):
    layer, tied, untied = (
        count(
            DecoderConfig(
                d_model=d, n_layers=n_layers, n_heads=n_heads, n_kv_heads=n_kv_heads, head_dim=head_dim, d_ff=d_ff,
                vocab_size=vocab_size, tied=tied,
            )
        )
        for tied in (True, True, False)
    )  # fmt: skip
    return np.array([layer.layer.total, tied.total, untied.total])


def _parameters_with(
    *,
    attention=lambda d, h, g, k: d * k * (2 * h + 2 * g),
    matrices=3,
    norms=2,
    final_norm=1,
    tables=(1, 2),
):
    """Build the parameter count with some of its terms replaced."""

    def function(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size):
        layer = attention(d, n_heads, n_kv_heads, head_dim) + matrices * d * d_ff + norms * d
        tied, untied = (n_layers * layer + final_norm * d + number * vocab_size * d for number in tables)
        return np.array([layer, tied, untied])

    return function


def _parameters_inputs(rng):
    # d is a prime above every other factor of attention's sum, d_ff a prime too:
    # no mistake gives the right number by coincidence.
    d, d_ff = int(rng.choice([41, 43, 47, 53, 59])), int(rng.choice([101, 127, 139, 157, 199]))
    n_layers, group, n_kv_heads = (int(rng.integers(low, high)) for low, high in ((3, 9), (2, 5), (2, 5)))
    head_dim = int(rng.choice([11, 13, 17]))
    return d, n_layers, group * n_kv_heads, n_kv_heads, head_dim, d_ff, int(rng.integers(1000, 5000))


PARAMETERS = Exercise(
    task=_(
        "parameters(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size): the parameters of a decoder with"
        " SwiGLU, two RMSNorms a layer, a final one before the head, and no biases"
    ),
    takes=(
        _("`d`: the width of the model"),
        _("`n_layers`: how many layers"),
        _("`n_heads`: query heads"),
        _("`n_kv_heads`: kv heads, fewer than query heads"),
        _("`head_dim`: the width of a head; n_heads · head_dim need not be d"),
        _("`d_ff`: the hidden width of the gated feed-forward layer"),
        _("`vocab_size`: the rows of the embedding"),
    ),
    returns=_("three integers: one layer, the whole model with a tied head, the whole model with a head of its own"),
    solution=_parameters_solution,
    inputs=_parameters_inputs,
    mistakes=(
        Mistake(
            "kv heads counted as query heads",
            _parameters_with(attention=lambda d, h, g, k: 4 * d * h * k),
            _("You counted as many key and value heads as query heads. W_k and W_v have n_kv_heads·head_dim columns."),
        ),
        Mistake(
            "attention taken for 4·d²",
            _parameters_with(attention=lambda d, h, g, k: 4 * d * d),
            _("4·d² holds only for n_kv_heads = n_heads and n_heads·head_dim = d. Count the four matrices one by one."),
        ),
        Mistake(
            "keys and values in one matrix",
            _parameters_with(attention=lambda d, h, g, k: d * k * (2 * h + g)),
            _("You counted keys or values, not both: W_k and W_v are two matrices."),
        ),
        Mistake(
            "output projection forgotten",
            _parameters_with(attention=lambda d, h, g, k: d * k * (h + 2 * g)),
            _("W_o is missing: the heads' outputs, n_heads·head_dim channels, are projected back to d."),
        ),
        Mistake(
            "two matrices for a gated layer",
            _parameters_with(matrices=2),
            _("You counted two feed-forward matrices. A gated layer has three: W_g, W_u and W_d."),
        ),
        Mistake("norms forgotten", _parameters_with(norms=0), _("The two norms of a layer have d weights each.")),
        Mistake(
            "norms with a bias",
            _parameters_with(norms=4, final_norm=2),
            _("You counted a bias for every norm. RMSNorm has a weight γ and nothing else."),
        ),
        Mistake(
            "final norm forgotten",
            _parameters_with(final_norm=0),
            _("The layer is right. The whole model has one more norm, before the head: d weights."),
        ),
        Mistake(
            "tied head counted twice",
            _parameters_with(tables=(2, 2)),
            _("A tied head is the embedding read the other way: it is stored once and counted once."),
        ),
        Mistake(
            "head of its own forgotten",
            _parameters_with(tables=(1, 1)),
            _("A head of its own is a second table of vocab_size × d."),
        ),
        Mistake(
            "embedding left out",
            _parameters_with(tables=(0, 1)),
            _("The embedding is missing: a table of vocab_size × d, whatever the head is."),
        ),
    ),
    hints=(
        _("One layer: four attention matrices, three feed-forward matrices, two norms. Write the shape of each."),
        _("With n = n_heads·head_dim and g = n_kv_heads·head_dim: d·n + 2·d·g + n·d for attention, 3·d·d_ff, 2·d."),
        _("The model: n_layers·layer, one more norm, vocab_size·d, and that again for a head of its own."),
    ),
)


def _aligned(number, multiple_of):
    return -(-number // multiple_of) * multiple_of


def _width_solution(d, multiple_of, multiplier):
    return np.array([llama_d_ff(int(one), multiple_of=multiple_of, multiplier=multiplier).d_ff for one in d])


def _width_inputs(rng):
    """Draw three widths d so that each step of the rule matters for one of them.

    One is a multiple before the last step and divisible by 3; one lies less than half a multiple above a multiple,
    so that the nearest is the lower; and for one the unrounded 8d/3 would lead to the multiple after.  No width is
    decided by the rounding of a float.
    """
    multiple_of, multiplier = int(rng.choice([16, 32, 64])), float(rng.choice([1.1, 1.3, 1.7]))
    d = np.arange(64, 8192)
    product = multiplier * (8 * d // 3)
    d, product = (values[np.abs(product - np.rint(product)) > 1e-6] for values in (d, product))
    multiplied = np.floor(product)
    over, late = multiplied % multiple_of, np.floor(multiplier * 8 * d / 3)
    kinds = (
        (over == 0) & (d % 3 == 0),
        (over > 0) & (2 * over < multiple_of),
        (over == 0) & (late > multiplied),
    )
    return np.array([rng.choice(d[kind]) for kind in kinds]), multiple_of, multiplier


def _width_with(*, start=lambda d: 8 * d // 3, last=_aligned):
    def function(d, multiple_of, multiplier):
        return last(np.floor(multiplier * start(d)).astype(int), multiple_of)

    return function


WIDTH = Exercise(
    task=_(
        "width(d, multiple_of, multiplier): the width of a gated feed-forward layer by Llama's code: ⌊8d/3⌋, times the"
        " multiplier, rounded down, then up to the next multiple"
    ),
    takes=(
        _("`d`: widths of models, an array of integers"),
        _("`multiple_of`: an integer; a width that is a multiple already stays"),
        _("`multiplier`: a float, such as 1.3"),
    ),
    returns=_("an array of integers, one width for each entry of d"),
    solution=_width_solution,
    inputs=_width_inputs,
    mistakes=(
        Mistake(
            "rounded down or to the nearest multiple",
            _width_with(last=lambda n, multiple_of: n // multiple_of * multiple_of),
            _("You round down, or to the nearest multiple; the rule goes up to the next one."),
        ),
        Mistake(
            "one multiple too many",
            _width_with(last=lambda n, multiple_of: (n // multiple_of + 1) * multiple_of),
            _("Where the width is a multiple already, you go on to the next one. Rounding up leaves it as it is."),
        ),
        Mistake(
            "not rounded up at all",
            _width_with(last=lambda n, multiple_of: n),
            _("The last step is missing: round up to a multiple of multiple_of."),
        ),
        Mistake(
            "multiplier after alignment",
            lambda d, multiple_of, multiplier: np.floor(multiplier * _aligned(8 * d // 3, multiple_of)).astype(int),
            _("You align first and multiply afterwards, so the width is no longer a multiple. Alignment comes last."),
        ),
        Mistake(
            "multiplier ignored",
            lambda d, multiple_of, multiplier: _aligned(8 * d // 3, multiple_of),
            _("The multiplier does nothing in your function. It scales ⌊8d/3⌋ before the alignment."),
        ),
        Mistake(
            "two thirds forgotten",
            _width_with(start=lambda d: 4 * d),
            _("You start from 4d, the width of a plain layer. Two thirds of it, 8d/3, is the gated start."),
        ),
        Mistake(
            "two thirds of d",
            _width_with(start=lambda d: 2 * d // 3),
            _("You took two thirds of d; it is two thirds of 4d, the plain layer's width."),
        ),
        Mistake(
            "8d/3 not rounded down",
            lambda d, multiple_of, multiplier: _aligned(np.floor(multiplier * (8 * d / 3)).astype(int), multiple_of),
            _("You multiply 8d/3 itself. The code rounds it down first, and here that leads to another multiple."),
        ),
    ),
    hints=(
        _("Four steps: 4d, two thirds of it rounded down, times the multiplier rounded down, up to a multiple."),
        _("On whole arrays `2 * (4 * d) // 3` rounds down. For the second step take `np.floor(...).astype(int)`."),
        _("Rounding up to a multiple of m without floats: `-(-n // m) * m`."),
    ),
)


def _cache_solution(n_layers, n_heads, n_kv_heads, head_dim, tokens, bytes_per_value):
    d_model = n_heads * head_dim
    config = DecoderConfig(
        d_model=d_model, n_layers=n_layers, n_heads=n_heads, n_kv_heads=n_kv_heads, d_ff=4 * d_model, vocab_size=0
    )
    return kv_cache_bytes(config, tokens, bytes_per_value)


def _cache_inputs(rng):
    # No factor is 1 or equals another, nor does the number of bytes equal the 2 of keys and values.
    n_kv_heads, group = (int(value) for value in rng.choice([3, 5, 7], 2, replace=False))
    n_layers, head_dim = int(rng.integers(8, 40)), int(rng.choice([32, 64, 96, 128]))
    return n_layers, group * n_kv_heads, n_kv_heads, head_dim, int(rng.integers(100, 5000)), float(rng.choice([0.5, 4]))


CACHE = Exercise(
    task=_("cache_bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bytes_per_value): bytes of the KV cache"),
    takes=(
        _("`n_layers`: how many layers"),
        _("`n_heads`: query heads"),
        _("`n_kv_heads`: kv heads"),
        _("`head_dim`: the width of a head"),
        _("`tokens`: how many tokens of the sequence are cached"),
        _("`bytes_per_value`: the bytes of one number; 0.5 for 4 bits"),
    ),
    returns=_("a number"),
    solution=_cache_solution,
    inputs=_cache_inputs,
    mistakes=(
        Mistake(
            "query heads in the cache",
            lambda n, h, g, k, t, b: 2 * n * h * k * t * b,
            _("You cached a key and a value for every query head. Only the kv heads have keys and values."),
        ),
        Mistake(
            "keys or values, not both",
            lambda n, h, g, k, t, b: n * g * k * t * b,
            _("Half is missing: keys and values are both cached."),
        ),
        Mistake("one layer", lambda n, h, g, k, t, b: 2 * g * k * t * b, _("Each layer has a cache; this is one's.")),
        Mistake(
            "values, not bytes",
            lambda n, h, g, k, t, b: 2 * n * g * k * t,
            _("You counted numbers; each takes bytes_per_value bytes."),
        ),
        Mistake("one token", lambda n, h, g, k, t, b: 2 * n * g * k * b, _("This is the cache of a single token.")),
        Mistake(
            "heads per group for kv heads",
            lambda n, h, g, k, t, b: 2 * n * (h // g) * k * t * b,
            _("n_heads // n_kv_heads is how many query heads share a kv head; the cache holds n_kv_heads of them."),
        ),
        Mistake(
            "scores cached",
            lambda n, h, g, k, t, b: n * h * t * t * b,
            _("That is the size of all attention weights. Keys and values are cached, the weights are not."),
        ),
    ),
    hints=(
        _("What is kept of one token in one layer? A key and a value for each kv head."),
        _("A key has head_dim numbers, and so has a value; the width d of the model does not enter."),
        _("2 · layers · kv heads · head_dim · tokens · bytes."),
    ),
)
