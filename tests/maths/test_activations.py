"""Activations: independent answers, precision in the tails, published extremes, and bad input."""

import itertools

import ml_dtypes
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import activations
from transformer_parts.maths.activations import (
    dead_probability,
    dead_units,
    fraction_dead,
    gelu,
    gelu_derivative,
    gelu_tanh,
    gelu_tanh_derivative,
    largest_difference,
    random_units,
    relu,
    relu_derivative,
    sigmoid,
    sigmoid_derivative,
    silu,
    silu_derivative,
    slope_rms,
    swish,
    swish_derivative,
    swish_minimum,
    tabulated,
)

ALL = pytest.mark.parametrize("f", [relu, sigmoid, silu, gelu, gelu_tanh])


def _mp_sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


DEFINITIONS = {
    relu: lambda x: max(x, mpmath.mpf(0)),
    sigmoid: _mp_sigmoid,
    silu: lambda x: x * _mp_sigmoid(x),
    gelu: lambda x: x / 2 * (1 + mpmath.erf(x / mpmath.sqrt(2))),
    gelu_tanh: lambda x: x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))),
}


def by_definition(f, x):
    with mpmath.workdps(400):  # enough for 1 + erf(−38) to leave something
        return np.array([float(DEFINITIONS[f](mpmath.mpf(float(v)))) for v in x])


@pytest.mark.parametrize(
    ("module", "name", "f"),
    [
        ("relu", "test_relu", relu),
        ("sigmoid", "test_sigmoid", sigmoid),
        ("swish", "test_swish", silu),
        ("gelu", "test_gelu_default", gelu),
        ("gelu", "test_gelu_tanh", gelu_tanh),
    ],
)
def test_agrees_with_the_onnx_cases(onnx_cases, module, name, f):
    cases = [c for c in onnx_cases(module) if c.name.startswith(name)]
    assert cases
    for case in cases:
        y = f(case.inputs[0])
        assert y.dtype == np.float32
        assert_allclose(y, case.outputs[0], rtol=3e-6, atol=1e-7, err_msg=case.name)


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keeps_its_relative_precision_down_to_the_smallest_numbers(f, dtype):
    limits = np.finfo(dtype)
    x = np.array([-700, -89, -81, -79, -40, -37.5, -12, -9, -5, -1, -1e-3, -1e-30, 0, 1e-30, 0.5, 3, 40, 1e4], dtype)
    expected = by_definition(f, x)
    # An error of half a place in an exponent of size z is an error of z half-places in the result.
    exponent = np.maximum(1, -np.log(np.maximum(np.abs(expected), float(limits.tiny))))
    error = np.abs(f(x) - expected)
    assert (error <= 4 * limits.eps * exponent * np.abs(expected) + float(limits.tiny)).all(), error


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_extreme_arguments_neither_warn_nor_overflow(f, dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    x = np.array([-largest, -1000, 1000, largest]).astype(dtype)
    y = f(x)
    assert y.dtype == dtype
    assert_array_equal(y.astype(np.float64), [0, 0, 1, 1] if f is sigmoid else [0, 0, 1000, largest])


@ALL
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_are_computed_in_float32_and_rounded_once(f, dtype, rng):
    x = (4 * rng.standard_normal((3, 5, 7))).astype(dtype)
    assert_array_equal(f(x), f(x.astype(np.float32)).astype(dtype))


@pytest.mark.oracle
def test_agrees_with_torch(torch, rng):
    x = 5 * rng.standard_normal((3, 7001))
    tx, functional = torch.from_numpy(x), torch.nn.functional
    assert_array_equal(relu(x), functional.relu(tx))
    assert_allclose(sigmoid(x), torch.sigmoid(tx), rtol=1e-13)
    assert_allclose(silu(x), functional.silu(tx), rtol=1e-13)
    assert_allclose(gelu(x), functional.gelu(tx), rtol=1e-12, atol=1e-14)
    assert_allclose(gelu_tanh(x), functional.gelu(tx, approximate="tanh"), rtol=1e-12, atol=1e-14)


def test_the_two_gelus_differ_by_at_most_4_73e_4():
    x = np.linspace(-6, 6, 12_001)
    difference = np.abs(gelu(x) - gelu_tanh(x))
    assert difference.max() == pytest.approx(4.73e-4, abs=5e-7)
    assert abs(x[difference.argmax()]) == pytest.approx(2.699, abs=5e-4)
    assert np.abs(gelu(1.0) - gelu_tanh(1.0)) == pytest.approx(1.53e-4, abs=5e-7)


def test_the_minimum_of_silu():
    x = np.linspace(-2, 0, 20_001)
    y = silu(x)
    assert y.min() == pytest.approx(-0.2785, abs=5e-5)
    assert x[y.argmin()] == pytest.approx(-1.2785, abs=5e-5)


def test_laws(rng):
    x = 8 * rng.standard_normal(997)
    assert_allclose(sigmoid(x) + sigmoid(-x), 1, rtol=1e-15)
    for f in (relu, silu, gelu, gelu_tanh):  # x·s(x) with s(x) + s(−x) = 1
        assert_allclose(f(x) - f(-x), x, rtol=1e-14)
    assert_allclose(np.tanh(x / 2), 2 * sigmoid(x) - 1, atol=1e-15)


@ALL
def test_shapes_layouts_and_scalars(f, rng, monkeypatch):
    x = rng.standard_normal((3, 5, 7))
    y = f(x)
    assert y.shape == x.shape
    assert_array_equal(f(np.asfortranarray(x)), y)
    assert_array_equal(f(x[:, ::-1])[:, ::-1], y)
    assert_allclose(f(x.astype(">f4")), y, rtol=1e-5)
    assert f(0.25).shape == ()
    assert f(0.25) == f([0.25])[0]
    assert f([1, 2]).dtype == np.float64
    monkeypatch.setattr(activations, "BLOCK_ENTRIES", 11)
    assert_allclose(f(x), y, rtol=1e-15)
    before = x.copy()
    f(x)
    assert_array_equal(x, before)


@ALL
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_non_finite_entries(f, bad):
    with pytest.raises(ValueError, match=r"^x: got .* at index \(1, 0\)"):
        f([[0.0, 1.0], [bad, 2.0]])


@ALL
@pytest.mark.parametrize("bad", ["a", [1j], [True], [], None])
def test_refuses_what_is_no_array_of_numbers(f, bad):
    with pytest.raises(ValueError, match=r"^x: got "):
        f(bad)


# ---------------------------------------------------------------- Swish


def test_swish_agrees_with_the_onnx_cases(onnx_cases):
    for case in onnx_cases("swish"):
        y = swish(case.inputs[0], case.attributes.get("alpha", 1.0))
        assert_allclose(y, case.outputs[0], rtol=3e-6, atol=1e-7, err_msg=case.name)


@pytest.mark.parametrize("beta", [0, 0.3, 1, 1.702, 7.5, 1000])
def test_swish_is_its_formula(beta):
    x = np.array([-1e30, -700, -37.5, -3, -1e-3, 0, 1e-30, 0.5, 3, 40, 1e30])
    with mpmath.workdps(400):
        expected = [float(mpmath.mpf(v) * _mp_sigmoid(mpmath.mpf(beta) * mpmath.mpf(v))) for v in x]
    assert_allclose(swish(x, beta), expected, rtol=1e-12, atol=1e-300)


def test_swish_leads_from_a_line_by_silu_to_relu(rng):
    x = 4 * rng.standard_normal(997)
    assert_array_equal(swish(x, 0), x / 2)
    assert_array_equal(swish(x), silu(x))
    assert_allclose(swish(x, 1000), relu(x), atol=3e-4)
    assert_allclose(swish(x, 3), silu(3 * x) / 3, rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_swish_overflows_nowhere(dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    y = swish(np.array([-largest, largest]).astype(dtype), 1000)
    assert y.dtype == dtype
    assert_array_equal(y.astype(np.float64), [0, largest])


@pytest.mark.parametrize("beta", [-0.1, 1001, np.nan, "1", None])
def test_swish_refuses_a_beta_out_of_range(beta):
    with pytest.raises(ValueError, match=r"^beta: got .* at least 0 and at most 1000"):
        swish(1.0, beta)


PAIRS = {
    relu_derivative: relu,
    sigmoid_derivative: sigmoid,
    silu_derivative: silu,
    gelu_derivative: gelu,
    gelu_tanh_derivative: gelu_tanh,
}
ALL_of_activations_derivatives = pytest.mark.parametrize("f", PAIRS)
SMOOTH = pytest.mark.parametrize("f", [f for f in PAIRS if f is not relu_derivative])


DEFINITIONS_of_activations_derivatives = {
    sigmoid_derivative: _mp_sigmoid,
    silu_derivative: lambda x: x * _mp_sigmoid(x),
    gelu_derivative: lambda x: x * mpmath.ncdf(x),
    gelu_tanh_derivative: lambda x: (
        x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)))
    ),
}


def by_mpmath(f, x):
    """Differentiate the definition numerically, with digits enough for 1 + tanh(z) to leave something."""
    with mpmath.workdps(420):
        return np.array(
            [float(mpmath.diff(DEFINITIONS_of_activations_derivatives[f], mpmath.mpf(float(v)))) for v in x]
        )


@SMOOTH
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_agrees_with_mpmath_to_the_last_digits_tails_included(f, dtype):
    limits = np.finfo(dtype)
    x = np.array([-700, -89, -81, -79, -37.5, -12, -9, -5, -2, -1, -1e-3, 0, 1e-30, 0.3, 1, 3, 40, 1e3], dtype)
    expected = by_mpmath(f, x)
    # An error of half a place in an exponent of size z is an error of z half-places in the result.
    exponent = np.maximum(1, -np.log(np.maximum(np.abs(expected), float(limits.tiny))))
    error = np.abs(f(x) - expected)
    assert (error <= 6 * limits.eps * exponent * np.abs(expected) + float(limits.tiny)).all(), error


@SMOOTH
def test_is_the_slope_of_its_function(f, rng):
    x, h = 3 * rng.standard_normal(997), 1e-5
    slope = (PAIRS[f](x + h) - PAIRS[f](x - h)) / (2 * h)
    assert_allclose(f(x), slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("beta", [0, 0.3, 1.702, 7.5, 1000])
def test_swish_derivative_is_the_slope_of_swish(beta):
    x = np.array([-700, -37.5, -3, -1, -1e-3, 0, 1e-30, 0.5, 3, 40, 1e3])
    with mpmath.workdps(420):
        expected = [float(mpmath.diff(lambda t: t / (1 + mpmath.exp(-mpmath.mpf(beta) * t)), mpmath.mpf(v))) for v in x]
    assert_allclose(swish_derivative(x, beta), expected, rtol=1e-12, atol=1e-300)
    assert_array_equal(swish_derivative([-1e300, 1e300], beta), [0.5, 0.5] if beta == 0 else [0, 1])
    if beta:
        assert_allclose(swish_derivative(x / beta, beta), silu_derivative(x), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("beta", [-0.1, 1001, np.nan, "1", None])
def test_swish_derivative_refuses_a_beta_out_of_range(beta):
    with pytest.raises(ValueError, match=r"^beta: got .* at least 0 and at most 1000"):
        swish_derivative(1.0, beta)


def test_relu_has_slope_0_or_1_and_0_at_0():
    assert_array_equal(relu_derivative([-1e300, -1e-300, -0.0, 0.0, 5e-324, 1.0, 1e300]), [0, 0, 0, 0, 1, 1, 1])


@pytest.mark.oracle
@ALL_of_activations_derivatives
def test_agrees_with_autograd(torch, f, rng):
    functional = torch.nn.functional
    by_name = {
        relu_derivative: functional.relu,
        sigmoid_derivative: torch.sigmoid,
        silu_derivative: functional.silu,
        gelu_derivative: functional.gelu,
        gelu_tanh_derivative: lambda t: functional.gelu(t, approximate="tanh"),
    }
    x = np.concatenate([[0.0, -0.0], 5 * rng.standard_normal(7001)])
    tx = torch.from_numpy(x).requires_grad_()
    by_name[f](tx).sum().backward()
    assert_allclose(f(x), tx.grad, rtol=1e-11, atol=1e-14)  # torch's 1 + tanh leaves that


@ALL_of_activations_derivatives
def test_laws_activations_derivatives(f, rng):
    x = 8 * rng.standard_normal(997)
    if f is sigmoid_derivative:  # an even function, σ(1 − σ)
        assert_array_equal(f(x), f(-x))
        assert_allclose(f(x), sigmoid(x) * (1 - sigmoid(x)), rtol=1e-12, atol=3e-16)
    else:  # x·s(x) with s(x) + s(−x) = 1
        assert_allclose(f(x) + f(-x), 1, rtol=1e-14)


def roots_and_peaks(f):
    """Find to about 1e-5, on the negative axis where the derivative changes sign and on the positive where it peaks."""
    x = np.arange(-300_000, 300_001) / 1e5
    y = f(x)
    (change,) = np.flatnonzero((y[1:] > 0) & (y[:-1] <= 0))
    return x[change + 1], x[y.argmax()], y.max()


def test_minima_and_steepest_slopes():
    # the argument where the slope is 0, where it is steepest, and how steep it is there
    assert_allclose(roots_and_peaks(silu_derivative), [-1.27846, 2.39936, 1.09984], atol=1.1e-5)
    assert_allclose(roots_and_peaks(gelu_derivative), [-0.75179, np.sqrt(2), 1.12890], atol=1.1e-5)
    root, _, peak = roots_and_peaks(gelu_tanh_derivative)
    assert root == pytest.approx(-0.75246, abs=1.1e-5)
    assert peak == pytest.approx(1.12899, abs=1.1e-5)
    assert sigmoid_derivative(0.0) == 0.25 == sigmoid_derivative(np.linspace(-9, 9, 1801)).max()


@ALL_of_activations_derivatives
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_extreme_arguments_neither_warn_nor_overflow_activations_derivatives(f, dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    y = f(np.array([-largest, -1000, 1000, largest]).astype(dtype))
    assert y.dtype == dtype
    assert_array_equal(y.astype(np.float64), [0, 0, 0, 0] if f is sigmoid_derivative else [0, 0, 1, 1])


@ALL_of_activations_derivatives
def test_shapes_layouts_and_scalars_activations_derivatives(f, rng, monkeypatch):
    x = rng.standard_normal((3, 5, 7))
    before, y = x.copy(), f(x)
    assert y.shape == x.shape
    assert_array_equal(x, before)
    assert_array_equal(f(np.asfortranarray(x)), y)
    assert_array_equal(f(x[:, ::-1])[:, ::-1], y)
    assert_allclose(f(x.astype(">f4")), y, rtol=1e-4, atol=1e-6)
    assert f(0.25).shape == ()
    assert f(0.25) == f([0.25])[0]
    assert f([1, 2]).dtype == np.float64
    monkeypatch.setattr(activations, "BLOCK_ENTRIES", 11)
    assert_allclose(f(x), y, rtol=1e-15)


def test_activations_offers_each_function_with_its_derivative():
    for derivative, function in (PAIRS | {swish_derivative: swish}).items():
        assert getattr(activations, f"{function.__name__}_derivative") is derivative
        assert {derivative.__name__, function.__name__} <= set(activations.__all__)


def test_the_minimum_of_silu_is_lamberts():
    w = float(mpmath.lambertw(1 / mpmath.e))
    assert swish_minimum() == pytest.approx((-1 - w, -w), abs=1e-16)
    assert swish_minimum() == pytest.approx((-1.2785, -0.2785), abs=5e-5)


@pytest.mark.parametrize("beta", [0.25, 1, 1.702, 9.0, 1000])
def test_the_minimum_of_swish_is_nowhere_undercut(beta):
    x, value = swish_minimum(beta)
    assert swish(x, beta) == pytest.approx(value, rel=1e-14)
    assert abs(silu_derivative(beta * x)) < 1e-15
    assert (swish(np.linspace(-20 / beta, 1, 10_001), beta) >= value).all()


@pytest.mark.parametrize("beta", [0, -1, 1001, None])
def test_swish_minimum_refuses_a_beta_without_one(beta):
    with pytest.raises(ValueError, match=r"^beta: got .* above 0 and at most 1000"):
        swish_minimum(beta)


def test_the_two_gelus_differ_most_at_2_699():
    x, value = largest_difference(gelu, gelu_tanh)
    assert x == pytest.approx(2.699, abs=5e-4)  # the difference is even: of the two places the right one counts
    assert value == pytest.approx(-4.73e-4, abs=5e-7)
    assert largest_difference(gelu_tanh, gelu).value == -value
    with mpmath.workdps(30):
        places = [mpmath.findroot(lambda t: mpmath.diff(_gap, t), 2.7)]
        assert x == pytest.approx(float(places[0]), abs=4e-5)
        assert value == pytest.approx(float(_gap(places[0])), rel=1e-9)


def _gap(t):
    tanh = mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (t + mpmath.mpf("0.044715") * t**3))
    return t * mpmath.ncdf(t) - t / 2 * (1 + tanh)


def test_swish_of_1_702_is_within_0_0204_of_gelu():
    x, value = largest_difference(gelu, lambda t: swish(t, 1.702))
    assert abs(value) == pytest.approx(0.0203, abs=5e-5)
    assert abs(x) == pytest.approx(2.27, abs=0.01)
    grid = np.linspace(-8, 8, 50_001)
    assert np.abs(gelu(grid) - swish(grid, 1.702)).max() == pytest.approx(abs(value), rel=1e-6)


def test_the_range_and_the_ends_count():
    assert largest_difference(relu, silu, low=-8, high=-3).x == -3
    x, value = largest_difference(lambda t: t, lambda t: 0 * t, low=-1, high=3)
    assert (x, value) == (3, 3)
    assert largest_difference(gelu_derivative, gelu_derivative).value == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"first": None}, "first: got None, want a function"),
        ({"second": "relu"}, "second: got 'relu', want a function"),
        ({"first": lambda x: x * np.nan}, "first's result: got nan"),
        ({"low": np.nan}, "low: got nan"),
        ({"low": -1e308, "high": 1e308}, "low: got -1e"),
        ({"low": 1.0, "high": 1.0}, "high: got 1.0, want a finite number above 1"),
    ],
)
def test_refuses_what_is_no_function_or_range(changed, message):
    with pytest.raises(ValueError, match=r"^" + message):
        largest_difference(**{"first": relu, "second": silu} | changed)


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
