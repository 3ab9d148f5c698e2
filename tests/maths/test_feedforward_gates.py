"""Counts and histograms of gates: slow loops, NumPy's own histogram, the real model's gates, bad input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.activations import sigmoid, silu
from transformer_parts.maths.feedforward_gates import count_gates, fractions_in_bins
from transformer_parts.models.excerpt import load_excerpt


def test_counts_are_counted_one_by_one(rng):
    gates = 2 * rng.standard_normal((3, 5, 7))
    flat = [float(g) for g in gates.flat]
    counts = count_gates(gates)
    assert counts.negative == sum(g < 0 for g in flat) / 105
    assert counts.above_one == sum(g > 1 for g in flat) / 105
    assert (counts.lowest, counts.highest) == (min(flat), max(flat))
    assert counts.share_above_one == pytest.approx(sum(g * g for g in flat if g > 1) / sum(g * g for g in flat))


def test_the_edges_of_what_a_probability_may_be_are_inside():
    assert count_gates([0.0, 1.0])[:2] == (0, 0)
    assert np.isnan(count_gates([0.0, 0.0]).share_above_one)
    assert count_gates(np.float16([300, -300])).share_above_one == 0.5  # squares beyond float16


def test_a_sigmoid_is_never_outside_and_silu_reaches_its_bound(rng):
    pre = 4 * rng.standard_normal(997)
    assert count_gates(sigmoid(pre))[:2] == (0, 0)
    counts = count_gates(silu(pre))
    assert counts.negative == (pre < 0).mean()
    assert -0.27847 < counts.lowest < -0.2784


def test_real_gates_are_no_probabilities():
    excerpt = load_excerpt()
    counts = [count_gates(excerpt.gate_activation(layer)) for layer in excerpt.gate_layers]
    assert excerpt.gate_layers == (11, 16, 29)
    assert_allclose([c.negative for c in counts], [0.713, 0.567, 0.512], atol=6e-4)
    assert_allclose([c.above_one for c in counts], [0.008, 0.025, 0.153], atol=6e-4)


def test_histogram_is_numpys_with_what_lies_beyond(rng):
    values, edges = 2 * rng.standard_normal((3, 331)), np.array([-2.0, -0.5, 0.0, 0.1, 3.0])
    expected, _ = np.histogram(np.clip(values, -2, 2.999), edges)
    assert_allclose(fractions_in_bins(values, edges), expected / values.size, rtol=1e-14)
    assert fractions_in_bins(values, edges).sum() == pytest.approx(1)


def test_a_bin_holds_its_left_edge():
    assert_array_equal(fractions_in_bins([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]), [0.25, 0.25, 0.5])
    assert_array_equal(fractions_in_bins([5.0], [0.0, 1.0]), [1.0])


@pytest.mark.parametrize(
    ("values", "edges", "message"),
    [
        ([np.nan], [0.0, 1.0], "values: got nan"),
        ([1.0], [0.0, np.inf], "edges: got inf"),
        ([1.0], [0.0], "edges: got 1 entries, not all rising, want at least two rising entries"),
        ([1.0], [0.0, 1.0, 1.0], "edges: got 3 entries, not all rising"),
        ([1.0], [[0.0, 1.0]], r"edges: got shape \(1, 2\)"),
    ],
)
def test_histogram_refuses_bad_input(values, edges, message):
    with pytest.raises(ValueError, match="^" + message):
        fractions_in_bins(values, edges)


def test_squares_of_gates_do_not_overflow():
    assert count_gates([1e200, 1e200, -1e200]).share_above_one == pytest.approx(2 / 3)
    assert np.isnan(count_gates([0.0, 0.0]).share_above_one)


def test_counts_refuse_what_is_not_finite():
    with pytest.raises(ValueError, match=r"^gates: got inf"):
        count_gates([np.inf])
