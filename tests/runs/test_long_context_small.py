"""The small decoder's extension: methods against one another, and a short piece of the recording run anew."""

import numpy as np
import pytest

from transformer_parts.maths.context_extension import ScaledRope
from transformer_parts.maths.decoder import forward
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.runs import long_context_small as small
from transformer_parts.runs import recorded


@pytest.fixture(scope="module")
def weights():
    return initial_weights(small.config(), std=0.1, seed=5)


@pytest.mark.parametrize("method", small.METHODS)
def test_within_the_trained_length_nothing_changes(weights, method):
    like = small.config()
    changed, other = small.extended(weights, like, small.scaled_rope(method, small.TRAINED, like))
    tokens = np.arange(40)[None] % 64
    np.testing.assert_allclose(forward(changed, tokens, other)[0], forward(weights, tokens, like)[0], atol=1e-12)


def test_the_attention_factor_multiplies_the_scores_by_its_square(weights):
    like = small.config()
    frequencies = small.scaled_rope("plain", 64, like).inv_freq
    changed, other = small.extended(weights, like, ScaledRope(frequencies, 1.5))
    tokens = np.arange(9)[None]
    ours, theirs = (forward(w, tokens, c)[1].layers[0]["query"] for w, c in ((changed, other), (weights, like)))
    np.testing.assert_allclose(ours, 2.25 * theirs, rtol=1e-12)


def test_accuracy_and_loss_of_a_decoder_that_only_guesses(weights):
    like = small.config()
    still = {name: np.zeros_like(w) for name, w in weights.items()}
    result = small.tried(still, like, 64, 0)
    assert result.loss == pytest.approx(np.log(64), rel=1e-9)
    assert result.accuracy < 0.1


def test_another_method_is_refused():
    with pytest.raises(ValueError, match="method: got 'restarted'"):
        small.scaled_rope("restarted", 128, small.config())


def test_training_begins_as_recorded():
    recording = recorded.load(small.NAME)
    losses = [loss for _, loss, _ in small.trained(0, steps=20)]
    np.testing.assert_allclose(losses, recording.series["seed 0"]["first_losses"][:20], rtol=1e-3)
    assert recording.arguments["steps"] == small.STEPS
    for seed in small.SEEDS:
        assert recording.series[f"seed {seed}"].keys() == {"training_loss", "first_losses", *small.METHODS}
