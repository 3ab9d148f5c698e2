"""The exercises of notebook 02: right answers pass, each known mistake is named, anything else is refused."""

import math

import numpy as np
import pytest

from transformer_parts.learn import positions as exercises

EXERCISES = {"TABLE": exercises.TABLE, "SHIFT": exercises.SHIFT, "ADD": exercises.ADD}
MISTAKES = [
    pytest.param(exercise, mistake, id=f"{name}: {mistake.name}")
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
]
SEEDS = range(12)


def table_as_readers_write_it(seq_len, d_model, base):
    rows = []
    for p in range(seq_len):
        angles = [p / base ** (2 * i / d_model) for i in range(d_model // 2)]
        rows.append([f(angle) for angle in angles for f in (math.sin, math.cos)])
    return rows


def shift_as_readers_write_it(k, d_model, base):
    """Solve for it, instead of writing it down: pairs of many positions, by least squares."""
    before = np.array(table_as_readers_write_it(300, d_model, base))
    places = np.arange(300) + k
    angles = places[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
    after = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(300, d_model)
    return np.linalg.lstsq(before, after, rcond=None)[0].T


def add_as_readers_write_it(x, table):
    return np.array([[token + table[p] for p, token in enumerate(sequence)] for sequence in x])


RIGHT = {
    "TABLE": table_as_readers_write_it,
    "SHIFT": shift_as_readers_write_it,
    "ADD": add_as_readers_write_it,
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES)
@pytest.mark.parametrize("cases", [1, 8])
def test_each_mistake_is_named_whatever_the_inputs(exercise, mistake, cases):
    for seed in SEEDS:
        verdict = exercise.check(mistake.function, seed=seed, cases=cases)
        assert (verdict.passed, verdict.mistake) == (False, mistake.name)
        assert verdict.message == mistake.message


@pytest.mark.parametrize("name", EXERCISES)
def test_other_wrong_answers_are_refused(name):
    exercise, right = EXERCISES[name], RIGHT[name]

    def stops(*arguments):
        raise ZeroDivisionError("by zero")

    wrong = {
        "nothing returned": lambda *arguments: ...,
        "shape": lambda *arguments: np.asarray(right(*arguments))[:1],
        "not finite": lambda *arguments: np.asarray(right(*arguments)) * np.nan,
        "no numbers": lambda *arguments: "y",
    }
    for mistake, function in wrong.items():
        assert exercise.check(function, seed=1).mistake == mistake
    assert exercise.check(lambda *arguments: None, seed=1).mistake == "nothing returned"
    assert "ZeroDivisionError: by zero" in exercise.check(stops, seed=1).message
    verdict = exercise.check(lambda *arguments: np.asarray(right(*arguments)) + 1e-3, seed=1)
    assert (verdict.passed, verdict.mistake) == (False, None)


def test_a_changed_input_is_told():
    def in_place(x, table):
        x += table[: x.shape[1]]
        return x

    assert exercises.ADD.check(in_place, seed=1).mistake == "input changed"


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_and_messages_are_all_different(name):
    assert len({EXERCISES[name].hint(step) for step in (1, 2, 3)}) == 3
    with pytest.raises(ValueError, match="step: got 4, want"):
        EXERCISES[name].hint(4)
    mistakes = EXERCISES[name].mistakes
    assert len({mistake.message for mistake in mistakes}) == len(mistakes) >= 5
