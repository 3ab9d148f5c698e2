"""Angles seen and reached, and the entropy of a growing context."""

import math

import numpy as np
import pytest

from transformer_parts.maths import attention, rope
from transformer_parts.maths.context_extension import ntk_aware, position_interpolation, yarn
from transformer_parts.maths.context_extension_effects import angle_coverage, entropy_by_length

TRAINED = rope.inv_freq(128)


def test_46_of_64_pairs_complete_a_turn_and_18_do_not():
    coverage = angle_coverage(TRAINED, TRAINED, 4096, 4096)
    assert coverage.complete.sum() == 46
    np.testing.assert_array_equal(np.flatnonzero(~coverage.complete), np.arange(46, 64))
    assert not coverage.beyond.any()


def test_17_of_18_pairs_exceed_their_trained_angle_with_ntk_aware():
    coverage = angle_coverage(TRAINED, ntk_aware(128, 8).inv_freq, 4096, 32768)
    assert coverage.beyond.sum() == 17
    assert not coverage.beyond[-1]
    excess = coverage.excess[~coverage.complete]
    np.testing.assert_allclose(coverage.ratio[[0, -1]], [1, 1 / 8], rtol=1e-12)
    np.testing.assert_array_equal(coverage.excess, coverage.reached / coverage.seen)
    assert excess.max() == pytest.approx(1.7526, abs=5e-5)
    assert excess[-1] == pytest.approx(1, rel=1e-12)


def test_interpolation_and_yarn_stay_within_the_trained_angles():
    for scaled in (position_interpolation(128, 8), yarn(128, 8, 4096), yarn(128, 8, 4096, ramp="rotations")):
        assert not angle_coverage(TRAINED, scaled.inv_freq, 4096, 32768).beyond.any()
    assert angle_coverage(TRAINED, TRAINED, 4096, 32768).beyond.sum() == 18


def test_what_rotations_reach_is_what_the_coverage_says():
    """The angle of pair i at the last of L positions, read off a turned vector where it is below half a turn."""
    coverage = angle_coverage([0.01, 0.001], [0.005, 0.0005], 101, 203)
    for angles, frequencies, length in ((coverage.seen, [0.01, 0.001], 101), (coverage.reached, [0.005, 0.0005], 203)):
        turned = rope.rotate([[1.0, 0, 1, 0]], [length], inv_freq=frequencies)[0]
        np.testing.assert_allclose(np.arctan2(turned[1::2], turned[0::2]), angles, rtol=1e-12)


def test_entropy_is_that_of_the_weights(rng):
    scores = rng.normal(size=211) * 5
    got = entropy_by_length(scores)
    for n in (1, 2, 3, 97, 211):
        assert got[n - 1] == pytest.approx(float(attention.entropy(attention.softmax(scores[:n]))), abs=1e-12)


def test_entropy_of_equal_scores_is_the_logarithm():
    np.testing.assert_allclose(entropy_by_length(np.full(53, -7.0)), np.log(np.arange(1, 54)), atol=1e-13)


def test_a_factor_above_1_sharpens(rng):
    scores = rng.normal(size=307)
    assert (entropy_by_length(1.46 * scores)[1:] < entropy_by_length(scores)[1:]).all()


def test_far_scores_leave_no_entropy():
    np.testing.assert_allclose(entropy_by_length([0.0, -20.0]), [0, 21 * math.exp(-20)], rtol=1e-6)
    np.testing.assert_array_equal(entropy_by_length([0.0, -599.0]) < 1e-200, True)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: angle_coverage([1.0], [1.0, 0.5], 4, 8), "extended"),
        (lambda: angle_coverage([[1.0]], [1.0], 4, 8), "trained"),
        (lambda: angle_coverage([0.0], [1.0], 4, 8), "trained"),
        (lambda: angle_coverage([1.0], [-1.0], 4, 8), "extended"),
        (lambda: angle_coverage([1.0], [1.0], 0, 8), "trained_length"),
        (lambda: angle_coverage([1.0], [1.0], 4, 8.5), "length"),
        (lambda: entropy_by_length([[1.0]]), "scores"),
        (lambda: entropy_by_length([math.inf]), "scores"),
        (lambda: entropy_by_length([0.0, 700.0]), "scores"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        call()
