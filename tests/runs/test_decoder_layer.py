"""The recorded runs of notebook 14: short pieces run anew agree with the file; the honest loss is honest."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.maths.cross_entropy import cross_entropy
from transformer_parts.maths.decoder import StackConfig, forward, loss_and_gradients, shapes
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.training import Plan
from transformer_parts.runs import decoder_layer, recorded

SMALL = StackConfig(vocab_size=11, n_layers=2, d_model=8, n_heads=2, d_ff=12)


@pytest.fixture(scope="module")
def recording():
    return recorded.load(decoder_layer.NAME)


def test_the_recording_is_of_the_present_settings(recording):
    assert StackConfig(**recording.arguments["config"]) == decoder_layer.CONFIG
    assert Plan(**recording.arguments["plan"]) == decoder_layer.PLAN
    assert recording.arguments["variants"] == {name: dict(change) for name, change in decoder_layer.VARIANTS.items()}
    assert tuple(recording.arguments["seeds"]) == decoder_layer.SEEDS
    assert set(recording.series) == set(decoder_layer.VARIANTS)
    looks, length = decoder_layer.PLAN.steps // decoder_layer.EVERY + 1, decoder_layer.PLAN.length
    for found in recording.series.values():
        assert found["training"].shape == (len(decoder_layer.SEEDS), looks - 1)
        assert found["honest_where_known"].shape == found["honest"].shape == (len(decoder_layer.SEEDS), looks)
        assert found["honest_by_position"].shape == found["seen_by_position"].shape == (looks, length)


@pytest.mark.parametrize("variant", decoder_layer.VARIANTS)
def test_the_first_steps_run_anew_are_the_recorded_ones(recording, variant):
    """float32 differs between machines in its last digits, which ten steps do not yet make large."""
    found, file = decoder_layer.run(variant, 0, steps=decoder_layer.EVERY), recording.series[variant]
    np.testing.assert_allclose(found["training"], file["training"][0, :1], rtol=0, atol=2e-3)
    np.testing.assert_allclose(found["honest"], file["honest_by_position"][:2], rtol=0, atol=5e-3)
    np.testing.assert_allclose(found["seen"], file["seen_by_position"][:2], rtol=0, atol=5e-3)


def test_the_honest_loss_of_a_causal_decoder_is_its_loss(rng):
    weights, tokens = initial_weights(SMALL, std=0.5), rng.integers(0, 11, (3, 8))
    found = decoder_layer.honest_loss(weights, tokens, SMALL)
    assert found.shape == (7,)
    logits, _ = forward(weights, tokens[:, :-1], SMALL)
    assert found.mean() == pytest.approx(cross_entropy(logits, tokens[:, 1:]), abs=1e-12)
    np.testing.assert_allclose(found, decoder_layer.seen_loss(weights, tokens, SMALL, "usual"), atol=1e-12)


def test_the_honest_loss_never_reads_what_is_to_be_foretold(rng):
    config = dataclasses.replace(SMALL, causal=False)
    weights, tokens = initial_weights(config, std=0.5), rng.integers(0, 11, (1, 8))
    honest, seen = (
        decoder_layer.honest_loss(weights, tokens, config),
        decoder_layer.seen_loss(weights, tokens, config, "no mask"),
    )
    other = tokens.copy()
    other[0, 5] = (other[0, 5] + 1) % 11
    np.testing.assert_allclose(decoder_layer.honest_loss(weights, other, config)[:4], honest[:4], atol=1e-12)
    assert np.abs(decoder_layer.seen_loss(weights, other, config, "no mask")[:4] - seen[:4]).max() > 1e-3
    assert honest[-1] == pytest.approx(seen[-1], abs=1e-12)  # at the last position nothing more is there to see


def test_targets_that_are_not_shifted_are_the_tokens_read():
    draw = decoder_layer.batches("targets not shifted", decoder_layer.PLAN, decoder_layer.CONFIG)
    tokens, targets = draw(0)
    np.testing.assert_array_equal(targets, tokens)
    usual_tokens, usual = decoder_layer.batches("usual", decoder_layer.PLAN, decoder_layer.CONFIG)(0)
    np.testing.assert_array_equal(tokens, usual_tokens)
    np.testing.assert_array_equal(usual[:, :-1], tokens[:, 1:])
    assert tokens.shape == (decoder_layer.PLAN.batch_size, decoder_layer.PLAN.length)


def test_held_out_sequences_repeat_their_segment():
    tokens = decoder_layer.held_out(decoder_layer.CONFIG, 40)
    assert tokens.shape == (decoder_layer.HELD_OUT, 41)
    np.testing.assert_array_equal(tokens[:, decoder_layer.SEGMENT :], tokens[:, : -decoder_layer.SEGMENT])


def test_gradients_without_the_mask_are_the_central_differences(rng):
    config = dataclasses.replace(SMALL, causal=False)
    weights = {name: rng.normal(0, 0.5, shape) for name, shape in shapes(config).items()}
    tokens, targets = rng.integers(0, 11, (2, 5)), rng.integers(0, 11, (2, 5))
    found = loss_and_gradients(weights, tokens, targets, config)
    causal = loss_and_gradients(weights, tokens, targets, SMALL)
    assert abs(found.loss - causal.loss) > 1e-3
    for name in ("layers.0.w_q", "layers.1.w_v", "embedding"):
        direction = rng.normal(size=weights[name].shape)
        losses = []
        for step in (1e-5, -1e-5):
            moved = weights | {name: weights[name] + step * direction}
            losses.append(loss_and_gradients(moved, tokens, targets, config).loss)
        slope = (losses[0] - losses[1]) / 2e-5
        assert (found.gradients[name] * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_an_unknown_variant_is_refused():
    with pytest.raises(KeyError):
        decoder_layer.run("no such part", 0)
