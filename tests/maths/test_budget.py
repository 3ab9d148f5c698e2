"""budget: the tally by part, its formulas and the checks of the sizes."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.maths import budget
from transformer_parts.maths.budget import (
    DecoderConfig,
    Tally,
    attention_parameters,
    count,
    count_tensors,
    equal_budget_d_ff,
    ffn_parameters,
    flops_per_token,
    formulas,
    kv_cache_bytes,
    llama_d_ff,
    match_budget,
    part_of,
)

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


SMALL = DecoderConfig(d_model=13, n_layers=3, n_heads=6, n_kv_heads=2, head_dim=5, d_ff=17, vocab_size=29)
LLAMA_3_8B = DecoderConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=8, d_ff=14336, vocab_size=128256)


class Counting:
    """Matrices that multiply for real and count the scalar multiplications and additions."""

    def __init__(self):
        self.flops = 0

    def matmul(self, a, b):
        self.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
        return a @ b


@pytest.mark.parametrize("ffn", ["gated", "mlp"])
@pytest.mark.parametrize("context", [1, 2, 19])
def test_operations_of_a_token_run_for_real(ffn, context):
    c = dataclasses.replace(SMALL, ffn=ffn)
    weights, attention = Counting(), Counting()
    x = np.ones((1, c.d_model))
    for _ in range(c.n_layers):
        query = weights.matmul(x, np.ones((c.d_model, c.n_heads * c.head_dim)))
        for _ in "kv":
            weights.matmul(x, np.ones((c.d_model, c.n_kv_heads * c.head_dim)))
        for head in np.split(query, c.n_heads, axis=1):
            scores = attention.matmul(head, np.ones((c.head_dim, context)))
            attention.matmul(scores, np.ones((context, c.head_dim)))
        weights.matmul(query, np.ones((c.n_heads * c.head_dim, c.d_model)))
        for _ in range({"gated": 2, "mlp": 1}[ffn]):
            hidden = weights.matmul(x, np.ones((c.d_model, c.d_ff)))
        weights.matmul(hidden, np.ones((c.d_ff, c.d_model)))
    weights.matmul(x, np.ones((c.d_model, c.vocab_size)))
    flops = flops_per_token(c, context)
    assert (flops.weights, flops.attention) == (weights.flops, attention.flops)
    assert flops.forward == weights.flops + attention.flops
    assert flops.training == 3 * flops.forward


def test_operations_equal_torch_flop_counter(torch):
    from torch.utils.flop_counter import FlopCounterMode

    c, context = SMALL, 7
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        x = torch.ones(1, c.d_model)
        shapes = [(c.d_model, heads * c.head_dim) for heads in (c.n_heads, c.n_kv_heads, c.n_kv_heads)]
        shapes += [(c.d_model, c.d_ff)] * 2
        for i, o in shapes * c.n_layers:
            x @ torch.ones(i, o)
        for _ in range(c.n_layers):
            torch.ones(1, c.n_heads * c.head_dim) @ torch.ones(c.n_heads * c.head_dim, c.d_model)
            torch.ones(1, c.d_ff) @ torch.ones(c.d_ff, c.d_model)
            scores = torch.ones(c.n_heads, 1, c.head_dim) @ torch.ones(c.n_heads, c.head_dim, context)
            scores @ torch.ones(c.n_heads, context, c.head_dim)
        x @ torch.ones(c.d_model, c.vocab_size)
    assert flops_per_token(c, context).forward == counter.get_total_flops()


def test_weights_cost_two_operations_for_each_parameter_of_a_matrix():
    counted = count(LLAMA_3_8B).model
    matrices = counted.attention + counted.feed_forward + counted.head
    assert flops_per_token(LLAMA_3_8B, 1).weights == 2 * matrices


def test_a_tied_head_is_multiplied_out_all_the_same_and_biases_are_not_counted():
    changed = dataclasses.replace(SMALL, tied=True, qkv_bias=True, output_bias=True, ffn_bias=True)
    assert flops_per_token(changed, 11) == flops_per_token(SMALL, 11)


def test_attention_grows_with_the_context_and_not_with_kv_heads():
    at = {s: flops_per_token(SMALL, s) for s in (1, 10, 1000)}
    assert at[1000].attention == 100 * at[10].attention == 1000 * at[1].attention
    assert len({flops.weights for flops in at.values()}) == 1
    more = dataclasses.replace(SMALL, n_kv_heads=6)
    assert flops_per_token(more, 10).attention == at[10].attention


def test_mean_over_a_causal_sequence():
    length = 7
    total = sum(flops_per_token(SMALL, s).attention for s in range(1, length + 1))
    assert total == length * flops_per_token(SMALL, (length + 1) // 2).attention


def test_cache_of_known_models():
    assert kv_cache_bytes(LLAMA_3_8B, 1) == 128 * 1024
    assert kv_cache_bytes(LLAMA_3_8B, 8192) == 2**30
    multi_head = dataclasses.replace(LLAMA_3_8B, n_kv_heads=32)
    assert kv_cache_bytes(multi_head, 1) == 512 * 1024


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 8), (np.float32, 4), (np.float16, 2), (np.int8, 1)])
def test_cache_is_as_large_as_its_arrays(dtype, size):
    cache = np.zeros((SMALL.n_layers, 2, SMALL.n_kv_heads, 23, SMALL.head_dim), dtype)
    assert kv_cache_bytes(SMALL, 23, size) == cache.nbytes


def test_cache_of_nothing_and_of_parts_of_a_byte():
    assert kv_cache_bytes(SMALL, 0) == 0
    assert kv_cache_bytes(SMALL, 7, 0.5) * 4 == kv_cache_bytes(SMALL, 7)
    tiny = dataclasses.replace(SMALL, n_layers=1, n_heads=1, n_kv_heads=1, head_dim=1)
    assert kv_cache_bytes(tiny, 1, 0.25) == 1
    assert isinstance(kv_cache_bytes(SMALL, 7, 0.5), int)
    assert kv_cache_bytes(tiny, 5, 0.1) == 1


@pytest.mark.parametrize("tokens", [2**53 + 1, 10**40 + 1, 10**400 + 1])
def test_cache_is_exact_at_any_size(tokens):
    values = 2 * 3 * 2 * 5 * tokens
    assert kv_cache_bytes(SMALL, tokens, 2) == kv_cache_bytes(SMALL, tokens, 2.0) == 2 * values
    assert kv_cache_bytes(SMALL, tokens, 0.5) == values // 2
    assert kv_cache_bytes(SMALL, 1, 2**53 + 1) == 60 * (2**53 + 1)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: flops_per_token(None, 1), "config"),
        (lambda: flops_per_token(SMALL, 0), "context"),
        (lambda: kv_cache_bytes(None, 1), "config"),
        (lambda: kv_cache_bytes({"n_layers": 3}, 1), "config"),
        (lambda: flops_per_token(SMALL, 2.5), "context"),
        (lambda: kv_cache_bytes(SMALL, -1), "tokens"),
        (lambda: kv_cache_bytes(SMALL, 1.0), "tokens"),
        (lambda: kv_cache_bytes(SMALL, 1, 0), "bytes_per_value"),
        (lambda: kv_cache_bytes(SMALL, 1, float("inf")), "bytes_per_value"),
        (lambda: kv_cache_bytes(SMALL, 1, "bf16"), "bytes_per_value"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        call()


def test_equal_budget_by_hand():
    assert equal_budget_d_ff(24) == 16.0
    assert ffn_parameters("mlp", 8, 24) == ffn_parameters("gated", 8, 16) == 384
    assert equal_budget_d_ff(4 * 512) == pytest.approx(1365.3333, abs=1e-4)


def test_parameters_equal_torch_linears(torch):
    def linears(*shapes, bias):
        layers = [torch.nn.Linear(i, o, bias=bias, device="meta") for i, o in shapes]
        return sum(p.numel() for layer in layers for p in layer.parameters())

    for bias in (False, True):
        assert ffn_parameters("mlp", 7, 13, bias) == linears((7, 13), (13, 7), bias=bias)
        assert ffn_parameters("gated", 7, 13, bias) == linears((7, 13), (7, 13), (13, 7), bias=bias)


@pytest.mark.parametrize(
    ("d_model", "multiple_of", "multiplier", "steps"),
    [
        (4096, 256, 1.0, (16384, 10922, 10922, 11008)),  # Llama 1 and 2 7B
        (5120, 256, 1.0, (20480, 13653, 13653, 13824)),  # Llama 2 13B
        (4096, 1024, 1.3, (16384, 10922, 14198, 14336)),  # Llama 3 8B
        (8192, 4096, 1.3, (32768, 21845, 28398, 28672)),  # Llama 2 and 3 70B
        (16384, 4096, 1.2, (65536, 43690, 52428, 53248)),  # Llama 3 405B
    ],
)
def test_published_widths(d_model, multiple_of, multiplier, steps):
    width = llama_d_ff(d_model, multiple_of=multiple_of, multiplier=multiplier)
    assert (width.plain, width.two_thirds, width.multiplied, width.d_ff) == steps
    assert width.ratio == steps[-1] / d_model


def test_llama_3_is_three_and_a_half_times_as_wide():
    assert llama_d_ff(4096, multiple_of=1024, multiplier=1.3).ratio == 3.5
    assert llama_d_ff(4096, multiple_of=1024).d_ff == 11264  # alignment alone gets nowhere near 14336


@given(st.integers(1, 20000), st.integers(1, 5000))
def test_without_multiplier_the_width_is_within_a_multiple_of_the_equal_one(d_model, multiple_of):
    width = llama_d_ff(d_model, multiple_of=multiple_of)
    assert width.d_ff % multiple_of == 0
    assert width.two_thirds == int(2 * (4 * d_model) / 3)  # as the published code writes it
    match = match_budget("gated", d_model, width.d_ff, multiple_of=multiple_of)
    small = 20 * abs(match.parameters - match.reference) <= match.reference  # 5 %, in whole numbers
    assert match.verdict == ("equal" if match.ratio == 1 else "rounded" if small else "different")
    assert abs(width.d_ff - equal_budget_d_ff(4 * d_model)) < multiple_of


def test_matches_of_published_models():
    llama_1 = match_budget("gated", 4096, 11008, multiple_of=256)
    assert (llama_1.verdict, round(llama_1.ratio, 4)) == ("rounded", 1.0078)
    assert llama_1.difference == 3 * 4096 * 11008 - 8 * 4096**2
    llama_3 = match_budget("gated", 4096, 14336, multiple_of=1024)
    assert (llama_3.verdict, llama_3.ratio) == ("different", 1.3125)
    assert match_budget("gated", 8, 16, reference_d_ff=24).verdict == "equal"
    assert match_budget("mlp", 8, 32).verdict == "equal"
    assert match_budget("gated", 8, 15, reference_d_ff=24).difference == -24


def test_numpy_integers_do_not_overflow():
    assert match_budget("mlp", np.int8(100), np.int16(400)) == match_budget("mlp", 100, 400)
    assert ffn_parameters("gated", np.int8(100), np.int8(100)) == 30_000


def test_the_boundary_of_rounding():
    """Widths around the equal one, 160: less than one multiple away, and at most 5 % (8 units)."""
    for width, multiple_of, verdict in (
        (166, 7, "rounded"),
        (167, 7, "different"),
        (153, 7, "different"),
        (154, 7, "rounded"),
        (168, 64, "rounded"),
        (169, 64, "different"),
        (152, 64, "rounded"),
        (151, 64, "different"),
    ):
        match = match_budget("gated", 5, width, reference_d_ff=240, multiple_of=multiple_of)
        assert match.verdict == verdict, (width, multiple_of)


@pytest.mark.parametrize(("d_model", "d_ff", "reference", "ratio"), [(8, 1024, 8, 192.0), (512, 4096, 2048, 3.0)])
def test_a_multiple_larger_than_the_width_matches_no_budget(d_model, d_ff, reference, ratio):
    match = match_budget("gated", d_model, d_ff, reference_d_ff=reference, multiple_of=d_ff)
    assert (match.verdict, match.ratio) == ("different", ratio)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ffn_parameters("glu", 8, 16), "kind"),
        (lambda: ffn_parameters("mlp", 0, 16), "d_model"),
        (lambda: ffn_parameters("mlp", 8, 1.5), "d_ff"),
        (lambda: ffn_parameters("mlp", 8, 16, bias=1), "bias"),
        (lambda: equal_budget_d_ff(0), "d_ff"),
        (lambda: llama_d_ff(0), "d_model"),
        (lambda: llama_d_ff(8, multiple_of=0), "multiple_of"),
        (lambda: llama_d_ff(8, multiplier=0), "multiplier"),
        (lambda: llama_d_ff(8, multiplier=float("nan")), "multiplier"),
        (lambda: llama_d_ff(8, multiplier=0.01), "multiplier"),
        (lambda: match_budget("gated", 8, 16, multiple_of=0), "multiple_of"),
        (lambda: match_budget("gated", 8, 16, reference_d_ff=0), "reference_d_ff"),
    ],
)
def test_bad_input_is_named_budget_d_ff(call, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        call()


def smollm2_gguf() -> dict[str, tuple[int, ...]]:
    """Names and shapes as they stand in the GGUF file of SmolLM2-135M (its axes are in reversed order)."""
    shapes = {"token_embd.weight": (576, 49152), "output_norm.weight": (576,)}
    for i in range(30):
        layer = {
            "attn_norm": (576,),
            "attn_q": (576, 576),
            "attn_k": (576, 192),
            "attn_v": (576, 192),
            "attn_output": (576, 576),
            "ffn_norm": (576,),
            "ffn_gate": (576, 1536),
            "ffn_up": (576, 1536),
            "ffn_down": (1536, 576),
        }
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
    return shapes


def test_smollm2_from_its_file():
    shapes = smollm2_gguf()
    tally = count_tensors(shapes)
    assert len(shapes) == 272
    assert tally.total == 134_515_008
    assert tally == count(SMOLLM2).model
    assert [f"{100 * s:.1f}" for s in tally.shares.values()] == ["21.0", "0.0", "19.7", "59.2", "0.0", "0.0"]


TINY = {"hidden_size": 28, "intermediate_size": 26, "num_hidden_layers": 3, "vocab_size": 19}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "pad_token_id": 0}
OURS = {"d_model": 28, "d_ff": 26, "n_layers": 3, "vocab_size": 19, "n_heads": 4, "n_kv_heads": 2, "head_dim": 6}

BIASES = {"qkv_bias": True, "output_bias": True, "ffn_bias": True}


@pytest.mark.parametrize(
    ("kind", "theirs", "ours"),
    [
        (
            "Llama",
            {"attention_bias": True, "mlp_bias": True},
            BIASES,
        ),
        ("Qwen3", {}, {"qk_norm": True}),
        ("Gemma2", {"tie_word_embeddings": False}, {"norms_per_layer": 4}),
    ],
)
def test_llama_like_models_of_transformers(torch, transformers, kind, theirs, ours):
    config = getattr(transformers, f"{kind}Config")(**TINY, **HEADS, **theirs)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    tally = count_tensors({name: tuple(p.shape) for name, p in model.named_parameters()})
    assert tally.total == sum(p.numel() for p in model.parameters())
    assert tally == count(DecoderConfig(**OURS, **ours)).model


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_gpt2_of_transformers(torch, transformers, prefix):
    config = transformers.GPT2Config(n_embd=21, n_layer=2, n_head=3, n_positions=17, vocab_size=19)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    names = {name.replace("transformer.", prefix): p.shape for name, p in model.named_parameters()}
    ours = DecoderConfig(
        d_model=21,
        n_layers=2,
        n_heads=3,
        d_ff=84,
        vocab_size=19,
        max_positions=17,
        ffn="mlp",
        norm="layer",
        tied=True,
        **BIASES,
    )
    assert count_tensors(names) == count(ours).model


@pytest.mark.parametrize(
    "name",
    [
        "blk.0.ffn_gate_exps.weight",  # mixture of experts
        "rope_freqs.weight",  # a table, not a parameter
        "blk.x.attn_q.weight",
        "blk.0.output_norm.weight",
        "attn_q.weight",
        "blk.0.attn_q",
        "my.blk.0.attn_q.weight",
        "",
    ],
)
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=r"^name: got .*, want a tensor's name"):
        part_of(name)
    with pytest.raises(ValueError, match=r"^shapes: got what is refused as name: got"):
        count_tensors({"output_norm.weight": (3,), name: (2, 3)})


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match=r"^shapes: got no tensors"):
        count_tensors({})
    for axis in (0, -1, 2.0):
        with pytest.raises(ValueError, match=r"^shapes\['output.weight'\]: got"):
            count_tensors({"output.weight": (7, axis)})
