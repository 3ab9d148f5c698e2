"""The walk through a layer of exchangeable parts: against PyTorch's layer, the library's own, and a count by hand."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.maths import budget
from transformer_parts.maths.attention import causal_mask
from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.maths.decoder_walk import (
    VISIBLE,
    layer_shapes,
    parameter_counts,
    random_layer,
    visible,
    walk,
)
from transformer_parts.maths.stack_config import StackConfig

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


def test_frequencies_of_the_config_are_those_of_the_layer(rng):
    frequencies = (1.0, 0.3, 0.1, 0.03, 0.01)
    config = a_config(inv_freq=frequencies)
    weights, x, steps = a_walk(rng, config)
    layer = DecoderLayer(**weights, n_heads=6, n_kv_heads=3, eps=config.eps, inv_freq=np.array(frequencies))
    np.testing.assert_allclose(steps[-1].value, layer(x), rtol=0, atol=1e-13)
    assert np.abs(walk(weights, x, a_config())[-1].value - layer(x)).max() > 1e-3


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


def test_equal_budget_of_a_plain_layer():
    plain = dataclasses.replace(WORKED, ffn="relu", d_ff=24)
    assert parameter_counts(plain)["ffn"] == parameter_counts(WORKED)["ffn"] == 384


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


def test_post_norm_normalises_the_sum(rng):
    config = a_config(placement="post")
    weights, x, steps = a_walk(rng, config)
    tensors = {step.name: step.value for step in steps}
    np.testing.assert_array_equal(tensors["x"] + tensors["attention"], tensors["sum1"])
    rms = np.sqrt(np.mean(tensors["sum2"] ** 2, -1, keepdims=True) + config.eps)
    np.testing.assert_allclose(tensors["Y"], tensors["sum2"] / rms * weights["ffn_norm"], atol=1e-14)
    np.testing.assert_array_equal(tensors["x"], x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"config": {"d_model": 8}}, "^config: got a dict, want a StackConfig"),
        ({"config": dataclasses.replace(WORKED, placement="sandwich")}, "^placement: got 'sandwich'"),
        ({"config": dataclasses.replace(WORKED, qk_norm=True)}, "^qk_norm: got True"),
        ({"config": dataclasses.replace(WORKED, ffn="relu")}, "^weights: got no w_in"),
        ({"config": dataclasses.replace(WORKED, d_ff=11)}, r"^w_gate: got shape \(8, 16\), want shape \(8, 11\)"),
        ({"x": np.ones((3, 7))}, "^x: got .*want a last axis of 8"),
        ({"x": np.ones(8)}, "^x: got"),
        ({"x": np.full((3, 8), np.nan)}, "^x: got nan"),
        ({"sees": "nothing"}, "^sees: got 'nothing'"),
        ({"weights": random_layer(WORKED) | {"w_down": np.full((16, 8), np.nan)}}, "^w_down: got nan at index"),
        ({"weights": random_layer(WORKED) | {"w_up": None}}, "^w_up: got "),
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
