"""The explorers there are: the sweep of the tests, the stills and the benchmarks go through this list."""

from transformer_parts.explore.budget import BudgetTally
from transformer_parts.explore.budget_cost import BudgetCost
from transformer_parts.explore.budget_d_ff import BudgetWidths
from transformer_parts.explore.norms import NormBars, NormResidual, NormSphere
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.rope import RopeClocks, RopePlane

PANELS: tuple[type[Panel], ...] = (
    RopePlane,
    RopeClocks,
    NormBars,
    NormSphere,
    NormResidual,
    BudgetTally,
    BudgetWidths,
    BudgetCost,
)
