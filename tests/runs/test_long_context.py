"""The measurement on a small model: each method against the model run another way, and the recorded file."""

from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.maths import context_extension
from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.models import weights
from transformer_parts.models.configs import LlamaSizes
from transformer_parts.models.fused_layer import FusedLayer
from transformer_parts.models.smollm2 import SmolLM2, load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile
from transformer_parts.runs import long_context, long_text, recorded


@pytest.fixture(scope="module")
def model():
    """Two small layers, trained to 8 tokens, as they say."""
    settings = {"d_model": 42, "n_heads": 6, "n_kv_heads": 2, "head_dim": 10, "d_ff": 31, "std": 0.3}
    settings |= {"rope_base": 5000.0, "dtype": np.float32}
    layers = tuple(FusedLayer.of(DecoderLayer.random(**settings, seed=seed)) for seed in (1, 2))
    embedding = np.random.default_rng(3).normal(0, 1, (263, 42)).astype(np.float32)
    sizes = LlamaSizes(263, 42, 2, 6, 2, 10, 31, context_length=8, rope_base=5000.0, eps=1e-6)
    return SmolLM2(sizes, embedding, layers, np.ones(42, np.float32), embedding.T)


@pytest.fixture(scope="module")
def ids():
    return np.random.default_rng(5).integers(0, 263, 19)


def losses_of(logits, ids):
    z = logits.astype(np.float64)
    z -= z.max(axis=-1, keepdims=True)
    return np.log(np.exp(z).sum(-1)) - z[np.arange(len(z)), ids]


def test_plain_losses_by_the_whole_logits(model, ids):
    ours = long_context.method_losses(model, "plain", ids)
    np.testing.assert_allclose(ours, losses_of(model.forward(ids)[:-1], ids[1:]), rtol=1e-4, atol=1e-4)


def test_interpolation_divides_the_positions(model, ids):
    ours = long_context.method_losses(model, "position_interpolation", ids)
    positions = np.arange(19) * 8 / 19
    np.testing.assert_allclose(ours, losses_of(model.forward(ids, positions)[:-1], ids[1:]), rtol=1e-3, atol=1e-4)


def test_yarn_has_its_frequencies_and_its_factor(model, ids):
    scaled = context_extension.yarn(10, 19 / 8, 8, rope_base=5000.0)
    layers = tuple(
        replace(layer, inv_freq=scaled.inv_freq, scale=(0.1 * np.log(19 / 8) + 1) ** 2 / 10**0.5)
        for layer in model.layers
    )
    theirs = losses_of(replace(model, layers=layers).forward(ids)[:-1], ids[1:])
    np.testing.assert_allclose(long_context.method_losses(model, "yarn", ids), theirs, rtol=1e-4, atol=1e-4)


def test_dynamic_ntk_is_the_trained_model_up_to_the_trained_length(model, ids):
    ours = long_context.method_losses(model, "dynamic_ntk", ids)
    plain = long_context.method_losses(model, "plain", ids)
    np.testing.assert_allclose(ours[:7], plain[:7], rtol=1e-4, atol=1e-4)
    assert np.abs(ours[8:] - plain[8:]).max() > 1e-3


def test_dynamic_frequencies_follow_the_end_of_the_block(model, ids):
    """With one block beyond the trained length: keys and queries there are turned by its end's frequencies."""
    hidden = long_context.hidden_dynamic(model, ids, block=100)
    last = context_extension.dynamic_ntk(10, 19, 8, rope_base=5000.0)
    first = model.layers[0]
    x = model.embedding[ids]
    other = replace(first, inv_freq=last.inv_freq)
    query, keys, values = other.project(x, np.arange(19))
    y = x[8:] + other.attend(query[:, 8:], keys, values)
    y = y + other.feed_forward(y)
    single = replace(model, layers=model.layers[:1])
    np.testing.assert_allclose(long_context.hidden_dynamic(single, ids, block=100)[8:], y, atol=2e-5)
    assert hidden.shape == (19, 42)


def test_restarted_is_the_model_on_each_window(model, ids):
    ours = long_context.method_losses(model, "restarted", ids)
    assert ours.shape == (18,)
    second = losses_of(model.forward(ids[8:16]), ids[9:17])
    np.testing.assert_allclose(ours[8:16], second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", long_context.METHODS)
def test_a_short_text_is_the_trained_models_whatever_the_method(model, ids, method):
    plain = long_context.method_losses(model, "plain", ids[:8])
    np.testing.assert_allclose(long_context.method_losses(model, method, ids[:8]), plain, rtol=1e-4, atol=1e-4)


def test_blocks_hold_every_loss_once():
    losses = np.arange(1, 19, dtype=float)  # of the tokens 1 to 18
    assert long_context.by_block(losses, 5).tolist() == [2.5, 7.0, 12.0, 16.5]


def test_another_method_is_refused(model):
    with pytest.raises(ValueError, match="method: got 'longrope'"):
        long_context.scaled_rope("longrope", model.sizes, 19)


def test_measure_yields_each_method_of_each_window(model, ids):
    found = list(long_context.measure(model, np.concatenate([ids, ids]), [1], length=19))
    assert [(method, window) for method, window, _ in found] == [(method, 1) for method in long_context.METHODS]
    for method, _, means in found:
        wanted = long_context.by_block(long_context.method_losses(model, method, ids))
        np.testing.assert_allclose(means, wanted, rtol=1e-6)


def test_the_recording_begins_as_a_new_run_does():
    """Needs weights and book, which no CI has: run it where the recording is made."""
    package = next(weights.default_folder().glob("debian-handbook_*.deb"), None)
    if package is None or not (weights.default_folder() / weights.FILE_NAME).is_file():
        pytest.skip("no weights or no debian-handbook in the weights' folder")
    recording, book = recorded.load(long_context.NAME), long_text.read_package(package)
    if book.sha256 != recording.arguments["text_sha256"]:
        pytest.skip("another edition of the book")
    file = GGUFFile(weights.find())
    ids = load_tokenizer(file).encode(book.text).ids[: recording.arguments["block"]]
    losses = long_context.method_losses(load_model(file), "plain", ids)
    assert losses.mean() == pytest.approx(recording.series["plain"]["window 0"][0], abs=2e-3)
