"""The exercises of notebook 09: right answers pass, each known mistake is named, anything else is refused."""

import numpy as np
import pytest

from transformer_parts.learn import norms as exercises
from transformer_parts.maths.norms import layer_norm, rms_norm

EXERCISES = {"RMS_NORM": exercises.RMS_NORM, "LAYER_NORM": exercises.LAYER_NORM, "CENTER": exercises.CENTER}
MISTAKES = [
    pytest.param(exercise, mistake, id=f"{name}: {mistake.name}")
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
]
SEEDS = range(25)


def rms_as_readers_write_it(x, weight, eps):
    out = np.empty_like(x)
    for i, row in enumerate(x):
        out[i] = [value / (sum(v * v for v in row) / len(row) + eps) ** 0.5 for value in row]
    return out * weight


def layer_as_readers_write_it(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def center_as_readers_write_it(w):
    d = w.shape[1]
    return w @ (np.eye(d) - np.ones((d, d)) / d)


RIGHT = {
    "RMS_NORM": rms_as_readers_write_it,
    "LAYER_NORM": layer_as_readers_write_it,
    "CENTER": center_as_readers_write_it,
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
def test_each_mistake_is_named_whatever_the_inputs(exercise, mistake):
    for seed in SEEDS:
        verdict = exercise.check(mistake.function, seed=seed)
        assert (verdict.passed, verdict.mistake) == (False, mistake.name)
        assert verdict.message == mistake.message


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
def test_one_case_is_enough_to_tell_a_mistake(exercise, mistake):
    for seed in SEEDS:
        assert exercise.check(mistake.function, seed=seed, cases=1).mistake == mistake.name


@pytest.mark.parametrize("name", EXERCISES)
def test_other_wrong_answers_are_refused(name):
    exercise, right = EXERCISES[name], RIGHT[name]

    def changes_its_input(x, *rest):
        result = right(x, *rest)
        x *= 2
        return result

    def stops(*arguments):
        raise ZeroDivisionError("by zero")

    wrong = {
        "nothing returned": lambda *arguments: None,
        "shape": lambda *arguments: right(*arguments)[:1],
        "not finite": lambda *arguments: right(*arguments) * np.nan,
        "no numbers": lambda *arguments: "y",
        "input changed": changes_its_input,
    }
    for mistake, function in wrong.items():
        assert exercise.check(function, seed=1).mistake == mistake
    assert "ZeroDivisionError: by zero" in exercise.check(stops, seed=1).message
    verdict = exercise.check(lambda *arguments: right(*arguments) + 1e-3, seed=1)
    assert (verdict.passed, verdict.mistake) == (False, None)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_starting_point_of_the_notebook_is_told_kindly(name):
    assert EXERCISES[name].check(lambda *arguments: ...).mistake == "nothing returned"


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_come_in_steps(name):
    hints = [EXERCISES[name].hint(step) for step in (1, 2, 3)]
    assert len(set(hints)) == 3
    with pytest.raises(ValueError, match="step: got 4, want"):
        EXERCISES[name].hint(4)


def test_messages_are_all_different():
    for exercise in EXERCISES.values():
        assert len({mistake.message for mistake in exercise.mistakes}) == len(exercise.mistakes) >= 5


def test_a_centred_matrix_makes_the_two_norms_agree(rng):
    w = exercises.CENTER.inputs(rng)[0]
    x = rng.standard_normal((5, w.shape[0]))
    np.testing.assert_allclose(rms_norm(x @ exercises.CENTER.solution(w), eps=1e-5), layer_norm(x @ w), atol=1e-12)
