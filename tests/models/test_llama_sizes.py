"""What the file states about the model, and the files that are refused."""

import numpy as np
import pytest
from gguf import RopeScalingType

from transformer_parts.models.gguf_file import GGUFFile
from transformer_parts.models.llama_sizes import LlamaSizes, llama_sizes
from transformer_parts.models.smollm2 import load_model


def test_sizes_are_the_files(tiny):
    expected = LlamaSizes(
        vocab_size=263,
        d_model=42,
        n_layers=2,
        n_heads=6,
        n_kv_heads=2,
        head_dim=10,
        d_ff=64,
        context_length=97,
        rope_base=5000.0,
        eps=1e-4,
    )
    assert llama_sizes(GGUFFile(tiny.path)) == expected


def test_what_is_left_out_has_its_meaning(rewrite):
    sizes = llama_sizes(GGUFFile(rewrite(head_count_kv=None, rope_dimension_count=None, rope_freq_base=None)))
    assert (sizes.n_kv_heads, sizes.head_dim, sizes.rope_base) == (6, 7, 10000.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"arch": "gemma"}, r"general\.architecture: got 'gemma', want one of 'llama'"),
        ({"block_count": None}, r"got no field 'llama\.block_count'"),
        ({"key_length": 12}, r"llama\.rope\.dimension_count: got 10, want 12, the whole head"),
        ({"rope_scaling_type": RopeScalingType.YARN}, r"llama\.rope\.scaling\.type: got 'yarn', want 'none'"),
        ({"feed_forward_length": 63}, r"blk\.0\.ffn_gate\.weight: got shape \(64, 42\), want \(63, 42\)"),
        ({"head_count_kv": 3}, r"blk\.0\.attn_k\.weight: got shape \(20, 42\), want \(30, 42\)"),
        ({"block_count": 3}, r"got no tensor 'blk\.2\.attn_norm\.weight'"),
        ({"block_count": 1}, r"got a tensor 'blk\.1\.attn_k\.weight', want a Llama without"),
        ({"layer_norm_rms_eps": 0.0}, r"layer 0 of changed\.gguf: eps: got 0"),
    ],
)
def test_other_files_are_refused(rewrite, changed, message):
    with pytest.raises(ValueError, match=message):
        load_model(GGUFFile(rewrite(**changed)))


def test_an_unknown_layout_is_refused(tiny):
    with pytest.raises(ValueError, match="layout: got 'halves'"):
        load_model(GGUFFile(tiny.path), layout="halves")


@pytest.mark.parametrize("name", ["blk.0.attn_q.bias", "rope_freqs.weight"])
def test_tensors_that_would_be_passed_over_are_refused(rewrite, tiny, name):
    with pytest.raises(ValueError, match=f"got a tensor '{name}', want a Llama without biases or extras"):
        load_model(GGUFFile(rewrite(tiny.tensors | {name: np.ones(60, np.float32)})))


def test_a_weight_that_is_not_finite_is_refused(rewrite, tiny):
    spoilt = tiny.tensors["blk.1.attn_v.weight"].copy()
    spoilt[3, 5] = np.nan
    with pytest.raises(ValueError, match=r"layer 1 of changed\.gguf: w_v: got .*nan at index \(5, 3\)"):
        load_model(GGUFFile(rewrite(tiny.tensors | {"blk.1.attn_v.weight": spoilt})))
