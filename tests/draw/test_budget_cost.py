"""budget_cost: the lines are the data, and the marks stand on them."""

import numpy as np
import pytest

from transformer_parts.draw.budget_cost import Cost, CostView

CONTEXTS = np.array([1, 16, 256])
COST = Cost(
    contexts=CONTEXTS,
    cache=CONTEXTS * 2e5,
    full_cache=CONTEXTS * 6e5,
    weights=10**9,
    weight_flops=10**9 - 7,
    attention_flops=CONTEXTS * 5e5,
    context=16,
    context_cache=32 * 10**5,
    context_full_cache=96 * 10**5,
    context_attention_flops=8 * 10**6,
    parameters=5 * 10**8,
    full_parameters=6 * 10**8,
    token_cache=2 * 10**5,
)


@pytest.fixture
def view():
    return CostView().update(COST)


def test_lines_are_the_data(view):
    for line, values in (
        (view.cache, COST.cache),
        (view.full_cache, COST.full_cache),
        (view.attention_flops, COST.attention_flops),
    ):
        assert np.array_equal(line.get_xdata(), CONTEXTS)
        assert np.array_equal(line.get_ydata(), values)
    assert list(view.weights.get_ydata()) == [COST.weights] * 2
    assert list(view.weight_flops.get_ydata()) == [COST.weight_flops] * 2


def test_marks_stand_on_their_lines_at_the_context(view):
    assert len(view.marks) == 5
    for line, mark in view.marks.items():
        (x,), (y,) = mark.get_data()
        assert x == COST.context
        assert y == pytest.approx(np.interp(x, line.get_xdata(), line.get_ydata()))
    assert all(list(place.get_xdata()) == [COST.context] * 2 for place in view.places)
