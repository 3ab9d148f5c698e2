"""What stands in the pictures of notebook 06, read back from their artists."""

import numpy as np
import pytest

from transformer_parts.draw.rope_layout import NUMBERED, HeadReadings, Layouts, RopeLayoutHeadsView, RopeLayoutsView
from transformer_parts.maths import rope_layout

OFFSETS = np.arange(-8.0, 9.0)


def layouts(width=10, *, order=None, layout="split", offset=3, size=1.0) -> Layouts:
    order = np.arange(width) if order is None else np.asarray(order)
    wave = size * np.cos(OFFSETS)
    return Layouts(
        order=order,
        needed=rope_layout.permutation(width, "split"),
        trained=np.argsort(order)[rope_layout.pair_indices(width)],
        turned=rope_layout.pair_indices(width, layout),
        offsets=OFFSETS,
        right=wave,
        read=-wave,
        difference=-2 * wave,
        typical=np.full(len(OFFSETS), 0.5 * size),
        offset=offset,
        marked=(1.5, -1.5, -3.0),
        agreement=0.5,
    )


def ends(arcs):
    """The first and last point of each arc, and how far its middle is from the dots."""
    segments = np.array(arcs.get_segments())
    return np.sort(segments[:, [0, -1], 0], axis=1), segments[:, segments.shape[1] // 2, 1]


def test_arcs_join_the_pairs_above_and_below():
    view, data = RopeLayoutsView(), layouts()
    view.update(data)
    places = (np.arange(10) + 0.5) / 10
    above, rise = ends(view.trained_arcs)
    below, fall = ends(view.turned_arcs)
    np.testing.assert_allclose(above, places[data.trained])
    np.testing.assert_allclose(below, places[data.turned])
    assert (rise > 0).all()
    assert (fall < 0).all()
    assert np.abs(fall).min() > np.abs(rise).max(), "wider arcs rise further"


def test_arcs_mirror_one_another_where_rows_and_code_fit():
    view = RopeLayoutsView().update(layouts(order=rope_layout.permutation(10, "split")))
    above, below = (np.array(arcs.get_segments()) for arcs in (view.trained_arcs, view.turned_arcs))
    np.testing.assert_allclose(above * [1, -1], below, atol=1e-12)
    np.testing.assert_array_equal(view.trained_arcs.get_linewidths(), view.turned_arcs.get_linewidths())


def test_a_fast_pair_is_thick():
    widths = RopeLayoutsView().update(layouts()).trained_arcs.get_linewidths()
    assert (np.diff(widths) < 0).all()


@pytest.mark.parametrize("width", [2, 4, NUMBERED, NUMBERED + 2, 128])
def test_everything_fits_at_every_width(width):
    view = RopeLayoutsView().update(layouts(width))
    for arcs in (view.trained_arcs, view.turned_arcs):
        points = np.concatenate(arcs.get_segments())
        assert points.min() >= -1
        assert points.max() <= 1
    numbered = width <= NUMBERED
    assert len(view.numbers.get_paths()) == (width if numbered else 0)
    assert (view.dots.get_markersize() > 0) == (not numbered)
    cell = view.matrix_axes.bbox.width / width * 72 / view.fig.dpi
    assert view.moved.get_markersize() <= max(cell, 1.6), "squares of neighbouring rows do not run into one another"


def test_numbers_are_those_of_the_channels_in_each_row():
    order = rope_layout.permutation(6, "split")
    view = RopeLayoutsView().update(layouts(6, order=order))
    assert [view.numbers._shapes.index(path) for path in view.numbers.get_paths()] == order.tolist()


def test_matrix_shows_rows_as_moved_and_as_needed():
    view, data = RopeLayoutsView(), layouts(order=rope_layout.permutation(10, "interleaved"))
    view.update(data)
    for line, order in ((view.moved, data.order), (view.needed, data.needed)):
        matrix = np.zeros((10, 10))
        columns, rows = (np.floor(10 * values).astype(int) for values in line.get_data())
        matrix[rows, columns] = 1
        np.testing.assert_array_equal(matrix, rope_layout.permutation_matrix(order))
    low, high = view.matrix_axes.get_ylim()
    assert low > high, "the first row is on top"


def test_curves_and_marks():
    view, data = RopeLayoutsView(), layouts()
    view.update(data)
    for line, values in ((view.right, data.right), (view.read, data.read), (view.difference, data.difference)):
        np.testing.assert_array_equal(line.get_data(), [OFFSETS, values])
    marks = (view.right_mark, view.read_mark, view.difference_mark)
    assert [(*mark.get_xdata(), *mark.get_ydata()) for mark in marks] == [(3, 1.5), (3, -1.5), (3, -3.0)]
    assert (
        len({mark.get_marker() for mark in marks})
        == len({line.get_linestyle() for line in (view.right, view.read)}) + 1
    )
    np.testing.assert_array_equal(view.typical[1].get_ydata(), -data.typical)


@pytest.mark.parametrize(("size", "top"), [(0.1, 5), (4.7, 5), (4.8, 10), (60, 80), (1000, 1050)])
def test_scale_moves_in_steps(size, top):
    view = RopeLayoutsView().update(layouts(size=size))
    assert view.score_axes.get_ylim() == pytest.approx((-top, top))
    assert view.difference_axes.get_ylim()[1] >= 2 * size


# ---------------------------------------------------------------- heads


def readings(query=4, length=7, size=1.0) -> HeadReadings:
    rng = np.random.default_rng(5)
    weights = np.tril(rng.uniform(size=(2, length, length)))
    weights /= weights.sum(-1, keepdims=True)
    differences = size * rng.normal(size=(length, length))
    return HeadReadings(
        right=weights[0],
        read=weights[1],
        differences=differences,
        rms=rope_layout.rms_by_distance(differences),
        spread=1.25,
        moved=rope_layout.total_variation(*weights),
        query=query,
    )


def tips(stems):
    return np.array(stems.get_ydata()).reshape(-1, 3)[:, 1]


@pytest.mark.parametrize("query", [0, 4, 6])
def test_the_row_looked_at_is_framed_and_drawn_both_ways(query):
    view, data = RopeLayoutHeadsView(), readings(query)
    view.update(data)
    np.testing.assert_array_equal(tips(view.right_stems), data.right[query, : query + 1])
    np.testing.assert_array_equal(tips(view.read_stems), -data.read[query, : query + 1])
    for box in (view.right_frame, view.read_frame):
        assert min(box.get_ydata()) < query - 0.5 < query + 0.5 < max(box.get_ydata())
    assert set(view.here.get_xdata()) == {query}


def test_maps_are_blue_and_red_and_darker_for_more_weight():
    view, data = RopeLayoutHeadsView(), readings()
    view.update(data)
    for cells, weights, channel in ((view.right_map, data.right, 2), (view.read_map, data.read, 0)):
        colours = cells.colours.view(np.uint8).reshape(7, 7, 4)[..., :3].astype(int)
        largest = np.unravel_index(weights.argmax(), weights.shape)
        assert colours[largest].argmax() == channel
        assert colours[largest].sum() < colours[0, 6].sum(), "no weight is light"


@pytest.mark.parametrize("size", [0.01, 1, 30])
def test_every_difference_is_a_dot_within_the_axes(size):
    view, data = RopeLayoutHeadsView(), readings(size=size)
    view.update(data)
    distances, sizes = view.dots.get_data()
    assert len(distances) == 7 * 8 // 2
    low, high = view.error_axes.get_ylim()
    assert low < 0 <= sizes.min() <= sizes.max() < high
    for d in range(7):
        np.testing.assert_allclose(np.sort(sizes[distances == d]), np.sort(np.abs(np.diagonal(data.differences, -d))))
    np.testing.assert_array_equal(view.rms.get_ydata(), data.rms)
    assert set(view.spread.get_ydata()) == {1.25}
