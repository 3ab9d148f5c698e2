"""Exercises of notebook 07: the right answer passes, each known mistake has its own name, on every seed."""

import numpy as np
import pytest

from transformer_parts.learn import cache as exercises

EXERCISES = {"POSITIONS": exercises.POSITIONS, "STEP": exercises.STEP, "BYTES": exercises.BYTES}
MISTAKES = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]
SEEDS = range(25)

exercise_of_each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
mistake_of_each = pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{n}-{m.name}" for n, m in MISTAKES])


# Answers of a reader who has only the formulas: nothing here calls the library.


def chunk_positions(valid, new):
    return [sum(valid) + i for i in range(new)]


def turned(x, position, inv_freq):
    out = np.empty_like(x)
    for i, frequency in enumerate(inv_freq):
        a, b = x[2 * i], x[2 * i + 1]
        cos, sin = np.cos(position * frequency), np.sin(position * frequency)
        out[2 * i], out[2 * i + 1] = a * cos - b * sin, a * sin + b * cos
    return out


def attend_step(query, key, value, keys, values, inv_freq, position=None):
    position = len(keys) if position is None else position
    query, key = turned(query, position, inv_freq), turned(key, position, inv_freq)
    keys, values = np.vstack([keys, key]), np.vstack([values, value])
    powers = np.exp(keys @ query / np.sqrt(len(query)))
    return powers / powers.sum() @ values


def cache_bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bits):
    return tokens * n_layers * n_kv_heads * head_dim * 2 * bits // 8


ANSWERS = [(exercises.POSITIONS, chunk_positions), (exercises.STEP, attend_step), (exercises.BYTES, cache_bytes)]


@pytest.mark.parametrize(("exercise", "answer"), ANSWERS)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        assert exercise.check(answer, seed=seed).passed
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
    for seed in SEEDS:
        for mistake in exercise.mistakes:
            assert not exercise.check(mistake.function, seed=seed, cases=1).passed, (seed, mistake.name)


# Mistakes written by another hand than the library's.


@pytest.mark.parametrize(
    ("exercise", "answer", "mistake"),
    [
        (exercises.POSITIONS, lambda valid, new: list(range(new)), "restart at 0"),
        (exercises.POSITIONS, lambda valid, new: range(len(valid), len(valid) + new), "padding counted"),
        (exercises.POSITIONS, lambda valid, new: [list(valid).count(True)] * new, "one position for the whole chunk"),
        (exercises.STEP, lambda *given: attend_step(*given, position=0), "restart at 0"),
        (exercises.STEP, lambda q, k, v, ks, vs, f: attend_step(q, k, v, ks, vs, f, len(ks) + 1), "off by one"),
        (exercises.BYTES, lambda n, h, g, k, t, b: 2 * n * h * k * t * (b // 8), "query heads counted"),
        (exercises.BYTES, lambda n, h, g, k, t, b: 2 * n * g * k * t * b, "bits for bytes"),
        (exercises.BYTES, lambda n, h, g, k, t, b: n * g * k * t * b // 8, "keys alone"),
    ],
)
def test_what_readers_write_is_named(exercise, answer, mistake):
    for seed in SEEDS:
        assert exercise.check(answer, seed=seed).mistake == mistake


def test_other_wrong_answers_are_refused():
    def in_place(query, key, value, keys, values, inv_freq):
        keys *= 2
        return value

    assert exercises.STEP.check(in_place, seed=0).mistake == "input changed"
    assert exercises.STEP.check(lambda *given: given[4], seed=0).mistake == "shape"
    assert exercises.STEP.check(lambda *given: given[2] + np.nan, seed=0).mistake == "not finite"
    assert exercises.STEP.check(lambda *given: given[2] + 1e-3, seed=0).mistake is None
    for exercise in EXERCISES.values():
        assert exercise.check(lambda *given: None, seed=0).mistake == "nothing returned"
        assert "stopped with" in exercise.check(lambda: 0, seed=0).message
