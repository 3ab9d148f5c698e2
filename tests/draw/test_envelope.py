"""Envelopes: every value counts, in the column where it stands."""

import numpy as np
import pytest

from transformer_parts.draw.envelope import envelope, window_of


@pytest.mark.parametrize("count", [1, 5, 129, 340, 341, 8193, 262_145])
def test_window_is_the_smallest_that_fits(count):
    window = window_of(count, 340)
    assert -(-count // window) <= 340
    assert window == 1 or -(-count // (window - 1)) > 340


@pytest.mark.parametrize("window", [1, 2, 7, 101])
def test_columns_hold_what_a_loop_puts_there(rng, window):
    values = rng.normal(size=101)
    got = envelope(-50, values, window)
    columns = [values[start : start + window] for start in range(0, 101, window)]
    assert got.lowest.tolist() == [column.min() for column in columns]
    assert got.highest.tolist() == [column.max() for column in columns]
    np.testing.assert_allclose(got.mean, [column.mean() for column in columns], rtol=1e-13)
    assert got.middles[0] == -50 + (window - 1) / 2
    assert set(np.diff(got.middles)) <= {float(window)}


def test_one_value_among_many_is_not_lost():
    values = np.zeros(262_145)
    values[200_003] = -9.0
    got = envelope(-131_072, values, 772)
    assert got.lowest.min() == -9.0
    assert abs(got.middles[got.lowest.argmin()] - (200_003 - 131_072)) <= 772 / 2
