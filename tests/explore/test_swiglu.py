"""The explorers of notebook 12: the worked numbers stand on the screen, and the real gates are counted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from panel_table import after, shown

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.swiglu import FAMILY, GatedChannels, PositionChanges, RealGates
from transformer_parts.maths.feedforward import GLU_FAMILY
from transformer_parts.models.excerpt import load_excerpt

OUTPUT = "f(g) ⊙ u, and with W_down = I the output"


def test_all_are_in_the_catalogue():
    assert {GatedChannels, RealGates, PositionChanges} <= set(PANELS)


def test_the_menu_offers_the_whole_family():
    assert set(FAMILY.values()) == set(GLU_FAMILY)


# ---------------------------------------------------------------- channels


def test_the_hand_calculation_stands_on_the_screen():
    panel = after(GatedChannels(), "By hand")
    assert shown(panel, "g = x·W of the gate") == "(1.000000, -1.000000)"
    assert shown(panel, "f(g), the gate") == "(0.731059, -0.268941)"
    assert shown(panel, "u = x·W of the content") == "(2.000000, 3.000000)"
    assert shown(panel, OUTPUT) == "(1.462117, -0.806824)"
    assert shown(panel, "gates below 0, above 1") == "1, 0"


@pytest.mark.parametrize(
    ("preset", "gate", "output"),
    [
        ("GEGLU", "(0.841345, -0.158655)", "(1.682689, -0.475966)"),
        ("ReGLU", "(1.000000, 0.000000)", "(2.000000, 0.000000)"),
        ("GLU", "(0.731059, 0.268941)", "(1.462117, 0.806824)"),
        ("Bilinear", "(1.000000, -1.000000)", "(2.000000, -3.000000)"),
        ("Gates above 1", "(2.857722, 1.226362)", "(17.146334, 6.131809)"),
        ("x = 0", "(0.000000, 0.000000)", "(0.000000, 0.000000)"),
    ],
)
def test_presets_show_the_family_on_the_same_numbers(preset, gate, output):
    panel = after(GatedChannels(), preset)
    assert shown(panel, "f(g), the gate") == gate
    assert shown(panel, OUTPUT) == output


def test_gates_above_1_are_counted():
    assert shown(after(GatedChannels(), "Gates above 1"), "gates below 0, above 1") == "0, 2"


def test_each_weight_reaches_its_own_channel():
    panel = GatedChannels()
    base = panel.compute(**panel.state).steps
    for name in ("g11", "g21", "u11", "u21", "g12", "g22", "u12", "u22"):
        moved = panel.compute(**panel.state | {name: 2.7}).steps
        branch, channel = ("pre" if name[0] == "g" else "up"), int(name[2]) - 1
        changed = np.array([getattr(moved, branch) != getattr(base, branch)])[0]
        assert list(np.flatnonzero(changed)) == [channel], name
        other = "up" if branch == "pre" else "pre"
        assert_allclose(getattr(moved, other), getattr(base, other))


# ---------------------------------------------------------------- real gates


@pytest.mark.parametrize(
    ("preset", "negative", "above"),
    [
        ("Layer 11", "71.3 %", "0.8 %"),
        ("Layer 16", "56.7 %", "2.5 %"),
        ("Layer 29", "51.2 %", "15.3 %"),
        ("All three", "59.7 %", "6.2 %"),
        ("… if it were GLU", "0.0 %", "0.0 %"),
    ],
)
def test_real_gates_are_counted(preset, negative, above):
    panel = after(RealGates(), preset)
    assert shown(panel, "gates below 0") == negative
    assert shown(panel, "gates above 1") == above


def test_numbers_are_those_of_the_excerpt():
    panel, excerpt = RealGates(), load_excerpt()
    panel.set(source="29", token=5)
    gates = excerpt.gate_activation(29)[5]
    assert shown(panel, "token") == f"“{excerpt.token_texts[5]}”"
    assert shown(panel, "gates") == "1,536"
    assert shown(panel, "gates below 0") == f"{100 * (gates < 0).mean():.1f} %"
    data = panel.compute(**panel.state)
    assert (data.counts.lowest, data.counts.highest) == (gates.min(), gates.max())
    assert data.pre.sum() == pytest.approx(1)
    assert data.gate[(data.gate_edges[:-1] < 0)].sum() == pytest.approx((gates < 0).mean())
    assert data.gate[(data.gate_edges[:-1] >= 1)].sum() == pytest.approx((gates >= 1).mean())


def test_all_tokens_of_a_layer_are_counted_once():
    panel = RealGates()
    first = panel.compute(source="16", member="geglu", token=-1)
    assert panel.compute(source="16", member="geglu", token=-1) is first
    assert panel.compute(source="16", member="swiglu", token=-1) is not first


# ---------------------------------------------------------------- positions


@pytest.mark.parametrize("layer", ["swiglu", "geglu", "bilinear", "plain"])
@pytest.mark.parametrize("position", [0, 2, 7])
def test_a_feed_forward_layer_moves_its_own_position_and_attention_all_that_follow(layer, position):
    panel = PositionChanges()
    panel.set(position=position, layer=layer)
    assert shown(panel, "positions whose FFN output changed") == str(position)
    following = ", ".join(map(str, range(position, 8)))
    assert shown(panel, "positions whose attention output changed") == following
    assert shown(panel, "largest change of the FFN's other rows") == "0.000000"


def test_without_a_change_nothing_moves():
    panel = after(PositionChanges(), "No change")
    assert shown(panel, "positions whose FFN output changed") == "none"
    assert shown(panel, "positions whose attention output changed") == "none"
