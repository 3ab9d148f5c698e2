"""Formats: rounding and spacing against NumPy's and ml_dtypes' own casts, and the positions bfloat16 confuses."""

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from transformer_parts.maths import rope
from transformer_parts.maths.precision import FORMATS, angle_errors, round_to, rounded_angles, spacing

NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}
EACH = pytest.mark.parametrize("dtype", FORMATS)


@EACH
def test_every_float32_of_a_wide_sample_is_rounded_as_by_a_cast(dtype, rng):
    x = rng.integers(0, 2**32, 200_003, dtype=np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        expected = x.astype(NUMPY[dtype]).astype(np.float32)
    y = round_to(x, dtype)
    assert y.dtype == np.float32
    assert_array_equal(y.view(np.uint32), expected.view(np.uint32))  # the sign of zero included


@EACH
@given(st.floats(allow_nan=False))
def test_float64_is_rounded_in_one_step_and_stays_float64(dtype, x):
    y = round_to([x], dtype)
    assert y.dtype == np.float64
    if dtype == "bfloat16":
        if 2.0**-126 <= abs(x) < 2.0**127:
            with mpmath.workprec(8):
                assert y[0] == float(+mpmath.mpf(x))
    else:
        with np.errstate(over="ignore"):
            assert_array_equal(y, np.array([x]).astype(NUMPY[dtype]).astype(np.float64))


def test_bfloat16_is_not_rounded_twice():
    x = 1 + 2**-8 + 2**-40  # just above the middle of 1 and 1 + 2⁻⁷, but exactly on it in float32
    assert round_to(x, "bfloat16") == 1 + 2**-7
    assert np.float32(x) == 1 + 2**-8
    assert round_to(1 + 2**-8, "bfloat16") == 1  # a tie goes to the even value
    assert round_to(1 + 3 * 2**-8, "bfloat16") == 1 + 2**-6


@EACH
def test_the_ends_of_the_range(dtype):
    limits = ml_dtypes.finfo(NUMPY[dtype])
    largest, tiny, subnormal = (float(v) for v in (limits.max, limits.tiny, limits.smallest_subnormal))
    ulp = float(spacing(largest, dtype))
    ends = [largest, largest + 0.49 * ulp, largest + 0.5 * ulp, tiny, subnormal, 0.51 * subnormal, 0.5 * subnormal]
    assert_array_equal(round_to(ends, dtype), [largest, largest, np.inf, tiny, subnormal, subnormal, 0])
    assert_array_equal(round_to([np.inf, -np.inf, -1.8e308 / 1.01], dtype), [np.inf, -np.inf, -np.inf])
    assert_array_equal(round_to(np.finfo(np.float64).max, dtype), np.inf)
    assert_array_equal(spacing([tiny, 0, subnormal], dtype), [subnormal] * 3)


@EACH
def test_spacing_is_the_distance_to_the_next_value(dtype, rng):
    kind = NUMPY[dtype]
    exponents = ml_dtypes.finfo(kind)
    x = (2.0 ** rng.uniform(exponents.minexp + 1, exponents.maxexp - 1, 997)).astype(kind)
    bits = np.uint32 if dtype == "float32" else np.uint16
    following = (x.view(bits) + bits(1)).view(kind)
    assert_array_equal(spacing(x, dtype), following.astype(np.float64) - x.astype(np.float64))
    assert_array_equal(spacing(-x, dtype), spacing(x, dtype))


def test_positions():
    positions = np.arange(4096)
    assert round_to(256, "bfloat16") == round_to(257, "bfloat16") == 256
    assert len(np.unique(round_to(positions, "bfloat16"))) == 769
    assert_array_equal(round_to(np.arange(2049), "float16"), np.arange(2049))
    assert round_to(2049, "float16") == 2048
    assert_array_equal(spacing([255, 256, 4095], "bfloat16"), [1, 2, 16])
    assert spacing(2048, "float16") == 2


@EACH
def test_rounding_again_changes_nothing(dtype, rng):
    x = round_to(rng.standard_normal((3, 5, 7)), dtype)
    assert x.shape == (3, 5, 7)
    assert_array_equal(round_to(x, dtype), x)
    assert_array_equal(round_to(-x, dtype), -x)
    assert round_to(np.float16(0.1), dtype).dtype == np.float32
    assert round_to(ml_dtypes.bfloat16(0.1), dtype).dtype == np.float32
    assert round_to(3, dtype).shape == ()


@pytest.mark.parametrize("function", [round_to, spacing])
def test_bad_input(function):
    with pytest.raises(ValueError, match=r"^dtype: got 'float8', want one of 'bfloat16', 'float16', 'float32'"):
        function(1.0, "float8")
    with pytest.raises(ValueError, match=r"^dtype: got None"):
        function(1.0, None)
    with pytest.raises(ValueError, match=r"^x: got nan at index \(1,\)"):
        function([1.0, np.nan], "float16")
    with pytest.raises(ValueError, match=r"^x: got"):
        function("a", "float16")


def test_spacing_beyond_the_range():
    with pytest.raises(ValueError, match=r"^x: got 65536, want numbers within float16"):
        spacing([1.0, -65536.0], "float16")
    with pytest.raises(ValueError, match=r"^x: got inf at index"):
        spacing(np.inf, "bfloat16")


FREQUENCIES = rope.inv_freq(128)


@pytest.mark.parametrize("dtype", NUMPY)
def test_is_the_cast_of_the_part(dtype, rng):
    positions, frequencies = rng.integers(0, 4096, (3, 5)), FREQUENCIES.astype(np.float32)

    def cast(x):  # from float32, whose cast rounds once
        return x.astype(np.float32).astype(NUMPY[dtype]).astype(np.float64)

    for rounded, wanted in (
        ("positions", cast(positions)[..., None] * frequencies.astype(np.float64)),
        ("frequencies", positions[..., None] * cast(frequencies)),
    ):
        np.testing.assert_array_equal(rounded_angles(positions, frequencies, dtype, rounded=rounded), wanted)
    exact = np.array([256.0, 3.0]) * 0.5
    np.testing.assert_array_equal(rounded_angles([256, 3], [0.5], dtype, rounded="angles")[:, 0], exact)


def test_positions_that_bfloat16_cannot_tell_apart():
    angles = rounded_angles(np.arange(4096), [1.0], "bfloat16")[:, 0]
    assert angles[256] == angles[257]
    assert len(np.unique(angles)) == 769
    assert np.abs(angles - np.arange(4096)).max() == 8
    half = rounded_angles(np.arange(2050), [1.0], "float16")[:, 0]
    np.testing.assert_array_equal(half[:2049], np.arange(2049))
    assert half[2049] == 2048


def test_neighbours_at_one_position_score_as_at_offset_0():
    """Fault: positions built in bfloat16.  A query at 257 and a key at 256 are turned alike."""
    x = np.tile([1.0, 0.0], 64)
    angles = rounded_angles([256, 257], FREQUENCIES, "bfloat16")
    assert np.cos(angles[1] - angles[0]).sum() == 64
    assert rope.scores_by_offset(x, x, [1], scale=1.0)[0] < 64 - 1


def test_bfloat16_frequencies_are_off_by_radians():
    errors = angle_errors([4095], FREQUENCIES, "bfloat16", rounded="frequencies")[0]
    angles = rounded_angles([4095], FREQUENCIES, "bfloat16", rounded="frequencies")[0]
    np.testing.assert_array_equal(errors, np.abs(angles - 4095 * FREQUENCIES))
    assert errors.max() == pytest.approx(5.0089, abs=5e-5)
    assert errors.argmax() == 1
    assert (errors > 1).sum() == 7
    assert errors[0] == 0


def test_bfloat16_angles_are_off_by_radians_and_float32_ones_are_not():
    exact = 4095 * FREQUENCIES
    assert np.abs(rounded_angles([4095], FREQUENCIES, "bfloat16", rounded="angles") - exact).max() > 5
    for rounded in ("positions", "frequencies", "angles"):
        assert np.abs(rounded_angles([4095], FREQUENCIES, "float32", rounded=rounded) - exact).max() < 3e-4


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rounded_angles([np.nan], [1.0], "bfloat16"), "positions"),
        (lambda: rounded_angles([70000], [1.0], "float16"), "positions"),
        (lambda: rounded_angles([70000], [1.0], "float16", rounded="angles"), "angles"),
        (lambda: rounded_angles([1], [[1.0]], "bfloat16"), "inv_freq"),
        (lambda: rounded_angles([1], [1.0], "float64"), "dtype"),
        (lambda: rounded_angles([1], [1.0], "bfloat16", rounded="both"), "rounded"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        call()
