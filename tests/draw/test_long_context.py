"""The views of long context: artists show the data they are given, whatever was shown before."""

import numpy as np
import pytest

from transformer_parts.draw.long_context import (
    LOWEST,
    CostByLength,
    LongContextCostsView,
    LongContextLossView,
    LongContextRetrievalView,
    LossByPosition,
    Retrieval,
)
from transformer_parts.draw.long_context_live import LOOKS, Extension, LiveExtensionView


def losses(rng, *, relative=False, method="yarn"):
    made = {name: rng.uniform(2, 7, 16) for name in ("plain", "yarn", "restarted")}
    return LossByPosition(
        block=1024,
        trained_length=8192,
        losses=made,
        names={n: n for n in made},
        method=method,
        beside="plain",
        relative=relative,
    )


def test_losses_stand_at_the_middles_of_their_blocks(rng):
    data = losses(rng)
    view = LongContextLossView().update(data)
    np.testing.assert_array_equal(view.chosen.get_xdata(), 1024 * (np.arange(16) + 0.5))
    np.testing.assert_array_equal(view.chosen.get_ydata(), data.losses["yarn"])
    np.testing.assert_array_equal(view.beside.get_ydata(), data.losses["plain"])
    (other,) = view.others.get_segments()
    np.testing.assert_array_equal(other[:, 1], data.losses["restarted"])
    assert view.unseen.get_bbox().bounds[0] == 8192


@pytest.mark.parametrize(("farthest", "reach"), [(0.2, 0.25), (0.24, 1.0), (0.9, 1.0), (5.0, 6.0), (50.0, 6.0)])
def test_differences_are_drawn_about_the_black_one(rng, farthest, reach):
    data = losses(rng, relative=True)
    data.losses["yarn"][:] = data.losses["plain"] + np.linspace(-farthest / 2, farthest, 16)
    view = LongContextLossView().update(data)
    np.testing.assert_allclose(view.chosen.get_ydata(), np.linspace(-farthest / 2, farthest, 16), atol=1e-12)
    np.testing.assert_array_equal(view.beside.get_ydata(), np.zeros(16))
    (other,) = view.others.get_segments()
    np.testing.assert_array_equal(other[:, 1], data.losses["restarted"] - data.losses["plain"])
    assert view.axes.get_ylim() == (-reach, reach)
    assert view.axes.get_ylabel() != LongContextLossView().update(losses(rng)).axes.get_ylabel()


def test_a_frame_is_of_its_data_alone(rng):
    one, other = losses(rng), losses(rng, relative=True, method="restarted")
    view = LongContextLossView()
    first = view.still(one)
    view.still(other)
    assert view.still(one) == first == LongContextLossView().still(one)


def test_hidden_numbers_are_filled_where_they_are_the_likeliest():
    data = Retrieval(
        depths=np.array([0.1, 0.5, 0.9]),
        plain=np.array([-1.0, -9.0, -2.0]),
        yarn=np.array([-0.5, -0.6, -0.7]),
        others=np.array([[-1.5, -1.6, -1.7], [np.nan, np.nan, np.nan]]),
        chosen=np.array([[True, False, True], [False, False, False]]),
        lengths=np.array([1024, 2048]),
        by_length={"plain": np.array([-1.0, -2.0]), "yarn": np.array([-1.5, -2.5])},
        others_by_length={"plain": np.array([-1.6, -7.0]), "yarn": np.array([np.nan, np.nan])},
        length=2048,
        trained_length=8192,
        doors=3,
    )
    view = LongContextRetrievalView().update(data)
    assert view.found["plain"].get_xydata().tolist() == [[0.1, -1.0], [0.9, -2.0]]
    assert view.missed["plain"].get_xydata().tolist() == [[0.5, LOWEST]]
    assert len(view.found["yarn"].get_xydata()) == 0
    assert view.means["yarn"].get_xydata().tolist() == [[1024, -1.5], [2048, -2.5]]
    assert view.others["plain"].get_xydata().tolist() == [[1024, -1.6], [2048, LOWEST]]
    assert np.isnan(view.others["yarn"].get_ydata()).all()


def test_cost_marks_stand_on_their_curves():
    lengths = np.array([512, 1024, 2048])
    data = CostByLength(
        lengths=lengths,
        cache_bytes=lengths * 1e5,
        full_bytes=lengths * 4e5,
        weight_bytes=10**10,
        prefill_seconds=lengths * 1e-5,
        token_seconds=lengths * 1e-7,
        length=1024,
        attention_share=0.1,
        at=(1024e5, 4096e5, 1024e-5, 1024e-7),
    )
    view = LongContextCostsView().update(data)
    for mark, line in zip(view.marks, (view.cache, view.full, view.prefill, view.token), strict=True):
        assert mark.get_xydata().tolist() == [[1024, line.get_ydata()[1]]]


def test_what_was_not_tried_yet_is_not_drawn():
    nothing = {name: np.full(2, np.nan) for name in LOOKS}
    some = nothing | {"yarn": np.array([0.9, np.nan])}
    data = Extension(
        steps=np.arange(3.0), losses=np.ones(3), last=10, lengths=(64, 128), accuracy=some, recorded=nothing
    )
    view = LiveExtensionView().update(data)
    assert view.loss.get_xydata().tolist() == [[0, 1], [1, 1], [2, 1]]
    np.testing.assert_array_equal(view.now["yarn"].get_ydata(), [90, np.nan])
    assert np.isnan(view.now["plain"].get_ydata()).all()
    first = view.still(data)
    assert LiveExtensionView().still(data) == first
