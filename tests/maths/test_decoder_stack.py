"""The whole decoder: each kind against PyTorch, gradients against central differences, its laws and its config."""

import dataclasses
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import norm_placement, rope
from transformer_parts.maths.budget import count
from transformer_parts.maths.context_extension import position_interpolation
from transformer_parts.maths.decoder import (
    FFN_KINDS,
    PLACEMENTS,
    DecoderLayer,
    Layer,
    StackConfig,
    backward,
    forward,
    layer_weights,
    loss,
    loss_and_gradients,
    shapes,
)
from transformer_parts.maths.decoder.layer_gradients import layer_backward, layer_forward
from transformer_parts.maths.decoder.steps import pass_on
from transformer_parts.maths.norms import rms_norm

SIZES = {"vocab_size": 11, "n_layers": 2, "d_model": 10, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6, "d_ff": 7}

# Every placement with both norms and with and without QK-norm; every feed-forward kind; heads, head and positions.
KINDS = [
    *({"placement": p, "norm": n, "qk_norm": q} for p in PLACEMENTS for n in ("rms", "layer") for q in (True, False)),
    *({"ffn": kind} for kind in FFN_KINDS),
    {"tied": False},
    {"rope_base": None},
    {"rope_base": 50.0, "n_kv_heads": 1},
    {"n_kv_heads": 4, "n_layers": 3},
    {"placement": "deepnorm", "alpha": 3.0, "n_layers": 1},
    {"inv_freq": (0.5, 0.3, 0.01), "layout": "split"},
    {"rotary_dim": 4, "scale": 0.7},
    {"rotary_dim": 4, "layout": "split"},
]


def name_of(kind):
    return "-".join(f"{value}" for value in kind.values())


def a_decoder(rng, **kind):
    config = StackConfig(**(SIZES | kind))
    weights = {
        name: rng.uniform(0.5, 1.5, shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
        for name, shape in shapes(config).items()
    }
    return config, weights, rng.integers(0, 11, (2, 5)), rng.integers(-1, 11, (2, 5))


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_gradients_by_differences(rng, kind):
    config, weights, tokens, targets = a_decoder(rng, **kind)
    found = loss_and_gradients(weights, tokens, targets, config)
    assert found.loss == loss(weights, tokens, targets, config)
    assert list(found.gradients) == list(weights)
    step = 1e-5 if config.ffn in ("relu", "reglu") else 2e-3  # a kink must not be stepped over
    for name, w in weights.items():  # along a random direction: an error in any entry shows
        direction = rng.normal(size=w.shape)
        direction /= np.linalg.norm(direction)
        along = [loss(weights | {name: w + k * step * direction}, tokens, targets, config) for k in (2, 1, -1, -2)]
        slope = (-along[0] + 8 * along[1] - 8 * along[2] + along[3]) / (12 * step)
        assert found.gradients[name].shape == w.shape
        assert np.vdot(found.gradients[name], direction) == pytest.approx(slope, rel=1e-6, abs=1e-8), name


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_logits_loss_and_gradients_agree_with_autograd(rng, torch, kind):
    config, weights, tokens, targets = a_decoder(rng, **kind)
    leaves = {name: torch.tensor(w, requires_grad=True) for name, w in weights.items()}
    logits = in_torch(torch, leaves, torch.tensor(tokens), config)
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(targets).flatten(), ignore_index=-1)
    wanted.backward()
    found = loss_and_gradients(weights, tokens, targets, config)
    assert_allclose(forward(weights, tokens, config)[0], logits.detach().numpy(), rtol=0, atol=1e-11)
    assert found.loss == pytest.approx(wanted.item(), rel=1e-12)
    for name, leaf in leaves.items():
        assert_allclose(found.gradients[name], leaf.grad.numpy(), rtol=1e-8, atol=1e-12, err_msg=name)


def in_torch(torch, w, tokens, config):
    """The same decoder of PyTorch's own functions, whose backward pass is PyTorch's."""
    functional = torch.nn.functional
    plain = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
    }
    gates = {"glu": torch.sigmoid, "bilinear": lambda x: x, "reglu": functional.relu}
    gates |= {"geglu": functional.gelu, "swiglu": functional.silu}

    def norm(name, x):
        size = (x.shape[-1],)
        if config.norm == "rms":
            return functional.rms_norm(x, size, w[name], config.eps)
        return functional.layer_norm(x, size, w[name], w[f"{name}_bias"], config.eps)

    def turned(x):
        if config.rope_base is None:
            return x
        width = config.rotary_dim or config.head_dim
        frequencies = config.rope_base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        frequencies = frequencies if config.inv_freq is None else torch.tensor(config.inv_freq, dtype=torch.float64)
        angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequencies
        pairs, axis = ((-1, 2), -1) if config.layout == "interleaved" else ((2, -1), -2)
        a, b = x[..., :width].unflatten(-1, pairs).unbind(axis)
        turned = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos())
        return torch.cat([torch.stack(turned, axis).flatten(-2), x[..., width:]], -1)

    def attention(at, x):
        heads = [(x @ w[f"{at}w_{n}"]).unflatten(-1, (-1, config.head_dim)).transpose(1, 2) for n in "qkv"]
        query, key, value = heads
        if config.qk_norm:
            query, key = norm(f"{at}q_norm", query), norm(f"{at}k_norm", key)
        query, key = turned(query), turned(key)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True, scale=config.scale
        )
        return mixed.transpose(1, 2).flatten(-2) @ w[f"{at}w_o"]

    def feed_forward(at, x):
        if config.ffn in plain:
            return plain[config.ffn](x @ w[f"{at}w_in"]) @ w[f"{at}w_out"]
        return (gates[config.ffn](x @ w[f"{at}w_gate"]) * (x @ w[f"{at}w_up"])) @ w[f"{at}w_down"]

    x = w["embedding"][tokens]
    for i in range(config.n_layers):
        at = f"layers.{i}."
        for branch, name in ((attention, f"{at}attn_norm"), (feed_forward, f"{at}ffn_norm")):
            if config.placement == "pre":
                x = x + branch(at, norm(name, x))
            elif config.placement == "sandwich":
                x = x + norm(f"{name}_out", branch(at, norm(name, x)))
            elif config.placement == "post":
                x = norm(name, x + branch(at, x))
            else:
                x = norm(name, x * (config.alpha) + branch(at, x))
    if config.placement in ("pre", "sandwich"):
        x = norm("final_norm", x)
    return x @ (w["embedding"].T if config.tied else w["head"])


def test_the_stack_is_a_chain_of_decoder_layers(rng):
    config, weights, tokens, _ = a_decoder(rng, eps=1e-4)
    x = weights["embedding"][tokens]
    for i in range(2):
        layer = DecoderLayer(**layer_weights(weights, i), n_heads=4, n_kv_heads=2, eps=1e-4)
        x = layer(x)
    wanted = rms_norm(x, weights["final_norm"], 1e-4) @ weights["embedding"].T
    assert_allclose(forward(weights, tokens, config)[0], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_branches_are_placed_by_the_formulas_of_norm_placement(rng, placement):
    config, weights, _, _ = a_decoder(rng, placement=placement)
    layer, x, matrix = Layer(layer_weights(weights, 0), config), rng.normal(size=(5, 10)), rng.normal(size=(10, 10))

    def branch(x):
        return x @ matrix

    for name in ("attn", "ffn"):
        norm, outer = (lambda x, end=end, name=name: layer.norm(f"{name}_norm{end}", x) for end in ("", "_out"))
        formula, arguments = {
            "pre": (norm_placement.pre_norm, (norm,)),
            "post": (norm_placement.post_norm, (norm,)),
            "sandwich": (norm_placement.sandwich_norm, (norm, outer)),
            "deepnorm": (norm_placement.deep_norm, (norm, config.alpha)),
        }[placement]
        got = layer._add(name, x, branch(layer._read(name, x, pass_on)), pass_on)
        assert_array_equal(got, formula(x, branch, *arguments))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_stream_gradients_by_differences(rng, differences, placement):
    config, weights, tokens, targets = a_decoder(rng, placement=placement, tied=False)
    found = loss_and_gradients(weights, tokens, targets, config)
    x, wanted = found.tape.streams[1], found.stream_gradients[2]
    layer = layer_weights(weights, 1)
    _, kept = layer_forward(layer, x, config)
    got, _ = layer_backward(wanted, layer, kept, config)
    assert_allclose(got, found.stream_gradients[1], rtol=1e-12, atol=1e-15)
    slope = differences(lambda x: np.vdot(wanted, layer_forward(layer, x, config)[0]), x)
    assert_allclose(got, slope, rtol=1e-7, atol=1e-10)
    # the first stream is the looked-up embedding, so that its gradient, summed by token, is the embedding's
    table = np.zeros((11, 10))
    np.add.at(table, tokens, found.stream_gradients[0])
    assert_allclose(found.gradients["embedding"], table, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_no_token_is_seen_before_it_is_read(rng, placement):
    config, weights, tokens, _ = a_decoder(rng, placement=placement)
    before = forward(weights, tokens, config)[0]
    tokens[:, 3] = (tokens[:, 3] + 1) % 11
    after = forward(weights, tokens, config)[0]
    assert_array_equal(after[:, :3], before[:, :3])
    assert np.abs(after - before)[:, 3:].max(-1).min() > 1e-4
    grad = np.zeros_like(after)
    grad[:, 2] = 1
    _, tape = forward(weights, tokens, config)
    streams = backward(grad, weights, tape, config).streams
    assert all((s[:, 3:] == 0).all() and (s[:, :3] != 0).any() for s in streams)


def test_without_rope_the_last_layer_knows_positions_by_the_mask_alone(rng):
    config, weights, tokens, _ = a_decoder(rng, rope_base=None, n_layers=1)
    swapped = tokens[:, [1, 0, 2, 3, 4]]
    # one layer: the last query mixes a set of values, in whatever order
    last = forward(weights, tokens, config)[0][:, -1]
    assert_allclose(forward(weights, swapped, config)[0][:, -1], last, atol=1e-13)
    with_rope = StackConfig(**(SIZES | {"n_layers": 1}))
    moved = forward(weights, swapped, with_rope)[0][:, -1] - forward(weights, tokens, with_rope)[0][:, -1]
    assert np.abs(moved).max() > 1e-3


def test_float32_stays(rng):
    config, weights, tokens, targets = a_decoder(rng, qk_norm=True)
    found = loss_and_gradients({n: w.astype(np.float32) for n, w in weights.items()}, tokens, targets, config)
    assert {g.dtype for g in (*found.gradients.values(), *found.stream_gradients)} == {np.dtype(np.float32)}
    assert found.loss == pytest.approx(loss(weights, tokens, targets, config), rel=1e-5)


def test_one_sequence_needs_no_batch_axis(rng):
    config, weights, tokens, targets = a_decoder(rng)
    one = loss_and_gradients(weights, tokens[0], targets[0], config)
    batch = loss_and_gradients(weights, tokens[:1], targets[:1], config)
    assert one.loss == pytest.approx(batch.loss, rel=1e-13)
    assert_allclose(one.gradients["layers.0.w_q"], batch.gradients["layers.0.w_q"], rtol=1e-10, atol=1e-15)


def test_equal_logits_cost_the_logarithm_of_the_vocabulary(rng):
    config, weights, tokens, targets = a_decoder(rng)
    weights["final_norm"][:] = 0
    assert loss(weights, tokens, targets, config) == pytest.approx(math.log(11), rel=1e-14)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"embedding": None}, "weights"),
        ({"layers.0.w_p": np.ones(3)}, "weights"),
        ({"layers.0.w_q": np.ones((3, 5))}, r"weights\['layers.0.w_q'\]"),
        ({"layers.0.w_q": np.ones((10, 24), np.float16)}, r"weights\['layers.0.w_q'\]"),
        ({"layers.0.w_q": [[1.0]]}, r"weights\['layers.0.w_q'\]"),
    ],
)
def test_weights_that_do_not_fit_are_refused(rng, change, name):
    config, weights, tokens, _ = a_decoder(rng)
    weights = {n: w for n, w in (weights | change).items() if w is not None}
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        forward(weights, tokens, config)


@pytest.mark.parametrize("name", ["embedding", "layers.0.w_down", "layers.1.w_q", "final_norm", "head"])
def test_what_is_not_finite_is_refused_wherever_it_stands(rng, name):
    config, weights, tokens, _ = a_decoder(rng, tied=False)
    weights[name][..., 1] = np.nan
    with pytest.raises(ValueError, match="got nan at index"):
        forward(weights, tokens, config)


def test_numbers_beyond_the_dtype_are_refused_without_a_warning(rng):
    config, weights, tokens, _ = a_decoder(rng, tied=False)
    with pytest.raises(ValueError, match=r"^weights: got logits that are not finite, want logits within float64"):
        forward(weights | {"head": np.full_like(weights["head"], 1e308)}, tokens, config)
    with pytest.raises(ValueError, match=": got "):
        forward({n: 1e200 * w for n, w in weights.items()}, tokens, config)


def test_tokens_and_targets_that_do_not_fit_are_refused(rng):
    config, weights, tokens, targets = a_decoder(rng)
    for bad in (tokens + 11, tokens - 11, tokens * 1.0, np.array(3), tokens[:, :0]):
        with pytest.raises(ValueError, match=r"^tokens: got .*, want "):
            forward(weights, bad, config)
    for bad in (targets[:, :3], targets + 11, targets * 0 - 1):
        with pytest.raises(ValueError, match=r"^targets: got .*, want "):
            loss_and_gradients(weights, tokens, bad, config)


def test_the_frequencies_of_the_base_change_nothing(rng):
    base, weights, tokens, _ = a_decoder(rng)
    same = replace(base, inv_freq=tuple(rope.inv_freq(6).tolist()))
    np.testing.assert_array_equal(forward(weights, tokens, same)[0], forward(weights, tokens, base)[0])


def test_interpolated_by_2_every_second_token_stands_where_the_trained_one_stood(rng):
    base, weights, _, _ = a_decoder(rng)
    weights = {name: w for name, w in weights.items() if not name.startswith("layers.1.")}
    half = replace(base, inv_freq=tuple(position_interpolation(6, 2).inv_freq.tolist()), n_layers=1)
    one = replace(base, n_layers=1)
    tokens = rng.integers(0, 11, 4)
    apart = np.stack([tokens, tokens], axis=-1).ravel()
    stretched, plain = (
        forward(weights, ids[None], config)[1].layers[0] for config, ids in ((half, apart), (one, tokens))
    )
    np.testing.assert_allclose(stretched["query"][..., ::2, :], plain["query"], atol=1e-12)
    np.testing.assert_allclose(stretched["key"][..., ::2, :], plain["key"], atol=1e-12)


WIDE = {"vocab_size": 7, "n_layers": 3, "d_model": 12, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 17}


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_shapes_hold_as_many_parameters_as_the_budget_counts(placement):
    """`budget.parameters.count` is held to published models elsewhere; it knows nothing of `shapes`."""
    for norm, qk_norm, tied, ffn in itertools.product(("rms", "layer"), (True, False), (True, False), FFN_KINDS):
        config = StackConfig(**WIDE, placement=placement, norm=norm, qk_norm=qk_norm, tied=tied, ffn=ffn)
        assert sum(math.prod(shape) for shape in shapes(config).values()) == count(config.budget).total


def test_what_follows_is_filled_in():
    config = StackConfig(vocab_size=5, n_layers=8, d_model=12, n_heads=3, d_ff=16, placement="deepnorm")
    assert (config.n_kv_heads, config.head_dim, config.alpha, config.final_norm) == (3, 4, 2.0, False)
    assert dataclasses.replace(config, alpha=1.5).alpha == 1.5
    assert dataclasses.replace(config, d_model=24).head_dim == 4  # kept, as its notes say, unless it is taken back
    deeper = dataclasses.replace(config, d_model=24, head_dim=None, n_layers=128, alpha=None)
    assert (deeper.head_dim, deeper.alpha) == (8, 4.0)


def test_names_by_kind():
    def last(**kind):
        return {name.split(".")[-1] for name in shapes(StackConfig(**WIDE, **kind))}

    assert last() - last(placement="post") == {"final_norm"}
    assert last(placement="sandwich") - last() == {"attn_norm_out", "ffn_norm_out"}
    assert last(qk_norm=True) - last() == {"q_norm", "k_norm"}
    assert last(tied=False) - last() == {"head"}
    assert last(norm="layer") - last() == {"attn_norm_bias", "ffn_norm_bias", "final_norm_bias"}
    assert last(ffn="relu") ^ last() == {"w_gate", "w_up", "w_down", "w_in", "w_out"}
    assert last(rope_base=None) == last()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"vocab_size": 0}, "vocab_size"),
        ({"n_layers": 0}, "n_layers"),
        ({"n_layers": 2.0}, "n_layers"),
        ({"d_model": -1}, "d_model"),
        ({"n_kv_heads": 4}, "n_kv_heads"),
        ({"head_dim": 5}, "head_dim"),
        ({"d_ff": True}, "d_ff"),
        ({"ffn": "tanh"}, "ffn"),
        ({"norm": "batch"}, "norm"),
        ({"placement": "middle"}, "placement"),
        ({"rope_base": 0.0}, "rope_base"),
        ({"qk_norm": 1}, "qk_norm"),
        ({"tied": "yes"}, "tied"),
        ({"layout": "halves"}, "layout"),
        ({"rotary_dim": 12}, "rotary_dim"),
        ({"scale": math.inf}, "scale"),
        ({"inv_freq": (1.0, 0.5)}, "inv_freq"),
        ({"inv_freq": (1.0, 0.5, 0.3, 0.2, np.nan)}, "inv_freq"),
        ({"inv_freq": (1.0, 0.5, 0.3, 0.2, 0.1), "rope_base": None}, "inv_freq"),
        ({"eps": 0.0}, "eps"),
        ({"alpha": 2.0}, "alpha"),
        ({"alpha": 0.0, "placement": "deepnorm"}, "alpha"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        StackConfig(**(WIDE | change))


def test_an_odd_head_is_allowed_where_nothing_turns_it():
    assert StackConfig(**(WIDE | {"head_dim": 5, "rope_base": None})).head_dim == 5
