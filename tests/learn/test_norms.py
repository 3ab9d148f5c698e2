"""Exercises of notebook 09: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import norms as exercises
from transformer_parts.maths.norms import layer_norm, rms_norm

EXERCISES = {"RMS_NORM": exercises.RMS_NORM, "LAYER_NORM": exercises.LAYER_NORM, "CENTER": exercises.CENTER}
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


def test_a_centred_matrix_makes_the_two_norms_agree(rng):
    w = exercises.CENTER.inputs(rng)[0]
    x = rng.standard_normal((5, w.shape[0]))
    np.testing.assert_allclose(rms_norm(x @ exercises.CENTER.solution(w), eps=1e-5), layer_norm(x @ w), atol=1e-12)
