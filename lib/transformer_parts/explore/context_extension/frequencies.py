"""Explorer of context extension, pair by pair."""

from types import MappingProxyType

from transformer_parts.draw import theme
from transformer_parts.draw.context_extension import ExtensionFrequenciesView, Frequencies
from transformer_parts.explore import controls
from transformer_parts.explore.context_extension.methods import FACTORS, METHODS, lengths
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import context_extension, rope
from transformer_parts.maths.context_extension import angle_coverage

_LLAMA = MappingProxyType({"factor": 8, "head_dim": 128, "rope_base": 10000.0, "trained_length": 4096, "length": 32768})


class ExtensionFrequencies(Panel[Frequencies]):
    """What each method does to every pair: how much it is slowed, and which angles it reaches."""

    alt = _(
        "Above: the new frequency of each pair over the old one, from the fastest pair on the left to the slowest on"
        " the right. Below, on a logarithmic scale: turns made over the trained length as a line, turns made over the"
        " present length as dots; pairs that made no whole turn in training stand on grey, and red squares are those"
        " that reach an angle they had not seen."
    )
    presets = MappingProxyType(
        {
            _("What goes wrong"): {"method": "RoPE as trained", **_LLAMA},
            _("PI: 2048 → 4096"): {
                "method": "Position Interpolation",
                **_LLAMA,
                "factor": 2,
                "trained_length": 2048,
                "length": 4096,
            },
            _("NTK-aware, s = 8"): {"method": "NTK-aware", **_LLAMA},
            _("Dynamic NTK, short input"): {"method": "Dynamic NTK", **_LLAMA, "length": 4096},
            _("YaRN, s = 8"): {"method": "YaRN, code's ramp", **_LLAMA},
            _("LongRoPE: 4096"): {"method": "LongRoPE, Phi-3's factors", **_LLAMA, "factor": 32, "head_dim": 96}
            | {"length": 4096},
            _("LongRoPE: 4097"): {"method": "LongRoPE, Phi-3's factors", **_LLAMA, "factor": 32, "head_dim": 96}
            | {"length": 4097},
            "Llama 3.1": {
                "method": "Llama 3 bands",
                **_LLAMA,
                "rope_base": 500000.0,
                "trained_length": 8192,
                "length": 65536,
            },
        }
    )
    primary = ("method", "factor", "length", "trained_length")
    handles = MappingProxyType({"length": Handle(_("turns of the fastest pair at the length l"), ("length",), "y")})
    #: The position whose scaled position the table gives for two pairs: PI's worked example.
    position = 3000

    def make_controls(self):
        trained = [2**power for power in range(9, 18)]
        present = [*lengths(128, 2**23), 4097]
        return {
            "method": controls.choice(_("method"), list(METHODS), "NTK-aware"),
            "factor": controls.stops(_("s, extension by"), 8, FACTORS),
            "trained_length": controls.stops(_("L, trained length"), 4096, trained),
            "length": controls.stops(_("l, present length"), 32768, present),
            "rope_base": controls.power(_("base"), 10000.0, 100, 1e7, form=",.0f", also=[5e5]),
            "head_dim": controls.integer("head_dim", 128, 4, 256, step=2),
        }

    def make_view(self):
        return ExtensionFrequenciesView()

    def couple(self, name):
        if name in ("factor", "trained_length"):
            self.controls["length"].value = self.controls["factor"].value * self.controls["trained_length"].value

    def compute(self, *, method, factor, trained_length, length, rope_base, head_dim):
        scaled = METHODS[method](head_dim, factor, trained_length, length, rope_base)
        coverage = angle_coverage(rope.inv_freq(head_dim, rope_base), scaled.inv_freq, trained_length, length)
        if method == "NTK-aware":
            rope_base = context_extension.ntk_base(head_dim, factor, rope_base=rope_base)
        elif method == "Dynamic NTK":
            current = context_extension.dynamic_factor(length, trained_length)
            rope_base = context_extension.ntk_base(head_dim, current, rope_base=rope_base)
        return Frequencies(
            coverage=coverage,
            factor=factor,
            trained_length=trained_length,
            length=length,
            rope_base=rope_base,
            attention_factor=scaled.attention_factor,
        )

    def rows(self, data):
        coverage, pairs = data.coverage, len(data.coverage.ratio)
        slow = pairs - int(coverage.complete.sum())
        worst = f"{number(coverage.excess[~coverage.complete].max(), 4)} ×" if slow else "–"
        scaled = ", ".join(number(self.position * ratio, 2) for ratio in coverage.ratio[[0, -1]])
        factor = data.attention_factor
        return [
            Row(_("pairs with a whole turn within L"), _("{n} of {all}", n=pairs - slow, all=pairs), minor=True),
            Row(
                _("of the other {slow}, beyond their trained angle at l = {length:,}", slow=slow, length=data.length),
                f"{coverage.beyond.sum()}",
                theme.SECOND,
                mark="beyond",
            ),
            Row(_("the largest angle reached over the angle seen, of these"), worst),
            Row(
                _("θ′/θ of the fastest and of the slowest pair"),
                ", ".join(map(number, coverage.ratio[[0, -1]])),
                mark="ratio",
            ),
            Row(
                _("position {position} stands, for these two, where stood", position=self.position), scaled, minor=True
            ),
            Row(_("base of the frequencies"), f"{data.rope_base:,.2f}", minor=True),
            Row(
                _("attention factor of q and of k; its square, of the logits"),
                f"{number(factor)}, {number(factor**2)}",
                minor=True,
            ),
        ]
