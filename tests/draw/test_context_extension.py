"""What stands in the pictures of notebook 08, read back from their artists."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.draw.artists import envelope
from transformer_parts.draw.context_extension import (
    Attention,
    ExtensionFrequenciesView,
    ExtensionScoresView,
    Frequencies,
    PositionPrecisionView,
    Precision,
)
from transformer_parts.maths import rope
from transformer_parts.maths.context_extension import angle_coverage, ntk_aware, position_interpolation

TRAINED = rope.inv_freq(128)


def frequencies(extended, factor=8, length=32768) -> Frequencies:
    return Frequencies(angle_coverage(TRAINED, extended, 4096, length), factor, 4096, length, 10000.0, 1.0)


def test_pairs_beyond_their_trained_angle_are_squares_on_grey():
    view, data = ExtensionFrequenciesView(), frequencies(ntk_aware(128, 8).inv_freq)
    view.update(data)
    assert_array_equal(view.ratios_beyond.get_xdata(), np.arange(46, 63))
    assert_array_equal(view.ratios.get_xdata(), [*range(46), 63])
    assert_allclose(view.ratios_beyond.get_ydata(), data.coverage.ratio[46:63])
    assert_allclose(view.reached_beyond.get_ydata(), data.coverage.reached[46:63] / (2 * np.pi))
    assert_allclose(view.seen.get_ydata(), 4096 * TRAINED / (2 * np.pi))
    assert {view.ratios.get_marker(), view.ratios_beyond.get_marker()} == {"o", "s"}
    for span in view.slow:
        assert (span.get_x(), span.get_width()) == (45.5, 18)
    assert view.floor.get_ydata()[0] == 1 / 8


@pytest.mark.parametrize("factor", [1, 2, 3, 64])
@pytest.mark.parametrize("length", [128, 2**23])
def test_every_dot_fits_its_axes(factor, length):
    view = ExtensionFrequenciesView().update(frequencies(position_interpolation(128, factor).inv_freq, factor, length))
    for axes, lines in (
        (view.ratio_axes, (view.ratios, view.ratios_beyond, view.floor)),
        (view.turn_axes, (view.seen, view.reached, view.reached_beyond)),
    ):
        low, high = axes.get_ylim()
        for line in lines:
            assert all(low <= y <= high for y in line.get_ydata())


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (0.5, "1/2"), (2**-6, "1/64")])
def test_ratios_are_labelled_as_fractions(value, text):
    assert ExtensionFrequenciesView().ratio_axes.yaxis.get_major_formatter()(value) == text


def attention(count: int, trained_length: int) -> Attention:
    scores = np.cos(np.arange(count) / 7)
    counts = np.arange(1, count + 1)
    return Attention(
        before=envelope(0, scores, 3),
        after=envelope(0, 4 * scores, 3),
        counts=counts,
        uniform=np.log(counts),
        entropy_before=0.5 * np.log(counts),
        entropy_bare=0.7 * np.log(counts),
        entropy_after=0.2 * np.log(counts),
        trained_length=trained_length,
        length=count,
        attention_factor=2.0,
        near=((1.0, 4.0), (0.9, 3.6)),
        entropies=(1.0, 2.0, 3.0, 4.0),
        entropy_trained=0.5,
    )


def test_curves_before_and_after_are_those_of_the_data():
    view, data = ExtensionScoresView(), attention(97, 40)
    view.update(data)
    assert_allclose(view.score_before.get_ydata(), data.before.mean)
    assert_allclose(view.score_after.get_ydata(), data.after.mean)
    for line, wanted in (
        (view.uniform, data.uniform),
        (view.entropy_before, data.entropy_before),
        (view.entropy_bare, data.entropy_bare),
        (view.entropy_after, data.entropy_after),
    ):
        assert_allclose(line.get_ydata(), wanted)
        assert_array_equal(line.get_xdata(), np.arange(97))
    assert view.unseen[0].get_x() == 40
    assert view.entropy_bare.get_linestyle() == "--"


def test_nothing_is_grey_within_the_trained_length():
    view = ExtensionScoresView().update(attention(16, 4096))
    assert [span.get_width() for span in view.unseen] == [0, 0]
    assert view.score_after.get_marker() == "o"
    assert ExtensionScoresView().update(attention(97, 40)).score_after.get_marker() in ("", "None")


def test_errors_of_zero_are_left_out_and_the_others_fit():
    errors = {"positions": np.array([0.0, 2.0]), "frequencies": np.array([1e-3, 0.0]), "angles": np.array([16.0, 1.0])}
    steps = np.arange(-3, 17)
    data = Precision(
        position=3, steps=steps, rounded_steps=steps + 1, errors=errors, spacing=1.0, distinct=4, dtype="bfloat16"
    )
    view = PositionPrecisionView().update(data)
    assert not view.no_error.get_visible()
    assert view.errors["positions"].get_xdata().tolist() == [1]
    assert view.errors["frequencies"].get_xdata().tolist() == [0]
    low, high = view.error_axes.get_ylim()
    for dots in view.errors.values():
        assert all(low < y < high for y in dots.get_ydata())
    assert_array_equal(view.steps.get_xdata(), steps)
    assert_array_equal(view.steps.get_ydata(), steps + 1)
    assert {dots.get_marker() for dots in view.errors.values()} == {"o", "s", "^"}
