"""The feed-forward layer: plain, and gated (GLU and its family, of which SwiGLU is today's usual one).

It acts on each position separately: no entry of the sequence sees another here.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.activations import gelu, gelu_tanh, relu, sigmoid, silu

Activation = Callable[[NDArray], NDArray]

GLU_FAMILY: Mapping[str, Activation] = MappingProxyType(
    {"glu": sigmoid, "bilinear": lambda x: x, "reglu": relu, "geglu": gelu, "swiglu": silu}
)
"""What acts on the gate in each member of the family, by the names of Shazeer (arXiv:2002.05202, §2)."""

ACTIVATIONS: Mapping[str, Activation] = MappingProxyType(
    {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, **GLU_FAMILY}
)
"""What acts in each kind of feed-forward layer: on all of the hidden layer, or on its gate."""


class Gated(NamedTuple):
    """A gated layer up to its last product.

    Attributes
    ----------
    pre : ndarray, shape (..., F); x·W_gate, what the activation is applied to
    gate : ndarray, shape (..., F); the activation of it
    up : ndarray, shape (..., F); x·W_up, the content
    hidden : ndarray, shape (..., F); gate times content, channel by channel
    """

    pre: NDArray
    gate: NDArray
    up: NDArray
    hidden: NDArray


def ffn(
    x: ArrayLike,
    w_in: ArrayLike,
    w_out: ArrayLike,
    *,
    b_in: ArrayLike | None = None,
    b_out: ArrayLike | None = None,
    activation: Activation = relu,
) -> NDArray:
    r"""Two linear maps with an activation between them.

    .. math:: y = f(x W_\text{in} + b_\text{in})\, W_\text{out} + b_\text{out}

    Parameters
    ----------
    x : array_like, shape (..., D)
    w_in : array_like, shape (D, F)
    w_out : array_like, shape (F, D); the output may have another width than the input
    b_in : array_like, shape (F,), optional
    b_out : array_like, shape (D,), optional
    activation : function; takes and returns an array of one shape

    Returns
    -------
    ndarray, shape (..., D)
        In the dtype of `x` (integers: float64); float16 and bfloat16 are computed in float32 and rounded once.

    Raises
    ------
    ValueError
        If a product overflows, that of `x` or of the hidden layer, named ``hidden``.

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.3, eq. 2.

    Examples
    --------
    >>> ffn([1.0, 2.0], w_in=[[1.0, -1.0], [0.0, 1.0]], w_out=[[2.0], [3.0]]).tolist()
    [5.0]
    """
    x, dtype = _input(x)
    w_in, w_out, b_in, b_out = _parameters(x.dtype, w_in=w_in, w_out=w_out, b_in=b_in, b_out=b_out)
    require.shape("w_in", w_in, (x.shape[-1], "F"), "its first axis the last of x")
    require.shape("w_out", w_out, (w_in.shape[1], "D"), "its first axis the last of w_in")
    if b_in is not None:
        require.shape("b_in", b_in, w_in.shape[1:], "the last axis of w_in")
    if b_out is not None:
        require.shape("b_out", b_out, w_out.shape[1:], "the last axis of w_out")
    hidden = _activated(activation, _linear(x=x, w_in=w_in, b_in=b_in))
    return _result(x, _linear(**{"hidden, of x·w_in": hidden, "w_out": w_out, "b_out": b_out}), dtype)


def glu(
    x: ArrayLike,
    w_gate: ArrayLike,
    w_up: ArrayLike,
    w_down: ArrayLike,
    *,
    activation: Activation = sigmoid,
) -> NDArray:
    r"""Gated feed-forward layer: one linear map, activated, multiplies another channel by channel.

    .. math:: y = \bigl(f(x W_\text{gate}) \odot x W_\text{up}\bigr)\, W_\text{down}

    With the functions of `GLU_FAMILY` as `activation` this is GLU, Bilinear, ReGLU, GEGLU or SwiGLU.

    Parameters
    ----------
    x : array_like, shape (..., D)
    w_gate, w_up : array_like, shape (D, F)
    w_down : array_like, shape (F, D); the output may have another width than the input
    activation : function; takes and returns an array of one shape

    Returns
    -------
    ndarray, shape (..., D)
        In the dtype of `x` (integers: float64); float16 and bfloat16 are computed in float32 and rounded once.

    References
    ----------
    Dauphin et al., arXiv:1612.08083, §2, eq. 1 (GLU); Shazeer, "GLU Variants Improve Transformer",
    arXiv:2002.05202, §2, eq. 4–6 (the family, and its feed-forward layers without biases).

    Examples
    --------
    >>> glu([1.0, 2.0], w_gate=[[0.0], [0.0]], w_up=[[3.0], [1.0]], w_down=[[2.0]]).tolist()
    [5.0]
    """
    x, dtype = _input(x)
    w_gate, w_up, w_down = _parameters(x.dtype, w_gate=w_gate, w_up=w_up, w_down=w_down)
    require.shape("w_gate", w_gate, (x.shape[-1], "F"), "its first axis the last of x")
    require.shape("w_up", w_up, w_gate.shape, "that of w_gate")
    require.shape("w_down", w_down, (w_gate.shape[1], "D"), "its first axis the last of w_gate")
    gate, up = _activated(activation, _linear(x=x, w_gate=w_gate)), _linear(x=x, w_up=w_up)
    with np.errstate(over="ignore"):
        hidden = np.multiply(gate, up, out=up)
    return _result(x, _linear(**{"hidden, of x·w_gate and x·w_up": hidden, "w_down": w_down}), dtype)


def gated(x: ArrayLike, w_gate: ArrayLike, w_up: ArrayLike, *, activation: Activation = silu) -> Gated:
    """Return every step of a gated layer up to its hidden channels; ``hidden @ w_down`` is the layer's result.

    Parameters
    ----------
    x : array_like, shape (..., D)
    w_gate, w_up : array_like, shape (D, F)
    activation : function; takes and returns an array of one shape

    Returns
    -------
    Gated : in the dtype that `x` is computed in

    Examples
    --------
    >>> steps = gated([1.0, 2.0], w_gate=[[1.0, -1.0], [0.0, 0.0]], w_up=[[2.0, 1.0], [0.0, 1.0]])
    >>> [step.round(6).tolist() for step in steps[:3]]
    [[1.0, -1.0], [0.731059, -0.268941], [2.0, 3.0]]
    """
    x, _ = _input(x)
    w_gate, w_up = _parameters(x.dtype, w_gate=w_gate, w_up=w_up)
    require.shape("w_gate", w_gate, (x.shape[-1], "F"), "its first axis the last of x")
    require.shape("w_up", w_up, w_gate.shape, "that of w_gate")
    pre, up = _linear(x=x, w_gate=w_gate), _linear(x=x, w_up=w_up)
    gate = _activated(activation, pre.copy())
    with np.errstate(over="ignore"):
        hidden = gate * up
    require.all_numbers("hidden, of x·w_gate and x·w_up", hidden)
    return Gated(pre, gate, up, hidden)


def swiglu(x: ArrayLike, w_gate: ArrayLike, w_up: ArrayLike, w_down: ArrayLike) -> NDArray:
    r"""Gated feed-forward layer with SiLU on the gate.

    .. math:: y = \bigl(\operatorname{SiLU}(x W_\text{gate}) \odot x W_\text{up}\bigr)\, W_\text{down}

    The gate is not a probability: it reaches down to −0.2785 and has no upper bound.

    Parameters
    ----------
    x : array_like, shape (..., D)
    w_gate, w_up : array_like, shape (D, F)
    w_down : array_like, shape (F, D)

    Returns
    -------
    ndarray, shape (..., D); as for `glu`

    Source: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202, §2, eq. 6 (with β = 1).

    Examples
    --------
    >>> w_gate, w_up = [[1.0, -1.0], [0.0, 0.0]], [[2.0, 1.0], [0.0, 1.0]]
    >>> swiglu([1.0, 2.0], w_gate, w_up, w_down=[[1.0, 0.0], [0.0, 1.0]]).round(6).tolist()
    [1.462117, -0.806824]
    """
    return glu(x, w_gate, w_up, w_down, activation=silu)


def _input(x: ArrayLike) -> tuple[NDArray, np.dtype]:
    """Return `x`, contiguous and in the dtype of the computation, and the dtype of the result."""
    x = require.floating("x", x)
    return np.ascontiguousarray(x, require.compute_dtype(x.dtype)), x.dtype


def _parameters(dtype: np.dtype, **given: ArrayLike | None) -> list[NDArray | None]:
    """Return the parameters in the dtype of the computation; their entries are judged by what they produce."""
    return [
        None if value is None and name.startswith("b_") else require.cast(name, require.floating(name, value), dtype)
        for name, value in given.items()
    ]


def _linear(**named: NDArray | None) -> NDArray:
    """Return x @ w + b of three named operands (b may be missing or None), refusing what is not finite.

    A product shows every NaN and infinity of its operands, so they are searched only where it has one itself.
    """
    x, w, b = (*named.values(), None)[:3]
    with np.errstate(over="ignore", invalid="ignore"):
        y = (x.reshape(-1, x.shape[-1]) @ w).reshape(*x.shape[:-1], w.shape[1])  # one product for all positions
        if b is not None:
            y += b
    if not require.all_finite(y):
        for name, operand in named.items():
            if operand is not None:
                require.all_numbers(name, operand)
        x_name, w_name = list(named)[:2]
        size, limit = f"{np.abs(x).max():.3g}", f"a product with {w_name} within {y.dtype.name}"
        raise ValueError(f"{x_name}: got entries up to {size}, want {limit}")
    return y


def _result(x: NDArray, y: NDArray, dtype: np.dtype) -> NDArray:
    """Return the result `y` in a dtype; refuse an `x` whose result overflows there."""
    with np.errstate(over="ignore"):
        out = y.astype(dtype, copy=False)
    if not require.all_finite(out):
        raise require.refusal("x", f"entries up to {np.abs(x).max():.3g}", f"a result within {dtype.name}")
    return out


def _activated(activation: Activation, x: NDArray) -> NDArray:
    require.function("activation", activation)
    y = require.array("activation's result", activation(x))
    require.shape("activation's result", y, x.shape, "that of its argument")
    return require.cast("activation's result", y, x.dtype)


class GateCounts(NamedTuple):
    """Fractions and extremes of gates.

    Attributes
    ----------
    negative, above_one : float; which part of the gates is below 0, and above 1: outside what a probability can be
    lowest, highest : float; the extremes
    share_above_one : float; which part of the sum of all squares is due to the gates above 1; NaN where every gate is 0
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
    gates : array_like, shape (...); gates after the activation

    Returns
    -------
    GateCounts : over all entries

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
    edges : array_like, shape (N + 1,)
        Edges of the bins, rising.  A bin holds its left edge and not its right one.

    Returns
    -------
    ndarray, shape (N,); float64; their sum is 1

    Examples
    --------
    >>> fractions_in_bins([-9.0, 0.0, 0.5, 1.0, 7.0], [0.0, 1.0, 2.0]).tolist()
    [0.6, 0.4]
    """
    values, edges = require.array("values", values), require.array("edges", edges)
    require.ndim("edges", edges, 1)
    if len(edges) < 2 or (edges[1:] <= edges[:-1]).any():
        raise require.refusal("edges", f"{len(edges)} entries, not all rising", "at least two rising entries")
    bins = np.searchsorted(edges[1:-1], values.reshape(-1), side="right")
    return np.bincount(bins, minlength=len(edges) - 1) / values.size
