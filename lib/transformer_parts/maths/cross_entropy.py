"""The next-token loss: cross-entropy of logits, averaged over the targets that count."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = ["NOT_COUNTED", "cross_entropy", "cross_entropy_backward", "log_softmax"]

NOT_COUNTED = -1
"""A target of this value is left out of the mean, and no gradient comes from its position."""


def cross_entropy(logits: ArrayLike, targets: ArrayLike) -> float:
    r"""Return the mean negative log-probability of the targets, in nats.

    .. math:: \mathcal L = -\frac{1}{n} \sum_{t:\,y_t \ge 0} \log \operatorname{softmax}(z_t)_{y_t}

    Parameters
    ----------
    logits : array_like, shape (..., V); z, finite
    targets : array_like of int, shape (...); y, from 0 to V − 1; −1 where a position does not count, and one must

    Returns
    -------
    float; ln V where all logits of every counted position are equal

    Source: Goodfellow et al., "Deep Learning", 2016, §6.2.2.3 (the loss and its gradient, softmax minus one-hot).

    Examples
    --------
    >>> print(f"{cross_entropy([[0.0, 0.0], [3.0, 0.0]], [1, -1]):.6f}")
    0.693147
    """
    logits = require.array("logits", logits)
    targets, counted = checked_targets(targets, logits)
    rows = log_softmax(logits[counted])
    loss = 0.0 - float(np.mean(rows[np.arange(len(rows)), targets[counted]], dtype=np.float64))  # 0, never −0
    if not math.isfinite(loss):
        raise require.refusal("logits", f"entries up to {np.abs(logits).max():.3g}", f"a loss within {rows.dtype.name}")
    return loss


def cross_entropy_backward(logits: ArrayLike, targets: ArrayLike) -> NDArray:
    r"""Return the gradient of `cross_entropy`'s logits: softmax minus one-hot, over the number of targets.

    .. math:: \bar z_t = \tfrac1n \bigl(\operatorname{softmax}(z_t) - e_{y_t}\bigr)

    Parameters
    ----------
    logits : array_like, shape (..., V); z, finite
    targets : array_like of int, shape (...); y, from 0 to V − 1; −1 where a position does not count: its gradient is 0

    Returns
    -------
    ndarray, shape (..., V)

    Source: Goodfellow et al., "Deep Learning", 2016, §6.2.2.3.

    Examples
    --------
    >>> cross_entropy_backward([[0.0, 0.0], [3.0, 0.0]], [1, -1]).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    return loss_and_gradient(logits, targets)[1]


def loss_and_gradient(logits: ArrayLike, targets: ArrayLike) -> tuple[float, NDArray]:
    """Return `cross_entropy` and `cross_entropy_backward` of one softmax; the loss may be infinite."""
    (logits,) = require.in_one_dtype(logits=logits)
    require.all_numbers("logits", logits)
    targets, counted = checked_targets(targets, logits)
    rows = log_softmax(logits[counted])
    picked = np.arange(len(rows)), targets[counted]
    loss = 0.0 - float(np.mean(rows[picked], dtype=np.float64))
    np.exp(rows, out=rows)
    rows[picked] -= 1
    rows /= len(rows)
    out = np.zeros(logits.shape, logits.dtype)
    out[counted] = rows
    return loss, out


def log_softmax(logits: ArrayLike) -> NDArray:
    """Return the logarithms of the softmax over the last axis.

    Parameters
    ----------
    logits : array_like, shape (..., V); finite numbers; 16-bit ones are computed in float32

    Returns
    -------
    ndarray, shape (..., V)
        At most 0; −1000 is as good a value as −1, which the logarithm of a softmax would have as −inf.

    Examples
    --------
    >>> log_softmax(np.array([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    logits = require.array("logits", logits)
    logits = logits.astype(require.compute_dtype(logits.dtype), copy=False)
    with np.errstate(over="ignore"):  # further apart than the dtype reaches: −inf
        shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def checked_targets(targets: ArrayLike, logits: NDArray) -> tuple[NDArray, NDArray]:
    """Return the targets (…) of logits (…, V), from 0 to V − 1 or −1, and which of them count; one must."""
    targets = require.indices("targets", targets, logits.shape[-1], minimum=NOT_COUNTED)
    require.shape("targets", targets, logits.shape[:-1], "that of the logits without their last axis")
    counted = targets != NOT_COUNTED
    if not counted.any():
        raise require.refusal("targets", "-1 everywhere", "one that counts at least")
    return targets, counted
