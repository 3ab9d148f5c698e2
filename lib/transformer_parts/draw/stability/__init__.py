"""The pictures of stability: the residual stream by depth, growing logits, training runs."""

from transformer_parts.draw.stability.logits import NORMED, PLAIN, Growth, LogitGrowthView
from transformer_parts.draw.stability.runs import LEFT, TAKEN, Curve, NamedRunsView, Runs, RunsView
from transformer_parts.draw.stability.stream import SCALED, UNSCALED, Depth, StreamDepthView

__all__ = [
    "LEFT",
    "NORMED",
    "PLAIN",
    "SCALED",
    "TAKEN",
    "UNSCALED",
    "Curve",
    "Depth",
    "Growth",
    "LogitGrowthView",
    "NamedRunsView",
    "Runs",
    "RunsView",
    "StreamDepthView",
]
