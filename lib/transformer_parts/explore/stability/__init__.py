"""Explorers of stability: the residual stream by depth, growing logits, training runs."""

from transformer_parts.explore.stability.live import LiveTraining
from transformer_parts.explore.stability.logits import LogitGrowth
from transformer_parts.explore.stability.runs import MEASURES, QUANTITIES, RecordedRuns
from transformer_parts.explore.stability.stream import LIKE_GPT2, StreamDepth

__all__ = ["LIKE_GPT2", "MEASURES", "QUANTITIES", "LiveTraining", "LogitGrowth", "RecordedRuns", "StreamDepth"]
