"""RoPE's scores by offset: against turning both vectors, per pair, their bound and their spread."""

import math

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from transformer_parts.maths import attention, rope, rope_scores
from transformer_parts.models.excerpt import load_excerpt

LAYOUTS = ("interleaved", "split")
laws = settings(max_examples=60, deadline=None)
pairs_of_vectors = st.sampled_from((2, 4, 6, 10, 14)).flatmap(
    lambda width: arrays(np.float64, (2, width), elements=st.floats(-10, 10))
)
offsets_of_any_kind = st.lists(
    st.integers(-100_000, 100_000) | st.floats(-1e5, 1e5, allow_nan=False), min_size=1, max_size=23
)


# ---------------------------------------------------------------- scores by offset


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize("query_at", [0, 13, -100_003])
def test_score_is_that_of_the_turned_vectors(rng, layout, rotary_dim, query_at):
    query, key = rng.normal(size=(2, 10))
    options = {"layout": layout, "rotary_dim": rotary_dim, "rope_base": 500.0}
    for offsets in (np.arange(-53, 54), np.array([5, -4096, 0, 131_072, 7, 7])):
        turned_query = rope.rotate(query[None], [query_at], **options)
        turned_keys = rope.rotate(np.tile(key, (len(offsets), 1)), query_at + offsets, **options)
        wanted = (turned_keys @ turned_query[0]) / math.sqrt(10)
        got = rope_scores.scores_by_offset(query, key, offsets, **options)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


def test_worked_numbers_of_two_and_four_channels():
    two = rope_scores.scores_by_offset([1, 2], [2, 1], [0, 1], inv_freq=[math.pi / 2])
    np.testing.assert_allclose(two, [4 / math.sqrt(2), 2.1213], atol=5e-5)
    four = rope_scores.scores_by_offset([1, 2, 3, 4], [2, 1, 0, 1], [0, 2])
    np.testing.assert_allclose(four, [4, 2.501254], atol=5e-7)


def test_far_scores_agree_with_mpmath(rng):
    query, key = rng.normal(size=(2, 26))
    offsets = [0, 1, -4096, 131_072, 1_000_000]
    wanted = []
    with mpmath.workdps(40):
        for offset in offsets:
            total = mpmath.mpf(0)
            for i in range(13):
                q, k = (mpmath.mpc(*map(float, x[2 * i : 2 * i + 2])) for x in (query, key))
                angle = offset * mpmath.mpf(10000) ** (mpmath.mpf(-2 * i) / 26)
                total += (mpmath.conj(q) * k * mpmath.expj(angle)).real
            wanted.append(float(total / mpmath.sqrt(26)))
    np.testing.assert_allclose(rope_scores.scores_by_offset(query, key, offsets), wanted, rtol=0, atol=1e-9)


def test_even_and_uneven_offsets_agree_over_a_long_range(rng):
    query, key = rng.normal(size=(2, 128))
    offsets = np.arange(-131_072, 131_073, 17)
    shuffled = rng.permutation(offsets)
    even = rope_scores.scores_by_offset(query, key, offsets)
    uneven = rope_scores.scores_by_offset(query, key, shuffled)
    np.testing.assert_allclose(even[(shuffled - offsets[0]) // 17], uneven, rtol=0, atol=1e-9)


@laws
@given(pairs_of_vectors, offsets_of_any_kind, st.sampled_from(LAYOUTS))
def test_exchanging_query_and_key_turns_the_offset_round(vectors, offsets, layout):
    query, key = vectors
    there = rope_scores.scores_by_offset(query, key, offsets, layout=layout)
    back = rope_scores.scores_by_offset(key, query, -np.array(offsets), layout=layout)
    np.testing.assert_allclose(there, back, rtol=0, atol=1e-10)


def test_channels_that_are_not_turned_add_the_same_everywhere(rng):
    query, key = rng.normal(size=(2, 11))
    offsets = np.arange(40)
    partial = rope_scores.scores_by_offset(query, key, offsets, rotary_dim=4, scale=1.0)
    alone = rope_scores.scores_by_offset(query[:4], key[:4], offsets, scale=1.0)
    np.testing.assert_allclose(partial - alone, np.full(40, query[4:] @ key[4:]), rtol=0, atol=1e-13)


def test_leading_axes_broadcast(rng):
    query, key, offsets = rng.normal(size=(3, 1, 6)), rng.normal(size=(5, 6)), np.arange(23)
    got = rope_scores.scores_by_offset(query, key, offsets)
    assert got.shape == (3, 5, 23)
    contributions = rope_scores.pair_scores(query, key, offsets, rope.inv_freq(6))
    assert contributions.shape == (3, 5, 3, 23)
    bound = rope_scores.decay_bound(query, key, offsets, rope.inv_freq(6))
    assert bound.shape == (3, 5, 23)
    for i, j in np.ndindex(3, 5):
        one = query[i, 0], key[j], offsets
        np.testing.assert_allclose(got[i, j], rope_scores.scores_by_offset(*one), rtol=0, atol=1e-14)
        alone = rope_scores.pair_scores(*one, rope.inv_freq(6))
        np.testing.assert_allclose(contributions[i, j], alone, rtol=0, atol=1e-14)
        np.testing.assert_allclose(bound[i, j], rope_scores.decay_bound(*one, rope.inv_freq(6)), rtol=1e-14)


BF16 = ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("query_dtype", "key_dtype", "wanted"),
    [
        (np.float16, np.float16, np.float16),
        (BF16, BF16, BF16),
        (np.float32, np.float32, np.float32),
        (">f4", ">f4", ">f4"),
        (np.float16, BF16, np.float32),
        (BF16, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
        (np.int32, np.float32, np.float64),
        (np.int64, np.int64, np.float64),
    ],
)
def test_dtype_is_kept(query_dtype, key_dtype, wanted):
    query, key = np.array([1, 2, 3, 4], query_dtype), np.array([2, 1, 0, 1], key_dtype)
    got = rope_scores.scores_by_offset(query, key, np.arange(20))
    assert got.dtype == wanted
    exact = rope_scores.scores_by_offset([1, 2, 3, 4], [2, 1, 0, 1], np.arange(20))
    np.testing.assert_array_equal(got, exact.astype(wanted))


def test_scale_multiplies(rng):
    query, key = rng.normal(size=(2, 6))
    arguments = query, key, np.arange(30)
    one = rope_scores.scores_by_offset(*arguments, scale=1.0)
    np.testing.assert_allclose(rope_scores.scores_by_offset(*arguments), one / math.sqrt(6), rtol=1e-14)
    np.testing.assert_allclose(rope_scores.scores_by_offset(*arguments, scale=-3), -3 * one, rtol=1e-14)
    np.testing.assert_array_equal(rope_scores.scores_by_offset(*arguments, scale=0), np.zeros(30))


# ---------------------------------------------------------------- pair by pair


@laws
@given(pairs_of_vectors, offsets_of_any_kind, st.sampled_from(LAYOUTS))
def test_the_pairs_add_up_to_the_score(vectors, offsets, layout):
    query, key = vectors
    frequencies = rope.inv_freq(len(query), 300.0)
    pairs = rope_scores.pair_scores(query, key, offsets, frequencies, layout=layout)
    assert pairs.shape == (len(query) // 2, len(offsets))
    whole = rope_scores.scores_by_offset(query, key, offsets, layout=layout, rope_base=300.0)
    np.testing.assert_allclose(pairs.sum(axis=0), whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize("window", [1, 2, 7, 438])
def test_a_window_takes_the_mean_over_neighbouring_offsets(rng, window):
    query, key = rng.normal(size=(2, 10))
    frequencies = rope.inv_freq(10)
    every = rope_scores.pair_scores(query, key, np.arange(-5, -5 + 3 * window), frequencies)
    middles = -5 + (window - 1) / 2 + window * np.arange(3)
    means = rope_scores.pair_scores(query, key, middles, frequencies, window=window)
    np.testing.assert_allclose(means, every.reshape(5, 3, window).mean(axis=-1), rtol=0, atol=1e-13)


# ---------------------------------------------------------------- RoFormer's bound


@laws
@given(pairs_of_vectors, offsets_of_any_kind, st.sampled_from(LAYOUTS), st.floats(-5, 5))
def test_no_score_exceeds_the_bound(vectors, offsets, layout, scale):
    query, key = vectors
    frequencies = rope.inv_freq(len(query))
    score = rope_scores.scores_by_offset(query, key, offsets, layout=layout, scale=scale)
    bound = rope_scores.decay_bound(query, key, offsets, frequencies, layout=layout, scale=scale)
    rounding = 1e-14 * abs(scale) * (np.abs(query).sum() * np.abs(key).sum() + 1)
    assert (bound >= np.abs(score) - rounding).all()


def test_bound_is_the_formula_of_the_paper(rng):
    query, key = rng.normal(size=(2, 10))
    frequencies, offsets = rope.inv_freq(10), [0, 3, -77, 4096]
    h = [complex(*query[2 * i : 2 * i + 2]).conjugate() * complex(*key[2 * i : 2 * i + 2]) for i in range(5)] + [0]
    largest_step = max(abs(h[i + 1] - h[i]) for i in range(5))
    wanted = []
    for offset in offsets:
        partial_sums = [sum(np.exp(1j * offset * frequencies[i]) for i in range(j)) for j in range(1, 6)]
        wanted.append(largest_step * sum(map(abs, partial_sums)) / math.sqrt(10))
    np.testing.assert_allclose(rope_scores.decay_bound(query, key, offsets, frequencies), wanted, rtol=1e-13)


def test_with_one_pair_the_bound_is_the_amplitude(rng):
    query, key = rng.normal(size=(2, 2))
    bound = rope_scores.decay_bound(query, key, np.arange(9), [1.0])
    np.testing.assert_allclose(bound, rope_scores.pair_waves(query, key).amplitude[0] / math.sqrt(2), rtol=1e-15)


def test_the_bound_falls_where_the_scores_need_not():
    """RoFormer's claim is about the bound: at q = k = (1, …, 1) the bound falls and the score turns negative."""
    ones, frequencies = np.ones(128), rope.inv_freq(128)
    near, far = np.arange(1, 101), np.arange(3996, 4096)
    bound = rope_scores.decay_bound(ones, ones, np.concatenate([near, far]), frequencies)
    assert bound[:100].mean() > 2 * bound[100:].mean()
    assert rope_scores.scores_by_offset(ones, ones, far).min() < -0.5


def test_the_bound_excludes_nothing_that_the_amplitudes_allow():
    """Head_dim 128, base 10000, q = k = (1, …, 1): at no offset from 0 to 131072 is it below the score at offset 0.

    That score is the sum of the amplitudes, which no score exceeds at any offset: a smaller bound that doesn't fall.
    """
    ones, frequencies = np.ones(128), rope.inv_freq(128)
    largest = rope_scores.scores_by_offset(ones, ones, [0])[0]
    assert largest == pytest.approx(math.sqrt(128))
    parts = [rope_scores.decay_bound(ones, ones, part, frequencies) for part in np.array_split(np.arange(131_073), 16)]
    bound = np.concatenate(parts)
    assert bound[0] == pytest.approx(367.6955, abs=5e-5)
    assert bound.min() == pytest.approx(13.3429, abs=5e-5)
    assert bound.min() > largest


# ---------------------------------------------------------------- bad input

VECTORS = {"query": np.ones(4), "key": np.ones(4)}
COMMON = [
    ("key", {"key": np.ones(6)}),
    ("key's leading axes", {"query": np.ones((2, 4)), "key": np.ones((3, 4))}),
    ("query", {"query": np.array([1, np.nan, 1, 1])}),
    ("query", {"query": np.ones((0, 4))}),
    ("query", {"query": 1.0}),
    ("query", {"query": np.ones(4, bool)}),
    ("key", {"key": np.array([1, np.inf, 1, 1])}),
    ("key", {"key": np.ones(4, complex)}),
    ("key", {"key": list("abcd")}),
    ("query", {"query": np.ones(5), "key": np.ones(5)}),
    ("layout", {"layout": "halves"}),
]
BY_OFFSET = [
    ("offsets", {"offsets": 3}),
    ("offsets", {"offsets": []}),
    ("offsets", {"offsets": [[0, 1]]}),
    ("offsets", {"offsets": [0, np.nan]}),
    ("offsets", {"offsets": [0, np.inf]}),
    ("offsets", {"offsets": [True]}),
    ("offsets", {"offsets": ["1"]}),
    ("inv_freq", {"inv_freq": [1.0]}),
    ("inv_freq", {"inv_freq": [1.0, 0.1, 0.01]}),
    ("inv_freq", {"inv_freq": [[1.0, 0.1]]}),
    ("inv_freq", {"inv_freq": [1.0, np.nan]}),
    ("positions times inv_freq", {"offsets": [1e300], "inv_freq": [1e300, 1.0]}),
    ("scale", {"scale": np.nan}),
    ("scale", {"scale": "1"}),
    ("scale", {"scale": True}),
    ("scale", {"scale": 1j}),
]


def refuses(function, name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        function(**arguments)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *COMMON,
        *BY_OFFSET,
        ("rope_base", {"rope_base": 0}),
        ("rope_base", {"rope_base": -1.0}),
        ("rotary_dim", {"rotary_dim": 3}),
        ("rotary_dim", {"rotary_dim": 6}),
        ("rotary_dim", {"rotary_dim": 0}),
    ],
)
def test_scores_by_offset_refuses_bad_input(name, change):
    refuses(rope_scores.scores_by_offset, name, {**VECTORS, "offsets": [0, 1], **change})


@pytest.mark.parametrize("function", [rope_scores.pair_scores, rope_scores.decay_bound])
@pytest.mark.parametrize(("name", "change"), COMMON + BY_OFFSET)
def test_pair_scores_and_bound_refuse_bad_input(function, name, change):
    refuses(function, name, {**VECTORS, "offsets": [0, 1], "inv_freq": [1.0, 0.01], **change})


@pytest.mark.parametrize("window", [0, -1, 2.0, True, "3"])
def test_pair_scores_refuses_a_window_that_is_no_positive_integer(window):
    refuses(rope_scores.pair_scores, "window", {**VECTORS, "offsets": [0], "inv_freq": [1.0, 0.01], "window": window})


@laws
@given(pairs_of_vectors, offsets_of_any_kind, st.sampled_from(LAYOUTS))
def test_each_pair_is_a_wave(vectors, offsets, layout):
    query, key = vectors
    frequencies = rope.inv_freq(len(query))
    waves = rope_scores.pair_waves(query, key, layout=layout)
    angle = np.outer(frequencies, offsets) + waves.phase[:, None]
    pairs = rope_scores.pair_scores(query, key, offsets, frequencies, layout=layout, scale=1.0)
    np.testing.assert_allclose(waves.amplitude[:, None] * np.cos(angle), pairs, rtol=0, atol=1e-8)


def test_amplitude_and_phase_are_those_of_the_contents(rng):
    query, key = rng.normal(size=(2, 10))
    waves = rope_scores.pair_waves(query, key)
    for i in range(5):
        (a, b), (c, d) = query[2 * i : 2 * i + 2], key[2 * i : 2 * i + 2]
        assert waves.amplitude[i] == pytest.approx(math.hypot(a, b) * math.hypot(c, d))
        difference = math.atan2(d, c) - math.atan2(b, a) - waves.phase[i]
        assert math.remainder(difference, 2 * math.pi) == pytest.approx(0, abs=1e-14)
        assert -math.pi <= waves.phase[i] <= math.pi


def test_window_factor_is_the_mean_of_the_cosines_in_the_window():
    """By a loop, with a pair that stands still and two that make whole turns, by which the quotient is 0/0."""
    frequencies = [1.0, 0.37, 1e-5, 0.0, 2 * math.pi, -4 * math.pi]
    for window in (1, 2, 3, 14, 101, 438):
        wanted = [math.fsum(math.cos((j - (window - 1) / 2) * f) for j in range(window)) / window for f in frequencies]
        np.testing.assert_allclose(rope_scores.window_factor(frequencies, window), wanted, rtol=0, atol=1e-9)


def test_a_wide_window_fades_fast_pairs_and_leaves_slow_ones():
    factor = rope_scores.window_factor(rope.inv_freq(128), 438)
    assert abs(factor[0]) < 0.01
    assert factor[-1] > 0.999


BAD = [
    ("key", {"key": np.ones(6)}),
    ("key's leading axes", {"query": np.ones((2, 4)), "key": np.ones((3, 4))}),
    ("query", {"query": np.array([1, np.nan, 1, 1])}),
    ("query", {"query": np.ones((0, 4))}),
    ("query", {"query": 1.0}),
    ("query", {"query": np.ones(4, bool)}),
    ("key", {"key": np.array([1, np.inf, 1, 1])}),
    ("key", {"key": np.ones(4, complex)}),
    ("key", {"key": list("abcd")}),
    ("query", {"query": np.ones(5), "key": np.ones(5)}),
    ("layout", {"layout": "halves"}),
]


@pytest.mark.parametrize(("name", "change"), BAD)
def test_pair_waves_refuses_bad_input(name, change):
    refuses(rope_scores.pair_waves, name, {**VECTORS, **change})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("inv_freq", {"inv_freq": [1.0, np.nan]}),
        ("inv_freq", {"inv_freq": []}),
        ("inv_freq", {"inv_freq": 1.0}),
        ("window", {"window": 0}),
        ("window", {"window": 2.0}),
        ("window", {"window": True}),
    ],
)
def test_window_factor_refuses_bad_input(name, change):
    refuses(rope_scores.window_factor, name, {"inv_freq": [1.0, 0.01], "window": 3, **change})


# ---------------------------------------------------------------- random content


def test_mean_of_equal_content_is_negative_at_a_tenth_of_the_offsets():
    """Head_dim 128, base 10000, offsets 1 to 4096: 420 of 4096, 10.25 %; and the curve rises at 1992 steps."""
    offsets = np.arange(1, 4097)
    mean, _ = rope_scores.random_scores(offsets, rope.inv_freq(128))
    by_loop = [
        2 / math.sqrt(128) * math.fsum(math.cos(offset * 10000 ** (-i / 64)) for i in range(64))
        for offset in range(1, 4097)
    ]
    np.testing.assert_allclose(mean, by_loop, rtol=0, atol=1e-11)
    assert (mean < 0).sum() == 420
    assert (mean < 0).mean() == pytest.approx(0.1025, abs=5e-5)
    assert offsets[mean < 0][0] == 1707
    assert offsets[mean.argmin()] == 4060
    assert mean.min() == pytest.approx(-1.4784, abs=5e-5)
    assert (np.diff(mean) > 0).sum() == 1992


def test_spread_of_unrelated_content_is_the_same_at_every_offset():
    mean, deviation = rope_scores.random_scores(np.arange(-4096, 4097), rope.inv_freq(128), similarity=0.0)
    assert not mean.any()
    np.testing.assert_allclose(deviation, 1.0, rtol=1e-14)


@pytest.mark.parametrize("similarity", [-0.7, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("scale", [None, -2.0])
def test_mean_and_spread_agree_with_draws(rng, similarity, scale):
    draws, offsets = 60_000, np.array([0, 1, 3, 40, 4096])
    query, noise = rng.standard_normal((2, draws, 10))
    key = similarity * query + math.sqrt(1 - similarity**2) * noise
    sample = rope_scores.scores_by_offset(query, key, offsets, scale=scale)
    mean, deviation = rope_scores.random_scores(offsets, rope.inv_freq(10), similarity=similarity, scale=scale)
    standard_error = deviation / math.sqrt(draws)
    assert (np.abs(sample.mean(axis=0) - mean) < 5 * standard_error).all()
    # The standard error of the deviation, with room for the tails of a sum of products, is 1 % at most.
    np.testing.assert_allclose(sample.std(axis=0), deviation, rtol=0.03)


@pytest.mark.parametrize("window", [1, 2, 5, 438])
def test_a_window_takes_the_mean_of_mean_and_variance(window):
    frequencies = rope.inv_freq(10)
    mean, deviation = rope_scores.random_scores(np.arange(3, 3 + 4 * window), frequencies, similarity=0.8)
    middles = 3 + (window - 1) / 2 + window * np.arange(4)
    window_mean, window_deviation = rope_scores.random_scores(middles, frequencies, similarity=0.8, window=window)
    np.testing.assert_allclose(window_mean, mean.reshape(4, window).mean(axis=-1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(window_deviation**2, (deviation**2).reshape(4, window).mean(axis=-1), rtol=1e-12)


@pytest.mark.parametrize("similarity", [-1, -0.6, 0, 0.25, 1])
def test_similar_key_has_the_correlation_and_the_width_of_the_query(rng, similarity):
    query, other = rng.standard_normal((2, 40_000, 4))
    key = rope_scores.similar_key(query, other, similarity)
    assert np.corrcoef(query.ravel(), key.ravel())[0, 1] == pytest.approx(similarity, abs=0.01)
    assert key.std() == pytest.approx(1, abs=0.01)
    if abs(similarity) == 1:
        np.testing.assert_array_equal(key, similarity * query)


# ---------------------------------------------------------------- given content


@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("scale", [None, -2.0])
def test_mean_and_spread_of_contents_are_those_of_every_score(rng, layout, scale):
    queries, keys = rng.normal(0.5, 1, (7, 10)), rng.normal(-0.3, 2, (5, 10))
    offsets = np.array([-4096, -1, 0, 2, 13])
    options = {"layout": layout, "scale": scale}
    mean, deviation = rope_scores.content_scores(queries, keys, offsets, rope.inv_freq(10), **options)
    every = rope_scores.scores_by_offset(queries[:, None], keys, offsets, **options)
    np.testing.assert_allclose(mean, every.mean(axis=(0, 1)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(deviation, every.std(axis=(0, 1)), rtol=1e-12)
    of_means = rope_scores.scores_by_offset(queries.mean(axis=0), keys.mean(axis=0), offsets, **options)
    np.testing.assert_allclose(mean, of_means, rtol=0, atol=1e-12)


def test_one_content_has_no_spread(rng):
    _, deviation = rope_scores.content_scores(*rng.normal(size=(2, 1, 6)), np.arange(9), rope.inv_freq(6))
    assert not deviation.any()


def test_a_head_of_the_real_model_is_explained_by_the_offset():
    """Layer 16 head 0 of SmolLM2: the mean content's curve peaks at the previous token and explains 94 % of the scores.

    With token 0, whose key is unlike all others, it explains 80 %.
    """
    excerpt = load_excerpt()
    length = len(excerpt.token_texts)
    offsets = np.arange(1 - length, 1)
    options = {"rope_base": excerpt.rope_base, "layout": excerpt.layout}
    shares = {}
    for first in (0, 1):
        query, key = excerpt.query(16, 0)[first:], excerpt.key(16, 0)[first:]
        curve = rope.scores_by_offset(query.mean(axis=0), key.mean(axis=0), offsets, **options)
        assert offsets[curve.argmax()] == -1
        at = np.arange(first, length)
        scores = attention.scores(rope.rotate(query, at, **options)[None], rope.rotate(key, at, **options)[None])[0]
        row, column = np.tril_indices(len(at))
        shares[first] = rope_scores.r_squared(scores[row, column], curve[column - row - 1])
    assert shares == pytest.approx({0: 0.797, 1: 0.939}, abs=5e-4)


# ---------------------------------------------------------------- counts and shares


def test_counts_agree_with_a_loop(rng):
    scores = rng.normal(size=2 * 53 + 1)
    rising = sum(scores[53 + d + 1] > scores[53 + d] for d in range(53))
    rising += sum(scores[53 - d - 1] > scores[53 - d] for d in range(53))
    counts = rope_scores.distance_counts(scores)
    assert counts == (sum(s < 0 for s in scores), 107, rising, 106)


def test_equal_content_is_negative_at_a_tenth_of_the_offsets_on_both_sides():
    ones = np.ones(128)
    counts = rope_scores.distance_counts(rope.scores_by_offset(ones, ones, np.arange(-4096, 4097)))
    assert counts == (840, 8193, 3984, 8192)


def test_r_squared_knows_perfect_mean_and_worse():
    scores = np.array([1.0, 4.0, 2.0, 7.0])
    assert rope_scores.r_squared(scores, scores) == 1
    assert rope_scores.r_squared(scores, np.full(4, scores.mean())) == 0
    assert rope_scores.r_squared(scores, -scores) < 0
    assert rope_scores.r_squared(scores, [1, 4, 2, 6]) == pytest.approx(1 - 1 / 21)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, change) for name, change in BY_OFFSET if len(np.shape(change.get("inv_freq", 0))) != 1),
        ("inv_freq", {"inv_freq": [1.0, np.nan]}),
        ("inv_freq", {"inv_freq": []}),
        ("window", {"window": 0}),
        ("window", {"window": 1.5}),
        ("similarity", {"similarity": 1.01}),
        ("similarity", {"similarity": -2}),
        ("similarity", {"similarity": np.nan}),
        ("similarity", {"similarity": [0.5]}),
    ],
)
def test_random_scores_refuses_bad_input(name, change):
    refuses(rope_scores.random_scores, name, {"offsets": [0, 1], "inv_freq": [1.0, 0.01], **change})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, change) for name, change in BY_OFFSET),
        ("queries", {"queries": np.ones(4)}),
        ("queries", {"queries": np.ones((1, 3, 4))}),
        ("queries", {"queries": [[1, 1, 1, np.nan]]}),
        ("keys", {"keys": np.ones((2, 6))}),
        ("keys", {"keys": np.ones((0, 4))}),
        ("keys", {"keys": np.ones(4)}),
        ("layout", {"layout": "halves"}),
    ],
)
def test_content_scores_refuses_bad_input(name, change):
    contents = {"queries": np.ones((3, 4)), "keys": np.ones((2, 4))}
    refuses(rope_scores.content_scores, name, {**contents, "offsets": [0], "inv_freq": [1.0, 0.01], **change})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("query", {"query": [1.0, np.nan]}),
        ("other", {"other": [1.0, np.inf]}),
        ("other", {"other": [1.0, 2.0, 3.0]}),
        ("other's leading axes", {"query": np.ones((2, 2)), "other": np.ones((3, 2))}),
        ("similarity", {"similarity": 1.01}),
        ("similarity", {"similarity": np.nan}),
    ],
)
def test_similar_key_refuses_bad_input(name, change):
    arguments = {"query": [1.0, 2.0], "other": [0.0, 1.0], "similarity": 0.5}
    refuses(rope_scores.similar_key, name, {**arguments, **change})


@pytest.mark.parametrize("scores", [[1.0, 2.0], [], 1.0, [[1.0, 2.0, 3.0]], [1.0, np.nan, 2.0]])
def test_distance_counts_refuses_bad_input(scores):
    refuses(rope_scores.distance_counts, "scores", {"scores": scores})


@pytest.mark.parametrize(
    ("name", "scores", "predicted"),
    [
        ("scores", [1.0, np.nan], [1.0, 2.0]),
        ("scores", [2.0, 2.0], [1.0, 2.0]),
        ("predicted", [1.0, 2.0], [1.0]),
        ("predicted", [1.0, 2.0], [1.0, np.inf]),
    ],
)
def test_r_squared_refuses_bad_input(name, scores, predicted):
    refuses(rope_scores.r_squared, name, {"scores": scores, "predicted": predicted})
