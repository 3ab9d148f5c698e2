"""The staircase of T5's buckets: what is drawn is the data."""

import numpy as np
import pytest

from transformer_parts.draw.relative_bias import (
    AlibiSlopesView,
    BiasAndWeightsView,
    BiasedWeights,
    Buckets,
    Slopes,
    T5BucketsView,
)


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
    return T5BucketsView()


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


def slopes(n=5, of_power=4, head=2, distance=3) -> Slopes:
    values = 2.0 ** -np.arange(1.0, n + 1)
    falls = np.exp(-values[:, None] * np.arange(20))
    return Slopes(values, of_power, values / 2, falls * 0.3, np.log(2) / values, head, distance)


@pytest.fixture
def view_of_relative_bias_slopes():
    return AlibiSlopesView()


def test_marks_are_the_slopes(view_of_relative_bias_slopes):
    data = slopes()
    view_of_relative_bias_slopes.update(data)
    assert view_of_relative_bias_slopes.power.get_ydata().tolist() == data.slopes[:4].tolist()
    assert view_of_relative_bias_slopes.between.get_xdata().tolist() == [5]
    assert view_of_relative_bias_slopes.between.get_ydata().tolist() == data.slopes[4:].tolist()
    assert view_of_relative_bias_slopes.one_sequence.get_ydata().tolist() == data.one_sequence.tolist()
    assert (
        list(view_of_relative_bias_slopes.head.get_xdata()),
        list(view_of_relative_bias_slopes.head.get_ydata()),
    ) == ([2], [data.slopes[1]])


def test_curves_are_shares_of_the_nearest_weight(view_of_relative_bias_slopes):
    data = slopes()
    view_of_relative_bias_slopes.update(data)
    np.testing.assert_allclose(view_of_relative_bias_slopes.curve.get_ydata(), np.exp(-data.slopes[1] * np.arange(20)))
    assert list(view_of_relative_bias_slopes.here.get_ydata()) == [view_of_relative_bias_slopes.curve.get_ydata()[3]]
    assert len(view_of_relative_bias_slopes.curves.get_segments()) == 5


@pytest.mark.parametrize("n", [1, 20, 21, 128])
def test_the_thin_curves_stay_few(view_of_relative_bias_slopes, n):
    view_of_relative_bias_slopes.update(slopes(n=n, of_power=1, head=1))
    assert min(n, 10) <= len(view_of_relative_bias_slopes.curves.get_segments()) <= 20


def test_ratios_are_taken_by_size():
    values = np.array([0.5, 0.125, 0.25])
    data = Slopes(values, 2, values, np.ones((3, 2)), values, 1, 0)
    assert data.ratios.tolist() == [0.5, 0.5]


def weights(rng, query=3, causal=True, length=7) -> BiasedWeights:
    visible = np.tri(length, dtype=bool) if causal else np.ones((length, length), bool)
    plain, biased = (np.where(visible, rng.random((length, length)), 0) for _ in range(2))
    plain, biased = (w / w.sum(-1, keepdims=True) for w in (plain, biased))
    return BiasedWeights(rng.normal(0, 3, (length, length)), plain, biased, visible, (1.0, 0.5), 1.0, 0.5, 0, query)


@pytest.fixture
def view_of_relative_bias_weights():
    return BiasAndWeightsView()


@pytest.mark.parametrize("causal", [True, False])
def test_the_row_is_the_querys(view_of_relative_bias_weights, rng, causal):
    data = weights(rng, causal=causal)
    view_of_relative_bias_weights.update(data)
    keys = np.arange(4 if causal else 7)
    assert view_of_relative_bias_weights.row.get_xdata().tolist() == keys.tolist()
    assert view_of_relative_bias_weights.row.get_ydata().tolist() == data.bias[3, keys].tolist()
    for stems, wanted in (
        (view_of_relative_bias_weights.biased_stems, data.biased),
        (view_of_relative_bias_weights.plain_stems, -data.plain),
    ):
        assert stems.get_ydata()[1::3].tolist() == wanted[3, keys].tolist()
        assert stems.get_xdata()[1::3].tolist() == keys.tolist()
    assert view_of_relative_bias_weights.bias_frame.get_ydata().mean() == pytest.approx(3, abs=0.2)


def test_hidden_cells_have_no_colour(view_of_relative_bias_weights, rng):
    view_of_relative_bias_weights.update(weights(rng))
    blank = view_of_relative_bias_weights.bias_map.colours[0, 6]
    assert (view_of_relative_bias_weights.bias_map.colours[np.triu_indices(7, 1)] == blank).all()
    assert view_of_relative_bias_weights.weight_map.colours[0, 0] != blank


def test_scales_hold_what_they_show(view_of_relative_bias_weights, rng):
    for query in range(7):
        data = weights(rng, query)
        view_of_relative_bias_weights.update(data)
        low, high = view_of_relative_bias_weights.row_axes.get_ylim()
        shown = np.where(data.visible, data.bias, 0)
        assert low <= shown.min() <= shown.max() <= high
        assert (
            max(data.biased[query].max(), data.plain[query].max())
            <= view_of_relative_bias_weights.stem_axes.get_ylim()[1]
            <= 1.05
        )


def test_no_bias_is_drawn_too(view_of_relative_bias_weights, rng):
    data = weights(rng)
    view_of_relative_bias_weights.still(BiasedWeights(**{**vars(data), "bias": np.zeros((7, 7))}))
    assert view_of_relative_bias_weights.row.get_ydata().tolist() == [0, 0, 0, 0]
