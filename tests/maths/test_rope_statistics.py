"""Scores over many contents and offsets: mean, spread, how often they fall, and what a prediction explains."""

import math

import numpy as np
import pytest

from transformer_parts.maths import attention, rope, rope_scores, rope_statistics
from transformer_parts.models.excerpt import load_excerpt

# ---------------------------------------------------------------- random content


def test_mean_of_equal_content_is_negative_at_a_tenth_of_the_offsets():
    """Head_dim 128, base 10000, offsets 1 to 4096: 420 of 4096, 10.25 %; and the curve rises at 1992 steps."""
    offsets = np.arange(1, 4097)
    mean, _ = rope_statistics.random_scores(offsets, rope.inv_freq(128))
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
    mean, deviation = rope_statistics.random_scores(np.arange(-4096, 4097), rope.inv_freq(128), similarity=0.0)
    assert not mean.any()
    np.testing.assert_allclose(deviation, 1.0, rtol=1e-14)


@pytest.mark.parametrize("similarity", [-0.7, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("scale", [None, -2.0])
def test_mean_and_spread_agree_with_draws(rng, similarity, scale):
    draws, offsets = 60_000, np.array([0, 1, 3, 40, 4096])
    query, noise = rng.standard_normal((2, draws, 10))
    key = similarity * query + math.sqrt(1 - similarity**2) * noise
    sample = rope_scores.scores_by_offset(query, key, offsets, scale=scale)
    mean, deviation = rope_statistics.random_scores(offsets, rope.inv_freq(10), similarity=similarity, scale=scale)
    standard_error = deviation / math.sqrt(draws)
    assert (np.abs(sample.mean(axis=0) - mean) < 5 * standard_error).all()
    # The standard error of the deviation, with room for the tails of a sum of products, is 1 % at most.
    np.testing.assert_allclose(sample.std(axis=0), deviation, rtol=0.03)


@pytest.mark.parametrize("window", [1, 2, 5, 438])
def test_a_window_takes_the_mean_of_mean_and_variance(window):
    frequencies = rope.inv_freq(10)
    mean, deviation = rope_statistics.random_scores(np.arange(3, 3 + 4 * window), frequencies, similarity=0.8)
    middles = 3 + (window - 1) / 2 + window * np.arange(4)
    window_mean, window_deviation = rope_statistics.random_scores(middles, frequencies, similarity=0.8, window=window)
    np.testing.assert_allclose(window_mean, mean.reshape(4, window).mean(axis=-1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(window_deviation**2, (deviation**2).reshape(4, window).mean(axis=-1), rtol=1e-12)


@pytest.mark.parametrize("similarity", [-1, -0.6, 0, 0.25, 1])
def test_similar_key_has_the_correlation_and_the_width_of_the_query(rng, similarity):
    query, other = rng.standard_normal((2, 40_000, 4))
    key = rope_statistics.similar_key(query, other, similarity)
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
    mean, deviation = rope_statistics.content_scores(queries, keys, offsets, rope.inv_freq(10), **options)
    every = rope_scores.scores_by_offset(queries[:, None], keys, offsets, **options)
    np.testing.assert_allclose(mean, every.mean(axis=(0, 1)), rtol=0, atol=1e-12)
    np.testing.assert_allclose(deviation, every.std(axis=(0, 1)), rtol=1e-12)
    of_means = rope_scores.scores_by_offset(queries.mean(axis=0), keys.mean(axis=0), offsets, **options)
    np.testing.assert_allclose(mean, of_means, rtol=0, atol=1e-12)


def test_one_content_has_no_spread(rng):
    _, deviation = rope_statistics.content_scores(*rng.normal(size=(2, 1, 6)), np.arange(9), rope.inv_freq(6))
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
        shares[first] = rope_statistics.r_squared(scores[row, column], curve[column - row - 1])
    assert shares == pytest.approx({0: 0.797, 1: 0.939}, abs=5e-4)


# ---------------------------------------------------------------- counts and shares


def test_counts_agree_with_a_loop(rng):
    scores = rng.normal(size=2 * 53 + 1)
    rising = sum(scores[53 + d + 1] > scores[53 + d] for d in range(53))
    rising += sum(scores[53 - d - 1] > scores[53 - d] for d in range(53))
    counts = rope_statistics.distance_counts(scores)
    assert counts == (sum(s < 0 for s in scores), 107, rising, 106)


def test_equal_content_is_negative_at_a_tenth_of_the_offsets_on_both_sides():
    ones = np.ones(128)
    counts = rope_statistics.distance_counts(rope.scores_by_offset(ones, ones, np.arange(-4096, 4097)))
    assert counts == (840, 8193, 3984, 8192)


def test_r_squared_knows_perfect_mean_and_worse():
    scores = np.array([1.0, 4.0, 2.0, 7.0])
    assert rope_statistics.r_squared(scores, scores) == 1
    assert rope_statistics.r_squared(scores, np.full(4, scores.mean())) == 0
    assert rope_statistics.r_squared(scores, -scores) < 0
    assert rope_statistics.r_squared(scores, [1, 4, 2, 6]) == pytest.approx(1 - 1 / 21)


# ---------------------------------------------------------------- bad input


def refuses(function, name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        function(**arguments)


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
    refuses(rope_statistics.random_scores, name, {"offsets": [0, 1], "inv_freq": [1.0, 0.01], **change})


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
    refuses(rope_statistics.content_scores, name, {**contents, "offsets": [0], "inv_freq": [1.0, 0.01], **change})


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
    refuses(rope_statistics.similar_key, name, {**arguments, **change})


@pytest.mark.parametrize("scores", [[1.0, 2.0], [], 1.0, [[1.0, 2.0, 3.0]], [1.0, np.nan, 2.0]])
def test_distance_counts_refuses_bad_input(scores):
    refuses(rope_statistics.distance_counts, "scores", {"scores": scores})


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
    refuses(rope_statistics.r_squared, name, {"scores": scores, "predicted": predicted})
