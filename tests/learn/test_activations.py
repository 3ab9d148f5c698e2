"""Exercises of notebook 11: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from transformer_parts.learn import activations as exercises
from transformer_parts.maths.activations import dead_units


def gelu_as_readers_write_it(x):
    return np.array([0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in x])


def slope_as_readers_write_it(x):
    s = 1 / (1 + np.exp(-x))
    return s + x * s * (1 - s)


def dead_as_readers_write_it(pre):
    return [all(value <= 0 for value in unit) for unit in pre.T]


RIGHT = {
    "GELU_TANH": gelu_as_readers_write_it,
    "SILU_SLOPE": slope_as_readers_write_it,
    "DEAD": dead_as_readers_write_it,
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    for seed in range(25):
        verdict = getattr(exercises, name).check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


def test_a_slope_by_differences_is_told_from_the_right_one_only_by_its_precision():
    def by_differences(x):
        f = exercises.SILU_SLOPE.mistakes[0].function  # SiLU itself
        return (f(x + 1e-3) - f(x - 1e-3)) / 2e-3

    verdict = exercises.SILU_SLOPE.check(by_differences, seed=0)
    assert not verdict.passed
    assert verdict.mistake is None


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (lambda pre: np.mean(pre <= 0, axis=0) >= 0.99, None),
        (lambda pre: np.mean(pre <= 0, axis=0) > 0.5, "most inputs"),
        (lambda pre: pre.sum(axis=0) <= 0, "mean pre-activation"),
        (lambda pre: pre[-1] < 0, "last input"),
        (lambda pre: pre.min(axis=0) <= 0, "any input"),
    ],
)
def test_what_is_nearly_dead_is_not_dead(answer, mistake):
    for seed in range(25):
        verdict = exercises.DEAD.check(answer, seed=seed)
        assert (verdict.passed, verdict.mistake) == (False, mistake)


def test_dead_is_what_the_library_calls_dead(rng):
    for _ in range(20):
        (pre,) = exercises.DEAD.inputs(rng)
        assert_array_equal(exercises.DEAD.solution(pre), dead_units(pre))
        assert 2 <= dead_units(pre).sum() < pre.shape[1] - 3
