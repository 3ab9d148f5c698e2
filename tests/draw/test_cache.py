"""cache: hands, bars and errors are the data, and stand in the slots they belong to."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.draw import theme
from transformer_parts.draw.cache import LEAST, Steps, StepsView


def steps(rng, *, groups=2, slots=7, pad=2, prompt=3, errors=(1e-15, 0.0, 2.0)):
    weights = rng.dirichlet(np.ones(slots), size=2)
    return Steps(
        pad=pad,
        prompt=prompt,
        keys=rng.normal(size=(groups, slots, 2)),
        right_keys=rng.normal(size=(groups, slots - pad, 2)),
        query=rng.normal(size=2),
        right_query=rng.normal(size=2),
        weights=weights[0],
        right_weights=weights[1],
        group=groups - 1,
        errors=np.array(errors),
        output_rms=1.0,
        position=4,
        right_position=4,
        misplaced=0.1,
        slowest=0.001,
        token_bytes=512,
        held_bytes=3584,
    )


@pytest.fixture
def data(rng):
    return steps(rng)


def on_screen(view, points):
    return view.grid.transData.transform(points.reshape(-1, 2)).reshape(points.shape)


def test_hands_point_where_their_pairs_do(data):
    view = StepsView().update(data)
    for collection, pairs in (
        (view.key_hands, data.keys.reshape(-1, 2)),
        (view.right_hands, np.concatenate([data.right_keys.reshape(-1, 2), data.right_query[None]])),
        (view.query_hands, data.query[None]),
    ):
        hands = on_screen(view, np.array(collection.get_segments()))
        drawn = hands[:, 1] - hands[:, 0]
        # all hands have one length on the screen, and the direction of their pair
        np.testing.assert_allclose(np.hypot(*drawn.T), np.hypot(*drawn[0]), rtol=1e-6)
        np.testing.assert_allclose(np.arctan2(*drawn.T), np.arctan2(*pairs.T), atol=1e-6)


def test_hands_stand_in_their_slot_and_row(data):
    view = StepsView().update(data)
    tails = np.array(view.key_hands.get_segments())[:, 0]
    np.testing.assert_array_equal(tails, [(slot, row) for row in (1, 0) for slot in range(7)])
    right = np.array(view.right_hands.get_segments())[:, 0]
    np.testing.assert_array_equal(right, [*((slot, row) for row in (1, 0) for slot in range(2, 7)), (6, 2)])
    assert [name.get_text() for name in view.names] == ["$k_1$", "$k_0$", "$q$", "", ""]
    assert [name.get_position()[1] for name in view.names] == [0, 1, 2, 3, 4]


def test_a_pair_without_length_has_no_hand(data):
    keys = data.keys.copy()
    keys[0, 3] = 0
    view = StepsView().update(dataclasses.replace(data, keys=keys))
    tail, tip = view.key_hands.get_segments()[3]
    np.testing.assert_array_equal(tail, tip)


def test_faces_tell_padding_and_the_row_that_is_read(data):
    view = StepsView().update(data)
    fill = [tuple(colour) for colour in view.faces.get_facecolor()]
    assert [fill.index(colour) for colour in (fill[0], fill[2])] == [0, 2]
    assert [fill[i] == fill[0] for i in range(15)] == [slot < 2 for _ in range(2) for slot in range(7)] + [False]
    widths = view.faces.get_linewidth()
    assert [width == widths[-1] for width in widths] == [False] * 7 + [True] * 8


def test_bars_are_the_weights(data):
    view = StepsView().update(data)
    for bars, weights in ((view.bars, data.weights), (view.right_bars, data.right_weights)):
        segments = np.array(bars.get_segments())
        np.testing.assert_array_equal(segments[:, 0], [(slot, 0) for slot in range(7)])
        np.testing.assert_array_equal(segments[:, 1], [*zip(range(7), weights, strict=True)])


def test_errors_have_the_mark_of_their_kind(data):
    view = StepsView().update(data)
    np.testing.assert_array_equal(view.good.get_xydata(), [(4, 1e-15), (5, LEAST)])
    np.testing.assert_array_equal(view.bad.get_xydata(), [(6, 2.0)])
    assert view.good.get_marker() != view.bad.get_marker()
    assert (view.good.get_color(), view.bad.get_color()) == (theme.FIRST, theme.SECOND)


def test_newest_slot_and_end_of_the_prompt(data):
    view = StepsView().update(data)
    assert all((band.get_x(), band.get_width()) == (5.5, 1) for band in view.bands)
    assert all(list(edge.get_xdata()) == [4.5, 4.5] for edge in view.edges)


def test_a_frame_is_that_of_a_fresh_view(rng):
    small, large = steps(rng, groups=1, slots=1, pad=0, prompt=1, errors=(0.0,)), steps(rng, groups=4, slots=24, pad=4)
    view = StepsView(scale=1)
    frames = [view.frame(data) for data in (small, large, small)]
    assert frames[0] == frames[2] != frames[1]
    assert frames[1] == StepsView(scale=1).frame(large)
