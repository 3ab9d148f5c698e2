"""Explorers of context extension: frequencies, scores, and positions in 16 bits."""

from transformer_parts.explore.context_extension.frequencies import ExtensionFrequencies
from transformer_parts.explore.context_extension.methods import FACTORS, METHODS, lengths
from transformer_parts.explore.context_extension.precision import PositionPrecision
from transformer_parts.explore.context_extension.scores import ExtensionScores

__all__ = ["FACTORS", "METHODS", "ExtensionFrequencies", "ExtensionScores", "PositionPrecision", "lengths"]
