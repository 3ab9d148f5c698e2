"""The explorers there are: the sweep of the tests, the stills and the benchmarks go through these lists."""

from transformer_parts.explore.activations import ActivationCurves, DeadUnits
from transformer_parts.explore.budget import BudgetCost, BudgetTally, BudgetWidths
from transformer_parts.explore.cache import CacheHeads, CacheSize, CacheSteps
from transformer_parts.explore.context_extension import ExtensionFrequencies, ExtensionScores, PositionPrecision
from transformer_parts.explore.decoder_layer import DecoderCausality, DecoderTraining, DecoderWalk
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.long_context import (
    LiveExtension,
    LongContextCosts,
    LongContextLoss,
    LongContextRetrieval,
)
from transformer_parts.explore.norm_placement import PlacementDepth, PlacementLayers, PlacementRuns
from transformer_parts.explore.norms import NormBars, NormResidual, NormSphere
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.positions import PositionTable, ShiftMatrix
from transformer_parts.explore.real_model import RealModelHeads, RealModelParts, RealModelStream
from transformer_parts.explore.relative_bias import AlibiSlopes, BiasAndWeights, T5Buckets
from transformer_parts.explore.rope import RopeClocks, RopePlane
from transformer_parts.explore.rope_layout import RopeLayoutHeads, RopeLayouts
from transformer_parts.explore.rope_scores import RopeHeads, RopeScores, RopeSpectrum
from transformer_parts.explore.stability import LiveTraining, LogitGrowth, RecordedRuns, StreamDepth
from transformer_parts.explore.swiglu import GatedChannels, PositionChanges, RealGates
from transformer_parts.explore.why_position import Reordering

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
