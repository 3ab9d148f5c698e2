"""Exercises of notebook 08: the right answer passes, each known mistake has its own name, on every seed."""

import numpy as np
import pytest

from transformer_parts.learn import context_extension as exercises

EXERCISES = {"NTK_BASE": exercises.NTK_BASE, "PI_ANGLE": exercises.PI_ANGLE, "YARN": exercises.YARN}
MISTAKES = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]
SEEDS = range(60)


# Answers of a reader who has only the formulas: nothing here calls the library.


def new_base(base, factor, head_dim):
    return np.exp(np.log(base) + head_dim / (head_dim - 2) * np.log(factor))


def angle(position, theta, trained_length, length):
    return theta / (length / trained_length) * position


def yarn(theta, factor, trained_length):
    out = []
    for frequency in theta:
        rotations = trained_length / (2 * np.pi / frequency)
        ramp = min(max((rotations - 1) / (32 - 1), 0), 1)
        out.append((1 - ramp) * frequency / factor + ramp * frequency)
    return [*out, (1 + np.log(factor) / 10) ** 2]


ANSWERS = ((exercises.NTK_BASE, new_base), (exercises.PI_ANGLE, angle), (exercises.YARN, yarn))


@pytest.mark.parametrize(("exercise", "answer"), ANSWERS, ids=EXERCISES)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        for function in (answer, exercise.solution):
            verdict = exercise.check(function, seed=seed)
            assert verdict.passed, (seed, verdict)


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{n}-{m.name}" for n, m in MISTAKES])
def test_mistake_is_refused_by_its_name(name, mistake):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(mistake.function, seed=seed)
        assert not verdict.passed
        assert (verdict.mistake, verdict.message) == (mistake.name, mistake.message), seed


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_there_are_mistakes_and_hints_enough(exercise):
    assert len(exercise.mistakes) >= 5
    assert len({mistake.message for mistake in exercise.mistakes}) == len(exercise.mistakes)
    assert len(exercise.hints) == 3


def clobber(theta, factor, trained_length):
    theta[:] = 0
    return np.append(theta, 1)


@pytest.mark.parametrize(
    ("exercise", "function", "mistake"),
    [
        (exercises.NTK_BASE, lambda *a: None, "nothing returned"),
        (exercises.NTK_BASE, lambda base, factor, d: [base, base], "shape"),
        (exercises.NTK_BASE, lambda *a: float("nan"), "not finite"),
        (exercises.PI_ANGLE, lambda *a: "far", "no numbers"),
        (exercises.PI_ANGLE, lambda position, theta, L, new: 1 / (L - L), None),
        (exercises.YARN, lambda theta, s, L: theta, "shape"),
        (exercises.YARN, clobber, "input changed"),
        (exercises.YARN, lambda theta, s, L: np.append(theta, 7.0), None),
    ],
)
def test_other_wrong_answers_are_refused(exercise, function, mistake):
    verdict = exercise.check(function, seed=1)
    assert not verdict.passed
    assert verdict.mistake == mistake
