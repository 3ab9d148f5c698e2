"""The views over a passage: artists show the data they are given."""

from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.draw.real_model import LEAST, RealModelHeadsView, RealModelPartsView, RealModelStreamView
from transformer_parts.explore.real_model import RealModelHeads, RealModelParts, RealModelStream


@pytest.fixture(scope="module", params=[RealModelStream, RealModelHeads, RealModelParts])
def panel(request):
    return request.param()


def test_stream_lines_are_the_data():
    panel = RealModelStream()
    data = panel.compute(token=3, layer=9)
    view = RealModelStreamView().update(data)
    np.testing.assert_array_equal(view.chosen.get_ydata(), data.rms[::2, 3])
    np.testing.assert_array_equal(view.first.get_ydata(), data.rms[::2, 0])
    np.testing.assert_array_equal(view.following.get_ydata(), np.maximum(data.following, LEAST))
    assert view.mark.get_xydata().tolist() == [[9, data.rms[18, 3]]]
    assert len(view.others.get_segments()) == data.rms.shape[1]


def test_head_frames_stand_at_the_chosen_cells():
    data = RealModelHeads().compute(layer=21, head=7, query=17, key=5, shown="weight on token 0")
    view = RealModelHeadsView().update(data)
    assert view.row.get_bbox().bounds == (-0.5, 16.5, 18, 1)
    assert view.frame_of_head.get_bbox().bounds == (6.5, 20.5, 1, 1)
    assert view.dot.get_xydata().tolist() == [[5, 17]]
    hands = np.array(view.clocks.query_hands.get_segments())
    length = np.linalg.norm(hands[:, 1] - hands[:, 0], axis=-1)
    sizes = np.abs(data.query_pairs)
    np.testing.assert_allclose((length / length.max()) ** 2, sizes / sizes.max())


def test_parts_lines_are_the_data_and_limits_move_in_steps():
    panel = RealModelParts()
    data = panel.compute(part="no gate", token=4, layer=2)
    view = RealModelPartsView().update(data)
    np.testing.assert_array_equal(view.broken.get_ydata(), data.broken)
    np.testing.assert_array_equal(view.trained.get_ydata(), data.trained)
    np.testing.assert_allclose(view.token_gates.get_data().values, 100 * data.token_gates)
    low = view.loss_axes.get_ylim()
    view.update(replace(data, broken=data.broken * 1.001))
    assert view.loss_axes.get_ylim() == low


def test_frames_follow_the_data_alone(panel):
    other = {name: getattr(control, "max", control.value) for name, control in panel.controls.items()}
    first = panel.view.still(panel.compute(**panel.state))
    panel.view.still(panel.compute(**other))
    assert panel.view.still(panel.compute(**panel.state)) == first
