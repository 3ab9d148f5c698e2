"""The explorers of notebook 11: the published numbers stand on the screen, and the dead are counted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from panel_table import after, shown

from transformer_parts.explore.activations import ActivationCurves, DeadUnits
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.maths import activations
from transformer_parts.maths.activations import random_units, slope_rms
from transformer_parts.models.excerpt import load_excerpt


def test_both_are_in_the_catalogue():
    assert {ActivationCurves, DeadUnits} <= set(PANELS)


# ---------------------------------------------------------------- curves


def test_the_two_gelus_at_1_and_where_they_differ_most():
    panel = after(ActivationCurves(), "The two GELUs at 1")
    assert shown(panel, "the two compared, at x") == "0.841345, 0.841192"
    assert shown(panel, "difference at x") == "0.0001528"
    assert shown(panel, "largest difference, |x| ≤ 4") == "-0.0004732, at 2.699"
    after(panel, "… where they differ most")
    assert shown(panel, "difference at x") == "-0.0004732"
    assert panel.compute(**panel.state).furthest.x == pytest.approx(2.699, abs=5e-4)


def test_the_lowest_point_of_silu():
    panel = after(ActivationCurves(), "Lowest point of SiLU")
    assert shown(panel, "Swish") == "-0.278465, slope -0.000008"
    assert shown(panel, "Swish is lowest") == "-0.2785, at -1.2785"


def test_beta_leads_from_a_line_to_relu():
    panel = after(ActivationCurves(), "β = 0: a line")
    assert shown(panel, "Swish") == "0.500000, slope 0.500000"
    assert shown(panel, "Swish is lowest") == "—"
    after(panel, "β = 1.702")
    assert shown(panel, "largest difference, |x| ≤ 4") == "-0.0203349, at 2.270"
    after(panel, "β = 20: nearly ReLU")
    assert shown(panel, "largest difference, |x| ≤ 4") == "-0.0139232, at 0.064"


def test_values_and_slopes_are_the_librarys():
    panel = ActivationCurves()
    panel.set(at=-0.7, beta=3.0, first="sigmoid", second="relu")
    data = panel.compute(**panel.state)
    functions = (activations.relu, activations.gelu, lambda x: activations.swish(x, 3.0), activations.sigmoid)
    assert_allclose(data.values_at, [f(-0.7) for f in functions])
    slopes = [(f(-0.7 + 1e-6) - f(-0.7 - 1e-6)) / 2e-6 for f in functions]
    assert_allclose(data.slopes_at, slopes, atol=1e-8)
    assert_allclose(data.values[:, 200], [f(0.0) for f in functions])
    assert data.difference_at == pytest.approx(float(activations.sigmoid(-0.7)))


def test_a_function_less_itself_is_nowhere_largest():
    panel = ActivationCurves()
    panel.set(first="gelu", second="gelu")
    assert shown(panel, "largest difference, |x| ≤ 4") == "none"
    assert shown(panel, "difference at x") == "0.0000000"


def test_the_largest_difference_is_one_of_the_picture():
    panel = ActivationCurves()
    panel.set(first="relu", second="sigmoid", at=1.0)
    assert shown(panel, "largest difference, |x| ≤ 4") == "3.0179862, at 4.000"
    x, y = panel.view.furthest_mark.get_data()
    assert [*x, *y] == pytest.approx([4, 4 - 1 / (1 + np.exp(-4))])


# ---------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("preset", "dead", "expected"),
    [
        ("b = 0", "0 of 192", "0.0 %"),
        ("b = −3", "145 of 192", "70.8 %"),
        ("… one input", "192 of 192", "99.9 %"),
        ("… 16 inputs", "189 of 192", "97.9 %"),
        ("… 512 inputs", "96 of 192", "50.1 %"),
    ],
)
def test_fewer_units_are_dead_the_more_inputs_are_looked_at(preset, dead, expected):
    panel = after(DeadUnits(), preset)
    assert shown(panel, "dead units: not above 0 at any input") == dead
    assert shown(panel, "expected: Φ(−b)ⁿ, n inputs") == expected


def test_a_dead_unit_has_no_slope_under_relu_alone():
    panel = after(DeadUnits(), "b = −3")
    slopes = [float(shown(panel, f"slope of a dead unit, median: {name}")) for name in ("ReLU", "SiLU", "GELU")]
    assert slopes[0] == 0
    assert min(slopes[1:]) > 0.05
    after(panel, "b = 0")
    assert shown(panel, "slope of a dead unit, median: ReLU") == "—"


def test_units_of_the_real_model_are_those_of_the_excerpt():
    panel, excerpt = after(DeadUnits(), "Layer 11 as it is"), load_excerpt()
    pre = excerpt.gate(11)
    assert shown(panel, "inputs") == "71"
    assert shown(panel, "dead units: not above 0 at any input") == f"{(pre.max(0) <= 0).sum()} of 1536"
    assert shown(panel, "pre-activations z that are not above 0") == f"{100 * (pre <= 0).mean():.1f} %"
    assert shown(panel, "expected: Φ(−b)ⁿ, n inputs") == "—"
    panel.set(inputs=4, bias=-0.5)
    assert panel.compute(**panel.state).dead == (pre[:4].max(0) <= 0.5).sum()


def test_the_mark_stands_on_the_curve_of_fractions():
    panel = DeadUnits()
    for bias in (-6.0, -3.0, -1.5, 0.0, 3.0):
        data = panel.compute(source="16", bias=bias, inputs=64)
        assert data.fractions[np.abs(data.biases - bias).argmin()] == data.fraction


@pytest.mark.parametrize(("bias", "inputs"), [(-3.0, 1), (-4.0, 1), (-4.0, 256), (-6.0, 512)])
def test_the_slope_of_gelu_is_that_of_the_exact_one(bias, inputs):
    seen = DeadUnits().compute(source="random", bias=bias, inputs=inputs)
    pre = random_units(192, 512)[:inputs] + bias
    exact = slope_rms(pre, activations.gelu_derivative)[np.argsort(-pre.max(axis=0), kind="stable")]
    assert_allclose(seen.slopes[2], exact, rtol=1e-3, atol=1e-7)
