"""The explorers of notebook 08: worked numbers on the page, every method, lengths that follow each other."""

import re

import numpy as np
import pytest

from transformer_parts.explore.context_extension import (
    FACTORS,
    METHODS,
    ExtensionFrequencies,
    ExtensionScores,
    PositionPrecision,
    lengths,
)
from transformer_parts.maths import rope
from transformer_parts.models import configs as phi3
from transformer_parts.models.excerpt import load_excerpt


def page(panel) -> str:
    """The table as a reader sees it, one line a row."""
    text = re.sub(r"</tr>", "\n", panel.readout.value)
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"<[^>]*>", " ", text)).replace("  ", " ")


def value(panel, label: str) -> str:
    (line,) = [row.value for row in panel.rows(panel.compute(**panel.state)) if label in row.label]
    assert line in page(panel)
    return line


# ---------------------------------------------------------------- frequencies


@pytest.mark.parametrize(
    ("preset", "numbers"),
    [
        ("What goes wrong", ("46 of 64", "18", "8.0000 ×", "1.000000, 1.000000", "3000.00, 3000.00", "10,000.00")),
        ("PI: 2048 → 4096", ("41 of 64", "0", "1.0000 ×", "0.500000, 0.500000", "1500.00, 1500.00", "10,000.00")),
        ("NTK-aware, s = 8", ("46 of 64", "17", "1.7526 ×", "1.000000, 0.125000", "3000.00, 375.00", "82,684.62")),
        ("Dynamic NTK, short input", ("46 of 64", "0", "1.0000 ×", "1.000000, 1.000000", "3000.00, 3000.00")),
        ("YaRN, s = 8", ("46 of 64", "0", "1.0000 ×", "1.000000, 0.125000", "3000.00, 375.00")),
        ("LongRoPE: 4096", ("34 of 48", "0", "0.4878 ×", "0.952381, 0.338983", "2857.14, 1016.95")),
        ("LongRoPE: 4097", ("34 of 48", "0", "0.0167 ×", "0.970874, 0.015430", "2912.62, 46.29")),
        ("Llama 3.1", ("35 of 64", "0", "1.0000 ×", "1.000000, 0.125000", "3000.00, 375.00", "500,000.00")),
    ],
)
def test_worked_numbers_of_the_frequencies(preset, numbers):
    panel = ExtensionFrequencies()
    panel.set(**panel.presets[preset])
    shown = [row.value for row in panel.rows(panel.compute(**panel.state))]
    assert tuple(shown[: len(numbers)]) == numbers
    for text in numbers:
        assert text in page(panel)


def test_factors_of_query_key_and_logits():
    panel = ExtensionFrequencies()
    for preset, numbers in (("YaRN, s = 8", "1.207944, 1.459129"), ("LongRoPE: 4097", "1.190238, 1.416667")):
        panel.set(**panel.presets[preset])
        assert value(panel, "attention factor") == numbers


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_what_the_picture_shows(method):
    panel = ExtensionFrequencies()
    panel.set(method=method, factor=16, rope_base=5e5, head_dim=22)
    state = panel.state
    assert state["length"] == 16 * 4096
    scaled = METHODS[method](22, 16, 4096, 65536, 5e5)
    coverage = panel.compute(**state).coverage
    np.testing.assert_allclose(coverage.ratio, scaled.inv_freq / rope.inv_freq(22, 5e5))
    np.testing.assert_allclose(coverage.seen, 4096 * rope.inv_freq(22, 5e5))
    np.testing.assert_allclose(coverage.reached, 65536 * scaled.inv_freq)


def test_methods_differ():
    results = [METHODS[method](128, 8, 4096, 30000, 1e4) for method in METHODS]
    distinct = {(*np.round(result.inv_freq, 12), result.attention_factor) for result in results}
    assert len(distinct) == len(METHODS)


def test_present_length_follows_factor_and_trained_length_until_it_is_set():
    panel = ExtensionFrequencies()
    for factor in FACTORS:
        for trained in (512, 4096, 131072):
            panel.set(factor=factor, trained_length=trained)
            assert panel.state["length"] == factor * trained
    panel.set(length=128)
    assert panel.state["length"] == 128
    panel.set(factor=2, trained_length=4096, length=6144)
    assert panel.state["length"] == 6144


def test_lengths_hold_every_product():
    every = set(lengths(512, 2**23))
    assert {factor * 2**power for factor in FACTORS for power in range(9, 18)} <= every


def test_longrope_shows_the_published_factors():
    panel = ExtensionFrequencies()
    for preset, factors in (("LongRoPE: 4096", phi3.SHORT), ("LongRoPE: 4097", phi3.LONG)):
        panel.set(**panel.presets[preset])
        np.testing.assert_allclose(panel.compute(**panel.state).coverage.ratio, 1 / np.array(factors), rtol=1e-12)


# ---------------------------------------------------------------- scores


def test_worked_numbers_of_the_scores():
    panel = ExtensionScores()
    panel.set(**panel.presets["YaRN, s = 8"])
    numbers = [row.value for row in panel.rows(panel.compute(**panel.state))]
    assert numbers == ["0.3370, 0.3368", "1.207944", "3.5641", "4.5291", "7.4065", "4.5113", "2.1594"]
    panel.set(**panel.presets["PI blurs neighbours"])
    assert value(panel, "score lost over one step") == "0.3370, 0.0055"


def test_scores_are_the_scores_of_turned_vectors():
    panel = ExtensionScores()
    panel.set(**panel.presets["YaRN keeps neighbours"])
    state = panel.state
    data = panel.compute(**state)
    scaled = METHODS[state["method"]](128, 8, 4096, 32768, 1e4)
    query = rope.rotate(np.ones((1, 128)), [15], inv_freq=scaled.inv_freq) * scaled.attention_factor
    keys = rope.rotate(np.ones((16, 128)), np.arange(15, -1, -1), inv_freq=scaled.inv_freq) * scaled.attention_factor
    np.testing.assert_allclose(data.after.mean, (keys @ query[0]) / np.sqrt(128), atol=1e-10)
    assert data.counts.tolist() == list(range(1, 17))


def test_real_head_brings_its_base_and_length():
    panel = ExtensionScores()
    excerpt = load_excerpt()
    panel.controls["content"].value = (16, 0)
    assert (panel.state["rope_base"], panel.state["trained_length"]) == (excerpt.rope_base, 8192)
    panel.set(**panel.presets["Real head, as trained"])
    data = panel.compute(**panel.state)
    within = data.before.middles < 8192
    assert data.before.highest[within].argmax() == 0  # the previous token
    assert data.before.highest[~within].max() > data.before.highest[within].max() + 20
    np.testing.assert_array_equal(data.before.mean, data.after.mean)
    assert value(panel, "over L = 8,192 keys") == "0.5008"
    assert value(panel, "over s·L = 32,768 keys") == "5.0957"


@pytest.mark.parametrize("shown", [0, 16, 256, 4096])
def test_as_many_distances_are_shown_as_asked_for(shown):
    panel = ExtensionScores()
    panel.set(shown=shown, factor=2, trained_length=512)
    data = panel.compute(**panel.state)
    assert data.counts[0] == 1
    assert data.counts[-1] == min(shown or 1024, 1024)
    assert (np.diff(data.counts) > 0).all()


# ---------------------------------------------------------------- precision


@pytest.mark.parametrize(
    ("preset", "numbers"),
    [
        ("bfloat16: 256 = 257", ("256", "2", "257", "1.0000 rad", "0.3144 rad", "1.0000 rad")),
        ("bfloat16 at 4095", ("4096", "16", "769", "1.0000 rad", "5.0089 rad", "5.8761 rad")),
        ("float16: exact to 2048", ("2048", "2", "2,049", "0.0000 rad", "0.4949 rad", "0.4949 rad")),
        ("float16 at 2049", ("2048", "2", "2,049", "1.0000 rad", "0.4952 rad", "1.0000 rad")),
        ("float32 at 4095", ("4095", "0.0002441406", "4,096", "0.0000 rad", "0.0001 rad", "0.0001 rad")),
    ],
)
def test_worked_numbers_of_the_precision(preset, numbers):
    panel = PositionPrecision()
    panel.set(**panel.presets[preset])
    assert tuple(row.value for row in panel.rows(panel.compute(**panel.state))) == numbers
    for text in numbers:
        assert text in page(panel)


def test_no_position_below_0_is_shown():
    panel = PositionPrecision()
    panel.set(position=3)
    data = panel.compute(**panel.state)
    assert data.steps[0] == -3
    assert len(data.rounded_steps) == len(data.steps) == 20
    assert value(panel, "position 3 becomes") == "3"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_position_0_is_exact_and_said_to_be(dtype):
    panel = PositionPrecision()
    panel.set(position=0, dtype=dtype)
    assert value(panel, "to the next number of") == "far below 1; 0 itself is exact"
    assert value(panel, "different numbers that positions 0 to 0 become") == "1"
    assert value(panel, "largest error of an angle") == "0.0000 rad"
    assert panel.view.no_error.get_visible()
    panel.set(position=1)
    assert value(panel, "different numbers that positions 0 to 1 become") == "2"
    assert not panel.view.no_error.get_visible()
