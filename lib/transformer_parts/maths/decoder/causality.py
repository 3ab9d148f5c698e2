"""Who sees whom: a layer walked through under any mask, and what moves when one token is changed."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.decoder.config import StackConfig, layer_shapes
from transformer_parts.maths.decoder.layer import Layer
from transformer_parts.maths.decoder.steps import Step, recorder

__all__ = ["VISIBLE", "leak", "spread", "streams", "visible", "walk"]

#: Which keys a token may attend to: the causal mask, then the mistakes: no mask, one diagonal too far, transposed.
VISIBLE = ("causal", "everything", "one ahead", "wrong way")


def visible(sees: str, L: int) -> NDArray[np.bool_]:
    """Return which of L keys each of L queries may attend to: True = may.

    Parameters
    ----------
    sees : str; one of `VISIBLE`
    L : int; how many tokens

    Returns
    -------
    (L, L) ndarray of bool

    Examples
    --------
    >>> visible("one ahead", 3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1],
           [1, 1, 1]])
    """
    require.one_of("sees", sees, VISIBLE)
    L = require.integer("L", L)
    require.sizes(L=L, S=L)
    if sees == "wrong way":
        return np.tri(L, dtype=bool).T
    return np.tri(L, k={"causal": 0, "one ahead": 1, "everything": L}[sees], dtype=bool)


@require.door
def walk(weights: Mapping[str, NDArray], x: ArrayLike, config: StackConfig, *, sees: str = "causal") -> list[Step]:
    """Run one `Layer` and return every tensor in the order of its computation.

    Parameters
    ----------
    weights : mapping of str to ndarray; names and shapes as `layer_shapes` has them
    x : (…, L, D) array_like; the residual stream; positions are 0 … L−1
    config : StackConfig; `placement` "pre" or "post", no `qk_norm`
    sees : str; one of `VISIBLE`; the config's `causal` isn't read

    Returns
    -------
    list of Step
        Pre, gated, with RoPE: x, norm1, q, k, v, q_rotated, k_rotated, scores, weights, mixed, attention, U, norm2,
        gate (activated), up, product, ffn, Y.  Without RoPE the rotated ones are missing; a plain feed-forward layer
        has one hidden tensor in place of gate, up and product; post has sum1 before U and sum2 before Y instead of
        norm1 and norm2.

    Source: as of `Layer`; SwiGLU: Shazeer, arXiv:2002.05202, §2.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> from transformer_parts.maths.decoder.config import (random_layer)
    >>> steps = walk(random_layer(config), np.ones((2, 3, 8)), config)
    >>> [(step.name, step.value.shape, step.parameters, step.flops) for step in steps[7:9]]
    [('scores', (2, 2, 3, 3), 0, 288), ('weights', (2, 2, 3, 3), 0, 0)]
    """
    weights = _checked(weights, config)
    x = require.array("x", x, min_ndim=2)
    require.last_axis("x", x, config.d_model, "d_model")
    steps: list[Step] = []
    note = recorder(steps, weights, config)
    Layer(weights, config)(x, causal=False, mask=visible(sees, x.shape[-2]), note=note)
    return steps


def _checked(weights: Mapping[str, NDArray], config: StackConfig) -> dict[str, NDArray]:
    require.one_of("config.placement", config.placement, ("pre", "post"))
    if config.qk_norm:
        raise require.refusal("config", "qk_norm=True", "False: the walk has no norm of queries and keys")
    found = {}
    for name, size in layer_shapes(config).items():
        if name not in weights:
            raise require.refusal("weights", f"no {name}", f"{name} of shape {size}")
        found[name] = require.array(f"weights[{name!r}]", weights[name])
        require.shape(f"weights[{name!r}]", found[name], size, "by the config")
    return found


@require.door
def streams(
    layers: Sequence[Mapping[str, NDArray]], x: ArrayLike, config: StackConfig, *, sees: str = "causal"
) -> NDArray:
    """Return the residual stream before the first layer and after each.

    Parameters
    ----------
    layers : sequence of mappings of str to ndarray; the weights of each layer, as `walk` takes them
    x : (…, L, D) array_like
    config : StackConfig; the kinds of parts; how many layers there are is decided by `layers`
    sees : str; which keys a token may attend to, one of `VISIBLE`

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
        require.instance("layers", weights, Mapping)
        found.append(walk(weights, found[-1], config, sees=sees)[-1].value)
    return np.stack(found)


@require.door
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
    token : int; t, the token that is changed
    change : (D,) array_like; c, what is added to it

    Returns
    -------
    (layers + 1, L, D) ndarray

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> from transformer_parts.maths.decoder.config import (random_layer)
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
    before, after = (streams(layers, rows, config, sees=sees) for rows in (x, other))
    return np.abs(after - before)


def leak(moved: ArrayLike, token: int) -> float:
    """Return the largest change of an output before the changed token: 0 where nothing sees the future.

    Parameters
    ----------
    moved : (…, L, D) array_like; as `spread` returns it
    token : int; the token that was changed

    Returns
    -------
    float; 0 too for token 0, which has none before it

    Examples
    --------
    >>> leak([[0.0, 0.5], [2.0, 1.0]], 1)
    0.5
    """
    moved = require.array("moved", moved, min_ndim=2)
    token = require.integer("token", token, minimum=0, maximum=moved.shape[-2] - 1)
    return float(moved[..., :token, :].max(initial=0.0))
