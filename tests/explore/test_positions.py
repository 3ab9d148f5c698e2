"""The explorers of notebook 02: the worked numbers stand on the screen."""

import numpy as np
import pytest
from panel_table import after

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.positions import PositionTable, ShiftMatrix


def shown(panel, label: str) -> str:
    """Return the value beside a label; the same text must stand on the page."""
    (value,) = [row.value for row in panel.rows(panel.compute(**panel.state)) if row.label == label]
    assert f"<td>{value}</td>" in panel.readout.value
    return value


def test_all_are_in_the_catalogue():
    assert {PositionTable, ShiftMatrix} <= set(PANELS)


# ---------------------------------------------------------------- table


def test_the_table_by_hand_stands_on_the_screen():
    panel = after(PositionTable(), "By hand: d = 4")
    assert shown(panel, "PE at p = 0") == "(0.0000, 1.0000, 0.0000, 1.0000)"
    assert shown(panel, "PE at p + k = 1") == "(0.8415, 0.5403, 0.0100, 1.0000)"
    assert shown(panel, "their inner product") == "1.540252"
    assert shown(panel, "wavelength of the first pair, of the last") == "6.28, 628.32"


def test_the_inner_product_is_the_same_elsewhere():
    panel = after(PositionTable(), "d = 64")
    first = shown(panel, "their inner product")
    assert first == shown(panel, "from the shift alone") == "22.413912"
    after(panel, "The same shift elsewhere")
    assert shown(panel, "their inner product") == first
    assert shown(panel, "squared length of each, d/2") == "32.000000"
    assert shown(panel, "entries a learned table would train") == "8,192"


def test_both_positions_stay_in_the_table():
    panel = PositionTable()
    rng = np.random.default_rng(2)
    for _ in range(40):
        name = rng.choice(["seq_len", "position", "shift"])
        control = panel.controls[name]
        control.value = int(rng.choice(np.arange(control.min, control.max + 1, control.step)))
        state = panel.state
        assert panel.error is None
        assert 0 <= state["position"] < state["seq_len"]
        assert 0 <= state["position"] + state["shift"] < state["seq_len"]


# ---------------------------------------------------------------- shift


def test_one_block_by_hand():
    panel = after(ShiftMatrix(), "By hand: d = 2, k = 1")
    assert shown(panel, "first block, upper row") == "(0.540302, 0.841471)"
    assert shown(panel, "first block, lower row") == "(-0.841471, 0.540302)"
    assert shown(panel, "M PE at p = 0") == shown(panel, "PE at 1") == "(0.8415, 0.5403)"


@pytest.mark.parametrize("preset", ["k = 3", "Back by 3", "d = 128, k = 100"])
def test_the_error_is_rounding_for_the_right_shift(preset):
    panel = after(ShiftMatrix(), preset)
    assert float(shown(panel, "largest error, p = 0 to 255")) < 1e-13
    data = panel.compute(**panel.state)
    assert data.errors[:16].max() < 2e-14


def test_the_error_is_large_for_the_wrong_shift():
    panel = after(ShiftMatrix(), "The matrix of k = 3 for a shift of 4")
    assert float(shown(panel, "error at p")) > 0.5
    assert shown(panel, "M PE at p = 5") != shown(panel, "PE at 9")


def test_the_matrix_is_sparse_and_orthogonal():
    panel = ShiftMatrix()
    assert shown(panel, "entries that may differ from 0") == "32 of 256"
    assert float(shown(panel, "largest entry of M Mᵀ − I")) < 1e-15
    data = panel.compute(**panel.state)
    assert np.count_nonzero(data.matrix) == 32
