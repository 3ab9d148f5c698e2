"""order: the squares, maps and marks are the data, in the rows of the tokens they belong to."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.draw import theme
from transformer_parts.draw.artists import NumberMarks
from transformer_parts.draw.why_position import LEAST, Reordered, ReorderingView


def reordered(rng, *, order=(2, 0, 1), channels=5, causal=False, gap=None):
    length = len(order)
    weights = rng.dirichlet(np.ones(length), size=(2, length))
    return Reordered(
        words=tuple("abcdefghi"[:length]),
        order=np.array(order),
        written=rng.normal(size=(length, channels)),
        moved=rng.normal(size=(length, channels)),
        gap=rng.normal(size=(length, channels)) if gap is None else np.array(gap),
        invariance=1.0,
        shift=0.0,
        weights=weights[0],
        written_weights=weights[1],
        causal=causal,
    )


@pytest.fixture
def data(rng):
    return reordered(rng)


def boxes(collection):
    return np.array([path.vertices[:4] for path in collection.get_paths()])


def test_areas_are_weights_and_the_squares_stand_in_their_cells(data):
    view = ReorderingView().update(data)
    for collection, weights in ((view.filled, data.weights), (view.open, data.written_weights)):
        corners = boxes(collection)
        sizes = np.ptp(corners, axis=1)
        area = sizes.prod(axis=1)
        np.testing.assert_allclose(area / area.sum(), weights.ravel() / weights.sum(), rtol=1e-9)
        middles = (np.arange(3) + 0.5) / 3
        wanted = [(x, y) for y in middles for x in middles]
        np.testing.assert_allclose(corners.mean(axis=1), wanted, atol=1e-12)


def test_squares_are_square_on_the_screen(data):
    view = ReorderingView().update(data)
    on_screen = view.filled.axes.transData.transform(boxes(view.filled).reshape(-1, 2)).reshape(-1, 4, 2)
    width, height = np.ptp(on_screen, axis=1).T
    np.testing.assert_allclose(width, height, rtol=1e-9)


def test_a_whole_weight_stays_within_its_cell(data):
    view = ReorderingView().update(dataclasses.replace(data, weights=np.eye(3)))
    assert np.ptp(boxes(view.filled), axis=1).max() < 1 / 3


def test_what_may_not_be_seen_is_grey(rng):
    hidden = boxes(ReorderingView().update(reordered(rng, causal=True)).masked)
    np.testing.assert_allclose(hidden.mean(axis=1), np.array([(3, 1), (5, 1), (5, 3)]) / 6)
    assert len(ReorderingView().update(reordered(rng)).masked.get_paths()) == 0


def test_marks_tell_rounding_from_differences(rng):
    gap = [[1e-16, -2e-16], [0.5, -2.0], [0.0, 0.0]]
    view = ReorderingView().update(reordered(rng, gap=gap))
    np.testing.assert_allclose(view.exact.get_xydata(), [(2e-16, 1 / 6), (LEAST, 5 / 6)])
    np.testing.assert_allclose(view.broken.get_xydata(), [(2.0, 0.5)])
    assert view.exact.get_marker() != view.broken.get_marker()
    assert (view.exact.get_color(), view.broken.get_color()) == (theme.FIRST, theme.SECOND)


def test_properties_of_the_data(rng):
    data = reordered(rng, gap=[[1.0, -3.0], [0.5, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(data.token_gaps, [3.0, 0.5, 0.0])
    assert data.largest == 3.0


def test_numbers_are_the_tokens_from_the_top(data):
    view = ReorderingView().update(data)
    digits = view.moved_rows._shapes
    for marks, numbers in ((view.written_rows, (0, 1, 2)), (view.moved_rows, (2, 0, 1)), (view.weight_rows, (2, 0, 1))):
        # The shapes of a digit are the same in each of the collections.
        for path, number in zip(marks.get_paths(), numbers, strict=True):
            np.testing.assert_array_equal(path.vertices, digits[number].vertices)
        heights = marks.get_offsets()[:, 1]
        np.testing.assert_allclose(heights, [5 / 6, 3 / 6, 1 / 6])
    np.testing.assert_allclose(view.weight_columns.get_offsets()[:, 0], [1 / 6, 3 / 6, 5 / 6])


def test_number_marks_are_centred(data):
    view = ReorderingView()
    marks = NumberMarks(view.filled.axes, 12)
    marks.set_numbers([11, 3], [(0.5, 0.5), (0, 0)])
    for path in marks.get_paths():
        np.testing.assert_allclose(path.get_extents().get_points().mean(axis=0), 0, atol=1e-9)


def test_a_frame_is_that_of_a_fresh_view(rng):
    small, large = reordered(rng), reordered(rng, order=(8, 7, 6, 5, 4, 3, 2, 1, 0), channels=16, causal=True)
    view = ReorderingView(scale=1)
    frames = [view.frame(data) for data in (small, large, small)]
    assert frames[0] == frames[2] != frames[1]
    assert frames[1] == ReorderingView(scale=1).frame(large)
