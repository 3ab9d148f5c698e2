"""Explorer of what a decoder costs when it runs: bytes and operations against the context."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.budget import BudgetCostView, Cost
from transformer_parts.explore import controls
from transformer_parts.explore.budget.tally import divisors, offer
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, Term
from transformer_parts.language import _
from transformer_parts.maths import budget
from transformer_parts.models.configs import PUBLISHED

# Models whose every layer attends to the whole context, and whose positions have no last row.
_MODELS = tuple(
    name
    for name, entry in PUBLISHED.items()
    if not entry.config.max_positions and name not in ("toy layer", "Mistral 7B", "Gemma 2 2B")
)


class BudgetCost(Panel[Cost]):
    """Bytes of weights and cache, and operations per token, against the context."""

    alt = _(
        "Two graphs against the number of tokens in the context, all scales logarithmic. Above, bytes: the weights'"
        " are a level line, the cache's rise, dashed with a kv head for each query head. Below, operations per token:"
        " products with weights are level, products with cached keys and values rise."
    )
    presets = MappingProxyType(
        {
            _("Llama 3 8B, 8192 tokens"): {"model": "Llama 3 8B", "n_kv_heads": 8, "context": 8192, "sequences": 1},
            _("the same, G = H"): {"model": "Llama 3 8B", "n_kv_heads": 32, "context": 8192, "sequences": 1},
            _("Llama 3 70B, 64 × 32768"): {"model": "Llama 3 70B", "n_kv_heads": 8, "context": 32768, "sequences": 64},
        }
    )
    primary = ("context", "n_kv_heads", "sequences", "model")
    guide = MappingProxyType(
        {
            _("Llama 3 8B, 8192 tokens"): _(
                "The cache is small beside the weights here. Drag the line to where they are equal."
            ),
            _("the same, G = H"): _(
                "Each token needs four times the cache, so that the crossing comes at a shorter context."
            ),
            _("Llama 3 70B, 64 × 32768"): _(
                "Many sequences at once: their caches weigh several times as much as the weights."
            ),
        }
    )
    handles = MappingProxyType({"context": Handle(_("line of the context"), ("context",), "x")})
    powers = tuple(2**i for i in range(21))

    def make_controls(self):
        c = PUBLISHED["Llama 3 8B"].config
        return {
            "model": controls.choice(_("model"), _MODELS, "Llama 3 8B"),
            "n_kv_heads": controls.choice(_("kv heads G"), divisors(c.n_heads), c.n_kv_heads),
            "context": controls.stops(_("context S"), 8192, self.powers),
            "sequences": controls.stops(_("sequences"), 1, self.powers[:9]),
        }

    def make_view(self):
        return BudgetCostView()

    def couple(self, name):
        if name == "model":
            c = PUBLISHED[self.controls["model"].value].config
            offer(self.controls["n_kv_heads"], divisors(c.n_heads), c.n_kv_heads)

    def compute(self, *, model, n_kv_heads, context, sequences):
        full = replace(PUBLISHED[model].config, n_kv_heads=PUBLISHED[model].config.n_heads)
        config = replace(full, n_kv_heads=n_kv_heads)
        contexts = self.powers

        def cache(of, tokens):
            return budget.kv_cache_bytes(of, tokens * sequences)

        parameters = budget.count(config).total
        flops = budget.flops_per_token(config, context)
        return Cost(
            contexts=np.array(contexts),
            cache=np.array([cache(config, tokens) for tokens in contexts], dtype=float),
            full_cache=np.array([cache(full, tokens) for tokens in contexts], dtype=float),
            weights=2 * parameters,
            weight_flops=flops.weights,
            attention_flops=np.array([budget.flops_per_token(config, s).attention for s in contexts], dtype=float),
            context=context,
            context_cache=cache(config, context),
            context_full_cache=cache(full, context),
            context_attention_flops=flops.attention,
            parameters=parameters,
            full_parameters=budget.count(full).total,
            token_cache=cache(config, 1),
        )

    def formula(self, data):
        return [
            Term(_("cache"), theme.THIRD, "cache"),
            Term(_(" = {bytes:,} bytes × {tokens:,} = ", bytes=data.token_cache, tokens=data.context)),
            Term(_gigabytes(data.context_cache), theme.THIRD, "cache"),
        ]

    def rows(self, data):
        return [
            Row(_("parameters"), f"{data.parameters:,}", minor=True),
            Row(_("with a kv head for each query head"), f"{data.full_parameters:,}", minor=True),
            Row(
                _("the whole model is smaller by"),
                f"{100 * (1 - data.parameters / data.full_parameters):.2f} %",
                minor=True,
            ),
            Row(_("weights, 16 bits"), _gigabytes(data.weights), theme.FIRST, mark="weights"),
            Row(_("cache per position, all sequences"), _("{count:,} bytes", count=data.token_cache), minor=True),
            Row(_("cache at S"), _gigabytes(data.context_cache), theme.THIRD, mark="cache"),
            Row(
                _("with a kv head for each query head (dashed)"),
                _gigabytes(data.context_full_cache),
                theme.THIRD,
                minor=True,
                mark="full_cache",
            ),
            Row(
                _("the cache is smaller by"),
                f"{100 * (1 - data.context_cache / data.context_full_cache):.2f} %",
                minor=True,
            ),
            Row(_("operations per token, with weights"), f"{data.weight_flops:,}", theme.FIRST, mark="weight_flops"),
            Row(
                _("with cached keys and values"),
                f"{data.context_attention_flops:,}",
                theme.SECOND,
                mark="attention_flops",
            ),
            Row(_("cache = weights at S"), f"{data.even:,.0f}", minor=True, mark="even"),
        ]


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:,.3f} GiB"
