"""Explorers of a real model: its residual stream, its heads, and what each part is worth."""

from transformer_parts.explore.real_model.heads import ENTROPY, OF_QUERY, RealModelHeads
from transformer_parts.explore.real_model.parts import RealModelParts
from transformer_parts.explore.real_model.reading import Reading
from transformer_parts.explore.real_model.stream import RealModelStream

__all__ = ["ENTROPY", "OF_QUERY", "Reading", "RealModelHeads", "RealModelParts", "RealModelStream"]
