"""The wave of each pair of channels: amplitude, phase, and its mean over neighbouring offsets."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from transformer_parts.maths import rope, rope_scores, rope_waves

LAYOUTS = ("interleaved", "split")
laws = settings(max_examples=60, deadline=None)
pairs_of_vectors = st.sampled_from((2, 4, 6, 10, 14)).flatmap(
    lambda width: arrays(np.float64, (2, width), elements=st.floats(-10, 10))
)
offsets_of_any_kind = st.lists(
    st.integers(-100_000, 100_000) | st.floats(-1e5, 1e5, allow_nan=False), min_size=1, max_size=23
)


@laws
@given(pairs_of_vectors, offsets_of_any_kind, st.sampled_from(LAYOUTS))
def test_each_pair_is_a_wave(vectors, offsets, layout):
    query, key = vectors
    frequencies = rope.inv_freq(len(query))
    waves = rope_waves.pair_waves(query, key, layout=layout)
    angle = np.outer(frequencies, offsets) + waves.phase[:, None]
    pairs = rope_scores.pair_scores(query, key, offsets, frequencies, layout=layout, scale=1.0)
    np.testing.assert_allclose(waves.amplitude[:, None] * np.cos(angle), pairs, rtol=0, atol=1e-8)


def test_amplitude_and_phase_are_those_of_the_contents(rng):
    query, key = rng.normal(size=(2, 10))
    waves = rope_waves.pair_waves(query, key)
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
        np.testing.assert_allclose(rope_waves.window_factor(frequencies, window), wanted, rtol=0, atol=1e-9)


def test_a_wide_window_fades_fast_pairs_and_leaves_slow_ones():
    factor = rope_waves.window_factor(rope.inv_freq(128), 438)
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


VECTORS = {"query": np.ones(4), "key": np.ones(4)}


def refuses(function, name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        function(**arguments)


@pytest.mark.parametrize(("name", "change"), BAD)
def test_pair_waves_refuses_bad_input(name, change):
    refuses(rope_waves.pair_waves, name, {**VECTORS, **change})


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
    refuses(rope_waves.window_factor, name, {"inv_freq": [1.0, 0.01], "window": 3, **change})
