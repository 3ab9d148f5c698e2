"""budget_cost: operations per token and bytes of cache."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.maths.budget import DecoderConfig, count
from transformer_parts.maths.budget_cost import flops_per_token, kv_cache_bytes

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
