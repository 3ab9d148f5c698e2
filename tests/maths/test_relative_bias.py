"""T5's bias and ALiBi's: the released codes, the formulas number by number, and what a bias may depend on."""

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths import relative_bias
from transformer_parts.maths.attention import attention_weights
from transformer_parts.maths.relative_bias import (
    alibi_bias,
    alibi_slopes,
    half_distance,
    power_of_two_heads,
    relative_positions,
    single_sequence_slopes,
    t5_bias,
    t5_bucket,
    t5_bucket_starts,
    t5_curve,
)


def get_slopes(n):
    """The rule published with ALiBi, as its recursion is written: half the powers, then every other one of 2p."""

    def of_power_of_two(count):
        start = 2.0 ** -(2.0 ** -(math.log2(count) - 3))
        return [start * start**i for i in range(count)]

    if math.log2(n).is_integer():
        return of_power_of_two(n)
    below = 2 ** math.floor(math.log2(n))
    return of_power_of_two(below) + get_slopes(2 * below)[0::2][: n - below]


# ---------------------------------------------------------------- T5


def test_t5_bias_is_the_scalar_of_the_bucket(rng):
    table = rng.standard_normal((12, 5))
    for bidirectional in (True, False):
        found = t5_bias(table, 7, 11, bidirectional=bidirectional, max_distance=9)
        assert found.shape == (5, 7, 11)
        buckets = {
            o: int(t5_bucket(o, bidirectional=bidirectional, num_buckets=12, max_distance=9)) for o in range(-10, 7)
        }
        for h, i, j in itertools.product(range(5), range(7), range(11)):
            assert found[h, i, j] == table[buckets[j - i - 4], h]


def test_t5_bias_agrees_with_transformers(transformers, torch, rng):
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    for is_decoder in (False, True):
        config = T5Config(d_model=12, d_kv=4, num_heads=3, is_decoder=is_decoder)
        layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
        table = rng.standard_normal((32, 3))
        with torch.no_grad():
            layer.relative_attention_bias.weight.copy_(torch.tensor(table))
            wanted = layer.compute_bias(150, 150)[0].numpy()
        found = t5_bias(table.astype(np.float32), 150, bidirectional=not is_decoder)
        assert np.array_equal(found, wanted)


# ---------------------------------------------------------------- ALiBi


@pytest.mark.parametrize("n", [*range(1, 41), 64, 71, 112, 128])
def test_slopes_are_the_published_rule(n):
    np.testing.assert_allclose(alibi_slopes(n), get_slopes(n), rtol=1e-13)  # its powers are repeated products


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 127, 128])
def test_the_single_sequence_is_right_for_powers_of_two_alone(n):
    found = single_sequence_slopes(n)
    np.testing.assert_allclose(found, [0.5 ** (8 * h / n) for h in range(1, n + 1)], rtol=1e-15)
    p = power_of_two_heads(n)
    assert p <= n < 2 * p
    assert math.log2(p).is_integer()
    assert np.array_equal(found, alibi_slopes(n)) == (p == n)


def test_slopes_agree_with_bloom(transformers, torch):
    from transformers.models.bloom.modeling_bloom import _get_alibi_slopes

    for n in (8, 12, 16, 20, 112):
        np.testing.assert_allclose(alibi_slopes(n), _get_alibi_slopes(n, "cpu").numpy(), rtol=1e-6)


def test_slopes_of_8_12_16_and_20_heads():
    powers = {n: -np.log2(alibi_slopes(n)) for n in (8, 12, 16, 20)}
    np.testing.assert_allclose(powers[8], [1, 2, 3, 4, 5, 6, 7, 8], rtol=1e-15)
    np.testing.assert_allclose(powers[12], [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5], rtol=1e-15)
    np.testing.assert_allclose(powers[16], np.arange(1, 17) / 2, rtol=1e-15)
    np.testing.assert_allclose(powers[20], [*np.arange(1, 17) / 2, 0.25, 0.75, 1.25, 1.75], rtol=1e-15)


@pytest.mark.parametrize("n", [12, 20])
def test_slopes_of_other_counts_are_no_geometric_sequence(n):
    """Neither in the order of the heads nor by size, and not what 2^(−8h/n) gives."""
    for slopes in (alibi_slopes(n), np.sort(alibi_slopes(n))):
        ratios = slopes[1:] / slopes[:-1]
        assert np.ptp(ratios) > 0.1
    assert np.abs(alibi_slopes(n) - 2.0 ** (-8 * np.arange(1, n + 1) / n)).max() > 0.2


@pytest.mark.parametrize("p", [1, 2, 4, 8, 16, 32])
def test_twice_the_heads_keep_the_old_slopes_at_every_other_place(p):
    np.testing.assert_allclose(alibi_slopes(2 * p)[1::2], alibi_slopes(p), rtol=1e-15)


def test_alibi_bias_is_the_formula():
    slopes = np.array([[0.5, 0.25, 0.3], [1.0, 0.0, 0.7]])
    found = alibi_bias(slopes, 5, 7)
    assert found.shape == (2, 3, 5, 7)
    for b, h, i, j in itertools.product(range(2), range(3), range(5), range(7)):
        assert found[b, h, i, j] == -slopes[b, h] * abs(i + 2 - j)
    assert not np.signbit(found[0, 0, 0, 2])


def test_half_distance_halves_the_weight():
    slopes = alibi_slopes(12)
    np.testing.assert_allclose(np.exp(-slopes * half_distance(slopes)), 0.5, rtol=1e-15)
    assert half_distance([0.0]).tolist() == [math.inf]


# ---------------------------------------------------------------- both


def biases(rng, length, keys=None):
    yield alibi_bias(alibi_slopes(3), length, keys)
    yield t5_bias(rng.standard_normal((32, 3)), length, keys, bidirectional=False)
    yield t5_bias(rng.standard_normal((32, 3)), length, keys)


def test_only_the_distance_matters(rng):
    for bias in biases(rng, 13):
        assert np.array_equal(bias[:, 1:, 1:], bias[:, :-1, :-1])


def test_a_decoded_token_has_the_last_row(rng):
    """One query over a cache of 12 keys: the position comes from the distance, not from the count of queries."""
    for seed in range(3):
        whole = biases(np.random.default_rng(seed), 13)
        one = biases(np.random.default_rng(seed), 1, 13)
        for all_rows, last in zip(whole, one, strict=True):
            assert np.array_equal(last, all_rows[:, -1:])


def test_cached_decoding_agrees_with_the_whole_sequence(rng):
    q, k = rng.standard_normal((2, 3, 11, 5))
    for whole in (alibi_bias(alibi_slopes(3), 11), t5_bias(rng.standard_normal((8, 3)), 11, bidirectional=False)):
        weights = attention_weights(q, k, bias=whole, causal=True)
        for t in range(11):
            row = attention_weights(q[:, t : t + 1], k[:, : t + 1], bias=whole[:, t : t + 1, : t + 1])
            np.testing.assert_allclose(row, weights[:, t : t + 1, : t + 1], atol=1e-15)


def test_the_key_position_alone_is_enough_under_a_causal_mask(rng):
    """Softmax does not feel what a whole row shares: −m|i − j| = −m i + m j for j ≤ i."""
    q, k = rng.standard_normal((2, 5, 17, 7))
    slopes = alibi_slopes(5)
    by_key = slopes[:, None, None] * np.arange(17.0)
    by_distance = alibi_bias(slopes, 17)
    np.testing.assert_allclose(
        attention_weights(q, k, bias=by_key, causal=True),
        attention_weights(q, k, bias=by_distance, causal=True),
        atol=1e-14,
    )
    without_mask = [attention_weights(q, k, bias=bias) for bias in (by_key, by_distance)]
    assert np.abs(without_mask[0] - without_mask[1]).max() > 0.1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_dtype_is_kept_and_16_bits_are_rounded_once(rng, dtype):
    slopes = np.array([0.3, 0.7]).astype(dtype)
    found = alibi_bias(slopes, 5)
    assert found.dtype == half_distance(slopes).dtype == dtype
    wide = slopes.astype(np.float32 if slopes.itemsize == 2 else dtype)
    assert np.array_equal(found, alibi_bias(wide, 5).astype(dtype))
    assert t5_bias(rng.standard_normal((8, 3)).astype(dtype), 4).dtype == dtype
    assert alibi_bias([1, 2], 3).dtype == np.float64


def test_every_public_name_is_there():
    assert set(relative_bias.__all__) == {
        "alibi_bias", "alibi_slopes", "half_distance", "power_of_two_heads", "relative_positions",
        "single_sequence_slopes", "t5_bias", "t5_bucket", "t5_bucket_starts", "t5_curve",
    }  # fmt: skip
    assert relative_positions(3, 5).tolist() == [[j - i for j in range(5)] for i in (2, 3, 4)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relative_positions(0), "L: got 0"),
        (lambda: relative_positions(3, 2), "S: got 2, want an integer of at least 3"),
        (lambda: t5_bias(np.zeros(32), 3), r"table: got shape \(32,\), want exactly 2 axes"),
        (lambda: t5_bias(np.full((32, 1), np.inf), 3), "table: got inf"),
        (lambda: t5_bias(np.zeros((31, 1)), 3), "table: got 31 rows"),
        (lambda: alibi_slopes(0), "n_heads: got 0"),
        (lambda: alibi_slopes(8.0), "n_heads: got 8.0"),
        (lambda: single_sequence_slopes(0), "n_heads: got 0"),
        (lambda: power_of_two_heads(-1), "n_heads: got -1"),
        (lambda: alibi_bias([-0.5], 3), "slopes: got -0.5, want slopes of at least 0"),
        (lambda: alibi_bias([np.nan], 3), "slopes: got nan"),
        (lambda: alibi_bias([0.5], 3, 1), "S: got 1"),
        (lambda: half_distance([-1.0]), "slopes: got -1.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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
def test_bad_input_is_named_t5_buckets(call, message):
    with pytest.raises(ValueError, match=message):
        call()
