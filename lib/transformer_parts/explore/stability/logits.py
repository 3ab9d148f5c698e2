"""Explorer of a head whose queries and keys grow, as in training: logits, entropy, formats, and QK-norm."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.stability import NORMED, PLAIN, Growth, LogitGrowthView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths.stability import grown_attention, logit_bound

LENGTH = 16
_FORMATS = MappingProxyType({"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"})
_FACTORS = tuple(float(f"{10 ** (i / 10):.4g}") for i in range(-10, 31))


class LogitGrowth(Panel[Growth]):
    """The largest logit and the entropy of one head against a factor on its queries and keys."""

    alt = _(
        "Two diagrams against the factor c on queries and keys. Above, the largest logit: red rises with the square of"
        " c, blue, with QK-norm, is level below its dashed bound. Below, the mean entropy: red falls to zero, blue is"
        " level; dotted that of equal weights. On the right the attention weights at the chosen factor, without"
        " QK-norm in a red frame and with it in a blue one."
    )
    _start = MappingProxyType({"head_dim": 64, "gain": 1.0, "dtype": "float32", "seed": 0})
    presets = MappingProxyType(
        {
            _("At initialisation"): {**_start, "factor": 1.0},
            _("Grown by 10"): {**_start, "factor": 10.0},
            _("float16 overflows"): {**_start, "factor": 63.1, "dtype": "float16"},
            _("bfloat16 rounds"): {**_start, "factor": 2.512, "dtype": "bfloat16"},
            _("QK-norm, gain 3"): {**_start, "factor": 10.0, "gain": 3.0},
        }
    )
    primary = ("factor", "gain", "dtype")
    guide = MappingProxyType(
        {
            _("At initialisation"): _(
                "Both heads look alike. Predict what c = 10 does to each of them, then drag the line."
            ),
            _("Grown by 10"): _("Without QK-norm each query has settled on one key; with it nothing has changed."),
            _("float16 overflows"): _("Rows with an infinity have no softmax; attention was one-hot long before."),
            _("QK-norm, gain 3"): _("The gain γ can sharpen attention again, as far as its bound allows."),
        }
    )
    handles = MappingProxyType({"factor": Handle(_("line of the factor c"), ("factor",), "x")})

    def make_controls(self):
        return {
            "factor": controls.named(_("c, on q and k"), {f"{f:.3g}": f for f in _FACTORS}, 1.0),
            "dtype": controls.choice(_("format"), _FORMATS, "float32"),
            "gain": controls.real(_("γ of QK-norm"), 1.0, 0.5, 4, step=0.25),
            "head_dim": controls.stops(_("K, head_dim"), 64, (16, 32, 64, 128)),
            "seed": controls.integer(_("seed"), 0, 0, 9),
        }

    def make_view(self):
        return LogitGrowthView()

    def compute(self, *, factor, dtype, gain, head_dim, seed):
        query, key = np.random.default_rng(seed).standard_normal((2, LENGTH, head_dim))
        chosen = _FACTORS.index(factor)
        plain, normed = (
            grown_attention(query, key, _FACTORS, qk_norm=norm, gain=gain, dtype=dtype) for norm in (False, True)
        )
        exact = grown_attention(query, key, [factor])
        return Growth(
            factors=np.array(_FACTORS),
            normed=normed,
            plain=plain,
            chosen=chosen,
            bound=logit_bound(head_dim, gain),
            ceiling=65504 / head_dim**0.5 if dtype == "float16" else np.inf,
            uniform=float(np.mean(np.log(np.arange(2, LENGTH + 1)))),
            moved=float(np.abs(plain.weights[chosen] - exact.weights[0]).max()),
        )

    def rows(self, data):
        i = data.chosen
        return [
            Row(_("largest logit, plain"), number(data.plain.largest[i], 4), PLAIN, mark="plain"),
            Row(_("largest logit, QK-norm"), number(data.normed.largest[i], 4), NORMED, mark="normed"),
            Row(_("bound of QK-norm, γ²√K"), number(data.bound, 4), minor=True, mark="bound"),
            Row(_("mean entropy, plain"), _nats(data.plain.entropy[i]), PLAIN, mark="plain"),
            Row(_("mean entropy, QK-norm"), _nats(data.normed.entropy[i]), NORMED, mark="normed"),
            Row(_("mean entropy of equal weights"), _nats(data.uniform), theme.INK, minor=True, mark="uniform"),
            Row(
                _("rows without a softmax (NaN), plain"),
                _("{some} of {all}", some=data.plain.lost[i], all=LENGTH),
                minor=True,
            ),
            Row(_("largest change of a weight by rounding, plain"), _or_dash(data.moved), minor=True),
        ]


def _nats(value: float) -> str:
    return "—" if np.isnan(value) else _("{entropy} nats", entropy=number(value, 4))


def _or_dash(value: float) -> str:
    return "—" if np.isnan(value) else number(value, 4)
