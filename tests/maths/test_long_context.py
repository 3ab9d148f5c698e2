"""Costs of a long context: pairs counted one by one, published sizes, and the laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.maths.attention import causal_mask
from transformer_parts.maths.budget import flops_per_token, kv_cache_bytes
from transformer_parts.maths.long_context import long_context_cost, prefill_attention_flops, windowed_keys
from transformer_parts.models.configs import PUBLISHED

LLAMA = PUBLISHED["Llama 3 8B"].config


@given(st.integers(1, 60), st.integers(1, 70))
def test_pairs_are_those_of_the_mask(length, window):
    mask = causal_mask(length) & ~np.tri(length, length, -window, dtype=bool)
    assert windowed_keys(length, window) == mask.sum()
    assert windowed_keys(length) == causal_mask(length).sum()


def test_attention_of_the_prompt_is_the_sum_over_its_tokens():
    tokens = sum(flops_per_token(LLAMA, context).attention for context in range(1, 38))
    assert prefill_attention_flops(LLAMA, 37) == tokens
    windowed = sum(flops_per_token(LLAMA, min(context, 11)).attention for context in range(1, 38))
    assert prefill_attention_flops(LLAMA, 37, 11) == windowed


def test_llama_at_4k_and_at_128k():
    short, long = (long_context_cost(LLAMA, length) for length in (4096, 131072))
    assert short.cache_bytes == 2**29  # half a GiB
    assert long.cache_bytes == 16 * 2**30
    assert long.weight_bytes == 2 * 8_030_261_248
    assert short.attention_share < 0.07
    assert 0.69 < long.attention_share < 0.70
    assert long.attention_flops / short.attention_flops == pytest.approx(1024, rel=1e-3)
    assert long.weight_flops / short.weight_flops == 32


def test_each_saving_saves_what_it_says():
    plain = long_context_cost(LLAMA, 131072)
    assert long_context_cost(LLAMA, 131072, cache_bits=4).cache_bytes * 4 == plain.cache_bytes
    windowed = long_context_cost(LLAMA, 131072, window=4096)
    assert windowed.cache_bytes == kv_cache_bytes(LLAMA, 4096)
    assert windowed.attention_flops < plain.attention_flops / 15
    assert long_context_cost(LLAMA, 100, window=4096) == long_context_cost(LLAMA, 100)
    assert long_context_cost(LLAMA, 131072, weight_bits=4).weight_bytes * 4 == plain.weight_bytes


def test_times_are_operations_and_bytes_over_those_a_second():
    cost = long_context_cost(LLAMA, 777, flops_per_second=3e9, bytes_per_second=7e6)
    assert cost.prefill_seconds == pytest.approx((cost.weight_flops + cost.attention_flops) / 3e9)
    assert cost.token_seconds == pytest.approx((cost.weight_bytes + cost.cache_bytes) / 7e6)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("length", {"length": 0}),
        ("window", {"window": 0}),
        ("weight_bits", {"weight_bits": 0}),
        ("cache_bits", {"cache_bits": -1}),
        ("flops_per_second", {"flops_per_second": 0}),
        ("bytes_per_second", {"bytes_per_second": np.inf}),
    ],
)
def test_bad_input_is_refused_by_name(name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got "):
        long_context_cost(LLAMA, **{"length": 8} | arguments)
