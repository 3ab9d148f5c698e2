"""Exercises of notebook 15: right answers that readers write pass, and the solutions are the library's own.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from transformer_parts.learn import stability as exercises
from transformer_parts.maths.initialization import residual_factor
from transformer_parts.maths.stability import logit_bound
from transformer_parts.maths.training import clip_to_norm

EXERCISES = {"CLIP": exercises.CLIP, "NARROW": exercises.NARROW, "QK_NORM": exercises.QK_NORM}


def clip_as_readers_write_it(gradients, max_norm):
    out = []
    for step in gradients:
        norm = sum(float(g) ** 2 for row in step for g in row) ** 0.5
        out.append(step if norm <= max_norm else step / (norm / max_norm))
    return np.array(out)


def narrow_as_readers_write_it(w, n_layers):
    return w * (2 * n_layers) ** -0.5


def logits_as_readers_write_it(q, k, gain):
    q, k = (gain * x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True)) for x in (q, k))
    return np.array([[float(a @ b) / len(a) ** 0.5 for b in k] for a in q])


RIGHT = {"CLIP": clip_as_readers_write_it, "NARROW": narrow_as_readers_write_it, "QK_NORM": logits_as_readers_write_it}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in range(25):
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


def test_solutions_are_what_the_library_does(rng):
    for _ in range(20):
        gradients, max_norm = exercises.CLIP.inputs(rng)
        for step, clipped in zip(gradients, exercises.CLIP.solution(gradients, max_norm), strict=True):
            wanted, _ = clip_to_norm({str(i): row for i, row in enumerate(step)}, max_norm)
            assert_allclose(clipped, np.array(list(wanted.values())))
        w, n_layers = exercises.NARROW.inputs(rng)
        assert_allclose(exercises.NARROW.solution(w, n_layers), residual_factor(n_layers) * w)
        q, k, gain = exercises.QK_NORM.inputs(rng)
        assert np.abs(exercises.QK_NORM.solution(q, k, gain)).max() <= logit_bound(q.shape[1], gain) * (1 + 1e-12)
