"""The explorers there are: the sweep of the tests, the stills and the benchmarks go through these lists."""

from transformer_parts.explore.activations import ActivationCurves, DeadUnits
from transformer_parts.explore.budget import BudgetTally
from transformer_parts.explore.budget_cost import BudgetCost
from transformer_parts.explore.budget_d_ff import BudgetWidths
from transformer_parts.explore.cache import CacheSteps
from transformer_parts.explore.cache_bytes import CacheSize
from transformer_parts.explore.cache_heads import CacheHeads
from transformer_parts.explore.context_extension import ExtensionFrequencies
from transformer_parts.explore.context_extension_scores import ExtensionScores
from transformer_parts.explore.decoder import DecoderWalk
from transformer_parts.explore.decoder_causality import DecoderCausality
from transformer_parts.explore.decoder_training import DecoderTraining
from transformer_parts.explore.feedforward import GatedChannels, PositionChanges, RealGates
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.long_context import LongContextLoss
from transformer_parts.explore.long_context_cost import LongContextCosts
from transformer_parts.explore.long_context_live import LiveExtension
from transformer_parts.explore.long_context_retrieval import LongContextRetrieval
from transformer_parts.explore.norms import NormBars, NormResidual, NormSphere
from transformer_parts.explore.order import Reordering
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.position_precision import PositionPrecision
from transformer_parts.explore.positions import PositionTable
from transformer_parts.explore.positions_shift import ShiftMatrix
from transformer_parts.explore.real_model import RealModelStream
from transformer_parts.explore.real_model_heads import RealModelHeads
from transformer_parts.explore.real_model_parts import RealModelParts
from transformer_parts.explore.relative_bias import T5Buckets
from transformer_parts.explore.relative_bias_slopes import AlibiSlopes
from transformer_parts.explore.relative_bias_weights import BiasAndWeights
from transformer_parts.explore.residual import PlacementDepth, PlacementLayers, PlacementRuns
from transformer_parts.explore.rope import RopeClocks, RopePlane
from transformer_parts.explore.rope_layout import RopeLayouts
from transformer_parts.explore.rope_layout_heads import RopeLayoutHeads
from transformer_parts.explore.rope_scores import RopeScores
from transformer_parts.explore.rope_scores_heads import RopeHeads
from transformer_parts.explore.rope_scores_spectrum import RopeSpectrum
from transformer_parts.explore.stability import StreamDepth
from transformer_parts.explore.stability_live import LiveTraining
from transformer_parts.explore.stability_logits import LogitGrowth
from transformer_parts.explore.stability_runs import RecordedRuns

PANELS: tuple[type[Panel], ...] = (
    Reordering,
    PositionTable,
    ShiftMatrix,
    T5Buckets,
    AlibiSlopes,
    BiasAndWeights,
    RopePlane,
    RopeClocks,
    RopeScores,
    RopeSpectrum,
    RopeHeads,
    RopeLayouts,
    RopeLayoutHeads,
    CacheSteps,
    CacheHeads,
    CacheSize,
    ExtensionFrequencies,
    ExtensionScores,
    PositionPrecision,
    NormBars,
    NormSphere,
    NormResidual,
    PlacementLayers,
    PlacementDepth,
    PlacementRuns,
    ActivationCurves,
    DeadUnits,
    GatedChannels,
    RealGates,
    PositionChanges,
    BudgetTally,
    BudgetWidths,
    BudgetCost,
    DecoderWalk,
    DecoderCausality,
    DecoderTraining,
    StreamDepth,
    LogitGrowth,
    RecordedRuns,
    LongContextLoss,
    LongContextRetrieval,
    LongContextCosts,
    RealModelStream,
    RealModelHeads,
    RealModelParts,
)

#: What the reader starts; not driven by the sweep.
LIVE_RUNS: tuple[type[LiveRun], ...] = (LiveTraining, LiveExtension)
