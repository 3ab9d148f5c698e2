"""Moments, centring and the angle between the outputs of the two norms."""

import statistics
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.norms import layer_norm, rms_norm
from transformer_parts.maths.norms_moments import angle, center, moments

ROWS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=13).map(lambda row: [round(v, 3) for v in row])


@given(ROWS)
def test_moments_agree_with_exact_fractions(row):
    exact = [Fraction(v) for v in row]
    mean, rms, std = moments(row)
    scale = max(map(abs, row)) or 1.0
    assert_allclose(mean, float(statistics.fmean(row)), rtol=1e-13, atol=1e-14 * scale)
    assert_allclose(rms, float(sum(v * v for v in exact) / len(exact)) ** 0.5, rtol=1e-13)
    assert_allclose(std, float(statistics.pvariance(exact)) ** 0.5, rtol=1e-10, atol=1e-14 * scale)


def test_moments_of_the_hand_examples():
    assert_allclose(moments([1.0, 3.0]), [2, 5**0.5, 1], rtol=1e-15)
    assert_allclose(moments([[1, 3], [2, 4]]), [[2, 3], [5**0.5, 10**0.5], [1, 1]], rtol=1e-15)
    assert_allclose(moments([1, 0, 0, 0]), [0.25, 0.5, 3**0.5 / 4], rtol=1e-15)
    assert_array_equal(moments([0.1] * 7).std, 0)


@pytest.mark.parametrize("exponent", [-1074, -600, 0, 600, 1023])
def test_moments_at_every_scale(exponent):
    x = np.ldexp([1.0, -0.5, 1.5, 0.25], exponent)
    with mpmath.workdps(50):
        row = [mpmath.mpf(float(v)) for v in x]
        mean = mpmath.fsum(row) / 4
        expected = [
            mean,
            mpmath.sqrt(mpmath.fsum(v * v for v in row) / 4),
            mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in row) / 4),
        ]
    assert_allclose(moments(x), [float(v) for v in expected], rtol=1e-14, atol=5e-324)


def test_mean_over_rms_lies_between_centred_and_constant(rng):
    assert moments([1.0, -1.0]).mean_over_rms == 0
    assert moments([-2.0, -2.0]).mean_over_rms == 1
    assert np.isnan(moments([0.0, 0.0]).mean_over_rms)
    x = rng.standard_normal((3, 5, 7)) + 1
    mean, rms, std = moments(x)
    assert mean.shape == (3, 5)
    assert_allclose(mean**2 + std**2, rms**2, rtol=1e-13)


def test_centring_is_the_projection_perpendicular_to_ones(rng):
    x = rng.standard_normal((5, 11)) + 2
    ones = np.ones(11)
    projector = np.eye(11) - np.outer(ones, ones) / 11
    assert_allclose(center(x), x @ projector, atol=1e-14)
    assert center(np.float32([1, 3])).dtype == np.float32
    assert center(np.float16([1, 3])).dtype == np.float16
    assert center([1, 3]).tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("degrees", [0, 1e-9, 30, 90, 179.999, 180])
def test_angle_is_precise_at_every_size(degrees):
    turn = np.radians(degrees)
    assert_allclose(angle([2e-200, 0], [3e200 * np.cos(turn), 3e200 * np.sin(turn)]), turn, rtol=1e-13, atol=1e-15)


def test_angle_without_a_direction_is_nan():
    assert np.isnan(angle([0.0, 0.0], [1.0, 2.0]))
    assert angle(np.ones((3, 1, 5)), np.ones((2, 5))).shape == (3, 2)


@given(ROWS.filter(lambda row: np.std(row) > 1e-2))
def test_the_two_norms_stand_at_the_angle_of_mean_over_rms(row):
    x = np.array(row)
    between = angle(rms_norm(x, eps=1e-300), layer_norm(x, eps=1e-300))
    ratio = moments(x).mean_over_rms
    assert_allclose(np.sin(between), ratio, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("function", [moments, center, lambda x: angle(x, [1.0, 2.0])])
@pytest.mark.parametrize("bad", [[1.0, np.nan], [1.0, np.inf], [], 3.0, ["a", "b"], [1j, 2]])
def test_bad_input_is_named(function, bad):
    with pytest.raises(ValueError, match=r"^x: got .*want "):
        function(bad)


def test_angle_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"^y: got shape \(3,\), want a last axis of 2"):
        angle([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"^y: got shape \(3, 2\)"):
        angle(np.ones((5, 2)), np.ones((3, 2)))
