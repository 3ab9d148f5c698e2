"""The pictures of a decoder layer: its tensors step by step, causality, training."""

from transformer_parts.draw.decoder_layer.causality import CHANGED, LEAKED, DecoderCausalityView, LogMap, Moved
from transformer_parts.draw.decoder_layer.diagram import SYMBOLS, TILE, diagram, formula
from transformer_parts.draw.decoder_layer.training import CHOSEN, SEEN, USUAL, DecoderTrainingView, Losses
from transformer_parts.draw.decoder_layer.walk import NOW, STREAM, DecoderWalkView, Walked

__all__ = [
    "CHANGED",
    "CHOSEN",
    "LEAKED",
    "NOW",
    "SEEN",
    "STREAM",
    "SYMBOLS",
    "TILE",
    "USUAL",
    "DecoderCausalityView",
    "DecoderTrainingView",
    "DecoderWalkView",
    "LogMap",
    "Losses",
    "Moved",
    "Walked",
    "diagram",
    "formula",
]
