"""One head's attention weights, the cache used rightly or in the way of a fault, beside the whole sequence at once."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.cache_fault_runs import Glance, glance_at, steps_of
from transformer_parts.maths.cache_faults import FAULTS, FaultyCache

__all__ = ["head_run", "head_whole", "misplaced"]


def head_run(
    query: ArrayLike,
    key: ArrayLike,
    prompt: int,
    fault: str = "none",
    *,
    trained_length: int = 1,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Glance, ...]:
    """Fill the cache of one head in the way of a fault, and glance at the newest token of every step.

    Parameters
    ----------
    query, key : (T, K) array_like
        Of every token, not yet turned.
    prompt : int
        Tokens that come at once; the others come one by one.
    fault : str
        A name in `FAULTS`.  Where layers matter the head is of a layer after the first.
    trained_length : int
        L of dynamic scaling; read by its faults alone.
    settings : mapping
        Keywords of `rope.rotate`.

    Returns
    -------
    tuple of Glance
        For the last token of the prompt and each token after it, with one head, H = G = 1.

    Raises
    ------
    ValueError
        If `fault` is unknown or a shape or number does not fit.

    Examples
    --------
    >>> ones = np.ones((5, 2))
    >>> print(np.array2string(head_run(ones, ones, 4, "restart")[-1].weights[0], precision=3))
    [0.368 0.192 0.05  0.022 0.368]
    """
    query, key, prompt = _checked_head(query, key, prompt)
    way = FAULTS[require.one_of("fault", fault, FAULTS)]
    trained_length = require.integer("trained_length", trained_length)
    cache = FaultyCache(way, trained_length=trained_length, layer=1, settings=settings)
    seen = []
    for start, stop in steps_of(prompt, len(query)):
        new = key[None, start:stop]
        turned, keys, _, mask = cache.take(query[None, start:stop], new, new)
        seen.append(glance_at(turned, keys, mask, None))
    return tuple(seen)


def head_whole(
    query: ArrayLike,
    key: ArrayLike,
    prompt: int,
    *,
    trained_length: int | None = None,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Glance, ...]:
    """Return the right answer to `head_run`: every length at once, with no cache.

    Parameters
    ----------
    query, key, prompt, settings
        As for `head_run`.
    trained_length : int, optional
        Let the base follow the length beyond it (dynamic scaling).

    Returns
    -------
    tuple of Glance

    Raises
    ------
    ValueError
        As `head_run` does.

    References
    ----------
    Peng et al., "YaRN", arXiv:2309.00071, §3.3.

    Examples
    --------
    >>> ones = np.ones((5, 2))
    >>> print(np.array2string(head_whole(ones, ones, 4)[-1].weights[0], precision=3))
    [0.053 0.033 0.074 0.288 0.551]
    """
    query, key, prompt = _checked_head(query, key, prompt)
    way = FAULTS["none" if trained_length is None else "base changed, unrotated keys"]
    trained_length = require.integer("trained_length", 1 if trained_length is None else trained_length)
    seen, turned = [], None
    for length in range(prompt, len(query) + 1):
        if turned is None or (way.dynamic and length > trained_length):
            turn = way.turn(length, trained_length, key.shape[-1], settings)
            turned = [rope.rotate(part[None], np.arange(len(key)), **turn) for part in (query, key)]
        mask = np.ones((1, length), dtype=bool)
        seen.append(glance_at(turned[0][:, :length], turned[1][:, :length], mask, None))
    return tuple(seen)


def misplaced(weights: NDArray, right: NDArray) -> NDArray:
    r"""Return the share of attention that goes to other tokens than it should.

    .. math:: \tfrac12 \sum_j |w_j - w^\star_j|

    Parameters
    ----------
    weights, right : (…, S) ndarrays
        Attention weights; each row sums to 1.

    Returns
    -------
    (…) ndarray
        From 0 (the same) to 1 (no token in common).

    Examples
    --------
    >>> float(misplaced(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25])))
    0.25
    """
    return np.abs(weights - right).sum(axis=-1) / 2


def _checked_head(query: ArrayLike, key: ArrayLike, prompt: int) -> tuple[NDArray, NDArray, int]:
    query, key = (require.array(name, part, min_ndim=2) for name, part in (("query", query), ("key", key)))
    require.ndim("query", query, 2)
    require.shape("key", key, query.shape, "as query")
    return query, key, require.integer("prompt", prompt, maximum=len(query))
