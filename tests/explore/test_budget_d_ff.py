"""budget_d_ff: every step of the published rule stands in the table, and whether the budget is matched."""

import html
import re

import pytest

from transformer_parts.explore.budget_d_ff import BudgetWidths


@pytest.fixture
def panel():
    return BudgetWidths()


def table(panel) -> dict[str, str]:
    """Return the table on the page: label → value."""
    rows = re.findall(r"<tr><th[^>]*>(.*?)</th><td>(.*?)</td></tr>", panel.readout.value)
    return {html.unescape(re.sub(r"<[^>]*>", "", label)): html.unescape(value) for label, value in rows}


def test_preset_by_hand(panel):
    panel.set(**panel.presets["By hand: d = 8, d_ff = 24"])
    page = table(panel)
    assert page["plain, 2·8·24"] == "384"
    assert page["equal budget, 2·d_ff/3"] == "16.00"
    assert page["gated, rounded down: 3·8·16"] == "384 (1.0000)"
    assert page["budget matched?"] == "yes"
    assert page["gated, as wide: 3·8·24"] == "576 (1.5000)"


def test_preset_512(panel):
    panel.set(**panel.presets["d = 512"])
    page = table(panel)
    assert page["equal budget, 2·d_ff/3"] == "1365.33"
    assert page["gated, rounded down: 3·512·1365"] == "2,096,640 (0.9998)"
    assert page["budget matched?"] == "yes, but for rounding"


@pytest.mark.parametrize(
    ("preset", "steps", "ruled", "matched"),
    [
        (
            "Llama 2 7B",
            ["10922", "10922", "11008 = 2.688 d", "86"],
            "135,266,304 (1.0078)",
            "yes, but for rounding",
        ),
        ("Llama 3 8B", ["10922", "14198", "14336 = 3.5 d", "138"], "176,160,768 (1.3125)", "no"),
        ("The 70B width", ["21845", "28398", "28672 = 3.5 d", "274"], "704,643,072 (1.3125)", "no"),
    ],
)
def test_presets_of_the_rule(panel, preset, steps, ruled, matched):
    values = panel.presets[preset]
    panel.set(**values)
    page = table(panel)
    labels = (
        "1. rounded down",
        f"2. × {values['multiplier']:g}, rounded down",
        f"3. up to a multiple of {values['multiple_of']}",
        "of which step 3 added",
    )
    assert [page[label] for label in labels] == steps
    (value,) = [value for label, value in page.items() if label.startswith("gated, by the rule")]
    assert value == ruled
    assert page["budget matched by the rule?"] == matched


@pytest.mark.parametrize(
    ("d_model", "plain", "multiple_of", "ruled"),
    [(8, 1, 1024, "24,576 (192.0000)"), (8, 8, 1024, "24,576 (24.0000)"), (512, 4, 4096, "6,291,456 (3.0000)")],
)
def test_many_times_the_budget_is_not_called_rounding(panel, d_model, plain, multiple_of, ruled):
    panel.set(d_model=d_model, plain=plain, multiplier=1.0, multiple_of=multiple_of)
    page = table(panel)
    assert [value for label, value in page.items() if label.startswith("gated, by the rule")] == [ruled]
    assert page["budget matched by the rule?"] == "no"


def test_multiplier_and_alignment_are_different_things(panel):
    """Without the multiplier no alignment leads from 10922 to 14336; with it none is far from it."""
    widths = {
        (multiplier, multiple_of): panel.compute(d_model=4096, plain=4, multiplier=multiplier, multiple_of=multiple_of)
        for multiplier in (1.0, 1.3)
        for _, multiple_of in panel.controls["multiple_of"]._options_full
    }
    assert 14336 not in {data.rule.d_ff for (multiplier, _), data in widths.items() if multiplier == 1}
    assert {multiple_of for (multiplier, multiple_of), data in widths.items() if data.rule.d_ff == 14336} >= {1024}
