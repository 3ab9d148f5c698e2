"""budget: published decoders and worked numbers stand in the table; controls stay consistent under the hand."""

import html
import re

import pytest

from transformer_parts.explore.budget import CUSTOM, FILE, BudgetTally
from transformer_parts.maths.budget import count
from transformer_parts.models.configs import PUBLISHED

LABELS = {
    "embedding": "token embedding, W_E",
    "positions": "learned positions, W_P",
    "attention": "attention, W_QKVO",
    "feed_forward": "feed-forward, W_FFN",
    "norms": "norms, γ",
    "head": "head, W_U",
}


@pytest.fixture
def panel():
    return BudgetTally()


def table(panel) -> dict[str, str]:
    """Return the table on the page: label → value."""
    rows = re.findall(
        r"<tr><th[^>]*>(.*?)</th><td>(.*?)</td></tr>", panel.readout.value.replace("\N{NO-BREAK SPACE}", " ")
    )
    return {html.unescape(re.sub(r"<[^>]*>", "", label)): html.unescape(value) for label, value in rows}


def row(panel, beginning: str) -> str:
    (value,) = [value for label, value in table(panel).items() if label.startswith(beginning)]
    return value


def test_preset_by_hand(panel):
    panel.set(**panel.presets["By hand: d = 8"])
    page = table(panel)
    assert page["attention, W_QKVO: 1·(8·4·(2·2 + 2·2))"] == "256 (39.02 %)"
    assert page["feed-forward, W_FFN: 1·(3·8·16)"] == "384 (58.54 %)"
    assert page["norms, γ: 1·(2·8)"] == "16 (2.44 %)"
    assert page["total, Σ"] == "656"


def test_preset_llama_2_7b(panel):
    panel.set(**panel.presets["Llama 2 7B"])
    assert row(panel, "total, Σ (published as 7B)") == "6,738,415,616"
    assert row(panel, "without embedding") == "6,476,271,616"
    assert row(panel, "feed-forward budget") == "yes, but for rounding (1.0078)"
    assert row(panel, "KV cache per token") == "524,288 bytes"


def test_preset_llama_3_8b(panel):
    panel.set(**panel.presets["Llama 3 8B"])
    assert row(panel, "total, Σ (published as 8B)") == "8,030,261,248"
    assert row(panel, "feed-forward, W_FFN: 32·(3·4096·14336)") == "5,637,144,576 (70.20 %)"
    assert row(panel, "feed-forward budget") == "no (1.3125)"
    assert row(panel, "operations per token") == "15,009,316,864"
    assert row(panel, "KV cache per token") == "131,072 bytes"


def test_preset_gpt_2(panel):
    panel.set(**panel.presets["GPT-2 small"])
    assert row(panel, "total, Σ (published as 117M)") == "124,439,808"
    assert row(panel, "learned positions, W_P: 1024·768") == "786,432 (0.63 %)"
    assert row(panel, "head, W_U: tied") == "0 (0.00 %)"
    assert row(panel, "feed-forward budget") == "yes (1.0000)"
    assert "counted, it is 124M" in " ".join(table(panel))


def test_preset_smollm2_and_its_file(panel):
    panel.set(**panel.presets["SmolLM2 135M and its file"])
    assert row(panel, "total, Σ (published as 135M)") == "134,515,008"
    assert row(panel, f"total of {FILE}") == "134,515,008"
    assert row(panel, "parts that are equal in both") == "6 of 6"
    panel.set(reference="GPT-2 small")
    assert row(panel, "parts that are equal in both") == "1 of 6"


@pytest.mark.parametrize("name", PUBLISHED)
def test_menu_loads_every_published_decoder(panel, name):
    panel.set(model="GPT-2 small" if name != "GPT-2 small" else "toy layer")
    panel.controls["model"].value = name
    assert panel.controls["model"].value == name
    assert panel.compute(**panel.state).model == count(PUBLISHED[name].config).model
    for part, number in count(PUBLISHED[name].config).model.parts.items():
        assert row(panel, LABELS[part]).startswith(f"{number:,} (")


def test_another_size_is_custom_and_the_size_back_is_the_model(panel):
    panel.controls["d_ff"].value = 11008
    assert panel.state["model"] == CUSTOM
    assert "published" not in " ".join(table(panel))
    panel.controls["d_ff"].value = 14336
    assert panel.state["model"] == "Llama 3 8B"
    panel.controls["vocab_size"].value = 32000
    assert panel.state["model"] == "Mistral 7B"


def test_one_of_two_models_of_the_same_sizes_stays(panel):
    for name in ("Llama 1 7B", "Llama 2 7B"):
        panel.set(model=name)
        panel.controls["tied"].value = True
        panel.controls["tied"].value = False
        assert panel.state["model"] == "Llama 1 7B"
        panel.set(model=name, reference="toy layer")
        assert panel.state["model"] == name


@pytest.mark.parametrize(
    ("heads", "kv_heads", "new_heads", "expected"),
    [(32, 8, 16, 8), (32, 8, 12, 6), (32, 8, 7, 7), (32, 8, 64, 8), (32, 32, 12, 12), (32, 1, 9, 1), (9, 3, 8, 2)],
)
def test_kv_heads_divide_the_heads(panel, heads, kv_heads, new_heads, expected):
    panel.set(n_heads=heads, n_kv_heads=kv_heads)
    panel.controls["n_heads"].value = new_heads
    assert panel.error is None
    assert panel.state["n_kv_heads"] == expected
    assert panel.controls["n_kv_heads"].options == tuple(g for g in range(1, new_heads + 1) if new_heads % g == 0)


def test_kv_heads_that_do_not_divide_are_refused(panel):
    before = panel.state
    with pytest.raises(ValueError, match="n_kv_heads: got 3, want one of 1, 2, 4, 8, 16, 32"):
        panel.set(n_kv_heads=3)
    with pytest.raises(ValueError, match="n_kv_heads: got 3, want a divisor of n_heads"):
        panel.compute(**before | {"n_kv_heads": 3})
    assert panel.state == before


def test_contradiction_of_model_and_size_is_refused(panel):
    before = panel.state
    with pytest.raises(ValueError, match="model: got 'GPT-2 small'"):
        panel.set(model="GPT-2 small", d_model=64)
    assert panel.state == before


def test_hatched_parts_have_hatched_swatches(panel):
    swatches = re.findall(r'style="background:([^"]*)"></span>(token|learned|attention|head)', panel.readout.value)
    stripes = {label: swatch.count("repeating-linear-gradient") for swatch, label in swatches}
    assert stripes == {"token": 0, "learned": 2, "attention": 0, "head": 1}
