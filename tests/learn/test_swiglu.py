"""Exercises of notebook 12: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from transformer_parts.learn import swiglu as exercises
from transformer_parts.maths.feedforward import swiglu


def swiglu_as_readers_write_it(x, w_gate, w_up, w_down):
    g = x @ w_gate
    return (g / (1 + np.exp(-g)) * (x @ w_up)) @ w_down


def fused_as_readers_write_it(x, w_gate_up, w_down):
    both = x @ w_gate_up
    f = both.shape[-1] // 2
    g, u = both[:, :f], both[:, f:]
    return (g / (1 + np.exp(-g)) * u) @ w_down


def gradient_as_readers_write_it(g, u, dh):
    s = 1 / (1 + np.exp(-g))
    return dh * u * s * (1 + g * (1 - s))


RIGHT = {
    "SWIGLU": swiglu_as_readers_write_it,
    "FUSED": fused_as_readers_write_it,
    "GATE_GRADIENT": gradient_as_readers_write_it,
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_pass(name):
    for seed in range(25):
        verdict = getattr(exercises, name).check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


def test_the_gradient_is_that_of_a_loss(rng):
    g, u, dh = exercises.GATE_GRADIENT.inputs(rng)
    step = 1e-6

    def loss(g):
        return np.sum(g / (1 + np.exp(-g)) * u * dh)

    for i in np.ndindex(g.shape):
        moved = [g.copy(), g.copy()]
        moved[0][i] += step
        moved[1][i] -= step
        slope = (loss(moved[0]) - loss(moved[1])) / (2 * step)
        assert exercises.GATE_GRADIENT.solution(g, u, dh)[i] == pytest.approx(slope, abs=1e-7)


def test_the_fused_matrix_is_the_two_side_by_side(rng):
    x, w, w_down = exercises.FUSED.inputs(rng)
    f = w.shape[1] // 2
    assert_allclose(exercises.FUSED.solution(x, w, w_down), swiglu(x, w[:, :f], w[:, f:], w_down))
