"""The pictures of parameter budgets: tallies, widths and costs."""

from transformer_parts.draw.budget.cost import BudgetCostView, Cost
from transformer_parts.draw.budget.tally import LOOKS, NAMES, BudgetTallyView, Look, TwoTallies
from transformer_parts.draw.budget.widths import BudgetWidthsView, Layer, Widths

__all__ = [
    "LOOKS",
    "NAMES",
    "BudgetCostView",
    "BudgetTallyView",
    "BudgetWidthsView",
    "Cost",
    "Layer",
    "Look",
    "TwoTallies",
    "Widths",
]
