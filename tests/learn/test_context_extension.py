"""Exercises of notebook 08: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import context_extension as exercises

EXERCISES = {"NTK_BASE": exercises.NTK_BASE, "PI_ANGLE": exercises.PI_ANGLE, "YARN": exercises.YARN}
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
        verdict = exercise.check(answer, seed=seed)
        assert verdict.passed, (seed, verdict)


def test_frequencies_as_trained_with_a_wrong_factor_have_no_name():
    verdict = exercises.YARN.check(lambda theta, factor, trained_length: np.append(theta, 7.0), seed=1)
    assert (verdict.passed, verdict.mistake) == (False, None)


def test_interpolated_positions_are_new_and_never_whole():
    for seed in SEEDS:
        position, _, trained_length, length = exercises.PI_ANGLE.inputs(np.random.default_rng(seed))
        assert trained_length < position < length
        assert position * trained_length % length
