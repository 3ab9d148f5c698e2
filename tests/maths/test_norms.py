"""RMSNorm and LayerNorm: independent answers, laws, every scale a float can have, and bad input."""

import statistics
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import norms
from transformer_parts.maths.norms import (
    angle,
    center,
    layer_norm,
    mean_square_in,
    moments,
    rms_norm,
    rms_norm_cast_first,
    rms_norm_cast_last,
    rms_norm_in,
)
from transformer_parts.maths.precision import round_to, spacing

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


NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
EACH = pytest.mark.parametrize("dtype", NUMPY)


@pytest.fixture
def layer(rng):
    """A residual stream and a gain whose offset from 1 is exact in bfloat16."""
    x = round_to(3 * rng.standard_normal((101, 577)), "bfloat16")
    return x, round_to(rng.uniform(0.5, 2, 577), "bfloat16")


@EACH
def test_the_two_orders_step_by_step(layer, dtype):
    x, gain = (v.astype(NUMPY[dtype]) for v in layer)
    wide = x.astype(np.float32)
    normed = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + np.float32(1e-6))
    first = normed.astype(NUMPY[dtype]) * gain  # two numbers of the format: the product is rounded to it
    last = (normed * gain.astype(np.float32)).astype(NUMPY[dtype])
    for ours, theirs in (
        (rms_norm_cast_first(*layer, dtype=dtype), first),
        (rms_norm_cast_last(layer[0], layer[1] - 1, dtype=dtype), last),
    ):
        assert ours.dtype == np.float32
        theirs = theirs.astype(np.float32)
        # x·(1/r) and x/r differ by a unit of float32, which seldom tips a rounding
        assert np.mean(ours != theirs) < 2e-3
        assert (np.abs(ours - theirs) <= 2 * spacing(theirs, dtype)).all()


@pytest.mark.oracle
@EACH
def test_agrees_with_transformers(torch, transformers, layer, dtype):
    x, gain = layer
    models, kind = transformers.models, getattr(torch, dtype)
    llama = models.llama.modeling_llama.LlamaRMSNorm(577, eps=1e-6)
    gemma = models.gemma.modeling_gemma.GemmaRMSNorm(577, eps=1e-6)
    for module, weight, ours in ((llama, gain, rms_norm_cast_first), (gemma, gain - 1, rms_norm_cast_last)):
        module.weight.data = torch.from_numpy(weight.astype(np.float32)).to(kind)
        with torch.no_grad():
            theirs = module(torch.from_numpy(x.astype(np.float32)).to(kind)).float().numpy()
        y = ours(x, weight, dtype=dtype)
        assert np.mean(y != theirs) < 2e-3
        assert (np.abs(y - theirs) <= 2 * spacing(theirs, dtype)).all()


@EACH
def test_the_orders_differ_and_the_last_is_nearer(layer, dtype):
    x, gain = layer
    exact = rms_norm(x, gain)
    first, last = rms_norm_cast_first(x, gain, dtype=dtype), rms_norm_cast_last(x, gain - 1, dtype=dtype)
    assert 0.1 < np.mean(first != last) < 0.9
    assert (np.abs(last - exact) <= 0.501 * spacing(exact, dtype)).all()
    assert np.abs(first - exact).mean() > 1.2 * np.abs(last - exact).mean()


def test_a_weight_near_zero_is_finer_than_a_gain_near_one():
    offset = 0.001  # between two gains of bfloat16, but nearly itself as an offset
    assert rms_norm_cast_first([1.0, 1.0], [1 + offset] * 2)[0] == 1
    assert round_to(1 + offset, "bfloat16") == 1
    assert abs(round_to(offset, "bfloat16") - offset) < 3e-6


def test_squares_of_300_overflow_float16_alone():
    x = np.array([300.0, -300.0, 300.0])
    assert mean_square_in(x, "float16") == np.inf
    assert mean_square_in(x, "float16", accumulator="float32") == np.inf
    assert_array_equal(rms_norm_in(x, "float16"), [0, 0, 0])
    assert_array_equal(rms_norm_in(x, "bfloat16"), [1, -1, 1])
    assert_array_equal(rms_norm(x.astype(np.float16)), [1, -1, 1])  # statistics in float32
    assert mean_square_in([255.0], "float16") == 65024
    assert mean_square_in([256.0], "float16") == np.inf


def test_a_sum_in_bfloat16_stops_growing():
    ones = np.ones(4096)
    assert mean_square_in(ones, "bfloat16") == 256 / 4096
    assert mean_square_in(ones, "bfloat16", accumulator="float32") == 1
    assert mean_square_in(ones, "float32") == 1
    assert mean_square_in(ones, "float16") == 2048 / 4096
    assert_array_equal(rms_norm_in(ones, "bfloat16"), 4 * ones)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("accumulator", [None, "float32"])
def test_every_step_is_rounded(dtype, accumulator, rng):
    x, eps = rng.standard_normal((2, 3, 53)), 1e-3
    y, mean_square = (
        rms_norm_in(x, dtype, eps, accumulator=accumulator),
        mean_square_in(x, dtype, accumulator=accumulator),
    )
    for place in np.ndindex(2, 3):
        row, total = round_to(x[place], dtype), 0.0
        for v in row:
            total = round_to(total + round_to(v * v, dtype), accumulator or dtype)
        mean = round_to(total / 53, dtype)
        assert mean_square[place] == mean
        root = round_to(np.sqrt(round_to(mean + round_to(eps, dtype), dtype)), dtype)
        assert_array_equal(y[place], round_to(row / root, dtype))


def test_an_epsilon_that_vanishes_leaves_nothing_to_divide_by():
    assert np.isnan(rms_norm_in([0.0, 0.0], "float16", 1e-8)).all()
    assert_array_equal(rms_norm_in([0.0, 0.0], "float16", 1e-6), [0, 0])
    assert_array_equal(rms_norm_in([0.0, 0.0], "bfloat16", 1e-8), [0, 0])
    assert_array_equal(rms_norm(np.zeros(2, np.float16), eps=1e-8), [0, 0])


def test_the_float32_format_is_plain_rms_norm(layer):
    x, gain = layer
    expected = rms_norm(x, gain)
    for y in (rms_norm_cast_first(x, gain, dtype="float32"), rms_norm_cast_last(x, gain - 1, dtype="float32")):
        assert_allclose(y, expected, rtol=1e-6)
    assert_allclose(rms_norm_in(x, "float32"), rms_norm(x), rtol=1e-5)


@pytest.mark.parametrize("cast", [rms_norm_cast_first, rms_norm_cast_last])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0], 1e-6), r"weight: got shape \(1,\), want shape \(2,\)"),
        (([1.0, np.nan], [1.0, 1.0], 1e-6), "x: got nan at index"),
        (([1.0, 2.0], [1.0, np.inf], 1e-6), "weight: got inf at index"),
        (([1.0, 2.0], [1.0, 1.0], 0), "eps: got 0.0, want a finite number above 0"),
        ((1.0, [1.0], 1e-6), "x: .* at least 1 axis"),
    ],
)
def test_bad_arguments_are_named_norms_precision(cast, arguments, message):
    with pytest.raises(ValueError, match=r"^" + message):
        cast(*arguments)


def test_bad_formats_and_ranges_are_named():
    for function in (mean_square_in, rms_norm_in):
        with pytest.raises(ValueError, match=r"^dtype: got 'int8'"):
            function([1.0], "int8")
        with pytest.raises(ValueError, match=r"^accumulator: got 'int8'"):
            function([1.0], "float16", accumulator="int8")
        with pytest.raises(ValueError, match=r"^x: got entries too large for float16"):
            function([70000.0], "float16")
        with pytest.raises(ValueError, match=r"^x: .* at least 1 axis"):
            function(1.0, "float16")
    with pytest.raises(ValueError, match=r"^eps: got -1.0"):
        rms_norm_in([1.0], "float16", -1)
    with pytest.raises(ValueError, match=r"^weight: got entries too large for float16"):
        rms_norm_cast_first([1.0], [1e5], dtype="float16")
    with pytest.raises(ValueError, match=r"^dtype: got 'int8'"):
        rms_norm_cast_last([1.0], [1.0], dtype="int8")
