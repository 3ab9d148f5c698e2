"""What the gates of a layer do over a text: how many are negative, how many above 1, and how they are spread."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require


class GateCounts(NamedTuple):
    """Fractions and extremes of gates.

    Attributes
    ----------
    negative, above_one : float
        Which part of the gates is below 0, and above 1: outside what a probability can be.
    lowest, highest : float
        The extremes.
    share_above_one : float
        Which part of the sum of all squares is due to the gates above 1; NaN where every gate is 0.
    """

    negative: float
    above_one: float
    lowest: float
    highest: float
    share_above_one: float


def count_gates(gates: ArrayLike) -> GateCounts:
    """Count gates that are no probabilities.

    Parameters
    ----------
    gates : array_like, shape (...)
        Gates after the activation.

    Returns
    -------
    GateCounts
        Over all entries.

    Raises
    ------
    ValueError
        If an entry is not finite.

    Examples
    --------
    >>> count_gates([-0.5, 0.5, 1.0, 2.0])
    GateCounts(negative=0.25, above_one=0.25, lowest=-0.5, highest=2.0, share_above_one=0.7272727272727273)
    """
    gates = require.array("gates", gates).astype(np.float64, copy=False)
    sizes = gates / max(np.abs(gates).max(), np.finfo(np.float64).tiny)  # squares of which cannot overflow
    squares, above = np.vdot(sizes, sizes), sizes[gates > 1]
    return GateCounts(
        negative=float((gates < 0).mean()),
        above_one=float((gates > 1).mean()),
        lowest=float(gates.min()),
        highest=float(gates.max()),
        share_above_one=float(np.vdot(above, above) / squares) if squares > 0 else float("nan"),
    )


def fractions_in_bins(values: ArrayLike, edges: ArrayLike) -> NDArray[np.float64]:
    """Return which part of all values lies in each bin; the outermost bins hold what lies beyond them too.

    Parameters
    ----------
    values : array_like, shape (...)
        Finite numbers.
    edges : array_like, shape (N + 1,)
        Edges of the bins, rising.  A bin holds its left edge and not its right one.

    Returns
    -------
    ndarray, shape (N,)
        Float64; their sum is 1.

    Raises
    ------
    ValueError
        If an entry is not finite, `edges` has not one axis of at least two entries, or it does not rise.

    Examples
    --------
    >>> fractions_in_bins([-9.0, 0.0, 0.5, 1.0, 7.0], [0.0, 1.0, 2.0]).tolist()
    [0.6, 0.4]
    """
    values, edges = require.array("values", values), require.array("edges", edges)
    require.ndim("edges", edges, 1)
    if len(edges) < 2 or (np.diff(edges) <= 0).any():
        raise require.refusal("edges", f"{len(edges)} entries, not all rising", "at least two rising entries")
    bins = np.searchsorted(edges[1:-1], values.reshape(-1), side="right")
    return np.bincount(bins, minlength=len(edges) - 1) / values.size
