"""Positions, frequencies and angles in 16 bits, with the hand on the position."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.context_extension import PositionPrecisionView, Precision
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.maths import precision, rope
from transformer_parts.maths.precision import PARTS, angle_errors


class PositionPrecision(Panel[Precision]):
    """Which positions a format cannot tell apart, and how far off the angles are."""

    alt = (
        "Above: positions m + k around the chosen one against the numbers they become in the chosen format; in bfloat16"
        " several share one number. Below: the error of the angle at m for each pair in radians, on a logarithmic"
        " scale, when the positions (blue), the frequencies (red squares) or the angles (gold triangles) are held in"
        " the format; the dashed line is half a turn."
    )
    still = "figures/position_precision.png"
    _head = MappingProxyType({"head_dim": 128, "rope_base": 10000.0})
    presets = MappingProxyType(
        {
            "bfloat16: 256 = 257": {"dtype": "bfloat16", "position": 257, **_head},
            "bfloat16 at 4095": {"dtype": "bfloat16", "position": 4095, **_head},
            "float16: exact to 2048": {"dtype": "float16", "position": 2048, **_head},
            "float16 at 2049": {"dtype": "float16", "position": 2049, **_head},
            "float32 at 4095": {"dtype": "float32", "position": 4095, **_head},
        }
    )
    steps = np.arange(-16, 17)
    play = "position"

    def make_controls(self):
        return {
            "position": controls.integer("m, position", 4095, 0, 8192),
            "dtype": controls.choice("format", list(precision.FORMATS), "bfloat16"),
            "rope_base": controls.power("base", 10000.0, 100, 1e7, form=",.0f", also=[5e5]),
            "head_dim": controls.integer("head_dim", 128, 4, 256, step=2),
        }

    def make_view(self):
        return PositionPrecisionView()

    def compute(self, *, position, dtype, rope_base, head_dim):
        inv_freq = rope.inv_freq(head_dim, rope_base)
        steps = self.steps[self.steps >= -position]
        return Precision(
            position=position,
            steps=steps,
            rounded_steps=precision.round_to(position + steps, dtype) - position,
            errors={part: angle_errors([position], inv_freq, dtype, rounded=part)[0] for part in PARTS},
            spacing=precision.spacing(position, dtype).item(),
            distinct=len(np.unique(precision.round_to(np.arange(position + 1), dtype))),
            dtype=dtype,
        )

    def rows(self, data):
        at = int(np.flatnonzero(data.steps == 0)[0])
        held = data.position + data.rounded_steps[at]
        return [
            Row(f"position {data.position} becomes", number(held, 0), theme.FIRST),
            Row(f"from there to the next number of {data.dtype}", _spacing(data)),
            Row(f"different numbers that positions 0 to {data.position:,} become", f"{data.distinct:,}"),
            Row(
                "largest error of an angle, positions rounded",
                f"{number(data.errors['positions'].max(), 4)} rad",
                theme.FIRST,
            ),
            Row("the same, frequencies rounded", f"{number(data.errors['frequencies'].max(), 4)} rad", theme.SECOND),
            Row("the same, angles rounded", f"{number(data.errors['angles'].max(), 4)} rad", theme.THIRD),
        ]


def _spacing(data: Precision) -> str:
    """Return the spacing without noughts at its end; at 0 that of the smallest numbers tells nothing of positions."""
    if data.position == 0:
        return "far below 1; 0 itself is exact"
    return number(data.spacing, 10).rstrip("0").rstrip(".")
