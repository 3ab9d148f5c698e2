"""The explorers there are: the sweep of the tests, the stills and the benchmarks go through this list."""

from transformer_parts.explore.panel import Panel
from transformer_parts.explore.rope import RopeClocks, RopePlane

PANELS: tuple[type[Panel], ...] = (RopePlane, RopeClocks)
