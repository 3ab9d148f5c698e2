"""Exercises of notebook 18: their solutions are the library's own, by other ways."""

import numpy as np
import pytest

from transformer_parts.learn import real_model
from transformer_parts.maths.cross_entropy import cross_entropy


def test_the_loss_is_the_cross_entropy_of_the_shifted_tokens(rng):
    logits, tokens = rng.normal(size=(7, 11)), rng.integers(0, 11, 7)
    assert real_model.NEXT_LOSS.solution(logits, tokens) == pytest.approx(cross_entropy(logits[:-1], tokens[1:]))


def test_the_nucleus_by_hand():
    probabilities = np.array([0.1, 0.4, 0.05, 0.3, 0.15])
    np.testing.assert_allclose(real_model.NUCLEUS.solution(probabilities, 0.6), [0, 4 / 7, 0, 3 / 7, 0])
