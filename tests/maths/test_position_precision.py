"""What positions, frequencies and angles lose in 16 bits."""

import ml_dtypes
import numpy as np
import pytest

from transformer_parts.maths import rope
from transformer_parts.maths.position_precision import angle_errors, rounded_angles

FREQUENCIES = rope.inv_freq(128)
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}


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
