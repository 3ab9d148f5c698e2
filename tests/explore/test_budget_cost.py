"""budget_cost: grouping shrinks the cache by its factor and the model by little."""

import html
import re

import pytest

from transformer_parts.explore.budget_cost import BudgetCost
from transformer_parts.models.configs import PUBLISHED


@pytest.fixture
def panel():
    return BudgetCost()


def values(panel) -> list[str]:
    """Return the values of the table on the page."""
    return [
        html.unescape(value)
        for value in re.findall(r"<td>(.*?)</td>", panel.readout.value.replace("\N{NO-BREAK SPACE}", " "))
    ]


def test_preset_llama_3_8b(panel):
    panel.set(**panel.presets["Llama 3 8B, 8192 tokens"])
    assert values(panel) == [
        "8,030,261,248",
        "8,835,567,616",
        "9.11 %",
        "14.958 GiB",
        "131,072 bytes",
        "1.000 GiB",
        "4.000 GiB",
        "75.00 %",
        "15,009,316,864",
        "4,294,967,296",
    ]


def test_preset_with_a_kv_head_for_each_query_head(panel):
    panel.set(**panel.presets["the same, G = H"])
    assert values(panel)[:3] == ["8,835,567,616", "8,835,567,616", "0.00 %"]
    assert values(panel)[5:8] == ["4.000 GiB", "4.000 GiB", "0.00 %"]
    assert values(panel)[9] == "4,294,967,296", "grouping does not lower the products with the cache"


def test_preset_of_many_sequences(panel):
    panel.set(**panel.presets["Llama 3 70B, 64 × 32768"])
    assert values(panel)[3:7] == ["131.417 GiB", "20,971,520 bytes", "640.000 GiB", "5,120.000 GiB"]


def test_a_model_brings_its_kv_heads_and_their_divisors(panel):
    for name in panel.controls["model"].options:
        panel.controls["model"].value = name
        config = PUBLISHED[name].config
        assert panel.state["n_kv_heads"] == config.n_kv_heads
        assert panel.controls["n_kv_heads"].options[-1] == config.n_heads
        assert panel.error is None


def test_windowed_attention_and_tables_of_positions_are_left_out(panel):
    """Their caches do not grow with every context on the axis."""
    left_out = set(PUBLISHED) - set(panel.controls["model"].options)
    assert left_out == {"toy layer", "GPT-2 small", "GPT-2 XL", "Mistral 7B", "Gemma 2 2B"}


def test_marks_are_the_curves_values(panel):
    panel.set(context=256, sequences=4, n_kv_heads=2)
    data = panel.compute(**panel.state)
    place = list(data.contexts).index(256)
    assert data.cache[place] == data.context_cache == 4 * 256 * data.cache[0] / 4
    assert data.full_cache[place] == data.context_full_cache == 16 * data.context_cache
    assert data.attention_flops[place] == data.context_attention_flops
