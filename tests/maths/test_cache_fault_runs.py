import dataclasses

import numpy as np
import pytest

from transformer_parts.maths.cache import KVCache
from transformer_parts.maths.cache_decoding import stack_step
from transformer_parts.maths.cache_fault_runs import decode, whole
from transformer_parts.maths.cache_faults import FAULTS
from transformer_parts.maths.context_extension import dynamic_ntk
from transformer_parts.maths.decoder import DecoderLayer

EXACT = 1e-12


def a_stack(n=3, **settings):
    sizes = {"d_model": 13, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 17, "std": 0.25}
    return [DecoderLayer.random(**(sizes | settings), seed=seed) for seed in range(n)]


def errors(rng, fault, *, layers=3, prompt=7, pad=3, trained_length=9, steps=6, **settings):
    stack, x = a_stack(layers, **settings), rng.normal(size=(pad + prompt + steps, 13))
    dynamic = trained_length if FAULTS[fault].dynamic else None
    right = whole(stack, x, prompt, pad=pad, trained_length=dynamic)
    return decode(stack, x, prompt, fault, pad=pad, trained_length=trained_length).errors(right)


@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_the_right_way_is_that_of_the_library(rng, layout):
    stack, x = a_stack(layout=layout), rng.normal(size=(14, 13))
    caches = [KVCache() for _ in stack]
    chunks = [x[:7], *x[7:, None]]
    valid = [np.arange(7) >= 3, *[np.array([True])] * 7]
    wanted = [stack_step(stack, chunk, caches, valid=v)[-1] for chunk, v in zip(chunks, valid, strict=True)]
    run = decode(stack, x, 4, pad=3, layer=2)
    np.testing.assert_allclose(run.outputs, wanted, rtol=0, atol=EXACT)
    np.testing.assert_allclose(run.glances[-1].keys[:, 3:], caches[2].keys[:, 3:], rtol=0, atol=EXACT)


def test_the_right_answer_is_a_pass_of_the_layers(rng):
    stack, x = a_stack(), rng.normal(size=(12, 13))
    run = whole(stack, x, 5, pad=2, layer=1)
    stream = stack[0](x[2:])
    steps = {step.name: step.value for step in stack[1].trace(stream)}
    np.testing.assert_array_equal(run.outputs, stack[2](stack[1](stream))[4:])
    for t, glance in enumerate(run.glances, start=4):
        np.testing.assert_array_equal(glance.query, steps["q_rotated"][:, t])
        np.testing.assert_array_equal(glance.keys, steps["k_rotated"][:, : t + 1])
        np.testing.assert_array_equal(glance.weights, steps["weights"][:, t, : t + 1])


def test_with_a_base_that_follows_the_length_every_length_is_a_pass(rng):
    stack, x = a_stack(), rng.normal(size=(12, 13))
    run = whole(stack, x, 5, trained_length=8)
    for output, length in zip(run.outputs, range(5, 13), strict=True):
        now = dynamic_ntk(10, length, 8).inv_freq
        stream = x[:length]
        for layer in stack:
            stream = dataclasses.replace(layer, inv_freq=now)(stream)
        np.testing.assert_allclose(output, stream[-1], rtol=0, atol=EXACT)
    np.testing.assert_array_equal(whole(stack, x, 5, trained_length=12).outputs, whole(stack, x, 5).outputs)
    assert whole(stack, x, 5, trained_length=2).outputs.shape == (8, 13)


@pytest.mark.parametrize("fault", ["restart", "off by one", "head axis", "rotated again", "per layer"])
def test_these_show_at_the_first_decoded_token_and_not_before(rng, fault):
    made = errors(rng, fault)
    assert made[0] < EXACT
    assert (made[1:] > 0.01).all()


def test_padding_that_is_seen_is_wrong_from_the_prompt_on(rng):
    assert (errors(rng, "padding seen") > 0.01).all()
    assert (errors(rng, "padding seen", pad=0) < EXACT).all()


def test_padding_that_is_counted_is_wrong_only_where_it_is_not_counted_everywhere(rng):
    assert (errors(rng, "padding counted") < EXACT).all()
    made = errors(rng, "padding counted once decoding")
    assert made[0] < EXACT
    assert (made[1:] > 0.01).all()
    assert (errors(rng, "padding counted once decoding", pad=0) < EXACT).all()


def test_one_layer_has_no_other_layer_to_disagree_with(rng):
    assert (errors(rng, "per layer", layers=1) < EXACT).all()


def test_a_base_that_changes_is_exact_only_with_unrotated_keys_and_in_one_layer(rng):
    # lengths 7 … 13, trained 9: the base changes from the third further token on
    for fault, layers, exact in (
        ("base changed, rotated keys", 1, False),
        ("base changed, unrotated keys", 1, True),
        ("base changed, rotated keys", 3, False),
        ("base changed, unrotated keys", 3, False),
    ):
        made = errors(rng, fault, layers=layers, rope_base=50.0)
        assert (made[:3] < EXACT).all()
        assert (made[3:] < EXACT).all() == exact
        assert exact or made[3:].max() > 1e-3


def test_a_base_that_is_not_restored_is_wrong_for_a_short_text(rng):
    assert (errors(rng, "base not restored", steps=1, rope_base=50.0) > 1e-3).all()


def test_a_prompt_of_one_token_hides_what_moves_all_tokens_alike(rng):
    # Token 0 at 0 and every later token one place too far: all offsets among the later ones are right.
    stack, x = a_stack(1), rng.normal(size=(6, 13))
    glance = decode(stack, x, 1, "off by one").glances[-1]
    right = whole(stack, x, 1).glances[-1]
    scores, wanted = (np.einsum("gk,gsk->gs", g.query[::2], g.keys) for g in (glance, right))
    np.testing.assert_allclose(scores[:, 1:], wanted[:, 1:], atol=EXACT)
    assert np.abs(scores[:, 0] - wanted[:, 0]).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("fault", {"fault": "of mine"}),
        ("x", {"x": np.ones((2, 9, 13))}),
        ("x", {"x": np.full((9, 13), np.nan)}),
        ("prompt", {"prompt": 0}),
        ("prompt", {"prompt": 8}),
        ("pad", {"pad": -1}),
        ("pad", {"pad": 9}),
        ("layer", {"layer": 3}),
        ("layers", {"layers": []}),
        ("trained_length", {"trained_length": 0}),
    ],
)
def test_bad_input_is_refused(name, changed):
    given = {"layers": a_stack(), "x": np.ones((9, 13)), "prompt": 5, "fault": "none", "pad": 2, "layer": 0}
    with pytest.raises(ValueError, match=f"^{name}: got "):
        decode(**(given | changed))
    given.pop("fault")
    if name != "fault":
        with pytest.raises(ValueError, match=f"^{name}: got "):
            whole(**(given | changed))
