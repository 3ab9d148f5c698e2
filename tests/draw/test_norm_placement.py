"""residual: curves stand where the numbers are, within whole decades."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from transformer_parts.draw.norm_placement import (
    ByDepth,
    Placed,
    PlacementDepthView,
    PlacementLayersView,
    PlacementRunsView,
    Run,
    TwoPlacements,
    WarmAndCold,
    whole_decades,
)
from transformer_parts.maths.residual_stream import FirstPass


def placed(placement, n_layers, size):
    return Placed(
        placement,
        FirstPass(4.2, size * np.arange(1.0, n_layers + 2), np.ones(n_layers + 1), size / np.arange(1.0, n_layers + 1)),
    )


def test_curves_of_both_placements():
    view = PlacementLayersView().update(TwoPlacements(placed("pre", 5, 1.0), placed("post", 3, 0.01)))
    for stream, gradient, n_layers, size in zip(view.streams, view.gradients, (5, 3), (1.0, 0.01), strict=True):
        assert_array_equal(stream.get_xydata(), np.c_[np.arange(n_layers + 1), size * np.arange(1, n_layers + 2)])
        assert_array_equal(gradient.get_xydata(), np.c_[np.arange(1, n_layers + 1), size / np.arange(1, n_layers + 1)])
    assert view.above.get_ylim() == (0.001, 10)
    assert view.below.get_ylim() == (0.001, 10)


@pytest.mark.parametrize(
    ("values", "limits"),
    [([1.0, 1.0], (0.1, 10)), ([0.9999, 3.5], (0.1, 10)), ([0.02, 1.0], (0.01, 10)), ([2.0, 300.0], (1, 1000))],
)
def test_limits_are_whole_decades(values, limits):
    assert whole_decades(np.array(values)) == pytest.approx(limits)


def by_depth(marked=1):
    depths = np.array([2, 4, 8, 16])
    laws = {"pre": (0.5, -0.5), "post": (1.0, 0.0), "sandwich": (0.4, -0.5), "deepnorm": (0.1, 0.25)}
    seeds = np.array([[1.0], [3.0]])
    values = {name: factor * seeds * depths**power for name, (factor, power) in laws.items()}
    return ByDepth(depths, values, marked)


def test_means_bands_and_slopes():
    data = by_depth()
    view = PlacementDepthView().update(data)
    assert_array_equal(view.lines["post"].get_xydata(), np.c_[[2, 4, 8, 16], [2.0] * 4])
    outline = view.bands["post"].get_paths()[0].vertices
    assert (outline[:, 1].min(), outline[:, 1].max()) == (1, 3)
    assert_array_equal(view.marker.get_xdata(), [4, 4])
    assert [round(data.slope(name), 12) for name in data.values] == [-0.5, 0, -0.5, 0.25]
    low, high = view.axes.get_ylim()
    assert low <= 0.1 * 2**0.25
    assert high >= 3


def test_a_run_with_warm_up_and_one_without():
    def run(factor):
        losses = np.array([[3.0, 2.0], [3.2, 1.0], *[[3.1, 1.5]] * 3])
        return Run(factor * losses, factor * np.ones(7), factor * np.full(6, 0.1))

    view = PlacementRunsView().update(WarmAndCold(run(1.0), run(1.1), every=10, step=10, warmup_steps=50, chance=2.77))
    assert_array_equal(view.means[0].get_xydata(), [[5, 3.1], [15, 1.5]])
    assert_array_equal(view.seeds[1][1].get_ydata(), 1.1 * np.array([3.2, 1.0]))
    assert_array_equal(view.streams[1].get_ydata(), [1.1] * 7)
    assert_array_equal(view.gradients[0].get_xdata(), range(1, 7))
    assert (view.warming.get_x(), view.warming.get_width()) == (0, 50)
    assert_array_equal(view.marker.get_xdata(), [10, 10])
    assert_array_equal(view.chance.get_ydata(), [2.77, 2.77])
