"""configs: every published total against an independent count, and against what the publication tells."""

import importlib.util
import json
from pathlib import Path

import pytest

from transformer_parts.maths.budget import count, llama_d_ff
from transformer_parts.models.configs import PUBLISHED

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden_counts.json").read_text())
# Names and counts of which the publication's number isn't the count rounded to as many digits.
TOLD_OTHERWISE = {
    "GPT-2 small": "117M",  # miscounted, see the entry's note
    "GPT-2 XL": "1542M",
    "Llama 2 70B": "70B",  # 69.0
    "Llama 3 70B": "70B",  # 70.6
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


def test_counts_in_notes_are_the_counts():
    assert "124M" in PUBLISHED["GPT-2 small"].note
    assert as_told(GOLDEN["GPT-2 small"]["total"], "0M") == "124M"
    assert "1558M" in PUBLISHED["GPT-2 XL"].note
    assert as_told(GOLDEN["GPT-2 XL"]["total"], "0M") == "1558M"
    assert "(32768)" in PUBLISHED["Gemma 2B"].note
    assert 2 * PUBLISHED["Gemma 2B"].config.d_ff == 32768
    assert "(18432)" in PUBLISHED["Gemma 2 2B"].note
    assert 2 * PUBLISHED["Gemma 2 2B"].config.d_ff == 18432


def test_the_multiplier_of_llama_2_70b_spends_most_of_what_grouping_saves():
    config = PUBLISHED["Llama 2 70B"].config
    saved = 2 * config.d_model * (config.n_heads - config.n_kv_heads) * config.head_dim
    without = llama_d_ff(config.d_model, multiple_of=4096).d_ff
    spent = 3 * config.d_model * (config.d_ff - without)
    assert (without, saved, spent) == (24576, 117_440_512, 100_663_296)
    assert f"{100 * spent / saved:.0f} %" in PUBLISHED["Llama 2 70B"].note


def test_the_table_cannot_be_changed():
    with pytest.raises(TypeError):
        PUBLISHED["Llama 1 7B"] = None
    for entry in PUBLISHED.values():
        assert entry.source
        with pytest.raises(AttributeError):
            entry.told = "0"
