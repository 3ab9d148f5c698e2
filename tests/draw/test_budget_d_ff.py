"""budget_d_ff: lengths are parameters over the plain layer's, and the steps stand where their widths are."""

import numpy as np
import pytest

from transformer_parts.draw.budget_d_ff import Layer, Widths, WidthsView
from transformer_parts.maths.budget import equal_budget_d_ff, llama_d_ff, match_budget


def widths(d_model=4096, plain=4, multiplier=1.3, multiple_of=1024):
    d_ff = plain * d_model
    rule = llama_d_ff(d_model, multiple_of=multiple_of, multiplier=multiplier)

    def layer(kind, matrices, width):
        return Layer(matrices, width, match_budget(kind, d_model, width, reference_d_ff=d_ff))

    equal = equal_budget_d_ff(d_ff)
    layers = (layer("mlp", 2, d_ff), *(layer("gated", 3, width) for width in (d_ff, int(equal), rule.d_ff)))
    return Widths(d_model, d_ff, equal, layers, equal_budget_d_ff(rule.plain), rule, multiplier, multiple_of)


@pytest.fixture
def view():
    return WidthsView()


def lengths(view):
    return [[matrix.get_width() for matrix in matrices] for matrices in view.matrices]


def test_matrices_are_two_halves_or_three_parts_end_to_end(view):
    view.update(widths())
    assert lengths(view)[0] == pytest.approx([0.5, 0.5])
    assert lengths(view)[1] == pytest.approx([0.5] * 3)
    assert lengths(view)[2] == pytest.approx([10922 / 16384 / 2] * 3)
    assert lengths(view)[3] == pytest.approx([1.3125 / 3] * 3)
    for matrices in view.matrices:
        ends = [matrix.get_x() + matrix.get_width() for matrix in matrices]
        assert [matrix.get_x() for matrix in matrices] == pytest.approx([0, *ends[:-1]])


def test_numbers_of_the_worked_example(view):
    view.update(widths(8, 3, 1.0, 1))
    assert [text.get_text() for text in view.widths] == ["d × 24", "d × 16", "d × 21"]
    assert [text.get_text() for text in view.ratios] == ["1.0000", "1.3125"]
    assert [text.get_text() for text in view.values] == ["21.33", "21", "21", "21"]


def test_steps_of_llama_3(view):
    view.update(widths())
    assert [text.get_text() for text in view.symbols] == ["× 1.3", "↑ 1024"]
    assert [text.get_text() for text in view.values] == ["10922.67", "10922", "14198", "14336"]
    places = np.concatenate([view.exact.get_xdata(), view.dots.get_xdata()])
    true = np.array([10922 + 2 / 3, 10922, 14198, 14336])
    # One scale for all: distances on the picture are proportional to those of the widths.
    assert np.diff(places) == pytest.approx(np.diff(true) * (places[3] - places[1]) / (14336 - 10922))
    assert places.min() > 0
    assert places.max() < 1


def test_grid_is_made_of_multiples_and_the_last_step_is_one(view):
    view.update(widths())
    grid = [segment[0][0] for segment in view.grid.get_segments()]
    assert len(grid) == 4
    assert grid[-1] == pytest.approx(view.dots.get_xdata()[-1])
    view.update(widths(multiple_of=1))
    assert len(view.grid.get_segments()) == 1


@pytest.mark.parametrize("multiple_of", [1, 4096])
@pytest.mark.parametrize("d_model", [8, 8192])
@pytest.mark.parametrize("multiplier", [0.5, 2.0])
@pytest.mark.parametrize("plain", [1, 8])
def test_every_length_is_within_the_axes(view, d_model, plain, multiplier, multiple_of):
    view.frame(widths(d_model, plain, multiplier, multiple_of))
    right = view.budget.get_xlim()[1]
    assert max(sum(row) for row in lengths(view)) <= right
    for text, row in zip(view.widths, (0, 2, 3), strict=True):
        if text.get_visible():
            assert text.get_window_extent().width <= view.matrices[row][0].get_window_extent().width
    assert 0 < min(view.dots.get_xdata()) <= max(view.dots.get_xdata()) < 1
    assert 0 < view.exact.get_xdata()[0] < 1
