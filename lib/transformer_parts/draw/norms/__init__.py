"""The pictures of LayerNorm and RMSNorm: bars, the sphere, residual vectors."""

from transformer_parts.draw.norms.bars import DIFFERENCE, LAYER_NORM, RMS_NORM, NormBarsView, Pair
from transformer_parts.draw.norms.residual import Channels, NormResidualView
from transformer_parts.draw.norms.sphere import NormSphereView, Space, camera, circle, front_and_back

__all__ = [
    "DIFFERENCE",
    "LAYER_NORM",
    "RMS_NORM",
    "Channels",
    "NormBarsView",
    "NormResidualView",
    "NormSphereView",
    "Pair",
    "Space",
    "camera",
    "circle",
    "front_and_back",
]
