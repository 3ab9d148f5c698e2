"""A decoder: its config and weights, one layer, the whole stack with its loss and gradients, and who sees whom."""

from transformer_parts.maths.decoder.causality import VISIBLE, leak, spread, streams, visible, walk
from transformer_parts.maths.decoder.config import (
    FFN_KINDS,
    PLACEMENTS,
    RESIDUAL_PROJECTIONS,
    StackConfig,
    layer_shapes,
    layer_weights,
    parameter_counts,
    part_of,
    random_layer,
    shapes,
)
from transformer_parts.maths.decoder.layer import DecoderLayer, Layer
from transformer_parts.maths.decoder.stack import backward, forward, layer_numbers, loss, loss_and_gradients
from transformer_parts.maths.decoder.steps import Step

__all__ = [
    "FFN_KINDS",
    "PLACEMENTS",
    "RESIDUAL_PROJECTIONS",
    "VISIBLE",
    "DecoderLayer",
    "Layer",
    "StackConfig",
    "Step",
    "backward",
    "forward",
    "layer_numbers",
    "layer_shapes",
    "layer_weights",
    "leak",
    "loss",
    "loss_and_gradients",
    "parameter_counts",
    "part_of",
    "random_layer",
    "shapes",
    "spread",
    "streams",
    "visible",
    "walk",
]
