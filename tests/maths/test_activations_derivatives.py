"""Derivatives of the activations: mpmath, torch's autograd and central differences, tails, extremes, bad input."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import activations, elementwise
from transformer_parts.maths.activations import (
    gelu,
    gelu_derivative,
    gelu_tanh,
    gelu_tanh_derivative,
    relu,
    relu_derivative,
    sigmoid,
    sigmoid_derivative,
    silu,
    silu_derivative,
    swish,
    swish_derivative,
)

PAIRS = {
    relu_derivative: relu,
    sigmoid_derivative: sigmoid,
    silu_derivative: silu,
    gelu_derivative: gelu,
    gelu_tanh_derivative: gelu_tanh,
}
ALL = pytest.mark.parametrize("f", PAIRS)
SMOOTH = pytest.mark.parametrize("f", [f for f in PAIRS if f is not relu_derivative])


def _mp_sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


DEFINITIONS = {
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
        return np.array([float(mpmath.diff(DEFINITIONS[f], mpmath.mpf(float(v)))) for v in x])


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
@ALL
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


@ALL
def test_laws(f, rng):
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


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_extreme_arguments_neither_warn_nor_overflow(f, dtype):
    largest = float(ml_dtypes.finfo(dtype).max)
    y = f(np.array([-largest, -1000, 1000, largest]).astype(dtype))
    assert y.dtype == dtype
    assert_array_equal(y.astype(np.float64), [0, 0, 0, 0] if f is sigmoid_derivative else [0, 0, 1, 1])


@ALL
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_are_computed_in_float32_and_rounded_once(f, dtype, rng):
    x = (4 * rng.standard_normal((3, 5, 7))).astype(dtype)
    assert_array_equal(f(x), f(x.astype(np.float32)).astype(dtype))


@ALL
def test_shapes_layouts_and_scalars(f, rng, monkeypatch):
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
    monkeypatch.setattr(elementwise, "BLOCK_ENTRIES", 11)
    assert_allclose(f(x), y, rtol=1e-15)


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


def test_activations_offers_each_function_with_its_derivative():
    for derivative, function in (PAIRS | {swish_derivative: swish}).items():
        assert getattr(activations, f"{function.__name__}_derivative") is derivative
        assert {derivative.__name__, function.__name__} <= set(activations.__all__)
