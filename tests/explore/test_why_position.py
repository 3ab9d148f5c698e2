"""The panel of reordering: presets give the worked numbers, and each setting says what has been seen of the order."""

import re

import numpy as np
import pytest

from transformer_parts.draw.why_position import EXACT
from transformer_parts.explore.why_position import HAND, REORDERINGS, SCHEMES, SENTENCES, SHIFT, Reordering
from transformer_parts.maths import why_position as maths

EQUIVARIANT = "equivariant (outputs move along)?"
LARGEST = "largest |Attn(PX) − P·Attn(X)|"
CHANGED = "words whose output has changed"
SHIFTED = f"all words {SHIFT} places further on: largest change"


def table(panel):
    """The lines of the table, by label."""
    return dict(re.findall(r"<th[^>]*>(?:<span[^>]*></span>)?(.*?)</th><td>(.*?)</td>", panel.readout.value))


@pytest.fixture
def panel():
    return Reordering()


def test_every_scheme_and_reordering_is_offered():
    assert tuple(SCHEMES.values()) == maths.SCHEMES
    assert tuple(REORDERINGS.values()) == maths.REORDERINGS


def test_the_example_by_hand_stands_on_the_screen(panel):
    panel.set(**panel.presets["By hand"])
    shown = table(panel)
    assert (shown["X, as written"], shown["PX, reordered"]) == ("dog bites man", "man bites dog")
    assert shown["Attn(X), channels 0 and 1"] == "(0.8000, 0.6000) (0.6000, 0.8000) (0.7500, 0.7500)"
    assert shown["Attn(PX), channels 0 and 1"] == "(0.7500, 0.7500) (0.6000, 0.8000) (0.8000, 0.6000)"
    assert shown[EQUIVARIANT] == "yes, to 1e-12"
    assert shown["invariant (outputs stay)?"] == "no"
    panel.set(**panel.presets["By hand, masked"])
    shown = table(panel)
    assert shown["Attn(X), channels 0 and 1"] == "(1.0000, 0.0000) (0.3333, 0.6667) (0.7500, 0.7500)"
    assert shown["Attn(PX), channels 0 and 1"] == "(1.0000, 1.0000) (0.5000, 1.0000) (0.8000, 0.6000)"
    assert (shown[LARGEST], shown[EQUIVARIANT]) == ("0.6000", "no")
    assert shown["largest difference stands at"] == "0 dog, channel 1"


@pytest.mark.parametrize(
    ("preset", "kept", "changed"),
    [
        ("Dog bites man, reversed", True, "none"),
        ("A causal mask alone", False, "3 of 3: 2 man, 1 bites, 0 dog"),
        ("Mask, a swap, 1 layer", False, "2 of 5: 1 I, 0 only"),
        ("Mask, a swap, 2 layers", False, "5 of 5: 1 I, 0 only, 2 saw, 3 her, 4 today"),
        ("Sinusoidal", False, "3 of 3: 2 man, 1 bites, 0 dog"),
        ("RoPE", False, "3 of 3: 2 man, 1 bites, 0 dog"),
        ("ALiBi, reversed", True, "none"),
        ("ALiBi, rotated", False, "3 of 3: 2 man, 0 dog, 1 bites"),
    ],
)
def test_presets(panel, preset, kept, changed):
    panel.set(**panel.presets[preset])
    shown = table(panel)
    assert (shown[EQUIVARIANT] == "yes, to 1e-12") == kept
    assert shown[CHANGED] == changed
    assert (float(shown[LARGEST]) < 1e-14) == kept
    power = shown["its size as a power of ten"]
    assert power == "exactly 0" or np.isclose(float(power[3:]), np.log10(float(shown[LARGEST])), atol=0.1)


def test_a_mask_alone_makes_a_difference_of_order_one(panel):
    for seed in range(41):
        panel.set(seed=seed, causal=True)
        assert float(table(panel)[LARGEST]) > 0.5
        panel.set(causal=False)
        assert float(table(panel)[LARGEST]) < 1e-14


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_schemes_say_whether_they_are_relative(panel, scheme):
    panel.set(scheme=scheme, reordering="rotate")
    shown = table(panel)
    assert (shown[EQUIVARIANT] == "no") == (scheme != "none")
    assert (float(shown[SHIFTED]) < EXACT) == (scheme not in ("sinusoidal", "learned"))


def test_picture_and_table_are_of_one_run(panel):
    panel.set(sentence=SENTENCES[2], reordering="shuffle", scheme="rope", causal=True, n_layers=2, head=3)
    data = panel.compute(**panel.state)
    np.testing.assert_allclose(data.moved - data.written[data.order], data.gap, atol=EXACT)
    np.testing.assert_allclose(data.weights.sum(axis=1), 1, atol=EXACT)
    np.testing.assert_allclose(data.written_weights.sum(axis=1), 1, atol=EXACT)
    assert table(panel)["PX, reordered"] == " ".join(data.words[i] for i in data.order)


def test_squares_fit_exactly_where_attention_is_equivariant(panel):
    panel.set(sentence=SENTENCES[2], reordering="shuffle", n_layers=3)
    data = panel.compute(**panel.state)
    np.testing.assert_allclose(data.weights, data.written_weights, atol=EXACT)


def test_controls_agree_with_one_another(panel):
    panel.controls["first"].value = 1
    assert panel.controls["reordering"].value == "swap"
    panel.controls["sentence"].value = SENTENCES[2]
    assert panel.controls["second"].max == 8
    panel.set(first=8, second=7)
    panel.controls["sentence"].value = SENTENCES[0]
    assert (panel.controls["first"].value, panel.controls["first"].max) == (2, 2)
    panel.controls["head"].value = 3
    panel.controls["weights"].value = HAND
    assert panel.controls["head"].value == 0
    assert panel.error is None
