"""Functions of single entries: what the activations and their derivatives share."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = []

BLOCK_ENTRIES = 16 * 1024  # at a time, so that the temporaries of a formula stay in a core's L2 cache

MOST_BETA = 1000.0
"""The steepest Swish: ReLU to within 0.0003, and βx still far from the limits of float32 where σ(βx) is not 0 or 1."""


_erfc = np.frompyfunc(math.erfc, 1, 1)


def normal_distribution(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Φ(t), the distribution function of the standard normal, by the standard library entry by entry."""
    return _erfc(-t / math.sqrt(2)).astype(np.float64) / 2


def blockwise(function: Callable[[NDArray], NDArray], x: ArrayLike) -> NDArray:
    """Apply an elementwise `function` in the dtype of the computation and round its result to the dtype of `x`."""
    x = require.array("x", x, min_ndim=0)
    y = np.empty(x.shape, x.dtype)
    flat, out, dtype = x.reshape(-1), y.reshape(-1), require.compute_dtype(x.dtype)
    for start in range(0, x.size, BLOCK_ENTRIES):
        block = slice(start, start + BLOCK_ENTRIES)
        out[block] = function(flat[block].astype(dtype, copy=False))
    return y


def logistic(t: NDArray) -> NDArray:
    """Return 1/(1 + e^−t) without overflow and with its relative precision wherever it is nearly zero."""
    if t.min() > -80:
        return 1 / (1 + np.exp(-t))
    return np.exp(np.minimum(t, 0)) / (1 + np.exp(-np.abs(t)))  # half as fast; nothing here can overflow


def steepened(t: NDArray, beta: float) -> NDArray:
    """Return βt, cut where its sigmoid is 0 or 1 in any dtype anyway, so that it cannot overflow."""
    return np.clip(t, -2e4, 2e4) * beta if beta > 1 else t * beta
