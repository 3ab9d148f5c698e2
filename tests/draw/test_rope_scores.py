"""The curve over the offset: what stands in the picture is the data."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.draw.artists import envelope
from transformer_parts.draw.rope_scores import RopeSpectrumView, ScoreCurve, ScoreCurveView, Spectrum


def curve(**changes) -> ScoreCurve:
    offsets = np.arange(-8, 9)
    scores = np.cos(offsets / 2.0)
    data = ScoreCurve(
        envelope=envelope(-8, scores, 1),
        wave_offsets=offsets,
        wave=scores,
        pairs=scores[None],
        largest_pair=1.0,
        largest=1.0,
        offset=3,
        score=scores[11],
        positions=(0, 3),
        turned_score=scores[11],
    )
    return dataclasses.replace(data, **changes)


@pytest.fixture
def view():
    return ScoreCurveView()


def test_marker_stands_on_the_curve_and_the_line_below_it(view):
    data = curve()
    view.update(data)
    assert (view.mark.get_xdata()[0], view.mark.get_ydata()[0]) == (3, data.score)
    assert list(view.where.get_xdata()) == [3, 3]
    assert view.curve_axes.get_xlim() == view.pair_axes.get_xlim() == (-8.5, 8.5)


def test_what_is_not_given_is_not_drawn(view):
    given = {
        "band_offsets": np.arange(-8, 9),
        "mean": np.zeros(17),
        "deviation": np.ones(17),
        "bound_offsets": np.arange(-8, 9),
        "bound": np.full(17, 30.0),
        "dot_offsets": np.array([1, 2]),
        "dots": np.array([0.5, 0.7]),
        "measured": True,
        "causal": True,
    }
    view.update(curve(**given))
    assert len(view.mean.get_xdata()) == len(view.bound.get_xdata()) == 17
    assert len(view.measured.get_xdata()) == 2
    assert view.future.get_width() == 8
    view.update(curve())
    for line in (view.mean, *view.edges, view.bound, view.largest, view.measured, view.points):
        assert len(line.get_xdata()) == 0
    assert view.future.get_width() == 0
    assert np.ptp(view.band.get_paths()[0].vertices, axis=0).tolist() == [0, 0]


def test_dots_are_points_of_the_curve_or_measured(view):
    dots = {"dot_offsets": np.array([1.0]), "dots": np.array([0.2])}
    view.update(curve(**dots))
    assert (len(view.points.get_xdata()), len(view.measured.get_xdata())) == (1, 0)
    view.update(curve(**dots, measured=True))
    assert (len(view.points.get_xdata()), len(view.measured.get_xdata())) == (0, 1)


def test_wide_columns_show_the_least_and_the_largest(view, rng):
    scores = rng.normal(size=401)
    wide = envelope(-200, scores, 8)
    view.update(curve(envelope=wide, wave_offsets=wide.middles, wave=wide.mean, pairs=np.zeros((2, 51)), offset=0))
    corners = view.reach.get_paths()[0].vertices
    assert corners[:, 1].min() == scores.min()
    assert corners[:, 1].max() == scores.max()
    assert view.curve_axes.get_ylim()[0] < scores.min()
    assert view.curve_axes.get_ylim()[1] > scores.max()


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 7.7, 450.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_curve_fits_with_some_room_and_not_too_much(view, size, sign):
    offsets = np.arange(-8, 9)
    scores = sign * size * np.linspace(0, 1, 17)
    view.update(curve(envelope=envelope(-8, scores, 1), wave=scores, wave_offsets=offsets))
    low, high = view.curve_axes.get_ylim()
    assert low < min(scores.min(), 0)
    assert max(scores.max(), 0) < high
    assert high - low < 2.5 * max(size, 0.8)


def test_the_bound_is_drawn_in_scale(view):
    view.update(curve(bound_offsets=np.arange(-8, 9), bound=np.full(17, 30.0)))
    assert view.curve_axes.get_ylim()[1] > 30
    assert view.largest.get_ydata() == [1.0, 1.0]


def spectrum(trained_length=100, offset=7, pairs=6) -> Spectrum:
    wavelengths = 2 * np.pi * 10.0 ** np.arange(pairs)
    return Spectrum(wavelengths, wavelengths / 2, trained_length, offset, np.cos(offset * 2 * np.pi / wavelengths))


@pytest.fixture
def view_of_rope_scores_spectrum():
    return RopeSpectrumView()


def test_a_pair_is_complete_when_its_wave_fits():
    assert spectrum(trained_length=63).complete.tolist() == [True, True, False, False, False, False]
    assert spectrum(trained_length=62).complete.tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize(("length", "whole"), [(1, 0), (63, 2), (10**7, 6)])
def test_circles_and_squares_are_the_two_kinds(view_of_rope_scores_spectrum, length, whole):
    view_of_rope_scores_spectrum.update(spectrum(trained_length=length))
    assert view_of_rope_scores_spectrum.whole.get_xdata().tolist() == list(range(whole))
    assert view_of_rope_scores_spectrum.partial.get_xdata().tolist() == list(range(whole, 6))
    for patch in view_of_rope_scores_spectrum.unfinished:
        assert patch.get_x() == whole - 0.5
        assert patch.get_width() == pytest.approx(5.6 - patch.get_x() if whole < 6 else 0)


def test_levels_and_bars_are_the_data(view_of_rope_scores_spectrum):
    data = spectrum(offset=9)
    view_of_rope_scores_spectrum.update(data)
    assert view_of_rope_scores_spectrum.trained.get_ydata() == [100, 100]
    assert view_of_rope_scores_spectrum.distance.get_ydata() == [9, 9]
    assert [segment[1][1] for segment in view_of_rope_scores_spectrum.stems.get_segments()] == data.alignment.tolist()
    assert view_of_rope_scores_spectrum.mean.get_ydata() == pytest.approx([data.alignment.mean()] * 2)
    assert view_of_rope_scores_spectrum.reference.get_ydata().tolist() == data.reference.tolist()


@pytest.mark.parametrize(("length", "offset"), [(64, 64), (64, 65), (65, 64), (4096, 2048), (64, 131_072)])
def test_symbols_never_lie_on_each_other(view_of_rope_scores_spectrum, length, offset):
    view_of_rope_scores_spectrum.update(spectrum(trained_length=length, offset=offset))
    heights = np.log10(
        [
            view_of_rope_scores_spectrum.trained_symbol.get_position()[1],
            view_of_rope_scores_spectrum.distance_symbol.get_position()[1],
        ]
    )
    assert abs(heights[0] - heights[1]) > 0.65
    assert (heights[0] > heights[1]) == (length >= offset)
