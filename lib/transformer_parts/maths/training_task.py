"""The task that small decoders are trained on here: repeat a random segment.

A sequence is one segment of random tokens, over and over.  The first time round nothing can be foretold; from then
on everything can, by looking back one segment and copying what followed.  It takes two layers of attention (find
the token before, then what came after it: an induction head) and nothing else, so that it is learned in seconds.
"""

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.cross_entropy import NOT_COUNTED

__all__ = ["repeated_segments"]


def repeated_segments(
    rng: np.random.Generator,
    *,
    batch_size: int,
    length: int,
    vocab_size: int,
    shortest: int | None = None,
    longest: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sequences that each repeat a random segment, and what should be foretold at each position.

    Parameters
    ----------
    rng : numpy Generator
        Draws segments and their lengths, each evenly.
    batch_size : int
        B.
    length : int
        L, tokens that are read; at least 2.
    vocab_size : int
        V.
    shortest, longest : int, optional
        Lengths of a segment, inclusive; L/4 and L/2 if not given (at least 1).

    Returns
    -------
    tokens : ndarray of int, shape (B, L)
    targets : ndarray of int, shape (B, L)
        The next token; −1 where it is of the first segment and cannot be known.

    Raises
    ------
    ValueError
        If a number is out of its range.

    References
    ----------
    Olsson et al., "In-context Learning and Induction Heads", arXiv:2209.11895, "Model analysis table" and the
    definition of induction heads on repeated random tokens.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tokens, targets = repeated_segments(rng, batch_size=1, length=8, vocab_size=10, shortest=3, longest=3)
    >>> tokens.tolist(), targets.tolist()
    ([[8, 6, 5, 8, 6, 5, 8, 6]], [[-1, -1, 8, 6, 5, 8, 6, 5]])
    """
    batch_size, length = require.integer("batch_size", batch_size), require.integer("length", length, minimum=2)
    vocab_size = require.integer("vocab_size", vocab_size)
    shortest = max(1, length // 4) if shortest is None else shortest
    longest = max(1, length // 2) if longest is None else longest
    longest = require.integer("longest", longest, maximum=length)
    shortest = require.integer("shortest", shortest, maximum=longest)
    sizes = rng.integers(shortest, longest + 1, batch_size)
    segments = rng.integers(0, vocab_size, (batch_size, longest))
    at = np.arange(length + 1)
    tokens = np.take_along_axis(segments, at % sizes[:, None], axis=1)
    targets = np.where(at[1:] >= sizes[:, None], tokens[:, 1:], NOT_COUNTED)
    return tokens[:, :-1], targets
