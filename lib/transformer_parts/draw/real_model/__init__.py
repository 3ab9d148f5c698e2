"""The pictures of a real model that reads a passage: the stream, the heads, and what the parts are for."""

from transformer_parts.draw.real_model.heads import Head, RealModelHeadsView
from transformer_parts.draw.real_model.parts import Parts, RealModelPartsView
from transformer_parts.draw.real_model.stream import LEAST, RealModelStreamView, Stream
from transformer_parts.draw.real_model.words import passage_places

__all__ = [
    "LEAST",
    "Head",
    "Parts",
    "RealModelHeadsView",
    "RealModelPartsView",
    "RealModelStreamView",
    "Stream",
    "passage_places",
]
