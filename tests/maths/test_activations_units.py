"""Units over a data set: slow loops, the exact probability by mpmath, frequencies, laws and bad input."""

import itertools

import ml_dtypes
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.activations import gelu_derivative, relu, relu_derivative, silu_derivative
from transformer_parts.maths.activations_units import (
    dead_probability,
    dead_units,
    fraction_dead,
    random_units,
    slope_rms,
    tabulated,
)


def test_pre_activations_of_random_units_are_standard_normal():
    z = random_units(113, 2003, d_model=31, seed=7)
    assert z.shape == (2003, 113)
    assert_allclose(z.mean(), 0, atol=0.02)
    assert_allclose(z.std(axis=0), 1, atol=0.1)  # weights are unit vectors, so each unit's spread is 1
    neighbours = (z[1:] * z[:-1]).mean(0)
    assert np.abs(neighbours).max() < 0.1


def test_seeds_repeat_and_fewer_inputs_are_the_first_rows():
    z = random_units(5, 11, seed=3)
    assert_array_equal(z, random_units(5, 11, seed=3))
    assert_allclose(z[:7], random_units(5, 7, seed=3), rtol=1e-12, atol=1e-14)
    assert np.abs(z - random_units(5, 11, seed=4)).min() > 0


def test_dead_is_no_input_above_zero(rng):
    z = rng.standard_normal((3, 5, 97)) - 1
    expected = [all(value <= 0 for value in z[..., j].flat) for j in range(97)]
    assert_array_equal(dead_units(z), expected)
    assert 0 < sum(expected) < 97
    # ReLU's output and slope are zero at every input of just these units.
    assert_array_equal(dead_units(z), (relu(z) == 0).all((0, 1)))
    assert_array_equal(dead_units(z), slope_rms(z, relu_derivative) == 0)
    assert dead_units([0.0, 1e-300]).tolist() == [True, False]


def test_more_inputs_never_kill():
    z = random_units(101, 64, seed=1) - 2
    dead = [dead_units(z[:n]) for n in (1, 2, 7, 31, 64)]
    for fewer, more in itertools.pairwise(dead):
        assert (more <= fewer).all()
    assert dead[0].mean() > dead[-1].mean() > 0


def test_fraction_dead_is_the_mean_of_dead_units(rng):
    z = rng.standard_normal((13, 89))
    biases = np.array([[-9, -2.5, -1], [0, 0.3, 4]])
    expected = [[dead_units(z + b).mean() for b in row] for row in biases]
    assert_array_equal(fraction_dead(z, biases), expected)
    assert expected[0][0] == 1
    assert expected[1][2] == 0
    # On the very edge: largest + b = 0 is dead.
    assert fraction_dead([[-1.0, 2.0]], -2.0) == 1
    assert fraction_dead([[-1.0, 2.0]], np.nextafter(-2.0, 0)) == 0.5


@pytest.mark.parametrize("n", [1, 71, 512, 10**6])
def test_probability_is_the_formula(n):
    biases = [-9.0, -4.7, -3.0, -0.5, 0.0, 2.0]
    with mpmath.workdps(60):
        expected = [float(mpmath.ncdf(-mpmath.mpf(b)) ** n) for b in biases]
    assert_allclose(dead_probability(biases, n), expected, rtol=1e-11)


def test_random_units_die_as_often_as_the_probability_says():
    z = random_units(4001, 128, d_model=61)
    for bias in (-1.5, -2.5, -3.0):
        p = dead_probability(bias, 128)
        assert fraction_dead(z, bias) == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 61))  # directions share inputs


@pytest.mark.parametrize("derivative", [relu_derivative, silu_derivative, gelu_derivative])
def test_slope_is_summed_entry_by_entry(rng, derivative):
    z = rng.standard_normal((3, 5, 7))
    expected = [
        (sum(float(derivative(value)) ** 2 for value in z[..., j].flat) / 15) ** 0.5 for j in range(7)
    ]  # fmt: skip
    assert_allclose(slope_rms(z, derivative), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_slopes_of_sixteen_bits_are_summed_in_float32(rng, dtype):
    z = rng.standard_normal((70_001, 2)).astype(dtype)  # more than float16's largest number of squares near 1
    assert_allclose(slope_rms(z + 5, silu_derivative), slope_rms(z.astype(float) + 5, silu_derivative), rtol=0.01)


def test_a_unit_dead_for_relu_has_a_slope_for_silu_and_gelu():
    z = random_units(101, 64) - 4
    dead = dead_units(z)
    assert dead.mean() > 0.9
    for derivative in (silu_derivative, gelu_derivative):
        assert (slope_rms(z, derivative)[dead] > 1e-4).all()


def test_a_table_of_gelus_slope_is_right_in_its_tail_too(rng):
    look_up = tabulated(gelu_derivative, low=-10, high=10)
    x = rng.uniform(-9, 9, (3, 1000))
    assert_allclose(look_up(x), gelu_derivative(x), rtol=2e-4, atol=3e-7)
    x = rng.uniform(-9, -1, 1000)
    assert_allclose(look_up(x), gelu_derivative(x), rtol=1e-3, atol=1e-7)
    assert_array_equal(look_up(np.array([-1e300, -10.0, 10.0, 70.0])), gelu_derivative([-10.0, -10.0, 10.0, 10.0]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"function": None}, "function: got None"),
        ({"low": 0.5}, "low: got 0.5, want an integer"),
        ({"high": -1}, "high: got -1, want an integer of at least 0"),
        ({"per_unit": 0}, "per_unit: got 0"),
    ],
)
def test_a_table_refuses_what_it_cannot_hold(changed, message):
    with pytest.raises(ValueError, match="^" + message):
        tabulated(**({"function": relu, "low": -1, "high": 1} | changed))


@pytest.mark.parametrize("name", ["n_units", "n_samples", "d_model"])
@pytest.mark.parametrize("bad", [0, -1, 2.0, True, None])
def test_random_units_names_a_size_that_is_none(name, bad):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        random_units(**{"n_units": 2, "n_samples": 3, name: bad})


def test_other_bad_input_is_named():
    with pytest.raises(ValueError, match=r"^seed: got -1"):
        random_units(2, 3, seed=-1)
    for function in (dead_units, lambda z: fraction_dead(z, 0.0), lambda z: slope_rms(z, relu_derivative)):
        with pytest.raises(ValueError, match=r"^pre: got nan at index \(0, 1\)"):
            function([[1.0, np.nan]])
        with pytest.raises(ValueError, match=r"^pre: got shape"):
            function(1.0)
    with pytest.raises(ValueError, match=r"^biases: got inf"):
        fraction_dead([1.0], [np.inf])
    with pytest.raises(ValueError, match=r"^bias: got nan"):
        dead_probability(np.nan, 3)
    with pytest.raises(ValueError, match=r"^n_samples: got 0"):
        dead_probability(0.0, 0)
    with pytest.raises(ValueError, match=r"^derivative: got None, want a function"):
        slope_rms([1.0], None)
