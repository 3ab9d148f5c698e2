"""budget: the tally by part, its formulas and the checks of the sizes."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.maths import budget
from transformer_parts.maths.budget import DecoderConfig, Tally, attention_parameters, count, formulas

SMOLLM2 = DecoderConfig(d_model=576, n_layers=30, n_heads=9, n_kv_heads=3, d_ff=1536, vocab_size=49152, tied=True)
TOY = DecoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, vocab_size=0, final_norm=False)


@st.composite
def configs(draw):
    n_kv_heads = draw(st.integers(1, 5))
    flag = st.booleans()
    norm = draw(st.sampled_from(["rms", "layer"]))
    return DecoderConfig(
        d_model=draw(st.integers(1, 41)),
        n_layers=draw(st.integers(1, 7)),
        n_heads=n_kv_heads * draw(st.integers(1, 5)),
        n_kv_heads=n_kv_heads,
        head_dim=draw(st.integers(1, 13)),
        d_ff=draw(st.integers(1, 53)),
        vocab_size=draw(st.integers(0, 101)),
        ffn=draw(st.sampled_from(["gated", "mlp"])),
        tied=draw(flag),
        norm=norm,
        norm_bias=draw(flag) if norm == "layer" else False,
        norms_per_layer=draw(st.sampled_from([1, 2, 4])),
        final_norm=draw(flag),
        qk_norm=draw(flag),
        max_positions=draw(st.integers(0, 17)),
        qkv_bias=draw(flag),
        output_bias=draw(flag),
        ffn_bias=draw(flag),
    )


def every_tensor(c: DecoderConfig):
    """List (part, shape) of every tensor that a model of these sizes stores, one by one."""
    norm = 2 if c.norm_bias else 1
    yield from (("embedding", (c.vocab_size, c.d_model)), ("positions", (c.max_positions, c.d_model)))
    for _ in range(c.n_layers):
        for heads in (c.n_heads, c.n_kv_heads, c.n_kv_heads):
            yield "attention", (c.d_model, heads * c.head_dim)
            yield "attention", (heads * c.head_dim * c.qkv_bias,)
        yield "attention", (c.n_heads * c.head_dim, c.d_model)
        yield "attention", (c.d_model * c.output_bias,)
        for _ in range({"gated": 2, "mlp": 1}[c.ffn]):
            yield "feed_forward", (c.d_model, c.d_ff)
            yield "feed_forward", (c.d_ff * c.ffn_bias,)
        yield "feed_forward", (c.d_ff, c.d_model)
        yield "feed_forward", (c.d_model * c.ffn_bias,)
        for width in [c.d_model] * c.norms_per_layer + [c.head_dim] * (2 * c.qk_norm):
            yield "norms", (norm, width)
    yield "norms", (norm * c.final_norm, c.d_model)
    if not c.tied:
        yield "head", (c.d_model, c.vocab_size)


@given(configs())
def test_the_tally_is_the_sum_over_the_tensors(config):
    parts = dict.fromkeys(Tally().parts, 0)
    for part, shape in every_tensor(config):
        parts[part] += math.prod(shape)
    counted = count(config)
    assert counted.model.parts == parts
    assert counted.total == counted.model.total == sum(parts.values())
    assert counted.non_embedding == counted.total - sum(parts[p] for p in ("embedding", "positions", "head"))


@given(configs())
def test_layers_are_alike_and_add_up(config):
    counted = count(config)
    layer, model = counted.layer, counted.model
    assert counted.n_layers == config.n_layers
    assert layer.embedding == layer.positions == layer.head == 0
    assert model.attention == config.n_layers * layer.attention
    assert model.feed_forward == config.n_layers * layer.feed_forward
    one_more = count(dataclasses.replace(config, n_layers=config.n_layers + 1))
    assert one_more.total - counted.total == layer.total


@given(configs())
def test_formulas_evaluate_to_the_tally(config):
    values = {part: eval(text.replace("·", "*")) for part, text in formulas(config).items()}
    assert values == count(config).model.parts


def test_one_layer_of_the_concepts():
    layer = count(TOY).layer
    assert (layer.attention, layer.feed_forward, layer.norms, layer.total) == (256, 384, 16, 656)
    assert count(TOY).total == 656


def test_smollm2_and_its_shares():
    model = count(SMOLLM2).model
    assert model.total == 134_515_008
    shares = {part: f"{100 * share:.2f}" for part, share in model.shares.items() if share}
    assert shares == {"embedding": "21.05", "attention": "19.73", "feed_forward": "59.20", "norms": "0.03"}


def test_learned_positions_of_gpt2_and_bert():
    def positions(rows):
        return count(dataclasses.replace(TOY, d_model=768, head_dim=384, max_positions=rows)).model.positions

    assert (positions(1024), positions(512)) == (786_432, 393_216)


def test_multi_head_attention_is_four_squares_and_grouping_saves_keys_and_values():
    assert attention_parameters(11 * 7, 7) == 4 * (11 * 7) ** 2
    full, grouped = attention_parameters(4096, 32), attention_parameters(4096, 32, 8)
    assert full - grouped == 2 * 4096 * (32 - 8) * 128
    assert attention_parameters(7, 6, 2, 5, qkv_bias=True) - attention_parameters(7, 6, 2, 5) == 5 * (6 + 2 + 2)
    assert attention_parameters(7, 6, 2, 5, output_bias=True) - attention_parameters(7, 6, 2, 5) == 7


def test_attention_equals_torch_multihead_attention(torch):
    layer = torch.nn.MultiheadAttention(33, 3, bias=True, device="meta")
    expected = sum(p.numel() for p in layer.parameters())
    assert attention_parameters(33, 3, qkv_bias=True, output_bias=True) == expected


def test_an_empty_tally_has_no_shares():
    assert Tally().total == 0
    assert set(Tally().shares.values()) == {0.0}


def test_defaults_are_filled_in_and_frozen():
    config = DecoderConfig(d_model=12, n_layers=1, n_heads=3, d_ff=5, vocab_size=7, norm="layer")
    assert (config.n_kv_heads, config.head_dim, config.norm_bias) == (3, 4, True)
    assert DecoderConfig(d_model=12, n_layers=1, n_heads=3, d_ff=5, vocab_size=7).norm_bias is False
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16
    assert hash(config) == hash(dataclasses.replace(config))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 0}, "d_model: got 0, want an integer of at least 1"),
        ({"d_model": 8.0}, r"d_model: got 8\.0, want an integer"),
        ({"n_layers": 0}, "n_layers: got 0"),
        ({"n_heads": True}, "n_heads: got True, want an integer"),
        ({"n_heads": 3, "head_dim": None}, "n_heads: got 3, want a divisor of d_model, which is 8"),
        ({"n_heads": 4, "n_kv_heads": 3}, "n_kv_heads: got 3, want a divisor of n_heads, which is 4"),
        ({"n_heads": 2, "n_kv_heads": 4}, "n_kv_heads: got 4, want a divisor of n_heads, which is 2"),
        ({"head_dim": 0}, "head_dim: got 0"),
        ({"d_ff": -1}, "d_ff: got -1"),
        ({"vocab_size": -1}, "vocab_size: got -1, want an integer of at least 0"),
        ({"max_positions": -1}, "max_positions: got -1"),
        ({"ffn": "swiglu"}, "ffn: got 'swiglu', want one of 'mlp', 'gated'"),
        ({"norm": "batch"}, "norm: got 'batch', want one of 'rms', 'layer'"),
        ({"norms_per_layer": 3}, "norms_per_layer: got 3, want 1, 2 or 4"),
        ({"norm_bias": True}, "norm_bias: got True, want False, or norm="),
        ({"norm_bias": 0}, "norm_bias: got 0, want True or False"),
        ({"tied": 1}, "tied: got 1, want True or False"),
        ({"qk_norm": "no"}, "qk_norm: got 'no', want True or False"),
    ],
)
def test_bad_sizes_are_named(change, message):
    sizes = {"d_model": 8, "n_layers": 1, "n_heads": 2, "d_ff": 16, "vocab_size": 0} | change
    with pytest.raises(ValueError, match=f"^{message}"):
        DecoderConfig(**sizes)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((8, 3), "n_heads"), ((8, 2, 3), "n_kv_heads"), ((0, 2), "d_model"), ((8, 2, 2, 0), "head_dim")],
)
def test_bad_attention_sizes_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"^{name}: got"):
        attention_parameters(*arguments)


@pytest.mark.parametrize("name", ["qkv_bias", "output_bias"])
def test_biases_are_true_or_false(name):
    with pytest.raises(ValueError, match=f"^{name}: got 1, want True or False"):
        attention_parameters(8, 2, **{name: 1})


def test_everything_of_the_concept_is_found_in_one_place():
    assert set(budget.__all__) <= set(dir(budget))
    assert list(budget.__all__) == sorted(budget.__all__)
