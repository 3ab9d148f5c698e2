"""The decoder with other frequencies: forward pass by `DecoderLayer`, gradients by differences."""

from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.maths import rope
from transformer_parts.maths.context_extension import position_interpolation
from transformer_parts.maths.decoder import StackConfig, forward, loss, loss_and_gradients, shapes

CONFIG = StackConfig(vocab_size=11, n_layers=2, d_model=10, n_heads=4, n_kv_heads=2, head_dim=6, d_ff=7)


@pytest.fixture
def weights(rng):
    return {
        name: rng.uniform(0.5, 1.5, shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
        for name, shape in shapes(CONFIG).items()
    }


def test_the_frequencies_of_the_base_change_nothing(weights, rng):
    tokens = rng.integers(0, 11, (2, 5))
    same = replace(CONFIG, inv_freq=tuple(rope.inv_freq(6).tolist()))
    np.testing.assert_array_equal(forward(weights, tokens, same)[0], forward(weights, tokens, CONFIG)[0])


def test_interpolated_by_2_every_second_token_stands_where_the_trained_one_stood(weights, rng):
    weights = {name: w for name, w in weights.items() if not name.startswith("layers.1.")}
    half = replace(CONFIG, inv_freq=tuple(position_interpolation(6, 2).inv_freq.tolist()), n_layers=1)
    one = replace(CONFIG, n_layers=1)
    tokens = rng.integers(0, 11, 4)
    apart = np.stack([tokens, tokens], axis=-1).ravel()
    stretched, plain = (
        forward(weights, ids[None], config)[1].layers[0] for config, ids in ((half, apart), (one, tokens))
    )
    np.testing.assert_allclose(stretched["query"][..., ::2, :], plain["query"], atol=1e-12)
    np.testing.assert_allclose(stretched["key"][..., ::2, :], plain["key"], atol=1e-12)


def test_gradients_by_differences(weights, rng):
    config = replace(CONFIG, inv_freq=(0.5, 0.3, 0.01))
    tokens, targets = rng.integers(0, 11, (2, 5)), rng.integers(0, 11, (2, 5))
    found = loss_and_gradients(weights, tokens, targets, config)
    for name in ("layers.0.w_q", "layers.1.w_k"):
        direction = rng.normal(size=weights[name].shape)
        step = 1e-4
        up, down = (
            loss(weights | {name: weights[name] + sign * step * direction}, tokens, targets, config) for sign in (1, -1)
        )
        assert (found.gradients[name] * direction).sum() == pytest.approx((up - down) / (2 * step), rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inv_freq": (1.0, 0.5)}, "inv_freq: got"),
        ({"inv_freq": (1.0, 0.5, np.nan)}, "inv_freq: got"),
        ({"inv_freq": (1.0, 0.5, 0.1), "rope_base": None}, "inv_freq: got frequencies without RoPE"),
    ],
)
def test_frequencies_that_do_not_fit_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **changed)
