"""Controls keep exact values, and every value they offer can be reached."""

import ipywidgets as widgets
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traitlets import TraitError

from transformer_parts.explore import controls


def values(slider):
    return [value for _, value in slider.options]


def test_integer_is_a_slider_over_whole_numbers():
    slider = controls.integer("head_dim", 128, 2, 256, step=2)
    assert isinstance(slider, widgets.IntSlider)
    assert (slider.value, slider.min, slider.max, slider.step) == (128, 2, 256, 2)
    assert slider.description == "head_dim"


def test_real_offers_an_even_grid_with_round_numbers():
    slider = controls.real("θ", 0.3, 0, 1, step=0.1)
    assert values(slider) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert slider.value == 0.3
    assert slider.label == "0.30"


def test_exact_values_stand_among_the_grid_in_order():
    slider = controls.real("θ", np.pi / 2, 0, 3.14, step=0.02, form=".3f", also=[np.pi])
    offered = values(slider)
    assert offered == sorted(set(offered))
    assert len(offered) == 158 + 2
    assert slider.value == np.pi / 2
    assert offered[-1] == np.pi
    slider.value = np.pi
    assert slider.label == "3.142"


@given(
    low=st.floats(-100, 100, allow_subnormal=False),
    count=st.integers(1, 200),
    step=st.sampled_from([0.01, 0.1, 0.25, 1, 3]),
    value=st.floats(0, 1),
)
def test_real_keeps_ends_step_and_value(low, count, step, value):
    high = low + count * step
    value = low + value * (high - low)
    slider = controls.real("x", value, low, high, step=step)
    grid = values(slider)
    assert slider.value == value
    assert grid[0] == pytest.approx(low, abs=1e-9)
    assert grid[-1] == pytest.approx(high, abs=1e-9)
    assert count + 1 <= len(grid) <= count + 2
    assert np.diff(grid).max() <= step * (1 + 1e-6) + 1e-9


def test_power_moves_in_even_factors_through_the_powers_of_ten():
    slider = controls.power("base", 10000.0, 10, 1e7, form=",.0f", also=[5e5])
    offered = values(slider)
    assert {10.0, 100.0, 1000.0, 10000.0, 1e5, 1e6, 1e7, 5e5} <= set(offered)
    assert len(offered) == 61 + 1
    without = np.array([value for value in offered if value != 5e5])
    assert without[1:] / without[:-1] == pytest.approx(10**0.1, rel=1e-5)
    slider.value = 5e5
    assert slider.label == "500,000"


def test_two_values_with_one_label_are_still_two():
    slider = controls.real("x", 0.123, 0, 1, step=0.1, form=".1f")
    assert [label for label, _ in slider.options].count("0.1") == 2
    slider.value = 0.123
    assert slider.value == 0.123
    slider.value = 0.1
    assert slider.value == 0.1


def test_choice_shows_names_and_gives_values():
    assert controls.choice("kind", ["relu", "gelu"], "gelu").value == "gelu"
    menu = controls.choice("kind", {"ReLU": 1, "GELU": 2}, 2)
    assert (menu.label, menu.value) == ("GELU", 2)


def test_switch_is_a_box():
    assert controls.switch("mask").value is False
    assert controls.switch("mask", True).value is True
    assert controls.switch("mask").description == "mask"


@pytest.mark.parametrize(
    "make",
    [
        lambda: controls.integer("i", 1, 0, 2),
        lambda: controls.real("r", 1, 0, 2, step=1),
        lambda: controls.power("p", 10, 1, 100),
        lambda: controls.choice("c", ["a"], "a"),
        lambda: controls.switch("s"),
    ],
)
def test_controls_shrink_with_the_page_and_share_no_layout(make):
    one, other = make(), make()
    assert one.layout.min_width == "0"
    assert one.layout is not other.layout


def test_value_outside_its_menu_is_refused():
    with pytest.raises(TraitError, match="Invalid selection"):
        controls.choice("kind", ["relu"], "gelu")
