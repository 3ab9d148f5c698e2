"""budget: what the bars, dots and labels of the tally show is the data."""

import pytest

from transformer_parts.draw.budget import LOOKS, ROWS, TallyView, TwoTallies
from transformer_parts.maths import budget
from transformer_parts.maths.budget import DecoderConfig, Tally, count

ONE = Tally(embedding=200, positions=100, attention=300, feed_forward=250, norms=50, head=100)
OTHER = Tally(attention=256, feed_forward=384, norms=16)


def two(model, reference=OTHER):
    config = DecoderConfig(d_model=8, n_layers=1, n_heads=2, d_ff=16, vocab_size=0, final_norm=False)
    return TwoTallies(
        model=model,
        reference=reference,
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
    return TallyView()


def bar(decoder):
    """Return (left, width) of each visible segment."""
    return {part: (s.get_x(), s.get_width()) for part, s in decoder.segments.items() if s.get_visible()}


def test_segments_are_shares_laid_end_to_end(view):
    view.update(two(ONE))
    expected = {
        "embedding": (0.0, 0.2),
        "positions": (0.2, 0.1),
        "attention": (0.3, 0.3),
        "feed_forward": (0.6, 0.25),
        "norms": (0.85, 0.05),
        "head": (0.9, 0.1),
    }
    assert bar(view.model) == {part: pytest.approx(place) for part, place in expected.items()}
    assert bar(view.reference)["feed_forward"] == pytest.approx((256 / 656, 384 / 656))
    assert set(bar(view.reference)) == {"attention", "feed_forward", "norms"}


def test_percentages_stand_in_segments_wide_enough(view):
    view.update(two(ONE))
    shown = {part: text.get_text() for part, text in view.model.percents.items() if text.get_visible()}
    assert shown == {
        "embedding": "20.0",
        "positions": "10.0",
        "attention": "30.0",
        "feed_forward": "25.0",
        "head": "10.0",
    }
    for part, text in view.model.percents.items():
        left, width = bar(view.model)[part]
        assert text.get_position()[0] == pytest.approx(left + width / 2)


def test_dots_and_totals_are_the_numbers(view):
    view.update(two(ONE))
    for decoder, tally in ((view.model, ONE), (view.reference, OTHER)):
        assert decoder.total.get_text() == f"Σ = {tally.total:,}"
        for name, number in (tally.parts | {"total": tally.total}).items():
            dot = decoder.dots[name]
            assert dot.get_visible() == (number > 0)
            assert list(dot.get_xdata()) == [number]
    assert view.ratios["attention"].get_text() == "× 1.17"
    assert view.ratios["total"].get_text() == "× 1.52"
    assert view.ratios["head"].get_text() == ""


def test_rows_stand_in_the_order_of_their_labels(view):
    view.update(two(ONE))
    labels = {label.get_position()[1]: label.get_text() for label in view.parts.get_yticklabels()}
    for name, look in ROWS.items():
        (height,) = view.model.dots[name].get_ydata()
        assert labels[height] == look.symbol
        assert view.ratios[name].get_position()[1] == height == view.reference.dots[name].get_ydata()[0]


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


@pytest.mark.parametrize("layers", [1, 96])
def test_dots_of_every_size_stand_within_the_axes(view, layers):
    large = DecoderConfig(d_model=8192, n_layers=layers, n_heads=64, head_dim=256, d_ff=32768, vocab_size=262144)
    low, high = view.parts.get_xlim()
    assert low <= 1
    assert count(large).total <= high
