"""The pictures of parameter budgets: tallies, widths and costs."""

from transformer_parts.draw.budget.cost import BudgetCostView, Cost
from transformer_parts.draw.budget.tally import LOOKS, ROWS, BudgetTallyView, Look, TwoTallies
from transformer_parts.draw.budget.widths import BudgetWidthsView, Layer, Widths

__all__ = [
    "LOOKS",
    "ROWS",
    "BudgetCostView",
    "BudgetTallyView",
    "BudgetWidthsView",
    "Cost",
    "Layer",
    "Look",
    "TwoTallies",
    "Widths",
]
