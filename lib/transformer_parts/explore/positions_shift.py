"""The shift matrix with the hand on it."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.positions_shift import ERROR, MOVED, WANTED, Shifted, ShiftedView
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number, vector
from transformer_parts.maths import positions

LENGTH = 256
_START = MappingProxyType({"d_model": 16, "shift": 3, "off": 0, "position": 5, "base": 10000.0})


class ShiftMatrix(Panel[Shifted]):
    """One matrix for all positions, and its error when it is tried for the right shift or a wrong one."""

    alt = (
        "Top left, the shift matrix as a heat map: blocks of two by two along the diagonal, zero elsewhere. Top right,"
        " channel by channel, the vector that the matrix makes of position p as blue dots and the vector it should be"
        " as red squares. Below, the largest error at every position on a logarithmic scale, with a dashed line at"
        " 1e-12."
    )
    still = "figures/positions_shift.png"
    presets = MappingProxyType(
        {
            "By hand: d = 2, k = 1": {**_START, "d_model": 2, "shift": 1, "position": 0},
            "k = 3": dict(_START),
            "Back by 3": {**_START, "shift": -3},
            "The matrix of k = 3 for a shift of 4": {**_START, "off": 1},
            "d = 128, k = 100": {**_START, "d_model": 128, "shift": 100},
        }
    )
    play = "position"
    play_interval = 100

    def make_controls(self):
        return {
            "d_model": controls.integer("width d", 16, 2, 128, step=2),
            "shift": controls.integer("shift k", 3, -100, 100),
            "off": controls.integer("tried for k plus", 0, -5, 5),
            "position": controls.integer("position p", 5, 0, LENGTH - 1),
            "base": controls.power("base", 10000.0, 10, 1e6, per_decade=6, form=",.0f"),
        }

    def make_view(self):
        return ShiftedView()

    def compute(self, *, d_model, shift, off, position, base):
        matrix = positions.shift_matrix(shift, d_model, base)
        tested = shift + off
        return Shifted(
            matrix=matrix,
            moved=matrix @ positions.sinusoidal_at(position, d_model, base),
            wanted=positions.sinusoidal_at(position + tested, d_model, base),
            errors=positions.shift_error(matrix, tested, np.arange(LENGTH), d_model, base),
            position=position,
            shift=shift,
            tested=tested,
            distance_from_orthogonal=float(np.abs(matrix @ matrix.T - np.eye(d_model)).max()),
        )

    def rows(self, data):
        wanted = data.position + data.tested
        return [
            Row(f"M PE at p = {data.position}", vector(data.moved, 4, 4), MOVED),
            Row(f"PE at {wanted}", vector(data.wanted, 4, 4), WANTED),
            Row("error at p", f"{data.errors[data.position]:.1e}", ERROR),
            Row(f"largest error, p = 0 to {LENGTH - 1}", f"{data.errors.max():.1e}", ERROR),
            Row("first block, upper row", vector(data.matrix[0, :2])),
            Row("first block, lower row", vector(data.matrix[1, :2])),
            Row("entries that may differ from 0", f"{2 * len(data.matrix):,} of {data.matrix.size:,}"),
            Row("largest entry of M Mᵀ − I", number(data.distance_from_orthogonal, 1)),
        ]
