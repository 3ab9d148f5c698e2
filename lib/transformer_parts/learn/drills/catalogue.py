"""The drills there are, in the order of the page."""

from transformer_parts.learn.drills.budget import LAYER, MODEL, WIDTH
from transformer_parts.learn.drills.context_extension import NTK, POSITION_INTERPOLATION, YARN
from transformer_parts.learn.drills.cost import CACHE, FLOPS
from transformer_parts.learn.drills.drill import Drill
from transformer_parts.learn.drills.norms import GRADIENT, LAYER_NORM, RMS_NORM, SWIGLU
from transformer_parts.learn.drills.rope import ROTATE, SCORE, WAVELENGTH

DRILLS: tuple[Drill, ...] = (
    ROTATE,
    SCORE,
    WAVELENGTH,
    POSITION_INTERPOLATION,
    NTK,
    YARN,
    RMS_NORM,
    LAYER_NORM,
    GRADIENT,
    SWIGLU,
    WIDTH,
    LAYER,
    MODEL,
    CACHE,
    FLOPS,
)
