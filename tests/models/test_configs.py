"""configs: every published total against an independent count, and against what the publication tells."""

import hashlib
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gguf import RopeScalingType

from transformer_parts.explore.budget import NOTES
from transformer_parts.maths.budget import count, formulas, llama_d_ff
from transformer_parts.maths.context_extension import longrope
from transformer_parts.models import configs as phi3
from transformer_parts.models.configs import PUBLISHED, LlamaSizes, llama_sizes
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.weights import GGUFFile

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden_counts.json").read_text())
# Names and counts of which the publication's number isn't the count rounded to as many digits.
TOLD_OTHERWISE = {
    "GPT-2 small": "117M",  # miscounted, see the entry's note
    "GPT-2 XL": "1542M",
    "Llama 2 70B": "70B",  # 69.0
    "Llama 3 70B": "70B",  # 70.6
    "Phi-2": "2.7B",  # 2.78
    "Qwen2.5 7B": "7.61B",  # 7.616
    "Gemma 2B": "2B",  # 2.5 with the embedding
}


def as_told(number: int, told: str) -> str:
    """Write a count with as many digits as a publication does."""
    if told[-1].isdigit():
        return f"{number:,}"
    decimals = len(told.partition(".")[2]) - 1 if "." in told else 0
    return f"{number / {'M': 1e6, 'B': 1e9}[told[-1]]:.{decimals}f}{told[-1]}"


def test_the_golden_counts_are_of_these_models():
    assert set(GOLDEN) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_count_is_that_of_an_independent_implementation(name):
    model = count(PUBLISHED[name].config).model
    assert model.total == GOLDEN[name]["total"]
    assert {part: number for part, number in model.parts.items() if number} == GOLDEN[name]["parts"]


@pytest.fixture(scope="module")
def make_golden_counts(torch, transformers):
    spec = importlib.util.spec_from_file_location("make_golden_counts", HERE / "make_golden_counts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.oracle
@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_counts_are_true(make_golden_counts, name):
    assert make_golden_counts.count(name) == GOLDEN[name]


@pytest.mark.parametrize("name", [name for name, entry in PUBLISHED.items() if entry.told])
def test_the_count_is_what_the_publication_tells(name):
    told, total = PUBLISHED[name].told, count(PUBLISHED[name].config).total
    if name in TOLD_OTHERWISE:
        assert told == TOLD_OTHERWISE[name]
        assert as_told(total, told) != told, "no exception any more"
    else:
        assert as_told(total, told) == told


@pytest.mark.parametrize("name", [name for name, entry in PUBLISHED.items() if entry.told_non_embedding])
def test_the_count_without_embeddings_is_what_the_publication_tells(name):
    told = PUBLISHED[name].told_non_embedding
    assert as_told(count(PUBLISHED[name].config).non_embedding, told) == told


@pytest.mark.parametrize("name", [name for name, entry in PUBLISHED.items() if entry.width_rule])
def test_the_published_rule_gives_the_published_width(name):
    config, rule = PUBLISHED[name].config, PUBLISHED[name].width_rule
    width = llama_d_ff(config.d_model, multiple_of=rule.multiple_of, multiplier=rule.multiplier)
    assert width.d_ff == config.d_ff


def test_a_bias_of_the_head_is_counted():
    """Phi-2 has 2,779,683,840 parameters, as the index of its released weights says."""
    config = PUBLISHED["Phi-2"].config
    assert count(config).total == 2_779_683_840
    assert count(config).total - count(replace(config, head_bias=False)).total == config.vocab_size == 51_200
    assert "51,200" in NOTES["Phi-2"]
    tied = replace(config, tied=True)
    assert (count(tied).model.head, formulas(tied)["head"]) == (51_200, "51200")
    assert formulas(config)["head"] == "51200·2560 + 51200"
    layers = replace(config, vocab_size=0)
    assert (count(layers).model.head, formulas(layers)["head"]) == (0, "0")


def test_counts_in_notes_are_the_counts():
    assert "124M" in NOTES["GPT-2 small"]
    assert as_told(GOLDEN["GPT-2 small"]["total"], "0M") == "124M"
    assert "1558M" in NOTES["GPT-2 XL"]
    assert as_told(GOLDEN["GPT-2 XL"]["total"], "0M") == "1558M"
    assert "(32768)" in NOTES["Gemma 2B"]
    assert 2 * PUBLISHED["Gemma 2B"].config.d_ff == 32768
    assert "(18432)" in NOTES["Gemma 2 2B"]
    assert 2 * PUBLISHED["Gemma 2 2B"].config.d_ff == 18432


def test_the_multiplier_of_llama_2_70b_spends_most_of_what_grouping_saves():
    config = PUBLISHED["Llama 2 70B"].config
    saved = 2 * config.d_model * (config.n_heads - config.n_kv_heads) * config.head_dim
    without = llama_d_ff(config.d_model, multiple_of=4096).d_ff
    spent = 3 * config.d_model * (config.d_ff - without)
    assert (without, saved, spent) == (24576, 117_440_512, 100_663_296)
    assert f"{100 * spent / saved:.0f} %" in NOTES["Llama 2 70B"]


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        PUBLISHED["Llama 1 7B"] = None
    for entry in PUBLISHED.values():
        assert entry.source
        with pytest.raises(AttributeError):
            entry.told = "0"


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
        ({"block_count": 2**32 - 1}, r"llama\.block_count: got 4294967295, but the file has 20 tensors"),
        ({"context_length": 0}, r"llama\.context_length: got 0, want an integer"),
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


def test_the_published_lists():
    """48 pairs; searched in steps of 0.05 and 0.01, never falling, and the long ones beyond s = 32."""
    short, long = np.array(phi3.SHORT), np.array(phi3.LONG)
    lists = json.dumps([phi3.SHORT, phi3.LONG]).encode()
    assert hashlib.sha256(lists).hexdigest() == "534b330a4fd32bba8c8387a4f24b3b8386b5c0cda98deb48d7e9309d60030548"
    assert short.shape == long.shape == (phi3.HEAD_DIM // 2,)
    assert (np.diff(short) >= 0).all()
    assert (np.diff(long) >= 0).all()
    np.testing.assert_allclose(np.round(20 * short), 20 * short, atol=1e-9)
    assert (short[0], short[-1], long[0], long[-1]) == (1.05, 2.95, 1.03, 64.81)
    assert (short.sum(), long.sum()) == pytest.approx((93.35, 1513.02))
    assert phi3.EXTENDED_LENGTH / phi3.TRAINED_LENGTH == 32


def test_resampling_keeps_the_published_pairs_and_both_ends():
    short, long = phi3.factors_for(48)
    np.testing.assert_allclose(short, phi3.SHORT, rtol=1e-12)
    np.testing.assert_allclose(long, phi3.LONG, rtol=1e-12)
    for pairs in (2, 7, 64):
        short, long = phi3.factors_for(pairs)
        assert len(short) == len(long) == pairs
        assert (short[0], short[-1], long[0], long[-1]) == (1.05, 2.95, 1.03, 64.81)
        assert longrope(2 * pairs, 5000, 4096, short, long, factor=32).inv_freq.shape == (pairs,)
    with pytest.raises(ValueError, match=r"^pairs: got 0, want"):
        phi3.factors_for(0)
