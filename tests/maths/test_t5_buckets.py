"""T5's buckets: the released code, the formula in whole numbers, and golden values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths.t5_buckets import t5_bucket, t5_bucket_starts, t5_curve

SETTINGS = list(itertools.product((True, False), (4, 6, 16, 32, 64), (33, 64, 128, 131, 1000)))


def bucket_by_loop(offset, bidirectional, num_buckets, max_distance):
    """T5's formula for one relative position, its border cases settled by whole numbers."""
    n = num_buckets // 2 if bidirectional else num_buckets
    distance = abs(offset) if bidirectional else max(-offset, 0)
    exact = n // 2
    if distance < exact:
        bucket = distance
    else:
        # The largest k with ln(d/e) / ln(M/e) · (n − e) ≥ k, that is d^(n−e) e^k ≥ M^k e^(n−e).
        steps = n - exact
        k = 0
        while k < steps - 1 and distance**steps * exact ** (k + 1) >= max_distance ** (k + 1) * exact**steps:
            k += 1
        bucket = exact + k
    return bucket + (n if bidirectional and offset > 0 else 0)


@pytest.mark.parametrize(("bidirectional", "num_buckets", "max_distance"), SETTINGS)
def test_buckets_are_the_formula(bidirectional, num_buckets, max_distance):
    offsets = np.arange(-1100, 1100, 1 if num_buckets == 32 else 7)
    wanted = [bucket_by_loop(int(o), bidirectional, num_buckets, max_distance) for o in offsets]
    found = t5_bucket(offsets, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance)
    assert found.tolist() == wanted


def test_buckets_agree_with_transformers(transformers, torch):
    from transformers.models.t5.modeling_t5 import T5Attention

    offsets = np.arange(-2000, 2001)
    for bidirectional, num_buckets, max_distance in SETTINGS:
        wanted = T5Attention._relative_position_bucket(
            torch.tensor(offsets), bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance
        )
        found = t5_bucket(offsets, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance)
        assert np.array_equal(found, wanted.numpy()), (bidirectional, num_buckets, max_distance)


def test_golden_values_of_t5():
    """Both directions of 32 and 128, as the released code gives them."""
    offsets = [-200, -128, -91, -90, -64, -16, -12, -11, -8, -7, -1, 0, 1, 7, 8, 15, 16, 90, 91, 200]
    assert t5_bucket(offsets).tolist() == [
        15, 15, 15, 14, 14, 10, 9, 8, 8, 7, 1, 0, 17, 23, 24, 25, 26, 30, 31, 31,
    ]  # fmt: skip
    assert t5_bucket(offsets, bidirectional=False).tolist() == [
        31, 31, 29, 29, 26, 16, 12, 11, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]  # fmt: skip
    assert t5_bucket_starts(bidirectional=False).tolist() == [
        *range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113,
    ]  # fmt: skip


@pytest.mark.parametrize(("bidirectional", "exact"), [(True, 8), (False, 16)])
def test_half_of_a_directions_buckets_are_exact(bidirectional, exact):
    buckets = t5_bucket(-np.arange(400), bidirectional=bidirectional)
    assert buckets[:exact].tolist() == list(range(exact))
    assert (np.bincount(buckets)[:exact] == 1).all()
    assert (np.bincount(buckets)[exact + 1 :] > 1).all()
    assert len(set(buckets[128:].tolist())) == 1
    assert (np.diff(buckets) >= 0).all()


def test_one_of_the_bidirectional_buckets_is_never_used():
    used = set(t5_bucket(np.arange(-500, 501)).tolist())
    assert set(range(32)) - used == {16}
    assert set(t5_bucket(np.arange(-500, 501), bidirectional=False).tolist()) == set(range(32))


def test_buckets_of_far_and_unsigned_positions():
    extremes = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert t5_bucket(extremes).tolist() == [15, 31]
    assert t5_bucket(np.array([0, 2**64 - 1], dtype=np.uint64)).tolist() == [0, 31]
    assert t5_bucket(np.int8(-5)).tolist() == 5
    assert t5_bucket(np.zeros((2, 3, 5), dtype=int)).shape == (2, 3, 5)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(1, 500), st.booleans(), st.integers(-2000, 2000))
def test_buckets_are_the_rounded_curve_and_their_starts(half, more, bidirectional, offset):
    num_buckets = 2 * half
    max_distance = (half if bidirectional else num_buckets) // 2 + more
    sizes = {"bidirectional": bidirectional, "num_buckets": num_buckets, "max_distance": max_distance}
    starts = t5_bucket_starts(num_buckets, max_distance, bidirectional=bidirectional)
    bucket = int(t5_bucket(offset, **sizes)) % len(starts) if bidirectional else int(t5_bucket(offset, **sizes))
    distance = abs(offset) if bidirectional else max(-offset, 0)
    assert starts[bucket] <= distance
    assert bucket == len(starts) - 1 or distance < starts[bucket + 1]
    real = float(t5_curve(distance, **sizes))
    assert bucket == min(len(starts) - 1, math.floor(real + 1e-9))


def test_curve_is_the_logarithm(rng):
    distances = rng.uniform(0, 300, 101)
    wanted = [d if d < 8 else 8 + math.log(d / 8) / math.log(128 / 8) * 8 for d in distances]
    np.testing.assert_allclose(t5_curve(distances), wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t5_bucket([0.5]), "relative_position: got an array of float64, want integers"),
        (lambda: t5_bucket([True]), "relative_position: got an array of bool"),
        (lambda: t5_bucket([1], num_buckets=31), "num_buckets: got 31, want .* even"),
        (lambda: t5_bucket([1], num_buckets=2), "num_buckets: got 2"),
        (lambda: t5_bucket([1], num_buckets=1, bidirectional=False), "num_buckets: got 1"),
        (lambda: t5_bucket([1], max_distance=8), "max_distance: got 8, want an integer of at least 9"),
        (lambda: t5_bucket([1], max_distance=16, bidirectional=False), "max_distance: got 16"),
        (lambda: t5_bucket([1], bidirectional=1), "bidirectional: got 1, want True or False"),
        (lambda: t5_bucket_starts(32, 128.0), "max_distance: got 128.0"),
        (lambda: t5_curve([-1.0]), "distance: got -1.0"),
        (lambda: t5_curve([np.nan]), "distance: got nan"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
