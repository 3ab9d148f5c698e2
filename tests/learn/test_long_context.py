"""Exercises of notebook 16: their solutions by other ways."""

import numpy as np
import pytest

from transformer_parts.learn import long_context


@pytest.mark.parametrize(("length", "window", "wanted"), [(5, 2, 9), (9, 4, 30)])
def test_pairs_by_hand(length, window, wanted):
    assert long_context.PAIRS.solution(length, window) == wanted
    assert wanted == sum(min(m, window) for m in range(1, length + 1))


def test_perplexity_is_the_inverse_geometric_mean_of_the_probabilities(rng):
    p = rng.uniform(0.01, 1, 12)
    ours = long_context.PERPLEXITY.solution(-np.log(p), 4)
    np.testing.assert_allclose(ours, np.prod(1 / p.reshape(3, 4), axis=-1) ** (1 / 4), rtol=1e-12)
