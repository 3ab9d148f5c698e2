"""Explorer of the width of a feed-forward layer: the width of an equal budget and that of the published rule."""

from collections.abc import Mapping
from types import MappingProxyType

from transformer_parts.draw import theme
from transformer_parts.draw.budget import BudgetWidthsView, Layer, Widths
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, Term, number
from transformer_parts.language import _
from transformer_parts.maths import budget
from transformer_parts.maths.budget import FFN_MATRICES

VERDICTS: Mapping[str, str] = MappingProxyType(
    {"equal": _("yes"), "rounded": _("yes, but for rounding"), "different": _("no")}
)


class BudgetWidths(Panel[Widths]):
    """A feed-forward layer, plain and gated: what an equal budget asks for, and what the published rule makes of it."""

    alt = _(
        "Above, the matrices of four feed-forward layers, one on another, so that area is parameters: plain, gated of"
        " the same width, gated of two thirds of it, gated by the published rule; dashed frames have the area of the"
        " plain layer. Below, the steps of the rule: 8d/3, rounded down, multiplied, rounded up to a multiple."
    )
    presets = MappingProxyType(
        {
            _("By hand: d = 8, d_ff = 24"): {"d_model": 8, "plain": 3, "multiplier": 1.0, "multiple_of": 1},
            "d = 512": {"d_model": 512, "plain": 4, "multiplier": 1.0, "multiple_of": 1},
            "Llama 2 7B": {"d_model": 4096, "plain": 4, "multiplier": 1.0, "multiple_of": 256},
            "Llama 3 8B": {"d_model": 4096, "plain": 4, "multiplier": 1.3, "multiple_of": 1024},
            _("The 70B width"): {"d_model": 8192, "plain": 4, "multiplier": 1.3, "multiple_of": 4096},
        }
    )

    primary = ("plain", "multiplier", "multiple_of", "d_model")
    guide = MappingProxyType(
        {
            _("By hand: d = 8, d_ff = 24"): _(
                "The same area in another shape: three matrices of width 16 hold as much as two of width 24."
            ),
            "Llama 2 7B": _("The rule rounds up to a multiple of 256: hardly more than the dashed frame."),
            "Llama 3 8B": _(
                "Most of what lies beyond the frame comes from the multiplier 1.3, little from the rounding."
            ),
        }
    )
    handles = MappingProxyType(
        {
            "plain": Handle(_("edge of the plain layer"), ("plain",), "x"),
            "multiplier": Handle(_("edge of the layer by the rule"), ("multiplier",), "x"),
        }
    )

    def make_controls(self):
        return {
            "d_model": controls.integer("d", 4096, 8, 8192, step=8),
            "plain": controls.integer(_("plain d_ff / d"), 4, 1, 8),
            "multiplier": controls.real(_("multiplier"), 1.3, 0.5, 2, step=0.05),
            "multiple_of": controls.choice(_("multiple of"), [1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096], 1024),
        }

    def make_view(self):
        return BudgetWidthsView()

    def compute(self, *, d_model, plain, multiplier, multiple_of):
        d_ff = plain * d_model
        equal = budget.equal_budget_d_ff(d_ff)
        rule = budget.llama_d_ff(d_model, multiple_of=multiple_of, multiplier=multiplier)

        def layer(kind: str, width: int, multiple_of: int = 1) -> Layer:
            match = budget.match_budget(kind, d_model, width, reference_d_ff=d_ff, multiple_of=multiple_of)
            return Layer(FFN_MATRICES[kind], width, match)

        return Widths(
            d_model=d_model,
            d_ff=d_ff,
            equal=equal,
            layers=(
                layer("mlp", d_ff),
                layer("gated", d_ff),
                layer("gated", int(equal)),
                layer("gated", rule.d_ff, multiple_of),
            ),
            two_thirds=budget.equal_budget_d_ff(rule.plain),
            rule=rule,
            multiplier=multiplier,
            multiple_of=multiple_of,
        )

    def formula(self, data):
        rule = data.layers[-1]
        return [
            Term(f"3 · d · {rule.width}", theme.SECOND, "rule"),
            Term(f" = {number(rule.match.ratio, 4)} × "),
            Term(f"2 · d · {data.d_ff}", theme.FIRST, "plain"),
        ]

    def rows(self, data):
        plain, same, equal, by_rule = data.layers
        d, rule = data.d_model, data.rule
        return [
            Row(
                _("plain, 2·{d}·{width}", d=d, width=plain.width),
                f"{plain.match.parameters:,}",
                theme.FIRST,
                mark="plain",
            ),
            _gated_row(_("gated, as wide: 3·{d}·{width}", d=d, width=same.width), same, "same"),
            Row(_("equal budget, 2·d_ff/3"), number(data.equal, 2), minor=True),
            _gated_row(_("gated, rounded down: 3·{d}·{width}", d=d, width=equal.width), equal, "equal"),
            Row(_("budget matched?"), VERDICTS[equal.match.verdict], minor=True),
            Row(_("the rule: 8d/3"), number(data.two_thirds, 2), minor=True),
            Row(_("1. rounded down"), f"{rule.two_thirds}", minor=True),
            Row(_("2. × {multiplier:g}, rounded down", multiplier=data.multiplier), f"{rule.multiplied}", minor=True),
            Row(
                _("3. up to a multiple of {multiple_of}", multiple_of=data.multiple_of),
                f"{rule.d_ff} = {rule.ratio:.4g} d",
                minor=True,
            ),
            Row(_("of which step 3 added"), f"{rule.d_ff - rule.multiplied}", minor=True),
            _gated_row(_("gated, by the rule: 3·{d}·{width}", d=d, width=by_rule.width), by_rule, "rule"),
            Row(_("budget matched by the rule?"), VERDICTS[by_rule.match.verdict], minor=True),
        ]


def _gated_row(label: str, layer: Layer, mark: str) -> Row:
    """Return the line of a gated layer: its parameters, and their ratio to the plain layer's."""
    return Row(label, f"{layer.match.parameters:,} ({layer.match.ratio:.4f})", theme.SECOND, mark=mark)
