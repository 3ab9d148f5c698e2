"""Explorers of a decoder layer: its tensors step by step, causality, training."""

from transformer_parts.explore.decoder_layer.causality import DecoderCausality
from transformer_parts.explore.decoder_layer.training import VARIANTS, DecoderTraining
from transformer_parts.explore.decoder_layer.walk import NAMES, STD, DecoderWalk

__all__ = ["NAMES", "STD", "VARIANTS", "DecoderCausality", "DecoderTraining", "DecoderWalk"]
