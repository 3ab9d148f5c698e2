"""budget: what the bars, dots and labels of the tally show is the data."""

import numpy as np
import pytest

from transformer_parts.draw.budget import (
    LOOKS,
    BudgetCostView,
    BudgetTallyView,
    BudgetWidthsView,
    Cost,
    Layer,
    TwoTallies,
    Widths,
)
from transformer_parts.maths import budget
from transformer_parts.maths.budget import DecoderConfig, Tally, equal_budget_d_ff, llama_d_ff, match_budget

ONE = Tally(embedding=200, positions=100, attention=300, feed_forward=250, norms=50, head=100)
OTHER = Tally(attention=256, feed_forward=384, norms=16)


def two(model, reference=OTHER):
    config = DecoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, vocab_size=0, final_norm=False)
    return TwoTallies(
        model=model,
        reference=reference,
        model_name="one",
        reference_name="another",
        formulas=budget.formulas(config),
        tied=False,
        attention_width=8,
        d_model=8,
        match=budget.match_budget("gated", 8, 16),
        flops=budget.flops_per_token(config, 1).weights,
        cache_bytes=budget.kv_cache_bytes(config, 1),
        told="",
        note="",
    )


@pytest.fixture
def view():
    return BudgetTallyView()


def bar(decoder):
    """Return (left, width) of each visible segment."""
    return {part: (s.get_x(), s.get_width()) for part, s in decoder.segments.items() if s.get_visible()}


def test_segments_are_laid_end_to_end_in_units_of_the_other_decoder(view):
    view.update(two(ONE))
    ends = np.cumsum([0, 200, 100, 300, 250, 50, 100]) / 656
    expected = dict(zip(ONE.parts, zip(ends[:-1], np.diff(ends), strict=True), strict=True))
    assert bar(view.model) == {part: pytest.approx(place) for part, place in expected.items()}
    assert bar(view.reference)["feed_forward"] == pytest.approx((256 / 656, 384 / 656))
    assert set(bar(view.reference)) == {"attention", "feed_forward", "norms"}


def test_percentages_stand_in_segments_wide_enough(view):
    view.update(two(ONE))
    shown = {part: text.get_text() for part, text in view.model.percents.items() if text.get_visible()}
    assert shown == {"embedding": "20.0 %", "attention": "30.0 %", "feed_forward": "25.0 %"}
    for part, text in view.model.percents.items():
        left, width = bar(view.model)[part]
        assert text.get_position()[0] == pytest.approx(left + width / 2)


def test_bars_of_parts_and_totals_are_the_numbers(view):
    view.update(two(ONE))
    for decoder, tally in ((view.model, ONE), (view.reference, OTHER)):
        assert decoder.total.get_text() == f"{tally.total:,}"
        for name, number in tally.parts.items():
            assert decoder.bars[name].get_visible() == (number > 0)
            assert decoder.bars[name].get_width() == pytest.approx(number / 656)
    assert view.ratios["attention"].get_text() == "× 1.17"
    assert view.ratios["head"].get_text() == ""


def test_rows_stand_in_the_order_of_their_labels(view):
    view.update(two(ONE))
    labels = {label.get_position()[1]: label.get_text() for label in view.parts.get_yticklabels()}
    for name, look in LOOKS.items():
        height = view.model.bars[name].get_y()
        assert labels[height] == look.symbol
        assert view.ratios[name].get_position()[1] == height
        assert view.reference.bars[name].get_y() < height


def test_grips_stand_at_the_ends_of_bars_and_a_bar_that_is_cut_has_one_at_the_edge(view):
    grips = view.update(two(ONE)).grips(two(ONE))
    assert (grips["layers"].x, grips["width"].x) == pytest.approx(
        (view.at(view.whole, 1000 / 656, 0)[0], view.at(view.parts, 250 / 656, 0)[0])
    )
    large = Tally(attention=2000)
    assert view.update(two(large)).grips(two(large))["layers"].x == pytest.approx(view.at(view.whole, 2, 0)[0])
    assert "cut here" in [str(word.text) for word in view.words(two(large))]


def test_background_is_drawn_again_only_for_another_reference(view, monkeypatch):
    drawn = []
    keep = view._backgrounds.keep
    monkeypatch.setattr(view._backgrounds, "keep", lambda *arguments: (drawn.append(1), keep(*arguments)))
    view.frame(two(ONE))
    view.frame(two(OTHER))
    assert len(drawn) == 1
    view.frame(two(OTHER, ONE))
    assert len(drawn) == 2


def test_parts_differ_by_more_than_hue():
    assert list(LOOKS) == list(Tally().parts)
    assert len({(look.colour, look.hatch) for look in LOOKS.values()}) == len(LOOKS)


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
def view_of_budget_cost():
    return BudgetCostView().update(COST)


def test_lines_are_the_data(view_of_budget_cost):
    for line, values in (
        (view_of_budget_cost.cache, COST.cache),
        (view_of_budget_cost.full_cache, COST.full_cache),
        (view_of_budget_cost.attention_flops, COST.attention_flops),
    ):
        assert np.array_equal(line.get_xdata(), CONTEXTS)
        assert np.array_equal(line.get_ydata(), values)
    assert list(view_of_budget_cost.weights.get_ydata()) == [COST.weights] * 2
    assert list(view_of_budget_cost.weight_flops.get_ydata()) == [COST.weight_flops] * 2


def test_marks_stand_on_their_lines_at_the_context(view_of_budget_cost):
    assert len(view_of_budget_cost.marks) == 5
    for line, mark in view_of_budget_cost.marks.items():
        (x,), (y,) = mark.get_data()
        assert x == COST.context
        assert y == pytest.approx(np.interp(x, line.get_xdata(), line.get_ydata()))
    assert all(list(place.get_xdata()) == [COST.context] * 2 for place in view_of_budget_cost.places)


def widths(d_model=4096, plain=4, multiplier=1.3, multiple_of=1024):
    d_ff = plain * d_model
    rule = llama_d_ff(d_model, multiple_of=multiple_of, multiplier=multiplier)

    def layer(kind, matrices, width):
        return Layer(matrices, width, match_budget(kind, d_model, width, reference_d_ff=d_ff))

    equal = equal_budget_d_ff(d_ff)
    layers = (layer("mlp", 2, d_ff), *(layer("gated", 3, width) for width in (d_ff, int(equal), rule.d_ff)))
    return Widths(d_model, d_ff, equal, layers, equal_budget_d_ff(rule.plain), rule, multiplier, multiple_of)


@pytest.fixture
def view_of_budget_d_ff():
    return BudgetWidthsView()


def test_matrices_lie_on_one_another_and_their_area_is_the_parameters(view_of_budget_d_ff):
    data = widths()
    view_of_budget_d_ff.update(data)
    for layer, matrices in zip(data.layers, view_of_budget_d_ff.matrices, strict=True):
        assert len(matrices) == layer.matrices
        assert [matrix.get_width() for matrix in matrices] == pytest.approx([layer.width / 4096] * layer.matrices)
        assert np.diff([matrix.get_y() for matrix in matrices]) == pytest.approx(matrices[0].get_height())
        area = sum(matrix.get_width() * matrix.get_height() for matrix in matrices)
        assert area * 4096**2 == pytest.approx(layer.match.parameters)


def test_frames_have_the_area_of_the_plain_layer(view_of_budget_d_ff):
    view_of_budget_d_ff.update(widths(512, 3))
    plain = sum(matrix.get_width() * matrix.get_height() for matrix in view_of_budget_d_ff.matrices[0])
    assert [f.get_width() * f.get_height() for f in view_of_budget_d_ff.frames] == pytest.approx([plain] * 3)


def test_numbers_of_the_worked_example(view_of_budget_d_ff):
    view_of_budget_d_ff.update(widths(8, 3, 1.0, 1))
    assert [text.get_text() for text in view_of_budget_d_ff.widths] == ["d × 24", "d × 16", "d × 21"]
    assert [text.get_text() for text in view_of_budget_d_ff.ratios] == ["1.0000", "1.3125"]
    assert [text.get_text() for text in view_of_budget_d_ff.values] == ["21.33", "21", "21", "21"]


def test_steps_of_llama_3(view_of_budget_d_ff):
    view_of_budget_d_ff.update(widths())
    assert [text.get_text() for text in view_of_budget_d_ff.symbols] == ["× 1.3", "↑ 1024"]
    assert [text.get_text() for text in view_of_budget_d_ff.values] == ["10922.67", "10922", "14198", "14336"]
    places = np.concatenate([view_of_budget_d_ff.exact.get_xdata(), view_of_budget_d_ff.dots.get_xdata()])
    true = np.array([10922 + 2 / 3, 10922, 14198, 14336])
    # One scale for all: distances on the picture are proportional to those of the widths.
    assert np.diff(places) == pytest.approx(np.diff(true) * (places[3] - places[1]) / (14336 - 10922))
    assert places.min() > 0
    assert places.max() < 1


def test_grid_is_made_of_multiples_and_the_last_step_is_one(view_of_budget_d_ff):
    view_of_budget_d_ff.update(widths())
    grid = [segment[0][0] for segment in view_of_budget_d_ff.grid.get_segments()]
    assert len(grid) == 4
    assert grid[-1] == pytest.approx(view_of_budget_d_ff.dots.get_xdata()[-1])
    view_of_budget_d_ff.update(widths(multiple_of=1))
    assert len(view_of_budget_d_ff.grid.get_segments()) == 1


@pytest.mark.parametrize("multiple_of", [1, 4096])
@pytest.mark.parametrize("d_model", [8, 8192])
@pytest.mark.parametrize("multiplier", [0.5, 2.0])
@pytest.mark.parametrize("plain", [1, 8])
def test_every_number_is_within_its_bar_and_every_step_within_the_axes(
    view_of_budget_d_ff, d_model, plain, multiplier, multiple_of
):
    view_of_budget_d_ff.frame(widths(d_model, plain, multiplier, multiple_of))
    for text, row in zip(view_of_budget_d_ff.widths, (0, 2, 3), strict=True):
        if text.get_visible():
            assert text.get_window_extent().width <= view_of_budget_d_ff.matrices[row][0].get_window_extent().width
    assert 0 < min(view_of_budget_d_ff.dots.get_xdata()) <= max(view_of_budget_d_ff.dots.get_xdata()) < 1
    assert 0 < view_of_budget_d_ff.exact.get_xdata()[0] < 1
