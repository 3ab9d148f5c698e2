"""Exercises of notebook 13: the right answer passes, each known mistake has its own name, on every seed."""

import math

import numpy as np
import pytest

from transformer_parts.learn import budget as exercises

EXERCISES = {"PARAMETERS": exercises.PARAMETERS, "WIDTH": exercises.WIDTH, "CACHE": exercises.CACHE}
MISTAKES = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]
SEEDS = range(100)

exercise_of_each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
mistake_of_each = pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{n}-{m.name}" for n, m in MISTAKES])


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


@exercise_of_each
def test_own_solution_passes(exercise):
    for seed in SEEDS:
        assert exercise.check(exercise.solution, seed=seed).passed


@mistake_of_each
def test_mistake_is_refused_by_its_name(name, mistake):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(mistake.function, seed=seed)
        assert not verdict.passed
        assert (verdict.mistake, verdict.message) == (mistake.name, mistake.message), seed


@exercise_of_each
def test_at_least_five_mistakes_with_messages_of_their_own(exercise):
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes) >= 5
    assert len({mistake.message for mistake in exercise.mistakes}) == len(exercise.mistakes)


@exercise_of_each
def test_hints_are_three_steps_that_differ(exercise):
    assert len({exercise.hint(step) for step in (1, 2, 3)}) == 3


@exercise_of_each
def test_single_cases_already_tell_right_from_wrong(exercise):
    """No input is so special that a mistake gives the right result on it."""
    for seed in SEEDS:
        for mistake in exercise.mistakes:
            assert not exercise.check(mistake.function, seed=seed, cases=1).passed, (seed, mistake.name)


@exercise_of_each
def test_unknown_wrong_answers_are_refused_without_a_wrong_name(exercise):
    verdict = exercise.check(lambda *arguments: exercise.solution(*arguments) + 1, seed=0)
    assert (verdict.passed, verdict.mistake) == (False, None)
    assert exercise.check(lambda *arguments: None, seed=0).mistake == "nothing returned"
    nan = exercise.check(lambda *arguments: exercise.solution(*arguments) * float("nan"), seed=0)
    assert nan.mistake == "not finite"
    assert "stopped with" in exercise.check(lambda: 0, seed=0).message


def test_wrong_shapes_and_changed_inputs_are_refused():
    assert exercises.PARAMETERS.check(lambda *sizes: parameters(*sizes)[0], seed=0).mistake == "shape"
    assert exercises.CACHE.check(lambda *sizes: [cache_bytes(*sizes)], seed=0).mistake == "shape"

    def in_place(d, multiple_of, multiplier):
        d *= 8
        d //= 3
        return d

    assert exercises.WIDTH.check(in_place, seed=0).mistake == "input changed"


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
