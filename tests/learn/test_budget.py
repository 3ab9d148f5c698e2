"""Exercises of notebook 13: right answers that have only the formulas pass, others' mistakes get their names.

What holds of every exercise stands in test_every_exercise.py.
"""

import math

import numpy as np
import pytest

from transformer_parts.learn import budget as exercises

EXERCISES = {"PARAMETERS": exercises.PARAMETERS, "WIDTH": exercises.WIDTH, "CACHE": exercises.CACHE}
SEEDS = range(100)


# Answers of a reader who has only the formulas: nothing here calls the library.


def parameters(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size):
    shapes = [(d, n_heads * head_dim), (d, n_kv_heads * head_dim), (d, n_kv_heads * head_dim), (n_heads * head_dim, d)]
    shapes += [(d, d_ff), (d, d_ff), (d_ff, d), (d,), (d,)]
    layer = sum(math.prod(shape) for shape in shapes)
    tied = n_layers * layer + d + vocab_size * d
    return [layer, tied, tied + vocab_size * d]


def width(d, multiple_of, multiplier):
    hidden = (2 * 4 * d / 3).astype(int)
    hidden = (multiplier * hidden).astype(int)
    return multiple_of * ((hidden + multiple_of - 1) // multiple_of)


def width_one_by_one(d, multiple_of, multiplier):
    return [math.ceil(int(multiplier * int(8 * one / 3)) / multiple_of) * multiple_of for one in d]


def cache_bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bytes_per_value):
    return np.zeros((n_layers, 2, n_kv_heads, head_dim), np.int8).size * tokens * bytes_per_value


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (exercises.PARAMETERS, parameters),
        (exercises.WIDTH, width),
        (exercises.WIDTH, width_one_by_one),
        (exercises.CACHE, cache_bytes),
    ],
)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        verdict = exercise.check(answer, seed=seed)
        assert verdict.passed, (seed, verdict)


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_counts_that_are_one_too_large_have_no_wrong_name(exercise):
    verdict = exercise.check(lambda *sizes: exercise.solution(*sizes) + 1, seed=0)
    assert (verdict.passed, verdict.mistake) == (False, None)


def test_each_step_of_the_rule_matters_for_one_of_the_widths():
    for seed in SEEDS:
        d, multiple_of, multiplier = exercises.WIDTH.inputs(np.random.default_rng(seed))
        assert len(d) == 3
        hidden = [int(multiplier * int(8 * one / 3)) for one in d]
        assert d[0] % 3 == hidden[0] % multiple_of == hidden[2] % multiple_of == 0
        assert 0 < hidden[1] % multiple_of < multiple_of / 2
        assert int(multiplier * 8 * d[2] / 3) > hidden[2]


# Mistakes written by another hand than the library's: the names must fit what readers really write.


def full_heads(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size):
    return parameters(d, n_layers, n_heads, n_heads, head_dim, d_ff, vocab_size)


def plain_layer(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size):
    layer, tied, untied = parameters(d, n_layers, n_heads, n_kv_heads, head_dim, d_ff, vocab_size)
    return [layer - d * d_ff, tied - n_layers * d * d_ff, untied - n_layers * d * d_ff]


def tied_twice(*sizes):
    layer, _, untied = parameters(*sizes)
    return [layer, untied, untied]


def nearest(d, multiple_of, multiplier):
    hidden = (multiplier * (8 * d // 3)).astype(int)
    return multiple_of * np.rint(hidden / multiple_of)


def multiplied_last(d, multiple_of, multiplier):
    return (multiplier * width(d, multiple_of, 1)).astype(int)


def multi_head_cache(n_layers, n_heads, n_kv_heads, head_dim, tokens, bytes_per_value):
    return cache_bytes(n_layers, n_heads, n_heads, head_dim, tokens, bytes_per_value)


@pytest.mark.parametrize(
    ("exercise", "answer", "name"),
    [
        (exercises.PARAMETERS, full_heads, "kv heads counted as query heads"),
        (exercises.PARAMETERS, plain_layer, "two matrices for a gated layer"),
        (exercises.PARAMETERS, tied_twice, "tied head counted twice"),
        (exercises.WIDTH, nearest, "rounded down or to the nearest multiple"),
        (exercises.WIDTH, multiplied_last, "multiplier after alignment"),
        (exercises.WIDTH, lambda d, multiple_of, multiplier: width(d, multiple_of, 1), "multiplier ignored"),
        (exercises.CACHE, multi_head_cache, "query heads in the cache"),
        (exercises.CACHE, lambda *sizes: cache_bytes(*sizes) / 2, "keys or values, not both"),
    ],
)
def test_mistakes_of_another_hand_get_their_names(exercise, answer, name):
    for seed in range(25):
        assert exercise.check(answer, seed=seed).mistake == name, seed
