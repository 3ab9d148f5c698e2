import numpy as np
import pytest

from transformer_parts.maths import rope
from transformer_parts.maths.attention import attention_weights
from transformer_parts.maths.cache_fault_heads import head_run, head_whole, misplaced
from transformer_parts.maths.cache_faults import FAULTS
from transformer_parts.maths.context_extension import dynamic_ntk

EXACT = 1e-12
HARMLESS = (
    "none",
    "padding seen",
    "padding counted",
    "padding counted once decoding",
    "base changed, unrotated keys",
)
SETTINGS = ({"rope_base": 50.0, "layout": "split"}, {"rope_base": 50.0, "layout": "interleaved"})


def by_formula(query, key, length, base, layout):
    """Weights of the last of so many tokens, all turned by one base."""
    turned = [
        rope.rotate(part[None, :length], np.arange(length), inv_freq=base, layout=layout) for part in (query, key)
    ]
    return attention_weights(*turned, causal=True)[0, -1]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("trained_length", [None, 3, 8, 20])
def test_the_right_answer_is_attention_over_every_length(rng, settings, trained_length):
    query, key = rng.normal(size=(2, 11, 6))
    glances = head_whole(query, key, 5, trained_length=trained_length, settings=settings)
    assert len(glances) == 7
    for length, glance in enumerate(glances, start=5):
        base = rope.inv_freq(6, 50.0)
        if trained_length is not None:
            base = dynamic_ntk(6, length, trained_length, rope_base=50.0).inv_freq
        wanted = by_formula(query, key, length, base, settings["layout"])
        np.testing.assert_allclose(glance.weights[0], wanted, rtol=0, atol=EXACT)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_but_the_harmless_misplaces_attention(rng, fault, settings):
    query, key = rng.normal(size=(2, 13, 6))
    run = head_run(query, key, 7, fault, trained_length=8, settings=settings)
    right = head_whole(query, key, 7, trained_length=8 if FAULTS[fault].dynamic else None, settings=settings)
    shares = [misplaced(glance.weights, wanted.weights)[0] for glance, wanted in zip(run, right, strict=True)]
    if fault in HARMLESS:
        assert max(shares) < EXACT
    else:
        assert max(shares) > 1e-3
    for length, glance in enumerate(run, start=7):
        assert (glance.query.shape, glance.keys.shape) == ((1, 6), (1, length, 6))
        logits = glance.keys[0] @ glance.query[0] / 6**0.5
        np.testing.assert_allclose(glance.weights[0], np.exp(logits) / np.exp(logits).sum(), atol=1e-14)


def test_a_head_after_the_first_layer_sees_the_grown_length(rng):
    # the prompt is moved by its length, a decoded token by 1: all offsets to the prompt are too small by 6
    query, key = rng.normal(size=(2, 9, 6))
    glance = head_run(query, key, 7, "per layer")[-1]
    wanted = rope.rotate(key, [7, 8, 9, 10, 11, 12, 13, 8, 9])
    np.testing.assert_allclose(glance.keys[0], wanted, atol=1e-14)


def test_the_misplaced_share_is_a_distance_of_two_rows_of_weights(rng):
    one, other = rng.dirichlet(np.ones(7), size=(2, 3, 5))
    wanted = np.zeros((3, 5))
    for i, j, token in np.ndindex(3, 5, 7):
        wanted[i, j] += max(one[i, j, token] - other[i, j, token], 0)
    np.testing.assert_allclose(misplaced(one, other), wanted, atol=1e-15)
    assert misplaced(one, one).max() == 0
    assert misplaced(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("query", (np.ones(4), np.ones((3, 4)), 2)),
        ("query", (np.ones((1, 3, 4)), np.ones((3, 4)), 2)),
        ("key", (np.ones((3, 4)), np.ones((3, 6)), 2)),
        ("key", (np.ones((3, 4)), np.full((3, 4), np.nan), 2)),
        ("prompt", (np.ones((3, 4)), np.ones((3, 4)), 4)),
        ("prompt", (np.ones((3, 4)), np.ones((3, 4)), 0)),
    ],
)
def test_bad_input_is_refused(name, arguments):
    for function in (head_run, head_whole):
        with pytest.raises(ValueError, match=f"^{name}: got "):
            function(*arguments)
    with pytest.raises(ValueError, match=r"^fault: got 'of mine', want one of 'none', "):
        head_run(np.ones((3, 4)), np.ones((3, 4)), 2, "of mine")
    for function in (head_run, head_whole):
        with pytest.raises(ValueError, match=r"^trained_length: got 0"):
            function(np.ones((3, 4)), np.ones((3, 4)), 2, trained_length=0)
