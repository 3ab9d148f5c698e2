"""cache_heads: right weights upwards, actual ones downwards, and the share below."""

import numpy as np
import pytest

from transformer_parts.draw.cache_heads import HeadWeights, HeadWeightsView

DATA = HeadWeights(
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
def view():
    return HeadWeightsView(scale=1).update(DATA)


def test_bars_go_up_for_right_and_down_for_actual_weights(view):
    for bars, heights in zip(view.bars, (DATA.right_weights, -DATA.weights), strict=True):
        segments = np.array(bars.get_segments())
        np.testing.assert_array_equal(segments[:, 0], [(slot, 0) for slot in range(5)])
        np.testing.assert_array_equal(segments[:, 1], [*zip(range(5), heights, strict=True)])
    assert [list(tips.get_xdata()) for tips in view.tips] == [[1, 2, 3], [0, 1, 3, 4]]
    assert len({tips.get_marker() for tips in view.tips}) == 2


def test_the_share_stands_at_its_token(view):
    np.testing.assert_array_equal(view.share.get_xydata(), [(2, 0.0), (3, 0.125), (4, 0.5)])
    assert all(band.get_x() == 3.5 for band in view.bands)
    assert all(list(edge.get_xdata()) == [2.5, 2.5] for edge in view.edges)


def test_the_scale_of_the_weights_has_no_sign(view):
    assert [label.get_text() for label in view.weights_axes.get_yticklabels()] == ["1", "0.5", "0", "0.5", "1"]
