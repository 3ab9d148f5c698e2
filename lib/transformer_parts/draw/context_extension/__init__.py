"""The pictures of context extension: frequencies, scores, and positions in 16 bits."""

from transformer_parts.draw.context_extension.frequencies import ExtensionFrequenciesView, Frequencies, pair_limits
from transformer_parts.draw.context_extension.precision import PositionPrecisionView, Precision
from transformer_parts.draw.context_extension.scores import FEW, Attention, ExtensionScoresView

__all__ = [
    "FEW",
    "Attention",
    "ExtensionFrequenciesView",
    "ExtensionScoresView",
    "Frequencies",
    "PositionPrecisionView",
    "Precision",
    "pair_limits",
]
