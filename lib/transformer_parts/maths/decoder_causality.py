"""Whether a decoder sees the future: one token is changed, and the outputs are held against what they were."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.decoder_walk import walk
from transformer_parts.maths.stack_config import StackConfig

__all__ = ["leak", "spread", "streams"]


def streams(
    layers: Sequence[Mapping[str, NDArray]], x: ArrayLike, config: StackConfig, *, sees: str = "causal"
) -> NDArray:
    """Return the residual stream before the first layer and after each.

    Parameters
    ----------
    layers : sequence of mappings of str to ndarray
        The weights of each layer, as `decoder_walk.walk` takes them.
    x : (…, L, D) array_like
    config : StackConfig
        The kinds of parts; how many layers there are is decided by `layers`.
    sees : str
        Which keys a token may attend to, one of `decoder_walk.VISIBLE`.

    Returns
    -------
    (layers + 1, …, L, D) ndarray

    Examples
    --------
    >>> streams([], np.ones((3, 8)), StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)).shape
    (1, 3, 8)
    """
    found = [require.array("x", x, min_ndim=2)]
    for weights in layers:
        found.append(walk(weights, found[-1], config, sees=sees)[-1].value)
    return np.stack(found)


def spread(
    layers: Sequence[Mapping[str, NDArray]],
    x: ArrayLike,
    token: int,
    change: ArrayLike,
    config: StackConfig,
    *,
    sees: str = "causal",
) -> NDArray:
    r"""Return how far the residual stream moves, before the first layer and after each, when one token is changed.

    .. math:: \bigl|\, Y^{(n)}(X + e_t c^\top) - Y^{(n)}(X) \,\bigr|

    Parameters
    ----------
    layers, config, sees
        As for `streams`.
    x : (L, D) array_like
    token : int
        t, the token that is changed.
    change : (D,) array_like
        c, what is added to it.

    Returns
    -------
    (layers + 1, L, D) ndarray

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> from transformer_parts.maths.decoder_walk import random_layer
    >>> moved = spread([random_layer(config)], np.eye(4, 8), 2, np.ones(8), config)
    >>> (moved.max(axis=-1) > 0).astype(int)
    array([[0, 0, 1, 0],
           [0, 0, 1, 1]])
    """
    x = require.array("x", x, min_ndim=2)
    require.ndim("x", x, 2)
    token = require.integer("token", token, minimum=0, maximum=len(x) - 1)
    change = require.array("change", change)
    require.shape("change", change, (x.shape[1],), "the last axis of x")
    other = x.copy()
    other[token] += change
    before, after = np.moveaxis(streams(layers, np.stack([x, other]), config, sees=sees), 1, 0)
    return np.abs(after - before)


def leak(moved: ArrayLike, token: int) -> float:
    """Return the largest change of an output before the changed token: 0 where nothing sees the future.

    Parameters
    ----------
    moved : (…, L, D) array_like
        As `spread` returns it.
    token : int
        The token that was changed.

    Returns
    -------
    float
        0 too for token 0, which has none before it.

    Examples
    --------
    >>> leak([[0.0, 0.5], [2.0, 1.0]], 1)
    0.5
    """
    moved = require.array("moved", moved, min_ndim=2)
    token = require.integer("token", token, minimum=0, maximum=moved.shape[-2] - 1)
    return float(moved[..., :token, :].max(initial=0.0))
