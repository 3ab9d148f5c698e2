"""The curve over the offset: what stands in the picture is the data."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.draw.envelope import envelope
from transformer_parts.draw.rope_scores import ScoreCurve, ScoreCurveView


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
