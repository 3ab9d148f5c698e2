"""Explorer of positions, frequencies and angles in 16 bits."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.context_extension import PositionPrecisionView, Precision
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import precision, rope
from transformer_parts.maths.precision import PARTS, angle_errors


class PositionPrecision(Panel[Precision]):
    """Which positions a format cannot distinguish, and the errors of the angles."""

    alt = _(
        "Above: positions m + k around the chosen one against the numbers they become in the chosen format; in bfloat16"
        " several share one number. Below: the error of the angle at m for each pair in radians, on a logarithmic"
        " scale, when the positions (blue), the frequencies (red squares) or the angles (gold triangles) are held in"
        " the format; the dashed line is half a turn."
    )
    _head = MappingProxyType({"head_dim": 128, "rope_base": 10000.0})
    presets = MappingProxyType(
        {
            _("bfloat16: 256 = 257"): {"dtype": "bfloat16", "position": 257, **_head},
            _("bfloat16 at 4095"): {"dtype": "bfloat16", "position": 4095, **_head},
            _("float16: exact to 2048"): {"dtype": "float16", "position": 2048, **_head},
            _("float16 at 2049"): {"dtype": "float16", "position": 2049, **_head},
            _("float32 at 4095"): {"dtype": "float32", "position": 4095, **_head},
        }
    )
    untouchable = _("The positions are counted from m, so that nothing stands elsewhere when m changes.")
    steps = np.arange(-16, 17)
    play = "position"

    def make_controls(self):
        return {
            "position": controls.integer(_("m, position"), 4095, 0, 8192),
            "dtype": controls.choice(_("format"), list(precision.FORMATS), "bfloat16"),
            "rope_base": controls.power(_("base"), 10000.0, 100, 1e7, form=",.0f", also=[5e5]),
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
            Row(_("position {position} becomes", position=data.position), number(held, 0), theme.FIRST, mark="steps"),
            Row(_("from there to the next number of {dtype}", dtype=data.dtype), _spacing(data), minor=True),
            Row(
                _("different numbers that positions 0 to {position:,} become", position=data.position),
                f"{data.distinct:,}",
                minor=True,
            ),
            Row(
                _("largest error of an angle, positions rounded"),
                _("{angle} rad", angle=number(data.errors["positions"].max(), 4)),
                theme.FIRST,
                mark="positions",
            ),
            Row(
                _("the same, frequencies rounded"),
                _("{angle} rad", angle=number(data.errors["frequencies"].max(), 4)),
                theme.SECOND,
                mark="frequencies",
            ),
            Row(
                _("the same, angles rounded"),
                _("{angle} rad", angle=number(data.errors["angles"].max(), 4)),
                theme.THIRD,
                mark="angles",
            ),
        ]


def _spacing(data: Precision) -> str:
    """Return the spacing without trailing zeros; at 0 it is that of the smallest numbers, which no position has."""
    if data.position == 0:
        return _("far below 1; 0 itself is exact")
    return number(data.spacing, 10).rstrip("0").rstrip(".")
