"""What stands in the pictures of notebook 11, read back from their artists."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.draw.activations import (
    LOOKS,
    MOST_COLUMNS,
    REACH,
    ActivationCurvesView,
    Curves,
    DeadUnitsView,
    Units,
)
from transformer_parts.maths.activations import (
    Extreme,
    dead_units,
    fraction_dead,
    random_units,
    relu_derivative,
    silu_derivative,
    slope_rms,
)


def curves(at=1.0, scale=1.0, furthest=None) -> Curves:
    grid = np.linspace(-REACH, REACH, 81)
    factors = np.array([1.0, 0.7, 0.4, 0.1])
    return Curves(
        grid=grid,
        values=factors[:, None] * grid,
        slopes=factors[:, None] * np.cos(grid),
        at=at,
        values_at=factors * at,
        slopes_at=factors * np.cos(at),
        compared_at=(at, at - scale),
        difference=scale * np.sin(grid),
        furthest=furthest or Extreme(np.pi / 2, scale),
        minimum=Extreme(-1.0, -0.3),
    )


def test_curves_and_marks_stand_at_the_numbers():
    view, data = ActivationCurvesView(), curves(at=-2.3)
    view.frame(data)
    for lines, marks, values, points in (
        (view.value_lines, view.value_marks, data.values, data.values_at),
        (view.slope_lines, view.slope_marks, data.slopes, data.slopes_at),
    ):
        for i in range(4):
            assert_array_equal(lines[i].get_xdata(), data.grid)
            assert_array_equal(lines[i].get_ydata(), values[i])
            assert_array_equal(marks[i].get_data(), [[-2.3], [points[i]]])
    assert_array_equal(view.difference_line.get_ydata(), data.difference)
    assert_array_equal(view.difference_mark.get_data(), [[-2.3], [1.0]])
    assert_allclose(view.furthest_mark.get_data(), [[np.pi / 2], [1.0]])
    assert all(place.get_xdata() == [-2.3, -2.3] for place in view.places)


def test_curves_are_told_apart_without_colour():
    assert len({dash for _, _, dash, _ in LOOKS}) == len({marker for *_, marker in LOOKS}) == 4


@pytest.mark.parametrize("scale", [4.7e-4, 0.02, 1.0, 8.0, 0.0])
def test_the_difference_fits_its_axes_in_coarse_steps(scale):
    view = ActivationCurvesView().update(curves(scale=scale))
    low, high = view.difference_axes.get_ylim()
    assert low < -scale <= scale < high
    same = ActivationCurvesView().update(curves(scale=0.99 * scale))
    assert same.difference_axes.get_ylim() == (low, high)


def test_a_place_beyond_the_picture_is_not_ringed():
    view = ActivationCurvesView().update(curves(furthest=Extreme(8.0, 1.0)))
    assert len(view.furthest_mark.get_xdata()) == 0


def units(bias=-1.0, n_units=60, random=True) -> Units:
    base = random_units(n_units, 16)
    pre = base + bias
    order = np.argsort(-pre.max(0), kind="stable")
    biases = np.linspace(-6, 3, 19)
    slopes = np.array([slope_rms(pre, f)[order] for f in (relu_derivative, silu_derivative, silu_derivative)])
    return Units(
        lowest=pre.min(0)[order],
        highest=pre.max(0)[order],
        slopes=slopes,
        dead=int(dead_units(pre).sum()),
        negative=float((pre <= 0).mean()),
        n_inputs=16,
        bias=bias,
        biases=biases,
        fractions=fraction_dead(base, biases),
        expected=biases**2 / 36 if random else None,
        expected_now=0.5 if random else None,
    )


def test_spans_slopes_and_counts_stand_at_the_numbers():
    view, data = DeadUnitsView(), units()
    view.frame(data)
    high, edges, low = view.spans.get_data()
    assert_allclose(edges, np.linspace(0, 1, 61))
    assert_array_equal(high, data.highest)
    assert_array_equal(low, data.lowest)
    assert_array_equal(view.highest_line.get_ydata(), data.highest)
    for line, slope in zip(view.slope_lines, data.slopes, strict=True):
        drawn = line.get_ydata()
        assert_array_equal(drawn[slope > 0], slope[slope > 0])
        assert np.isnan(drawn[slope == 0]).all()
    assert_array_equal(view.count_line.get_ydata(), data.fractions)
    assert_array_equal(view.expected_line.get_ydata(), data.expected)
    assert_array_equal(view.count_mark.get_data(), [[-1.0], [data.fraction]])


@pytest.mark.parametrize("bias", [-6.0, -2.0, -1.0, 3.0])
def test_the_dead_are_the_units_right_of_the_border(bias):
    view, data = DeadUnitsView(), units(bias)
    view.frame(data)
    (area, _), (edge, _) = view.dead_areas, view.edges
    assert area.get_x() == pytest.approx(1 - data.fraction)
    assert area.get_width() == pytest.approx(data.fraction)
    assert len(edge.get_xdata()) == (2 if data.dead else 0)
    assert view.dead_symbol.get_visible() == (data.fraction >= 0.04)
    first_dead = len(data.highest) - data.dead
    assert (data.highest[first_dead:] <= 0).all()
    assert (data.highest[:first_dead] > 0).all()


def test_of_many_units_some_are_drawn_in_their_places():
    view, data = DeadUnitsView(), units(n_units=2 * MOST_COLUMNS + 1)
    view.frame(data)
    high, edges, _ = view.spans.get_data()
    assert len(high) == 129  # every third
    assert_array_equal(high, data.highest[::3])
    assert edges[0] == 0
    assert edges[-1] == 1
    assert_allclose(np.diff(edges[:-1]), 3 / 385)


def test_what_is_not_random_has_no_expectation():
    view = DeadUnitsView()
    view.frame(units())
    view.frame(units(random=False))
    assert len(view.expected_line.get_xdata()) == 0


@pytest.mark.parametrize(
    ("view", "data", "other", "names"),
    [
        (ActivationCurvesView, curves(), curves(-1.5, 0.02), "at values_at slopes_at compared_at difference furthest"),
        (DeadUnitsView, units(), units(-2.5), "lowest highest slopes dead bias"),
    ],
)
def test_what_differs_is_drawn(view, data, other, names):
    shown = view()
    before = shown.frame(data)
    for name in names.split():
        assert shown.frame(dataclasses.replace(data, **{name: getattr(other, name)})) != before, name
