"""Backward passes of the feed-forward layers: plain, and gated."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.activations import gelu, gelu_tanh, relu, silu
from transformer_parts.maths.activations_derivatives import (
    gelu_derivative,
    gelu_tanh_derivative,
    relu_derivative,
    sigmoid_derivative,
    silu_derivative,
)
from transformer_parts.maths.feedforward import GLU_FAMILY
from transformer_parts.maths.gradients_operands import finite, in_one_dtype, products_backward

__all__ = ["ACTIVATIONS", "DERIVATIVES", "FfnGradients", "GluGradients", "ffn_backward", "glu_backward"]

Elementwise = Callable[[NDArray], NDArray]

ACTIVATIONS: Mapping[str, Elementwise] = MappingProxyType(
    {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, **GLU_FAMILY}
)
"""What acts in each kind of feed-forward layer: on all of the hidden layer, or on its gate."""

DERIVATIVES: Mapping[str, Elementwise] = MappingProxyType(
    {
        "relu": relu_derivative,
        "gelu": gelu_derivative,
        "gelu_tanh": gelu_tanh_derivative,
        "silu": silu_derivative,
        "glu": sigmoid_derivative,
        "bilinear": np.ones_like,
        "reglu": relu_derivative,
        "geglu": gelu_derivative,
        "swiglu": silu_derivative,
    }
)
"""Their derivatives."""


class FfnGradients(NamedTuple):
    """Gradients of a plain feed-forward layer's arguments.

    Attributes
    ----------
    x : (..., D) ndarray
    w_in : (D, F) ndarray
    w_out : (F, D) ndarray
    b_in : (F,) ndarray
    b_out : (D,) ndarray
    """

    x: NDArray
    w_in: NDArray
    w_out: NDArray
    b_in: NDArray
    b_out: NDArray


class GluGradients(NamedTuple):
    """Gradients of a gated feed-forward layer's arguments.

    Attributes
    ----------
    x : (..., D) ndarray
    w_gate, w_up : (D, F) ndarrays
    w_down : (F, D) ndarray
    """

    x: NDArray
    w_gate: NDArray
    w_up: NDArray
    w_down: NDArray


def ffn_backward(
    grad: ArrayLike,
    x: ArrayLike,
    w_in: ArrayLike,
    w_out: ArrayLike,
    *,
    kind: str,
    hidden: ArrayLike,
    activated: ArrayLike,
) -> FfnGradients:
    r"""Return the gradients of a plain feed-forward layer, y = f(h) W_out + b_out with h = x W_in + b_in.

    .. math::
        \bar h = f'(h) \odot \bar y\, W_\text{out}^\top, \quad \bar W_\text{out} = \sum f(h)^\top \bar y, \quad
        \bar W_\text{in} = \sum x^\top \bar h, \quad \bar x = \bar h\, W_\text{in}^\top

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the output.
    x : array_like, shape (..., D)
        The input.
    w_in : array_like, shape (D, F)
    w_out : array_like, shape (F, D)
    kind : str
        A name in `DERIVATIVES`: which f.
    hidden, activated : array_like, shape (..., F)
        h and f(h), kept from the forward pass.

    Returns
    -------
    FfnGradients

    Raises
    ------
    ValueError
        If the kind is unknown, a shape does not fit or an entry is not finite.

    Examples
    --------
    >>> found = ffn_backward([1.0], [2.0], [[3.0]], [[4.0]], kind="relu", hidden=[6.0], activated=[6.0])
    >>> found.x.item(), found.w_in.item(), found.w_out.item(), found.b_in.item()
    (12.0, 8.0, 6.0, 4.0)
    """
    require.one_of("kind", kind, tuple(DERIVATIVES))
    given = {"grad": grad, "x": x, "w_in": w_in, "w_out": w_out, "hidden": hidden, "activated": activated}
    grad, x, w_in, w_out, hidden, activated = in_one_dtype(**given)
    _check_shapes(grad, x, {"w_in": w_in}, {"w_out": w_out}, hidden=hidden, activated=activated)
    of_hidden, of_w_out = products_backward(grad, activated, w_out)
    of_hidden *= DERIVATIVES[kind](hidden)
    of_x, of_w_in = products_backward(of_hidden, x, w_in)
    given = {"grad": grad, "x": x, "w_in": w_in, "w_out": w_out, "activated": activated}
    return FfnGradients(*finite((of_x, of_w_in, of_w_out, _summed(of_hidden), _summed(grad)), **given))


def glu_backward(
    grad: ArrayLike,
    x: ArrayLike,
    w_gate: ArrayLike,
    w_up: ArrayLike,
    w_down: ArrayLike,
    *,
    kind: str,
    gate: ArrayLike,
    activated: ArrayLike,
    up: ArrayLike,
) -> GluGradients:
    r"""Return the gradients of a gated feed-forward layer, y = (f(g) ⊙ u) W_down with g = x W_gate and u = x W_up.

    .. math::
        \bar h = \bar y\, W_\text{down}^\top, \quad \bar g = \bar h \odot u \odot f'(g), \quad
        \bar u = \bar h \odot f(g), \quad \bar x = \bar g\, W_\text{gate}^\top + \bar u\, W_\text{up}^\top

    The up branch passes its gradient through f(g) alone, with no derivative of f: Dauphin et al.'s linear path.

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the output.
    x : array_like, shape (..., D)
        The input.
    w_gate, w_up : array_like, shape (D, F)
    w_down : array_like, shape (F, D)
    kind : str
        A name in `DERIVATIVES`, such as "swiglu": which f.
    gate, activated, up : array_like, shape (..., F)
        g, f(g) and u, kept from the forward pass.

    Returns
    -------
    GluGradients

    Raises
    ------
    ValueError
        If the kind is unknown, a shape does not fit or an entry is not finite.

    References
    ----------
    Dauphin et al., "Language Modeling with Gated Convolutional Networks", arXiv:1612.08083, §3 (gradients of gates);
    Shazeer, arXiv:2002.05202, §2.

    Examples
    --------
    >>> kept = {"gate": [6.0], "activated": [6.0], "up": [2.0]}
    >>> found = glu_backward([1.0], [2.0], [[3.0]], [[1.0]], [[4.0]], kind="reglu", **kept)
    >>> found.x.item(), found.w_gate.item(), found.w_up.item(), found.w_down.item()
    (48.0, 16.0, 48.0, 12.0)
    """
    require.one_of("kind", kind, tuple(DERIVATIVES))
    given = {"grad": grad, "x": x, "w_gate": w_gate, "w_up": w_up, "w_down": w_down}
    given |= {"gate": gate, "activated": activated, "up": up}
    grad, x, w_gate, w_up, w_down, gate, activated, up = in_one_dtype(**given)
    into, kept = {"w_gate": w_gate, "w_up": w_up}, {"gate": gate, "activated": activated, "up": up}
    _check_shapes(grad, x, into, {"w_down": w_down}, **kept)
    of_hidden, of_w_down = products_backward(grad, activated * up, w_down)
    of_gate = DERIVATIVES[kind](gate)
    of_gate *= up
    of_gate *= of_hidden
    of_hidden *= activated  # now that of u
    through_gate, of_w_gate = products_backward(of_gate, x, w_gate)
    through_up, of_w_up = products_backward(of_hidden, x, w_up)
    through_gate += through_up
    given = {"grad": grad, "x": x, **into, "w_down": w_down, **kept}
    return GluGradients(*finite((through_gate, of_w_gate, of_w_up, of_w_down), **given))


def _check_shapes(grad: NDArray, x: NDArray, into: Mapping, out: Mapping, **kept: NDArray) -> None:
    ((last, w_out),) = out.items()
    for name, w in into.items():
        require.shape(name, w, (x.shape[-1], w_out.shape[0]), f"the last axis of x and the first of {last}")
    require.shape("grad", grad, (*x.shape[:-1], w_out.shape[-1]), f"as x and {last} have it")
    for name, value in kept.items():
        require.shape(name, value, (*x.shape[:-1], w_out.shape[0]), "(…, F) of x and the weights")


def _summed(x: NDArray) -> NDArray:
    return x.reshape(-1, x.shape[-1]).sum(0)
