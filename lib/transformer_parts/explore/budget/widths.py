"""Explorer of the width of a feed-forward layer: the width of an equal budget and that of the published rule."""

from collections.abc import Mapping
from types import MappingProxyType

from transformer_parts.draw import theme
from transformer_parts.draw.budget import BudgetWidthsView, Layer, Widths
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import budget
from transformer_parts.maths.budget import FFN_MATRICES

VERDICTS: Mapping[str, str] = MappingProxyType(
    {"equal": _("yes"), "rounded": _("yes, but for rounding"), "different": _("no")}
)


class BudgetWidths(Panel[Widths]):
    """A feed-forward layer, plain and gated: what an equal budget asks for, and what the published rule makes of it."""

    alt = _(
        "Above, the matrices of four feed-forward layers laid end to end, so that length shows parameters: plain,"
        " gated of the same width, gated of two thirds of it, gated by the published rule; a dashed line marks the"
        " plain layer's budget. Below, the steps of the rule: 8d/3, rounded down, multiplied, rounded up to a multiple."
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

    def rows(self, data):
        plain, same, equal, by_rule = data.layers
        d, rule = data.d_model, data.rule
        return [
            Row(_("plain, 2·{d}·{width}", d=d, width=plain.width), f"{plain.match.parameters:,}", theme.FIRST),
            Row(_("gated, as wide: 3·{d}·{width}", d=d, width=same.width), _count_and_ratio(same), theme.SECOND),
            Row(_("equal budget, 2·d_ff/3"), number(data.equal, 2)),
            Row(_("gated, rounded down: 3·{d}·{width}", d=d, width=equal.width), _count_and_ratio(equal), theme.SECOND),
            Row(_("budget matched?"), VERDICTS[equal.match.verdict]),
            Row(_("the rule: 8d/3"), number(data.two_thirds, 2)),
            Row(_("1. rounded down"), f"{rule.two_thirds}"),
            Row(_("2. × {multiplier:g}, rounded down", multiplier=data.multiplier), f"{rule.multiplied}"),
            Row(
                _("3. up to a multiple of {multiple_of}", multiple_of=data.multiple_of),
                f"{rule.d_ff} = {rule.ratio:.4g} d",
            ),
            Row(_("of which step 3 added"), f"{rule.d_ff - rule.multiplied}"),
            Row(
                _("gated, by the rule: 3·{d}·{width}", d=d, width=by_rule.width),
                _count_and_ratio(by_rule),
                theme.SECOND,
            ),
            Row(_("budget matched by the rule?"), VERDICTS[by_rule.match.verdict]),
        ]


def _count_and_ratio(layer: Layer) -> str:
    return f"{layer.match.parameters:,} ({layer.match.ratio:.4f})"
