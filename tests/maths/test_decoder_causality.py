"""The walk through a layer, against PyTorch's, `DecoderLayer` and a count by hand; and whom a changed token reaches."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.maths import budget
from transformer_parts.maths.attention import causal_mask
from transformer_parts.maths.decoder import (
    VISIBLE,
    DecoderLayer,
    StackConfig,
    forward,
    layer_shapes,
    layer_weights,
    leak,
    parameter_counts,
    random_layer,
    spread,
    streams,
    visible,
    walk,
)
from transformer_parts.maths.initialization import initial_weights

WORKED = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)


def a_config(**changes) -> StackConfig:
    sizes = {"vocab_size": 5, "n_layers": 1, "d_model": 13, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 17}
    return StackConfig(**sizes | changes)


def a_walk(rng, config, **settings):
    weights = random_layer(config, std=0.3)
    for name in weights:  # gains that are not 1 and biases that are not 0
        if "norm" in name:
            weights[name] = weights[name] + rng.uniform(-0.5, 0.5, weights[name].shape)
    x = rng.normal(size=(2, 7, config.d_model))
    return weights, x, walk(weights, x, config, **settings)


def test_by_default_it_is_the_decoder_layer(rng):
    config = a_config(eps=1e-3, rope_base=500.0)
    weights, x, steps = a_walk(rng, config)
    layer = DecoderLayer(**weights, n_heads=6, n_kv_heads=3, eps=1e-3, rope_base=500.0)
    wanted = layer.trace(x)
    assert [step[:2] for step in steps] == [step[:2] for step in wanted]
    for got, want in zip(steps, wanted, strict=True):
        np.testing.assert_allclose(got.value, want.value, rtol=0, atol=1e-13, err_msg=got.name)


@pytest.mark.oracle
@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("ffn", ["relu", "gelu"])
@pytest.mark.parametrize("sees", ["causal", "everything"])
def test_layer_norm_plain_ffn_and_no_rope_are_pytorchs_layer(rng, torch, placement, ffn, sees):
    config = StackConfig(
        vocab_size=5, n_layers=1, d_model=14, n_heads=2, d_ff=17, norm="layer", ffn=ffn, rope_base=None,
        placement=placement,
    )  # fmt: skip
    weights, x, steps = a_walk(rng, config, sees=sees)
    theirs = torch.nn.TransformerEncoderLayer(
        14, 2, 17, dropout=0.0, activation=ffn, batch_first=True, norm_first=placement == "pre", layer_norm_eps=1e-5
    ).double()
    zeros = {"self_attn.in_proj_bias": 42, "self_attn.out_proj.bias": 14, "linear1.bias": 17, "linear2.bias": 14}
    state = {name: np.zeros(size) for name, size in zeros.items()}
    state["self_attn.in_proj_weight"] = np.concatenate([weights[name].T for name in ("w_q", "w_k", "w_v")])
    state |= {
        name: weights[ours].T
        for name, ours in {
            "self_attn.out_proj.weight": "w_o",
            "linear1.weight": "w_in",
            "linear2.weight": "w_out",
            "norm1.weight": "attn_norm",
            "norm1.bias": "attn_norm_bias",
            "norm2.weight": "ffn_norm",
            "norm2.bias": "ffn_norm_bias",
        }.items()
    }
    theirs.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in state.items()})
    mask = torch.from_numpy(~causal_mask(7)) if sees == "causal" else None
    wanted = theirs(torch.from_numpy(x), src_mask=mask).detach().numpy()
    np.testing.assert_allclose(steps[-1].value, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, "x norm1 q k v q_rotated k_rotated scores weights mixed attention U norm2 gate up product ffn Y"),
        ({"rope_base": None}, "x norm1 q k v scores weights mixed attention U norm2 gate up product ffn Y"),
        ({"ffn": "relu"}, "x norm1 q k v q_rotated k_rotated scores weights mixed attention U norm2 hidden ffn Y"),
        (
            {"placement": "post"},
            "x q k v q_rotated k_rotated scores weights mixed attention sum1 U gate up product ffn sum2 Y",
        ),
    ],
)
def test_every_tensor_is_named_in_order_and_has_its_axes(rng, changes, names):
    config = a_config(**changes)
    _, _, steps = a_walk(rng, config)
    assert " ".join(step.name for step in steps) == names
    sizes = {"D": 13, "H": 6, "G": 3, "K": 10, "L": 7, "S": 7, "F": 17}
    for step in steps:
        dots, *letters = step.axes.split()
        assert dots == "…"
        assert step.value.shape == (2, *(sizes[letter] for letter in letters)), step.name


@pytest.mark.parametrize(
    "changes",
    [{}, {"norm": "layer"}, {"ffn": "gelu"}, {"ffn": "reglu"}, {"rope_base": None}, {"placement": "post"}],
)
def test_each_weight_is_used_once_and_counted_once(rng, changes):
    config = a_config(**changes)
    weights, _, steps = a_walk(rng, config)
    used = [name for step in steps for name in step.uses]
    assert sorted(used) == sorted(weights)
    counts = parameter_counts(config)
    assert sum(step.parameters for step in steps) == sum(w.size for w in weights.values()) == counts["total"]
    # an independent count
    tally = budget.count(config.budget)
    norms = 4 * 13 if config.norm == "layer" else 2 * 13
    assert counts["norms"] == norms
    final = norms // 2 if config.final_norm else 0
    assert counts["total"] == tally.total - 5 * 13 - final


def test_the_worked_sizes():
    assert parameter_counts(WORKED) == {"attention": 256, "ffn": 384, "norms": 16, "total": 656}
    steps = {step.name: step for step in walk(random_layer(WORKED), np.ones((2, 3, 8)), WORKED)}
    assert [steps[name].parameters for name in ("norm1", "q", "k", "v", "attention")] == [8, 64, 64, 64, 64]
    assert [steps[name].parameters for name in ("norm2", "gate", "up", "ffn")] == [8, 128, 128, 128]
    assert steps["q_rotated"].parameters == 0
    # six tokens; 2·8·8 for each square matrix and token
    assert [steps[name].flops for name in ("q", "scores", "mixed", "gate", "norm1")] == [768, 288, 288, 1536, 0]


@pytest.mark.parametrize("ffn", ["swiglu", "relu"])
def test_operations_are_those_of_the_budget(rng, ffn):
    config = a_config(ffn=ffn)
    _, _, steps = a_walk(rng, config)
    per_token = budget.flops_per_token(config.budget, 7)
    head = 2 * config.vocab_size * config.d_model
    assert sum(step.flops for step in steps) == 14 * (per_token.weights - head + per_token.attention)


def test_exchanging_a_part_leaves_the_other_weights():
    one, other = random_layer(WORKED), random_layer(dataclasses.replace(WORKED, ffn="relu", norm="layer"))
    for name in ("w_q", "w_k", "w_v", "w_o", "attn_norm"):
        np.testing.assert_array_equal(one[name], other[name])
    assert set(other) - set(one) == {"w_in", "w_out", "attn_norm_bias", "ffn_norm_bias"}
    assert set(other) == set(layer_shapes(dataclasses.replace(WORKED, ffn="relu", norm="layer")))
    assert (random_layer(WORKED, seed=1)["w_q"] != one["w_q"]).all()
    drawn = random_layer(dataclasses.replace(WORKED, d_model=64, d_ff=256))["w_up"]
    assert abs(drawn.std() - 0.02) < 5 * 0.02 / np.sqrt(2 * drawn.size)
    assert not np.array_equal(one["w_gate"], one["w_up"])


def test_who_sees_whom():
    np.testing.assert_array_equal(visible("causal", 7), causal_mask(7))
    np.testing.assert_array_equal(visible("wrong way", 7), causal_mask(7).T)
    assert visible("everything", 7).all()
    ahead = visible("one ahead", 7)
    assert [row.sum() for row in ahead] == [2, 3, 4, 5, 6, 7, 7]
    assert set(VISIBLE) == {"causal", "everything", "one ahead", "wrong way"}


@pytest.mark.parametrize("sees", VISIBLE)
def test_weights_are_zero_where_a_token_may_not_look(rng, sees):
    _, _, steps = a_walk(rng, a_config(), sees=sees)
    (weights,) = [step.value for step in steps if step.name == "weights"]
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(visible(sees, 7), weights.shape))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"config": {"d_model": 8}}, "^config: got a dict, want a StackConfig"),
        ({"config": dataclasses.replace(WORKED, placement="sandwich")}, "^config.placement: got 'sandwich'"),
        ({"config": dataclasses.replace(WORKED, qk_norm=True)}, "^config: got qk_norm=True"),
        ({"config": dataclasses.replace(WORKED, ffn="relu")}, "^weights: got no w_in"),
        (
            {"config": dataclasses.replace(WORKED, d_ff=11)},
            r"^weights\['w_gate'\]: got shape \(8, 16\), want shape \(8, 11\)",
        ),
        ({"x": np.ones((3, 7))}, "^x: got .*want a last axis of 8"),
        ({"x": np.ones(8)}, "^x: got"),
        ({"x": np.full((3, 8), np.nan)}, "^x: got nan"),
        ({"sees": "nothing"}, "^sees: got 'nothing'"),
        (
            {"weights": random_layer(WORKED) | {"w_down": np.full((16, 8), np.nan)}},
            r"^weights\['w_down'\]: got nan at index",
        ),
        ({"weights": random_layer(WORKED) | {"w_up": None}}, r"^weights\['w_up'\]: got "),
    ],
)
def test_bad_input_is_refused_by_name(arguments, message):
    good = {"weights": random_layer(WORKED), "x": np.ones((3, 8)), "config": WORKED}
    with pytest.raises(ValueError, match=message):
        walk(**good | arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_layer(WORKED, std=-1.0), "^std: got -1.0"),
        (lambda: random_layer(WORKED, seed=-1), "^seed: got -1"),
        (lambda: visible("causal", 0), "^L: got 0"),
        (lambda: visible("Causal", 3), "^sees: got 'Causal'"),
    ],
)
def test_bad_settings_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


LENGTH, WIDTH = 7, 10


def a_narrow(**changes) -> StackConfig:
    return StackConfig(**{"vocab_size": 5, "n_layers": 1, "d_model": WIDTH, "n_heads": 5, "d_ff": 13} | changes)


def a_stack(config, n_layers=3):
    return [random_layer(config, std=0.4, seed=i) for i in range(n_layers)]


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("token", range(LENGTH))
def test_nothing_before_the_token_moves_at_all(rng, placement, norm, token):
    config = a_narrow(placement=placement, norm=norm)
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
    assert reached(a_narrow(), "everything", 4, 2, rng)[1:].all()


def test_one_diagonal_too_far_leaks_one_position_further_in_each_layer(rng):
    moved = reached(a_narrow(), "one ahead", 5, 4, rng)
    assert [int(row.argmax()) for row in moved] == [5, 4, 3, 2, 1]


def test_the_wrong_way_moves_what_stands_before_alone(rng):
    moved = reached(a_narrow(), "wrong way", 4, 2, rng)
    np.testing.assert_array_equal(moved[1:], [[True] * 5 + [False] * 2] * 2)


def test_streams_are_those_of_the_whole_decoder():
    config = a_narrow(n_layers=3, vocab_size=11)
    weights = initial_weights(config, std=0.4)
    tokens = np.arange(LENGTH) % 5
    _, tape = forward(weights, tokens, config)
    layers = [layer_weights(weights, i) for i in range(3)]
    np.testing.assert_allclose(streams(layers, tape.streams[0], config), tape.streams, rtol=0, atol=1e-12)


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
def test_bad_changes_are_refused_by_name(arguments, message):
    config = a_narrow()
    good = {"layers": a_stack(config), "x": np.ones((LENGTH, WIDTH)), "token": 1, "change": np.ones(WIDTH)}
    with pytest.raises(ValueError, match=message):
        spread(**good | arguments, config=config)


def test_leak_refuses_a_token_that_is_not_there():
    with pytest.raises(ValueError, match=r"^token: got 2"):
        leak(np.ones((2, 3)), 2)
