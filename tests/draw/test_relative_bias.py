"""The staircase of T5's buckets: what is drawn is the data."""

import numpy as np
import pytest

from transformer_parts.draw.relative_bias import Buckets, BucketsView


def buckets(bidirectional=True, offset=-5, num_buckets=8, max_distance=8) -> Buckets:
    """Make data by hand: exact below 2 (or 4), then one bucket from 2 and one from 5."""
    offsets = np.arange(-2 * max_distance, 2 * max_distance + 1)
    starts = np.array([0, 1, 2, 4]) if bidirectional else np.array([0, 1, 2, 3, 4, 5, 6, 7])
    distance = np.abs(offsets) if bidirectional else np.maximum(-offsets, 0)
    found = np.searchsorted(starts, distance, side="right") - 1 + (4 * (offsets > 0) if bidirectional else 0)
    here = int(found[offsets == offset][0])
    curve = np.array([[1.0, 8.0], [1.0, 4.0]])
    return Buckets(offsets, found, starts, curve, offset, here, bidirectional, num_buckets, max_distance)


@pytest.fixture
def view():
    return BucketsView()


def read(line, x: float) -> float:
    """Return the height of a staircase at x, which is no corner."""
    xs, ys = line.get_data()
    return float(np.interp(x, xs, ys))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_both_staircases_are_the_buckets(view, bidirectional):
    data = buckets(bidirectional)
    view.update(data)
    for offset, bucket in zip(data.offsets, data.buckets, strict=True):
        line = view.before if offset <= 0 else view.after
        for x in (offset - 0.4, offset + 0.4):
            assert read(line, x) == bucket
    for distance in range(1, 16):
        bucket = data.buckets[data.offsets == -distance][0]
        assert read(view.steps, distance + 0.5) == bucket


def test_dots_are_the_starts_and_the_band_the_exact_ones(view):
    view.update(buckets())
    assert view.starts.get_xdata().tolist() == [1, 2, 4]
    assert view.starts.get_ydata().tolist() == [1, 2, 3]
    assert view.exact.get_x() + view.exact.get_width() == pytest.approx(2)


def test_empty_buckets_have_no_dot(view):
    data = buckets()
    view.update(Buckets(**{**vars(data), "starts": np.array([0, 1, 2, 2])}))
    assert view.starts.get_ydata().tolist() == [1, 3]


@pytest.mark.parametrize(
    ("bidirectional", "offset", "distance", "within", "shared"),
    [
        (True, -5, 5, 3, [-16.5, -3.5]),
        (True, 5, 5, 3, [3.5, 16.5]),
        (True, 0, 0.9, 0, [-0.5, 0.5]),
        (False, 3, 0.9, 0, [-0.5, 16.5]),
        (False, -3, 3, 3, [-3.5, -2.5]),
    ],
)
def test_marks_are_at_the_relative_position(view, bidirectional, offset, distance, within, shared):
    data = buckets(bidirectional, offset)
    view.update(data)
    assert (list(view.here.get_xdata()), list(view.here.get_ydata())) == ([offset], [data.bucket])
    assert (list(view.here_below.get_xdata()), list(view.here_below.get_ydata())) == ([distance], [within])
    assert view.shared.get_xdata() == shared


def test_axes_follow_the_greatest_distance(view):
    view.update(buckets())
    assert view.one_axes.get_xticks().tolist() == [1, 2, 4, 8, 16]
    assert view.limit[1].get_xdata() == [8, 8]
    assert data_exact(buckets(False)) == 4


def data_exact(data: Buckets) -> int:
    return data.exact
