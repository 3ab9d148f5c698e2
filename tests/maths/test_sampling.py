"""Sampling: the definitions by slow loops, transformers' warpers, and the laws."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.maths.sampling import next_token_probabilities, sample

LOGITS = st.lists(st.floats(-30, 30), min_size=1, max_size=13)


def slow(logits, temperature, top_k, top_p):
    """The set and its probabilities, token by token, from the definitions."""
    scaled = [z / temperature for z in logits]
    largest = max(scaled)
    weight = [math.exp(z - largest) for z in scaled]
    ranked = sorted(range(len(logits)), key=lambda i: -weight[i])
    if top_k is not None:
        kth = sorted(logits, reverse=True)[min(top_k, len(logits)) - 1]
        ranked = [i for i in ranked if logits[i] >= kth]
    if top_p is not None:
        total, kept, so_far = math.fsum(weight[i] for i in ranked), [], 0.0
        for i in ranked:
            if so_far >= top_p * total:
                break
            kept.append(i)
            so_far += weight[i]
        ranked = kept
    total = math.fsum(weight[i] for i in ranked)
    return [weight[i] / total if i in ranked else 0.0 for i in range(len(logits))]


@given(LOGITS, st.floats(0.1, 5), st.none() | st.integers(1, 15), st.none() | st.floats(0.05, 0.99))
def test_the_definitions_by_loops(logits, temperature, top_k, top_p):
    ours = next_token_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    wanted = np.array(slow(logits, temperature, top_k, top_p))
    if top_p is None or (np.count_nonzero(ours) == np.count_nonzero(wanted)):
        np.testing.assert_allclose(np.sort(ours), np.sort(wanted), rtol=1e-9, atol=1e-12)
    else:  # the sum came within rounding of p: one token more or less
        fewer, more = sorted((np.count_nonzero(ours), np.count_nonzero(wanted)))
        assert more == fewer + 1
        before = np.sort(slow(logits, temperature, top_k, None))[::-1]
        assert abs(before[:fewer].sum() - top_p) < 1e-9


@given(LOGITS, st.floats(0.05, 1))
def test_top_p_is_the_smallest_set_that_holds_p(logits, top_p):
    whole = next_token_probabilities(logits)
    kept = next_token_probabilities(logits, top_p=top_p) > 0
    assert whole[kept].sum() >= top_p - 1e-9
    assert whole[kept].sum() - whole[kept].min() < top_p + 1e-9
    assert not (~kept).any() or whole[~kept].max() <= whole[kept].min()


@pytest.mark.oracle
@pytest.mark.parametrize("settings", [{"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.8}, {"top_k": 7, "top_p": 0.6}])
def test_the_warpers_of_transformers(torch, transformers, settings):
    from transformers.generation import logits_process as warpers

    z = np.random.default_rng(5).normal(0, 2, 101)
    theirs = torch.from_numpy(z)[None]
    kinds = {
        "temperature": warpers.TemperatureLogitsWarper,
        "top_k": warpers.TopKLogitsWarper,
        "top_p": warpers.TopPLogitsWarper,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in settings.items():
            theirs = kinds[name](value)(None, theirs)
    ours = next_token_probabilities(z, **settings)
    np.testing.assert_allclose(ours, theirs.softmax(-1)[0].numpy(), rtol=1e-9, atol=1e-12)


def test_equals_of_the_kth_all_stay():
    assert next_token_probabilities([1.0, 1.0, 0.0], top_k=1).tolist() == [0.5, 0.5, 0.0]


def test_tokens_come_as_often_as_their_probability():
    rng, z = np.random.default_rng(11), [0.0, 1.0, -1.0, 0.5]
    drawn = np.bincount([sample(z, rng, temperature=0.8, top_k=3) for _ in range(4000)], minlength=4)
    wanted = 4000 * next_token_probabilities(z, temperature=0.8, top_k=3)
    assert drawn[2] == 0
    chi_square = sum((drawn[i] - wanted[i]) ** 2 / wanted[i] for i in (0, 1, 3))
    assert chi_square < 13.8  # 2 degrees of freedom, one time in a thousand


def test_temperature_0_is_greedy_and_draws_nothing():
    rng = np.random.default_rng(3)
    state = rng.bit_generator.state
    assert sample([0.0, 2.0, 2.0], rng, temperature=0) == 1
    assert rng.bit_generator.state == state


def test_a_low_temperature_goes_to_the_largest_and_a_high_one_to_equal():
    z = [3.0, 1.0, 2.0]
    np.testing.assert_allclose(next_token_probabilities(z, temperature=1e-3), [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(next_token_probabilities(z, temperature=1e9), [1 / 3] * 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("logits", {"logits": [np.nan]}),
        ("logits", {"logits": [[1.0]]}),
        ("temperature", {"temperature": 0}),
        ("temperature", {"temperature": -1.0}),
        ("top_k", {"top_k": 0}),
        ("top_k", {"top_k": 1.5}),
        ("top_p", {"top_p": 0}),
        ("top_p", {"top_p": 1.1}),
    ],
)
def test_bad_input_is_refused_by_name(name, arguments):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        next_token_probabilities(**{"logits": [1.0, 2.0]} | arguments)


@pytest.mark.parametrize(("name", "bad"), [("top_k", 0), ("top_k", 1.5), ("top_p", 0), ("top_p", 1.1)])
def test_greedy_sampling_refuses_what_it_does_not_use(name, bad):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        sample([1.0, 2.0], np.random.default_rng(0), temperature=0, **{name: bad})


def test_top_p_1_keeps_even_the_least_likely():
    assert np.count_nonzero(next_token_probabilities(np.linspace(0, 60, 101), top_p=1)) == 101


def test_sample_refuses_a_negative_temperature():
    with pytest.raises(ValueError, match=r"^temperature: got "):
        sample([1.0], np.random.default_rng(0), temperature=-0.5)
