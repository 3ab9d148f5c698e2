"""Explorers of RoPE scores: the curve against the offset, real heads, the spectrum."""

from transformer_parts.explore.rope_scores.curve import COLUMNS, RopeScores
from transformer_parts.explore.rope_scores.heads import MEAN, RopeHeads
from transformer_parts.explore.rope_scores.spectrum import RopeSpectrum

__all__ = ["COLUMNS", "MEAN", "RopeHeads", "RopeScores", "RopeSpectrum"]
