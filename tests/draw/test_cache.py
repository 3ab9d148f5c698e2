"""cache: hands, bars and errors are the data, and stand in the slots they belong to."""

import dataclasses

import numpy as np
import pytest

from transformer_parts.draw import theme
from transformer_parts.draw.cache import (
    LEAST,
    CacheBytes,
    CacheHeadsView,
    CacheSizeView,
    CacheStepsView,
    HeadWeights,
    Steps,
)


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
    view = CacheStepsView().update(data)
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
    view = CacheStepsView().update(data)
    tails = np.array(view.key_hands.get_segments())[:, 0]
    np.testing.assert_array_equal(tails, [(slot, row) for row in (1, 0) for slot in range(7)])
    right = np.array(view.right_hands.get_segments())[:, 0]
    np.testing.assert_array_equal(right, [*((slot, row) for row in (1, 0) for slot in range(2, 7)), (6, 2)])
    assert [name.get_text() for name in view.names] == ["$k_1$", "$k_0$", "$q$", "", ""]
    assert [name.get_position()[1] for name in view.names] == [0, 1, 2, 3, 4]


def test_a_pair_without_length_has_no_hand(data):
    keys = data.keys.copy()
    keys[0, 3] = 0
    view = CacheStepsView().update(dataclasses.replace(data, keys=keys))
    tail, tip = view.key_hands.get_segments()[3]
    np.testing.assert_array_equal(tail, tip)


def test_faces_tell_padding_and_the_row_that_is_read(data):
    view = CacheStepsView().update(data)
    fill = [tuple(colour) for colour in view.faces.get_facecolor()]
    assert [fill.index(colour) for colour in (fill[0], fill[2])] == [0, 2]
    assert [fill[i] == fill[0] for i in range(15)] == [slot < 2 for _ in range(2) for slot in range(7)] + [False]
    widths = view.faces.get_linewidth()
    assert [width == widths[-1] for width in widths] == [False] * 7 + [True] * 8


def test_bars_are_the_weights(data):
    view = CacheStepsView().update(data)
    for bars, weights in ((view.bars, data.weights), (view.right_bars, data.right_weights)):
        segments = np.array(bars.get_segments())
        np.testing.assert_array_equal(segments[:, 0], [(slot, 0) for slot in range(7)])
        np.testing.assert_array_equal(segments[:, 1], [*zip(range(7), weights, strict=True)])


def test_errors_have_the_mark_of_their_kind(data):
    view = CacheStepsView().update(data)
    np.testing.assert_array_equal(view.good.get_xydata(), [(4, 1e-15), (5, LEAST)])
    np.testing.assert_array_equal(view.bad.get_xydata(), [(6, 2.0)])
    assert view.good.get_marker() != view.bad.get_marker()
    assert (view.good.get_color(), view.bad.get_color()) == (theme.FIRST, theme.SECOND)


def test_newest_slot_and_end_of_the_prompt(data):
    view = CacheStepsView().update(data)
    assert all((band.get_x(), band.get_width()) == (5.5, 1) for band in view.bands)
    assert all(list(edge.get_xdata()) == [4.5, 4.5] for edge in view.edges)


def test_a_frame_is_that_of_a_fresh_view(rng):
    small, large = steps(rng, groups=1, slots=1, pad=0, prompt=1, errors=(0.0,)), steps(rng, groups=4, slots=24, pad=4)
    view = CacheStepsView(scale=1)
    frames = [view.frame(data) for data in (small, large, small)]
    assert frames[0] == frames[2] != frames[1]
    assert frames[1] == CacheStepsView(scale=1).frame(large)


TOKENS = np.array([1, 16, 256])
PER_TOKEN = {8: 800, 2: 200, 1: 100}
DATA = CacheBytes(
    n_layers=3,
    n_heads=8,
    n_kv_heads=2,
    head_dim=4,
    value_bytes=2,
    tokens=TOKENS,
    curves={heads: TOKENS * float(size) for heads, size in PER_TOKEN.items()},
    length=16,
    held={heads: 16 * size for heads, size in PER_TOKEN.items()},
    per_token=PER_TOKEN,
    memory=750,
    fits={8: 0, 2: 3, 1: 7},
)
NAMES = {"all": 8, "chosen": 2, "one": 1}


@pytest.fixture
def view():
    return CacheSizeView(scale=1).update(DATA)


def test_lines_and_marks_are_the_data(view):
    for name, heads in NAMES.items():
        np.testing.assert_array_equal(view.lines[name].get_xydata(), [*zip(TOKENS, DATA.curves[heads], strict=True)])
        np.testing.assert_array_equal(view.marks[name].get_xydata(), [(16, DATA.held[heads])])
    assert len(set(view.looks.values())) == len(view.lines) == 3
    assert list(view.place.get_xdata()) == [16, 16]


def test_memory_is_a_level_line_with_a_dot_where_it_is_full(view):
    assert list(view.memory.get_ydata()) == [750, 750]
    # what holds not one token has no place on a logarithmic scale
    assert sorted(map(tuple, view.full.get_xydata())) == [(3, 750), (7, 750)]


DATA_of_cache_heads = HeadWeights(
    prompt=3,
    weights=np.array([0.5, 0.25, 0.01, 0.2, 0.04]),
    right_weights=np.array([0.0, 0.25, 0.7, 0.05, 0.0]),
    misplaced=np.array([0.0, 0.125, 0.5]),
    tokens=("a", "b", "c", "d", "e"),
    position=4,
    right_position=4,
    slowest=1e-5,
)


@pytest.fixture
def view_of_cache_heads():
    return CacheHeadsView(scale=1).update(DATA_of_cache_heads)


def test_bars_go_up_for_right_and_down_for_actual_weights(view_of_cache_heads):
    for bars, heights in zip(
        view_of_cache_heads.bars, (DATA_of_cache_heads.right_weights, -DATA_of_cache_heads.weights), strict=True
    ):
        segments = np.array(bars.get_segments())
        np.testing.assert_array_equal(segments[:, 0], [(slot, 0) for slot in range(5)])
        np.testing.assert_array_equal(segments[:, 1], [*zip(range(5), heights, strict=True)])
    assert [list(tips.get_xdata()) for tips in view_of_cache_heads.tips] == [[1, 2, 3], [0, 1, 3, 4]]
    assert len({tips.get_marker() for tips in view_of_cache_heads.tips}) == 2


def test_the_share_stands_at_its_token(view_of_cache_heads):
    np.testing.assert_array_equal(view_of_cache_heads.share.get_xydata(), [(2, 0.0), (3, 0.125), (4, 0.5)])
    assert all(band.get_x() == 3.5 for band in view_of_cache_heads.bands)
    assert all(list(edge.get_xdata()) == [2.5, 2.5] for edge in view_of_cache_heads.edges)


def test_the_scale_of_the_weights_has_no_sign(view_of_cache_heads):
    assert [label.get_text() for label in view_of_cache_heads.weights_axes.get_yticklabels()] == [
        "1",
        "0.5",
        "0",
        "0.5",
        "1",
    ]
