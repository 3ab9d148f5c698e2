"""RMSNorm in 16 bits: the published code, and what a narrow format does to the statistics."""

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.norms import rms_norm
from transformer_parts.maths.norms_precision import (
    mean_square_in,
    rms_norm_cast_first,
    rms_norm_cast_last,
    rms_norm_in,
)
from transformer_parts.maths.precision import round_to, spacing

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
def test_bad_arguments_are_named(cast, arguments, message):
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
