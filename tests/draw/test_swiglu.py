"""What stands in the pictures of notebook 12, read back from their artists."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.draw.swiglu import (
    Changes,
    Channels,
    GatedChannelsView,
    PositionChangesView,
    RealGatesView,
    Spread,
    reach_of,
)
from transformer_parts.maths.activations import sigmoid, silu
from transformer_parts.maths.feedforward import count_gates, fractions_in_bins, gated


def channels(x=(1.0, 2.0), activation=silu, w_gate=((1.0, -1.0), (0.0, 0.0))) -> Channels:
    steps = gated(np.array(x), np.array(w_gate), np.array([[2.0, 1], [0, 1]]), activation=activation)
    reach = reach_of(steps.pre)
    grid = np.linspace(-reach, reach, 41)
    return Channels(np.array(x), steps, steps.hidden, grid, activation(grid), reach)


def test_marks_and_bars_stand_at_the_numbers():
    view, data = GatedChannelsView(), channels()
    view.frame(data)
    assert_array_equal(view.curve.get_data(), [data.grid, data.curve])
    assert_array_equal(view.marks.get_data(), [data.steps.pre, data.steps.gate])
    assert_array_equal([name.get_position() for name in view.names], np.transpose([data.steps.pre, data.steps.gate]))
    places = []
    for (bars, ends), values in (
        (view.gate_bars, data.steps.gate),
        (view.content_bars, data.steps.up),
        (view.product_bars, data.steps.hidden),
    ):
        segments = np.array(bars.get_segments())
        assert_allclose(segments[:, 1, 1], values)
        assert_allclose(segments[:, 0, 1], 0)
        assert_array_equal(ends.get_ydata(), values)
        places.append(ends.get_xdata())
    assert_allclose(np.diff(places, axis=0), 0.25)
    drops = np.array(view.drops.get_segments())
    assert_array_equal(drops[:, 0], [[1, 0], [-1, 0]])
    assert_array_equal(drops[:, 1], np.transpose([data.steps.pre, data.steps.gate]))


@pytest.mark.parametrize("activation", [silu, sigmoid, lambda g: g])
@pytest.mark.parametrize("x", [(0.0, 0.0), (1.0, 2.0), (-3.0, 3.0), (17.0, -40.0)])
def test_everything_fits_its_axes_and_1_is_in_sight(x, activation):
    view, data = GatedChannelsView(), channels(x, activation)
    view.update(data)
    (left, right), (low, high) = view.curve_axes.get_xlim(), view.curve_axes.get_ylim()
    assert left < data.steps.pre.min() <= data.steps.pre.max() < right
    assert low < min(0, *data.steps.gate) <= max(1, *data.steps.gate) < high
    low, high = view.bar_axes.get_ylim()
    assert (np.abs([data.steps.gate, data.steps.up, data.steps.hidden]) < high).all()
    assert low == -high


@pytest.mark.parametrize(("largest", "reach"), [(0, 4), (2.9, 4), (3.9, 5), (4.2, 5), (9.0, 10), (18.0, 20)])
def test_the_reach_goes_in_steps(largest, reach):
    assert reach_of(np.array([-largest, 0.1])) == reach


PRE_EDGES, GATE_EDGES = np.linspace(-8, 8, 17), np.linspace(-1, 4, 11)


def spread(pre, text=None) -> Spread:
    gates = silu(pre)
    return Spread(
        pre_edges=PRE_EDGES,
        gate_edges=GATE_EDGES,
        pre=fractions_in_bins(pre, PRE_EDGES),
        gate=fractions_in_bins(gates, GATE_EDGES),
        counts=count_gates(gates),
        pre_lowest=pre.min(),
        pre_highest=pre.max(),
        size=pre.size,
        text=text,
    )


def test_the_three_parts_of_the_gates_are_parted_at_0_and_1(rng):
    view, data = RealGatesView(), spread(3 * rng.standard_normal(4001))
    view.frame(data)
    parts = (view.negative_steps, view.within_steps, view.above_steps)
    ends = [(steps.get_data().edges[0], steps.get_data().edges[-1]) for steps in parts]
    assert ends == [(-1, 0), (0, 1), (1, 4)]
    drawn = np.concatenate([steps.get_data().values for steps in parts])
    assert_allclose(drawn, data.gate, atol=4e-6)
    assert_allclose(view.pre_steps.get_data().values, data.pre, atol=4e-6)
    below, _, above = (steps.get_data().values.sum() for steps in parts)
    assert below == pytest.approx(data.counts.negative, abs=1e-4)
    assert above == pytest.approx(data.counts.above_one, abs=1e-4)
    # Told apart by lightness, and one of them by hatching.
    assert [steps.get_hatch() or "" for steps in parts] == ["", "", "//"]


def test_an_empty_column_is_at_the_floor_and_a_single_gate_is_seen():
    view, data = RealGatesView(), spread(np.linspace(0.1, 0.2, 1000))
    view.frame(data)
    floor = view.gate_axes.get_ylim()[0]
    assert (view.negative_steps.get_data().values == floor).all()
    one = spread(np.r_[np.full(99_999, 0.1), 5.0])
    view.frame(one)
    assert view.above_steps.get_data().values.max() > 3 * floor


def changes(position=2) -> Changes:
    of_input = np.zeros((8, 5))
    of_input[position] = np.arange(1, 6)
    return Changes(of_input, 2 * of_input, np.cumsum(of_input, axis=0), position)


@pytest.mark.parametrize("position", [0, 2, 7])
def test_the_frame_goes_round_the_changed_position(position):
    view = PositionChangesView()
    view.frame(changes(position))
    for ring in view.rings:
        assert set(ring.get_ydata()) == {position - 0.5, position + 0.5}
    first = view.maps[0].axes.transData.transform([(0, position - 0.5), (1, position + 0.5)])
    box = view.maps[0].axes.bbox
    assert box.y1 - first[0, 1] == pytest.approx(position * box.height / 8)


@pytest.mark.parametrize(
    ("view", "data", "other", "names"),
    [
        (GatedChannelsView, channels(), channels((2.0, 2.9), sigmoid), "steps curve"),
        (RealGatesView, spread(np.linspace(-3, 2, 99)), spread(np.linspace(-2, 5, 99)), "pre gate"),
        (PositionChangesView, changes(), changes(5), "of_input of_feedforward of_attention position"),
    ],
)
def test_what_differs_is_drawn(view, data, other, names):
    shown = view()
    before = shown.frame(data)
    for name in names.split():
        assert shown.frame(dataclasses.replace(data, **{name: getattr(other, name)})) != before, name
