"""RMSNorm and LayerNorm: independent answers, laws, every scale a float can have, and bad input."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import norms
from transformer_parts.maths.norms import layer_norm, rms_norm

NORMS = pytest.mark.parametrize("norm", [rms_norm, layer_norm])
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])


def by_the_formula(x, eps, *, center, weight=None, bias=None):
    """Evaluate the definition for one row with 700 digits."""
    with mpmath.workdps(700):
        row = [mpmath.mpf(float(v)) for v in x]
        if center:
            mean = mpmath.fsum(row) / len(row)
            row = [v - mean for v in row]
        root = mpmath.sqrt(mpmath.fsum(v * v for v in row) / len(row) + mpmath.mpf(eps))
        out = [v / root for v in row]
        if weight is not None:
            out = [v * mpmath.mpf(float(w)) for v, w in zip(out, weight, strict=True)]
        if bias is not None:
            out = [v + mpmath.mpf(float(b)) for v, b in zip(out, bias, strict=True)]
        return np.array([float(v) for v in out])


# --- oracles


def test_rms_norm_agrees_with_the_onnx_cases_over_the_last_axis(onnx_cases):
    cases = [c for c in onnx_cases("rmsnormalization") if c.inputs[1].ndim == 1]
    assert len(cases) == 7
    for case in cases:
        y = rms_norm(*case.inputs, eps=case.attributes.get("epsilon", 1e-5))
        assert_allclose(y, case.outputs[0], rtol=1e-6, atol=1e-6, err_msg=case.name)


def test_layer_norm_agrees_with_the_onnx_cases_over_the_last_axis(onnx_cases):
    cases = [c for c in onnx_cases("layernormalization") if c.inputs[1].ndim == 1]
    assert len(cases) == 7
    for case in cases:
        y = layer_norm(*case.inputs, eps=case.attributes.get("epsilon", 1e-5))
        assert_allclose(y, case.outputs[0], rtol=1e-6, atol=1e-6, err_msg=case.name)


@pytest.mark.oracle
@pytest.mark.parametrize("shape", [(577, 131), (3, 5, 4099), (7,)])
def test_both_agree_with_torch(torch, rng, shape):
    x = 3 * rng.standard_normal(shape) + 2
    weight, bias = rng.standard_normal((2, shape[-1]))
    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 1e-5)):
        args = [a.astype(dtype) for a in (x, weight, bias)]
        tx, tw, tb = map(torch.from_numpy, args)
        expected = torch.nn.functional.rms_norm(tx, shape[-1:], tw, 1e-6).numpy()
        assert_allclose(rms_norm(args[0], args[1]), expected, rtol=tolerance, atol=tolerance)
        expected = torch.nn.functional.layer_norm(tx, shape[-1:], tw, tb, 1e-5).numpy()
        assert_allclose(layer_norm(*args), expected, rtol=tolerance, atol=tolerance)


@given(
    row=st.lists(st.floats(-1, 1), min_size=1, max_size=11),
    exponent=st.integers(-1074, 1023),
    log_eps=st.floats(-322, 3),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rms_norm_is_right_at_every_scale(row, exponent, log_eps, dtype):
    with np.errstate(over="ignore"):
        x = np.clip(np.ldexp(row, exponent).astype(dtype), np.finfo(dtype).min, np.finfo(dtype).max)
    eps = float(f"1e{log_eps:.0f}")
    expected = by_the_formula(x, eps, center=False)
    limits = np.finfo(dtype)
    assert_allclose(rms_norm(x, eps=eps), expected, rtol=8 * limits.eps, atol=2 * float(limits.smallest_subnormal))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [False, True])
def test_rows_of_every_scale_side_by_side(dtype, center):
    rng = np.random.default_rng(5)
    reach = int(np.log10(np.finfo(dtype).max))
    x = (rng.standard_normal((101, 7)) * 10.0 ** rng.uniform(-reach, reach - 1, (101, 1))).astype(dtype)
    weight, bias = rng.standard_normal((2, 7)).astype(dtype)
    for eps in (1e-5, 1e-300):
        y = layer_norm(x, weight, bias, eps) if center else rms_norm(x, weight, eps)
        expected = [by_the_formula(row, eps, center=center, weight=weight, bias=bias if center else None) for row in x]
        assert_allclose(y, expected, rtol=30 * np.finfo(dtype).eps, atol=30 * np.finfo(dtype).eps)


def test_a_large_mean_does_not_drown_the_spread():
    x = 1e8 + np.array([0.0, 1.0, 2.0, 4.0]) * 2**-20
    assert_allclose(layer_norm(x, eps=1e-30), by_the_formula(x, 1e-30, center=True), rtol=1e-14)


# --- numbers on paper


def test_the_hand_calculations():
    assert_allclose(rms_norm([1.0, 3.0], eps=1e-300), [0.447214, 1.341641], atol=5e-7)
    assert_allclose(rms_norm([2.0, 4.0], eps=1e-300), np.array([2, 4]) / np.sqrt(10), rtol=1e-15)
    assert_array_equal(layer_norm([1.0, 3.0], eps=1e-300), [-1, 1])
    assert_array_equal(layer_norm([2.0, 4.0], eps=1e-300), [-1, 1])
    assert_allclose(layer_norm([1.0, 0.0, 0.0, 0.0], eps=1e-300)[0], 3**0.5, rtol=1e-15)  # 1.5 with 1/(D-1)


@pytest.mark.parametrize(("eps", "rms"), [(1e-5, 0.3015), (1e-6, 0.7071), (1e-8, 0.9950)])
def test_epsilon_shrinks_small_inputs(eps, rms):
    x = 1e-3 * np.array([1.0, -1.0, 1.0, -1.0])
    for norm in (rms_norm, layer_norm):
        assert np.sqrt(np.mean(norm(x, eps=eps) ** 2)) == pytest.approx(rms, abs=5e-5)


# --- laws


def test_scale_invariance_is_exact_in_the_limit_of_epsilon_alone(rng):
    x = rng.standard_normal((5, 13))
    for norm in (rms_norm, layer_norm):
        assert_allclose(norm(1e-3 * x, eps=1e-300), norm(x, eps=1e-300), rtol=1e-12)
        assert np.abs(norm(1e-3 * x, eps=1e-6) - norm(x, eps=1e-6)).max() > 0.1
        assert_allclose(norm(-7 * x, eps=1e-300), -norm(x, eps=1e-300), rtol=1e-12)
        # Scaling x by c is scaling ε by 1/c².
        assert_allclose(norm(1e-3 * x, eps=1e-6), norm(x, eps=1.0), rtol=1e-12)


def test_shift_invariance_is_layer_norms_alone(rng):
    x = rng.standard_normal((5, 13))
    assert_allclose(layer_norm(x + 3), layer_norm(x), rtol=1e-10)
    assert np.abs(rms_norm(x + 3) - rms_norm(x)).max() > 0.5


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=11), st.sampled_from([1e-300, 1e-5, 1.0]))
def test_layer_norm_is_rms_norm_of_the_centered_row(row, eps):
    x = np.array(row) * 2.0**-10
    centered = x - x.mean()
    if np.abs(centered).max() > 1e-6 * np.abs(x).max():
        assert_allclose(layer_norm(x, eps=eps), rms_norm(centered, eps=eps), rtol=1e-7, atol=1e-7)


def test_normalised_rows_have_their_moments(rng):
    x = 100 + 5 * rng.standard_normal((11, 997))
    y = layer_norm(x, eps=1e-300)
    assert_allclose(y.mean(-1), 0, atol=1e-13)
    assert_allclose((y * y).mean(-1), 1, rtol=1e-13)
    assert_allclose((rms_norm(x, eps=1e-300) ** 2).mean(-1), 1, rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, 5.0, 0.1, -1000.1, 1e-25, 3e38])
@pytest.mark.parametrize("eps", [1e-5, 1e-300, 1e300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_equal_entries_give_the_bias_exactly(value, eps, dtype):
    for size in (1, 7, 4099, 200_003):
        x = np.full((2, size), value).astype(dtype)
        bias = np.linspace(-1, 1, size).astype(dtype)
        assert_array_equal(layer_norm(x, bias=bias, eps=eps), np.stack([bias, bias]))
    if value == 0:
        assert_array_equal(rms_norm(x, eps=eps), x)


# --- dtypes and layouts


@NORMS
@DTYPES
def test_the_dtype_is_kept_and_16_bits_are_rounded_once(norm, dtype, rng):
    x, weight = rng.standard_normal((3, 5, 17)).astype(dtype), rng.standard_normal(17).astype(dtype)
    y = norm(x, weight)
    assert y.dtype == dtype
    assert y.shape == x.shape
    wide = np.float64 if dtype is np.float64 else np.float32
    assert_array_equal(y, norm(x.astype(wide), weight.astype(wide)).astype(dtype))


@NORMS
def test_float16_does_not_overflow_where_its_squares_would(norm):
    x = np.array([300.0, -60000.0, 60000.0, 1.0], np.float16)
    assert_allclose(norm(x), norm(x.astype(np.float64)), rtol=1e-3, atol=2**-24)


@NORMS
def test_integers_become_float64(norm):
    y = norm([[1, 2, 4]])
    assert y.dtype == np.float64
    assert_array_equal(y, norm([[1.0, 2.0, 4.0]]))


@NORMS
def test_layout_byte_order_and_leading_axes_do_not_matter(norm, rng):
    x = rng.standard_normal((2, 3, 5, 7))
    expected = np.array([norm(row) for row in x.reshape(-1, 7)]).reshape(x.shape)
    for variant in (
        x,
        np.asfortranarray(x),
        np.repeat(x, 2, axis=-1)[..., ::2],
        x[::-1, :, ::-1][::-1, :, ::-1],
        x.astype(">f8"),
    ):
        before = variant.copy()
        assert_allclose(norm(variant), expected, rtol=1e-14, atol=1e-15)
        assert_array_equal(variant, before)
    frozen = x.copy()
    frozen.flags.writeable = False
    assert_array_equal(norm(frozen), norm(x))
    broadcast = np.broadcast_to(x[0, 0, 0], (3, 7))
    assert_array_equal(norm(broadcast)[2], norm(x[0, 0, 0]))


@NORMS
def test_blocks_do_not_show(norm, rng, monkeypatch):
    x, weight = rng.standard_normal((211, 31)), rng.standard_normal(31)
    whole = norm(x, weight)
    for entries in (1, 31 * 8 * 2, 31 * 8 * 105):
        monkeypatch.setattr(norms, "BLOCK_BYTES", entries)
        assert_array_equal(norm(x, weight), whole)
    assert_array_equal(norm(x[101], weight), whole[101])  # nor do the rows beside it
    half = x.astype(np.float16)
    assert_array_equal(norm(half, weight), norm(half.astype(np.float32), weight).astype(np.float16))


# --- bad input


@NORMS
@DTYPES
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_non_finite_entry_is_found_wherever_it_is(norm, dtype, bad):
    for place in ((0, 0, 0), (4, 12, 100), (2, 7, 53)):
        x = np.ones((5, 13, 101)).astype(dtype)
        x[place] = bad
        where = ", ".join(map(str, place))
        with pytest.raises(ValueError, match=rf"^x: got .*at index \({where}\) \(1 such in all\)"):
            norm(x)


@NORMS
def test_a_non_finite_entry_is_found_among_overflowing_rows(norm):
    x = np.full((3, 5), 1e30, np.float32)
    x[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"^x: got .*index \(2, 1\)"):
        norm(x)


@NORMS
@pytest.mark.parametrize("eps", [0, 0.0, -1e-6, np.nan, np.inf, "1e-6", True, None])
def test_epsilon_must_be_above_zero(norm, eps):
    with pytest.raises(ValueError, match=r"^eps: got .* want a finite number above 0"):
        norm([1.0, 2.0], eps=eps)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rms_norm(np.ones((2, 3)), np.ones(2)), r"weight: got shape \(2,\), want shape \(3,\)"),
        (lambda: rms_norm(np.ones((2, 3)), np.ones((1, 3))), r"weight: got shape \(1, 3\), want shape \(3,\)"),
        (lambda: rms_norm(np.ones(3), 2.0), "weight: .* want at least 1 axis"),
        (lambda: rms_norm(np.ones(3), [1, np.nan, 1]), r"weight: got nan at index \(1,\)"),
        (
            lambda: rms_norm(np.ones(3, np.float32), [1, 1e300, 1]),
            "weight: got 1e.300, want numbers within float32",
        ),
        (lambda: layer_norm(np.ones(3), bias=np.ones(5)), r"bias: got shape \(5,\), want shape \(3,\)"),
        (lambda: layer_norm(np.ones(3), bias=[0, 0, np.inf]), r"bias: got inf at index \(2,\)"),
        (lambda: rms_norm(1.0), r"x: got shape \(\), want at least 1 axis"),
        (lambda: rms_norm(np.empty((2, 0))), r"x: got shape \(2, 0\), want no empty axis"),
        (lambda: layer_norm([1j, 2]), "x: got an array of complex128, want real numbers"),
        (lambda: layer_norm([[1, 2], [3]]), "x: got a list, want an array whose rows have one length"),
        (lambda: layer_norm("abc"), "x: got an array of <U3, want real numbers"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match="^" + message):
        call()
