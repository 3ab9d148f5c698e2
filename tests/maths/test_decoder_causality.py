"""One token changed: what may move and what may not, for every mask, right and wrong."""

import numpy as np
import pytest

from transformer_parts.maths.decoder import (
    DecoderLayer,
    StackConfig,
    layer_weights,
    leak,
    random_layer,
    spread,
    stack,
    streams,
)
from transformer_parts.maths.initialization import initial_weights

LENGTH, WIDTH = 7, 10


def a_config(**changes) -> StackConfig:
    return StackConfig(**{"vocab_size": 5, "n_layers": 1, "d_model": WIDTH, "n_heads": 5, "d_ff": 13} | changes)


def a_stack(config, n_layers=3):
    return [random_layer(config, std=0.4, seed=i) for i in range(n_layers)]


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("token", range(LENGTH))
def test_nothing_before_the_token_moves_at_all(rng, placement, norm, token):
    config = a_config(placement=placement, norm=norm)
    x, change = rng.normal(size=(LENGTH, WIDTH)), rng.normal(size=WIDTH)
    moved = spread(a_stack(config), x, token, change, config)
    assert moved.shape == (4, LENGTH, WIDTH)
    assert leak(moved, token) == 0.0  # not nearly: exactly
    assert (moved[1:, token:].max(-1) > 1e-6).all()
    np.testing.assert_allclose(moved[0, token], np.abs(change), atol=1e-15)
    assert not np.delete(moved[0], token, axis=0).any()


def reached(config, sees, token, n_layers, rng):
    x, change = rng.normal(size=(LENGTH, WIDTH)), rng.normal(size=WIDTH)
    return spread(a_stack(config, n_layers), x, token, change, config, sees=sees).max(-1) > 0


def test_without_a_mask_everything_moves_in_the_first_layer(rng):
    assert reached(a_config(), "everything", 4, 2, rng)[1:].all()


def test_one_diagonal_too_far_leaks_one_position_further_in_each_layer(rng):
    moved = reached(a_config(), "one ahead", 5, 4, rng)
    assert [int(row.argmax()) for row in moved] == [5, 4, 3, 2, 1]


def test_the_wrong_way_moves_what_stands_before_alone(rng):
    moved = reached(a_config(), "wrong way", 4, 2, rng)
    np.testing.assert_array_equal(moved[1:], [[True] * 5 + [False] * 2] * 2)


def test_streams_are_those_of_the_decoder_layer(rng):
    config, x = a_config(), rng.normal(size=(2, LENGTH, WIDTH))
    weights = a_stack(config)
    found = streams(weights, x, config)
    np.testing.assert_array_equal(found[0], x)
    for before, after, layer in zip(found, found[1:], weights, strict=False):
        wanted = DecoderLayer(**layer, n_heads=5, n_kv_heads=5, eps=config.eps)(before)
        np.testing.assert_allclose(after, wanted, rtol=0, atol=1e-12)


def test_streams_are_those_of_the_whole_decoder():
    config = a_config(n_layers=3, vocab_size=11)
    weights = initial_weights(config, std=0.4)
    tokens = np.arange(LENGTH) % 5
    _, tape = stack.forward(weights, tokens, config)
    layers = [layer_weights(weights, i) for i in range(3)]
    np.testing.assert_allclose(streams(layers, tape.streams[0], config), tape.streams, rtol=0, atol=1e-12)


def test_the_spread_is_the_difference_of_two_runs(rng):
    config, x, change = a_config(), rng.normal(size=(LENGTH, WIDTH)), rng.normal(size=WIDTH)
    weights, other = a_stack(config), x.copy()
    other[3] += change
    wanted = np.abs(streams(weights, other, config) - streams(weights, x, config))
    np.testing.assert_array_equal(spread(weights, x, 3, change, config), wanted)


def test_leak_is_the_largest_before_the_token():
    moved = np.arange(24.0).reshape(2, 3, 4)
    assert [leak(moved, token) for token in range(3)] == [0.0, 15.0, 19.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"token": LENGTH}, "^token: got 7, want .*at most 6"),
        ({"token": -1}, "^token: got -1"),
        ({"change": np.ones(3)}, r"^change: got shape \(3,\)"),
        ({"x": np.ones((2, LENGTH, WIDTH))}, "^x: got shape"),
        ({"sees": "no one"}, "^sees: got 'no one'"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, message):
    config = a_config()
    good = {"layers": a_stack(config), "x": np.ones((LENGTH, WIDTH)), "token": 1, "change": np.ones(WIDTH)}
    with pytest.raises(ValueError, match=message):
        spread(**good | arguments, config=config)


def test_leak_refuses_a_token_that_is_not_there():
    with pytest.raises(ValueError, match=r"^token: got 2"):
        leak(np.ones((2, 3)), 2)
