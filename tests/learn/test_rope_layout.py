"""The exercises on layouts: right answers pass, each mistake is named, anything else is refused."""

import numpy as np
import pytest

from transformer_parts.learn import rope_layout as exercises

EXERCISES = {
    "PERMUTE_HEAD": exercises.PERMUTE_HEAD,
    "PERMUTE_HEADS": exercises.PERMUTE_HEADS,
    "CONVERT_LAYER": exercises.CONVERT_LAYER,
}
MISTAKES = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]
SEEDS = range(25)


def permute_head(w):
    return np.concatenate([w[0::2], w[1::2]])


def permute_heads(w, n_heads):
    return w.reshape(n_heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def convert_layer(w_q, w_k, w_v, head_dim, rotary_dim):
    out = []
    for w in (w_q, w_k):
        for head in range(len(w) // head_dim):
            rows = w[head * head_dim : (head + 1) * head_dim]
            out += [*rows[0:rotary_dim:2], *rows[1:rotary_dim:2], *rows[rotary_dim:]]
    return np.array([*out, *w_v])


ANSWERS = {"PERMUTE_HEAD": permute_head, "PERMUTE_HEADS": permute_heads, "CONVERT_LAYER": convert_layer}


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("seed", SEEDS)
def test_right_answers_pass(name, seed):
    exercise = EXERCISES[name]
    assert exercise.check(ANSWERS[name], seed=seed).passed
    assert exercise.check(exercise.solution, seed=seed).passed


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=lambda value: getattr(value, "name", value))
def test_each_mistake_is_named(name, mistake):
    for seed in SEEDS:
        for cases in (1, 8):
            verdict = EXERCISES[name].check(mistake.function, seed=seed, cases=cases)
            assert not verdict.passed
            assert (verdict.mistake, verdict.message) == (mistake.name, mistake.message)


@pytest.mark.parametrize("name", EXERCISES)
def test_mistakes_and_hints_are_enough_and_distinct(name):
    exercise = EXERCISES[name]
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes) >= 5
    assert len({mistake.message for mistake in exercise.mistakes}) == len(exercise.mistakes)
    assert [exercise.hint(step) for step in (1, 2, 3)] == list(exercise.hints)
    with pytest.raises(ValueError, match="step: got 4"):
        exercise.hint(4)


def changed(w, *_):
    w[0] = 0
    return w


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda *_: None, "nothing returned"),
        (lambda *_: ..., "nothing returned"),
        (lambda w, *_: w[:-1], "shape"),
        (lambda *_: "rows", "no numbers"),
        (changed, "input changed"),
    ],
)
def test_other_wrong_answers(name, answer, found):
    verdict = EXERCISES[name].check(answer, seed=3)
    assert not verdict.passed
    assert verdict.mistake == found


@pytest.mark.parametrize("name", EXERCISES)
def test_nan_exceptions_and_strange_numbers(name):
    exercise = EXERCISES[name]
    assert exercise.check(lambda *a: np.asarray(exercise.solution(*a)) * np.nan, seed=3).mistake == "not finite"
    assert "ZeroDivisionError" in exercise.check(lambda *a: 1 / 0, seed=3).message
    verdict = exercise.check(lambda *a: np.asarray(exercise.solution(*a)) + 1, seed=3)
    assert not verdict.passed
    assert verdict.mistake is None
    assert "largest difference" in verdict.message
