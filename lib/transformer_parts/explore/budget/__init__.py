"""Explorers of parameter budgets: tallies, widths and costs."""

from transformer_parts.explore.budget.cost import BudgetCost
from transformer_parts.explore.budget.decoders import CUSTOM, FILE, MODELS, NOTES
from transformer_parts.explore.budget.tally import BudgetTally, divisors, offer
from transformer_parts.explore.budget.widths import BudgetWidths

__all__ = ["CUSTOM", "FILE", "MODELS", "NOTES", "BudgetCost", "BudgetTally", "BudgetWidths", "divisors", "offer"]
