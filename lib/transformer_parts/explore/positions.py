"""Explorers of sinusoidal positions: the table, and the matrix that shifts it."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.positions import (
    ERROR,
    HERE,
    MOVED,
    PRODUCT,
    SHIFTED,
    WANTED,
    PositionTableView,
    Shifted,
    ShiftMatrixView,
    Table,
)
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number, vector
from transformer_parts.language import _
from transformer_parts.maths import positions
from transformer_parts.maths.rope import inv_freq, wavelengths

_START = MappingProxyType({"seq_len": 128, "d_model": 64, "position": 20, "shift": 8, "base": 10000.0})


class PositionTable(Panel[Table]):
    """The whole table, two of its vectors, and their inner product."""

    alt = _(
        "Above, the sinusoidal table as a heat map: positions to the right, channels downwards, red for positive and"
        " blue for negative; the first channels change from column to column, the last hardly at all. A blue frame"
        " marks the position p, a dashed red one p + k. Below, the inner product of the vectors of p and p + k against"
        " the shift k, with a gold diamond at the chosen shift: a symmetric curve with its maximum at 0."
    )
    handles = MappingProxyType(
        {
            "position": Handle(_("position p"), ("position",), "x"),
            "shift": Handle(_("shift k"), ("shift",), "x"),
        }
    )
    primary = ("position", "shift", "d_model", "base")
    presets = MappingProxyType(
        {
            _("By hand: d = 4"): {"seq_len": 8, "d_model": 4, "position": 0, "shift": 1, "base": 10000.0},
            "d = 64": dict(_START),
            _("The same shift elsewhere"): {**_START, "position": 90},
            _("The paper's d = 512"): {**_START, "seq_len": 512, "d_model": 512, "position": 100, "shift": 50},
            _("Base 100"): {**_START, "base": 100.0},
        }
    )
    play = "position"
    play_interval = 100

    def make_controls(self):
        return {
            "seq_len": controls.integer(_("positions L"), 128, 8, 512, step=8),
            "d_model": controls.integer(_("width d"), 64, 2, 512, step=2),
            "base": controls.power(_("base"), 10000.0, 10, 1e6, per_decade=6, form=",.0f"),
            "position": controls.integer(_("position p"), 20, 0, 127),
            "shift": controls.integer(_("shift k"), 8, -20, 107),
        }

    def couple(self, name):
        # Both positions stay in the table: first p, which leaves room for k, then k.
        length, position, shift = (self.controls[key] for key in ("seq_len", "position", "shift"))
        last = length.value - 1
        if position.value > last:
            position.value = last
        position.max = last
        shift.value = min(max(shift.value, -position.value), last - position.value)
        low, high = -position.value, last - position.value
        if low > shift.max:
            shift.max = high
        shift.min, shift.max = low, high

    def make_view(self):
        return PositionTableView()

    def compute(self, *, seq_len, d_model, base, position, shift):
        table = positions.sinusoidal(seq_len, d_model, base)
        shifts = np.arange(1 - seq_len, seq_len)
        waves = wavelengths(inv_freq(d_model, base))
        return Table(
            table=table,
            shifts=shifts,
            products=positions.shift_inner_product(shifts, d_model, base),
            position=position,
            shift=shift,
            here=table[position],
            moved=table[position + shift],
            wavelengths=(float(waves[0]), float(waves[-1])),
        )

    def rows(self, data):
        moved = data.position + data.shift
        squared = float(data.here @ data.here)
        return [
            Row(_("PE at p = {position}", position=data.position), vector(data.here, 4, 4), HERE),
            Row(_("PE at p + k = {moved}", moved=moved), vector(data.moved, 4, 4), SHIFTED),
            Row(_("their inner product"), number(data.product), PRODUCT),
            Row(_("from the shift alone"), number(data.products[len(data.table) - 1 + data.shift]), PRODUCT),
            Row(_("squared length of each, d/2"), number(squared)),
            Row(_("wavelength of the first pair, of the last"), ", ".join(f"{w:,.2f}" for w in data.wavelengths)),
            Row(_("entries a learned table would train"), f"{data.table.size:,}"),
        ]


LENGTH = 256
_SHIFTED = MappingProxyType({"d_model": 16, "shift": 3, "off": 0, "position": 5, "base": 10000.0})


class ShiftMatrix(Panel[Shifted]):
    """One matrix for all positions, and its error when it is applied for the right shift or a wrong one."""

    alt = _(
        "Top left, the shift matrix as a heat map: blocks of two by two along the diagonal, zero elsewhere. Top right,"
        " channel by channel, the vector that the matrix makes of position p as blue dots and the vector it should be"
        " as red squares. Below, the largest error at every position on a logarithmic scale, with a dashed line at"
        " 1e-12."
    )
    handles = MappingProxyType(
        {
            "position": Handle(_("position p"), ("position",), "x"),
        }
    )
    primary = ("shift", "off", "position", "d_model")
    presets = MappingProxyType(
        {
            _("By hand: d = 2, k = 1"): {**_SHIFTED, "d_model": 2, "shift": 1, "position": 0},
            "k = 3": dict(_SHIFTED),
            _("Back by 3"): {**_SHIFTED, "shift": -3},
            _("The matrix of k = 3 for a shift of 4"): {**_SHIFTED, "off": 1},
            "d = 128, k = 100": {**_SHIFTED, "d_model": 128, "shift": 100},
        }
    )
    play = "position"
    play_interval = 100

    def make_controls(self):
        return {
            "d_model": controls.integer(_("width d"), 16, 2, 128, step=2),
            "shift": controls.integer(_("shift k"), 3, -100, 100),
            "off": controls.integer(_("tried for k plus"), 0, -5, 5),
            "position": controls.integer(_("position p"), 5, 0, LENGTH - 1),
            "base": controls.power(_("base"), 10000.0, 10, 1e6, per_decade=6, form=",.0f"),
        }

    def make_view(self):
        return ShiftMatrixView()

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
            Row(_("M PE at p = {position}", position=data.position), vector(data.moved, 4, 4), MOVED),
            Row(_("PE at {wanted}", wanted=wanted), vector(data.wanted, 4, 4), WANTED),
            Row(_("error at p"), f"{data.errors[data.position]:.1e}", ERROR),
            Row(_("largest error, p = 0 to {last}", last=LENGTH - 1), f"{data.errors.max():.1e}", ERROR),
            Row(_("first block, upper row"), vector(data.matrix[0, :2])),
            Row(_("first block, lower row"), vector(data.matrix[1, :2])),
            Row(
                _("entries that may differ from 0"),
                _("{some:,} of {all:,}", some=2 * len(data.matrix), all=data.matrix.size),
            ),
            Row(_("largest entry of M Mᵀ − I"), number(data.distance_from_orthogonal, 1)),
        ]
