"""Exercises on decoding with a cache (notebook 07)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import budget, rope
from transformer_parts.maths.attention import attention


def _positions_inputs(rng):
    pad, real = int(rng.integers(1, 5)), int(rng.integers(3, 10))
    return np.arange(pad + real) >= pad, int(rng.integers(2, 6))


POSITIONS = Exercise(
    task=_(
        "chunk_positions(valid, new): the positions of `new` further tokens; valid says which cached tokens are real"
    ),
    takes=(
        _("`valid`: of shape (slots,), True for a real token, False for padding at the left"),
        _("`new`: a whole number of tokens to come"),
    ),
    returns=_("an array of shape (new,): whole numbers; the first real token of the row is at position 0"),
    solution=lambda valid, new: np.sum(valid) + np.arange(new),
    inputs=_positions_inputs,
    mistakes=(
        Mistake(
            "restart at 0",
            lambda valid, new: np.arange(new),
            _("Your positions start at 0 again, as if nothing were cached. They go on where the cached text ends."),
        ),
        Mistake(
            "padding counted",
            lambda valid, new: len(valid) + np.arange(new),
            _(
                "You count the padding as text. The cached keys' positions left it out, so the new ones are too far"
                " away."
            ),
        ),
        Mistake(
            "off by one",
            lambda valid, new: np.sum(valid) + 1 + np.arange(new),
            _("One too far. Positions begin at 0, so the number of real tokens is the next position."),
        ),
        Mistake(
            "one too early",
            lambda valid, new: np.sum(valid) - 1 + np.arange(new),
            _("Your first new token stands on the last cached one. That position is taken; take the next."),
        ),
        Mistake(
            "one position for the whole chunk",
            lambda valid, new: np.full(new, np.sum(valid)),
            _("All your new tokens stand at one position. In a chunk each token is one further than the one before."),
        ),
        Mistake(
            "padding subtracted twice",
            lambda valid, new: 2 * np.sum(valid) - len(valid) + np.arange(new),
            _("You took the padding off twice: the number of real tokens is without it already."),
        ),
    ),
    hints=(
        _("How many real tokens are in the cache, and at which position does the last of them stand?"),
        _("valid.sum() is their number; positions count from 0, so it is also the next position."),
        _("Add 0, 1, 2 … for the tokens of the chunk: np.arange(new)."),
    ),
)


def _step(query, key, value, keys, values, inv_freq, *, at=None, turn=(True, True), own=True, again=False, scale=None):
    position = len(keys) if at is None else at(len(keys))
    query, key = (
        rope.rotate(part[None], [position], inv_freq=inv_freq) if turned else part[None]
        for part, turned in zip((query, key), turn, strict=True)
    )
    if again:
        keys = rope.rotate(keys, np.arange(len(keys)), inv_freq=inv_freq)
    keys, values = (np.concatenate(parts) if own else parts[0] for parts in ((keys, key), (values, value[None])))
    return attention(query[None], keys[None], values[None], scale=scale)[0, 0]


def _step_with(**settings):
    return lambda *arguments: _step(*arguments, **settings)


def _values_rotated(query, key, value, keys, values, inv_freq):
    turned = rope.rotate(value[None], [len(keys)], inv_freq=inv_freq)[0]
    return _step(query, key, turned, keys, values, inv_freq)


def _step_inputs(rng):
    length, head_dim = int(rng.integers(3, 9)), 2 * int(rng.integers(1, 4))
    inv_freq = rope.inv_freq(head_dim, 100.0)
    query, key, value = 1.5 * rng.standard_normal((3, head_dim))
    keys = rope.rotate(1.5 * rng.standard_normal((length, head_dim)), np.arange(length), inv_freq=inv_freq)
    return query, key, value, keys, rng.standard_normal((length, head_dim)), inv_freq


STEP = Exercise(
    task=_(
        "attend_step(query, key, value, keys, values, inv_freq): one head's output for a new token; keys are cached"
        " rotated"
    ),
    takes=(
        _("`query`, `key`, `value`: the new token's, of shape (d,) each, as projected and not rotated"),
        _("`keys`, `values`: the cache, of shape (T, d) each; its keys are at positions 0 … T − 1"),
        _("`inv_freq`: of shape (d/2,), the frequencies in rad per position; pairs are (0, 1), (2, 3) …"),
    ),
    returns=_("an array of shape (d,): the attention output, with scores divided by √d"),
    solution=_step,
    inputs=_step_inputs,
    mistakes=(
        Mistake(
            "restart at 0",
            _step_with(at=lambda cached: 0),
            _("Your new token stands at position 0. It stands after all cached ones: at len(keys)."),
        ),
        Mistake(
            "off by one",
            _step_with(at=lambda cached: cached + 1),
            _("Your new token stands one place too far. The cached ones have 0 … len(keys) − 1, so it has len(keys)."),
        ),
        Mistake(
            "cached keys rotated again",
            _step_with(again=True),
            _("You turned the cached keys once more. They were turned when they went in; use them as they are."),
        ),
        Mistake(
            "new key not rotated",
            _step_with(turn=(True, False)),
            _("The new token's own key was not turned, though it goes into a cache of turned keys."),
        ),
        Mistake(
            "query not rotated",
            _step_with(turn=(False, True)),
            _("The query was not turned: it compares itself as if it stood at position 0."),
        ),
        Mistake(
            "its own key left out",
            _step_with(own=False),
            _("Your token attends to the cached tokens alone. It sees itself too: append its key and value first."),
        ),
        Mistake(
            "value rotated",
            _values_rotated,
            _("You turned the value. Values are cached and mixed as they are."),
        ),
        Mistake("missing scale", _step_with(scale=1.0), _("The scores were not divided by √head_dim.")),
    ),
    hints=(
        _("Where does the new token stand? The cached ones are 0 … len(keys) − 1."),
        _("Turn the new query and the new key by that position; leave cached keys and all values alone."),
        _(
            "Put the new key and value behind the cached ones, then softmax(query @ keys.T / √head_dim) @ values. No"
            " mask: the newest token sees all."
        ),
    ),
)


def _bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bits):
    sizes = {"n_layers": n_layers, "n_heads": n_heads, "n_kv_heads": n_kv_heads, "head_dim": head_dim}
    config = budget.DecoderConfig(d_model=n_heads * head_dim, d_ff=1, vocab_size=0, **sizes)
    return budget.kv_cache_bytes(config, tokens, bits / 8)


def _bytes_inputs(rng):
    n_kv_heads = int(rng.integers(2, 9))
    return (
        int(rng.integers(3, 81)),
        n_kv_heads * int(rng.integers(2, 9)),
        n_kv_heads,
        int(rng.choice([64, 96, 128])),
        int(rng.integers(1000, 9000)),
        int(rng.choice([8, 16, 32])),
    )


BYTES = Exercise(
    task=_("cache_bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bits): bytes of the cache of so many tokens"),
    takes=(
        _("`n_layers`, `n_heads`, `n_kv_heads`: whole numbers; n_heads is the number of query heads in a layer"),
        _("`head_dim`: numbers in one key, and in one value"),
        _("`tokens`: how many tokens are in the cache"),
        _("`bits`: bits of each number"),
    ),
    returns=_("one number, in bytes"),
    solution=_bytes,
    inputs=_bytes_inputs,
    mistakes=(
        Mistake(
            "query heads counted",
            lambda n, h, g, k, t, b: 2 * n * h * k * t * b / 8,
            _("You counted the query heads. Keys and values exist once for each kv head; that is what grouping saves."),
        ),
        Mistake(
            "keys alone",
            lambda n, h, g, k, t, b: n * g * k * t * b / 8,
            _("Half: both keys and values are cached."),
        ),
        Mistake(
            "one layer",
            lambda n, h, g, k, t, b: 2 * g * k * t * b / 8,
            _("That is one layer's cache; every layer has its own keys and values."),
        ),
        Mistake(
            "bits for bytes",
            lambda n, h, g, k, t, b: 2 * n * g * k * t * b,
            _("Eight times too much: you multiplied by bits, a byte has eight."),
        ),
        Mistake(
            "model width for head width",
            lambda n, h, g, k, t, b: 2 * n * g * h * k * t * b / 8,
            _("You took d_model = n_heads · head_dim for the width of each kv head; it is head_dim."),
        ),
        Mistake(
            "a single kv head",
            lambda n, h, g, k, t, b: 2 * n * k * t * b / 8,
            _("That is one kv head; there are n_kv_heads of them."),
        ),
        Mistake(
            "square of the length",
            lambda n, h, g, k, t, b: 2 * n * g * k * t**2 * b / 8,
            _("The cache grows with the length, not with its square: the scores, which do, are not kept."),
        ),
    ),
    hints=(
        _("What is stored for one token in one layer for one kv head?"),
        _("A key and a value of head_dim numbers each, for each of n_kv_heads heads, in each of n_layers layers."),
        _("2 · n_layers · n_kv_heads · head_dim · tokens numbers, of bits / 8 bytes each."),
    ),
    tolerance=1e-4,
)
