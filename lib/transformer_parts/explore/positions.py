"""The sinusoidal table with the hand on it."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.positions import HERE, PRODUCT, SHIFTED, Table, TableView
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number, vector
from transformer_parts.maths import positions
from transformer_parts.maths.rope import inv_freq, wavelengths

_START = MappingProxyType({"seq_len": 128, "d_model": 64, "position": 20, "shift": 8, "base": 10000.0})


class PositionTable(Panel[Table]):
    """The whole table, two of its vectors, and their inner product."""

    alt = (
        "Above, the sinusoidal table as a heat map: positions to the right, channels downwards, red for positive and"
        " blue for negative; the first channels change from column to column, the last hardly at all. A blue frame"
        " marks the position p, a dashed red one p + k. Below, the inner product of the vectors of p and p + k against"
        " the shift k, with a gold diamond at the chosen shift: a symmetric curve with its maximum at 0."
    )
    still = "figures/positions_table.png"
    presets = MappingProxyType(
        {
            "By hand: d = 4": {"seq_len": 8, "d_model": 4, "position": 0, "shift": 1, "base": 10000.0},
            "d = 64": dict(_START),
            "The same shift elsewhere": {**_START, "position": 90},
            "The paper's d = 512": {**_START, "seq_len": 512, "d_model": 512, "position": 100, "shift": 50},
            "Base 100": {**_START, "base": 100.0},
        }
    )
    play = "position"
    play_interval = 100

    def make_controls(self):
        return {
            "seq_len": controls.integer("positions L", 128, 8, 512, step=8),
            "d_model": controls.integer("width d", 64, 2, 512, step=2),
            "base": controls.power("base", 10000.0, 10, 1e6, per_decade=6, form=",.0f"),
            "position": controls.integer("position p", 20, 0, 127),
            "shift": controls.integer("shift k", 8, -20, 107),
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
        return TableView()

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
            Row(f"PE at p = {data.position}", vector(data.here, 4, 4), HERE),
            Row(f"PE at p + k = {moved}", vector(data.moved, 4, 4), SHIFTED),
            Row("their inner product", number(data.product), PRODUCT),
            Row("from the shift alone", number(data.products[len(data.table) - 1 + data.shift]), PRODUCT),
            Row("squared length of each, d/2", number(squared)),
            Row("wavelength of the first pair, of the last", ", ".join(f"{w:,.2f}" for w in data.wavelengths)),
            Row("entries a learned table would train", f"{data.table.size:,}"),
        ]
