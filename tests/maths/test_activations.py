"""Activations: independent answers, precision in the tails, published extremes, and bad input."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import elementwise
from transformer_parts.maths.activations import gelu, gelu_tanh, relu, sigmoid, silu, swish

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
    monkeypatch.setattr(elementwise, "BLOCK_ENTRIES", 11)
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
