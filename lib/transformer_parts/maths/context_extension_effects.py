"""What an extension does: which angles it reaches that training has not seen, and how sharp attention stays.

References
----------
B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", arXiv 2309.00071 (v2).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

# Angles that agree to this relative difference count as equal: the slowest pair of NTK-aware reaches its trained
# angle exactly, but for rounding.
_ROUNDING = 1e-9


class AngleCoverage(NamedTuple):
    """Angles seen in training and angles reached, pair by pair.

    Attributes
    ----------
    ratio : ndarray, shape (P,)
        θ'/θ: position m stands where m times this stood in training.
    seen, reached : ndarray, shape (P,)
        Radians turned over the trained length and over the present one.
    excess : ndarray, shape (P,)
        Angle reached over angle seen.
    complete : ndarray of bool, shape (P,)
        Pairs that made a whole turn in training: no angle is new to them.
    beyond : ndarray of bool, shape (P,)
        Pairs that made none, and now reach an angle that they had not seen.
    """

    ratio: NDArray[np.float64]
    seen: NDArray[np.float64]
    reached: NDArray[np.float64]
    excess: NDArray[np.float64]
    complete: NDArray[np.bool_]
    beyond: NDArray[np.bool_]


def angle_coverage(trained: ArrayLike, extended: ArrayLike, trained_length: int, length: int) -> AngleCoverage:
    r"""Compare the angles of an extended model with those its training has seen.

    .. math:: \text{seen}_i = L\theta_i, \qquad \text{reached}_i = l\theta'_i

    A pair with :math:`L\theta_i \ge 2\pi`, that is of wavelength up to L, has seen every angle.

    Parameters
    ----------
    trained, extended : array_like, shape (P,)
        θ and θ', radians per position, above 0.
    trained_length, length : int
        L, and l, of the present input.

    Returns
    -------
    AngleCoverage
        By pair.

    Raises
    ------
    ValueError
        If a shape does not fit or an argument is out of its range.

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.2 (the pairs of wavelength above L).

    Examples
    --------
    >>> coverage = angle_coverage([1.0, 0.01], [1.0, 0.01], 64, 128)
    >>> coverage.reached.tolist(), coverage.complete.tolist(), coverage.beyond.tolist()
    ([128.0, 1.28], [True, False], [False, True])
    """
    trained = require.array("trained", trained).astype(np.float64)
    require.ndim("trained", trained, 1)
    extended = require.array("extended", extended).astype(np.float64)
    require.shape("extended", extended, trained.shape, "as trained has")
    for name, frequencies in (("trained", trained), ("extended", extended)):
        require.number(name, float(frequencies.min()), above=0)
    seen = require.integer("trained_length", trained_length) * trained
    reached = require.integer("length", length) * extended
    excess, complete = reached / seen, seen >= 2 * np.pi
    beyond = ~complete & (excess > 1 + _ROUNDING)
    return AngleCoverage(extended / trained, seen, reached, excess, complete, beyond)


def entropy_by_length(scores: ArrayLike) -> NDArray[np.float64]:
    r"""Return the entropy of the attention weights over the first n scores, for every n.

    .. math:: H_n = \ln Z_n - \frac{1}{Z_n} \sum_{j \le n} s_j e^{s_j}, \qquad Z_n = \sum_{j \le n} e^{s_j}

    With scores by offset this is a query's entropy over a context that grows away from it; one pass gives all n.

    Parameters
    ----------
    scores : array_like, shape (N,)
        Logits.

    Returns
    -------
    ndarray, shape (N,)
        In nats, from 0 at n = 1 to at most ln N.

    Raises
    ------
    ValueError
        If an entry is not finite, or the scores differ by more than 600 (whose exponentials do not fit together
        in float64).

    Examples
    --------
    >>> [f"{h:.4f}" for h in entropy_by_length([1.0, 1.0, 1.0])]  # 0, ln 2, ln 3
    ['0.0000', '0.6931', '1.0986']
    """
    scores = require.array("scores", scores).astype(np.float64)
    require.ndim("scores", scores, 1)
    shifted = scores - scores.max()
    if shifted.min() < -600:
        raise require.refusal("scores", f"scores that differ by {-shifted.min():g}", "differences up to 600")
    exponentials = np.exp(shifted)
    total = np.cumsum(exponentials)
    return np.maximum(np.log(total) - np.cumsum(shifted * exponentials) / total, 0.0)
