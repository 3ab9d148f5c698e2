"""Parameter budgets: where the parameters are, how wide a layer is, and what a token costs."""

from transformer_parts.maths.budget.cost import TokenFlops, flops_per_token, kv_cache_bytes
from transformer_parts.maths.budget.parameters import (
    FFN_MATRICES,
    Count,
    DecoderConfig,
    Tally,
    attention_parameters,
    count,
    count_tensors,
    ffn_parameters,
    formulas,
    part_of,
)
from transformer_parts.maths.budget.width import (
    BudgetMatch,
    LlamaWidth,
    equal_budget_d_ff,
    llama_d_ff,
    match_budget,
)

__all__ = [
    "FFN_MATRICES",
    "BudgetMatch",
    "Count",
    "DecoderConfig",
    "LlamaWidth",
    "Tally",
    "TokenFlops",
    "attention_parameters",
    "count",
    "count_tensors",
    "equal_budget_d_ff",
    "ffn_parameters",
    "flops_per_token",
    "formulas",
    "kv_cache_bytes",
    "llama_d_ff",
    "match_budget",
    "part_of",
]
