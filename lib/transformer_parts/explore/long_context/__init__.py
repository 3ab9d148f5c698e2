"""Explorers of long context: loss by position, retrieval, costs, and a live run."""

from transformer_parts.explore.long_context.costs import LongContextCosts
from transformer_parts.explore.long_context.live import LiveExtension
from transformer_parts.explore.long_context.loss import NAMES, LongContextLoss
from transformer_parts.explore.long_context.retrieval import KINDS, LongContextRetrieval

__all__ = ["KINDS", "NAMES", "LiveExtension", "LongContextCosts", "LongContextLoss", "LongContextRetrieval"]
