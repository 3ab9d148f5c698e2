"""Exercises on SwiGLU (notebook 12)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.activations import gelu, relu, sigmoid, silu, silu_derivative
from transformer_parts.maths.feedforward import glu, swiglu


def _layer(rng):
    # Three different sizes, and gates from −3 to 3, so that every mistake changes the result.
    length, width, hidden = rng.choice(np.arange(2, 9), 3, replace=False)
    x = rng.standard_normal((length, width))
    w_gate, w_up = 1.5 * rng.standard_normal((2, width, hidden)) / width**0.5
    return x, w_gate, w_up, rng.standard_normal((hidden, width))


def _member(activation):
    return lambda x, g, u, d: glu(x, g, u, d, activation=activation)


SWIGLU = Exercise(
    task=_("my_swiglu(x, w_gate, w_up, w_down): (SiLU(x·W_gate) ⊙ x·W_up)·W_down"),
    takes=(
        _("`x`: the tokens, of shape (T, d)"),
        _("`w_gate`: of shape (d, f)"),
        _("`w_up`: of shape (d, f)"),
        _("`w_down`: of shape (f, d)"),
    ),
    returns=_("an array of shape (T, d)"),
    solution=swiglu,
    inputs=_layer,
    mistakes=(
        Mistake(
            "sigmoid gate",
            _member(sigmoid),
            _("Your gate is σ(x·W_gate): that is GLU. SwiGLU's gate is SiLU, x·W_gate times its sigmoid."),
        ),
        Mistake("GELU gate", _member(gelu), _("Your gate is GELU: that is GEGLU. SwiGLU takes SiLU, g·σ(g).")),
        Mistake("ReLU gate", _member(relu), _("Your gate is ReLU: that is ReGLU. SwiGLU takes SiLU, g·σ(g).")),
        Mistake(
            "sign in the exponential",
            _member(lambda g: g * sigmoid(-g)),
            _("Your gate is g·σ(−g): SiLU is g / (1 + exp(−g)), with the minus sign."),
        ),
        Mistake(
            "no activation",
            _member(lambda g: g),
            _("The activation is missing: that is the bilinear layer. Put SiLU round x·W_gate."),
        ),
        Mistake(
            "gate and content exchanged",
            lambda x, g, u, d: swiglu(x, u, g, d),
            _("SiLU stands round the content: you have x·W_gate ⊙ SiLU(x·W_up). It belongs round x·W_gate."),
        ),
        Mistake(
            "both activated",
            lambda x, g, u, d: (silu(x @ g) * silu(x @ u)) @ d,
            _("You put SiLU round both branches. The content x·W_up stays linear."),
        ),
        Mistake(
            "activation after the product",
            lambda x, g, u, d: silu((x @ g) * (x @ u)) @ d,
            _("You multiply first and apply SiLU to the product. SiLU acts on x·W_gate alone, then comes the product."),
        ),
        Mistake(
            "added",
            lambda x, g, u, d: (silu(x @ g) + x @ u) @ d,
            _("You add gate and content; they are multiplied channel by channel."),
        ),
        Mistake(
            "no gate",
            lambda x, g, u, d: silu(x @ u) @ d,
            _("There is no gate: that is a plain layer with two matrices. Multiply SiLU(x·W_gate) by x·W_up."),
        ),
        Mistake(
            "content missing",
            lambda x, g, u, d: silu(x @ g) @ d,
            _("The content is missing: multiply SiLU(x·W_gate) by x·W_up before W_down."),
        ),
        Mistake(
            "softmax gate",
            lambda x, g, u, d: (_softmax(x @ g) * (x @ u)) @ d,
            _("Your gates add up to 1 over the channels. They are no probabilities: each channel has its own SiLU."),
        ),
    ),
    hints=(
        _("Two products come from the same x: x @ w_gate and x @ w_up, of equal shape."),
        _("g = x @ w_gate; the gate is g / (1 + np.exp(-g)). Multiply it by x @ w_up, entry by entry."),
        _("return (g / (1 + np.exp(-g)) * (x @ w_up)) @ w_down"),
    ),
)


def _softmax(g):
    e = np.exp(g - g.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _fused(rng):
    x, w_gate, w_up, w_down = _layer(rng)
    if w_gate.shape[1] % 2:  # an even F, so that the halves can be halved again
        w_gate, w_up, w_down = (np.concatenate([w, w[part]], axis) for w, part, axis in _doubled(w_gate, w_up, w_down))
    return x, np.concatenate([w_gate, w_up], axis=1), w_down


def _doubled(w_gate, w_up, w_down):
    columns, rows = np.s_[:, :1], np.s_[:1]
    return (w_gate, columns, 1), (w_up, columns, 1), (-w_down, rows, 0)


def _halves(w):
    return np.split(w, 2, axis=1)


FUSED = Exercise(
    task=_("fused_swiglu(x, w_gate_up, w_down): SwiGLU where one matrix holds W_gate and W_up side by side"),
    takes=(
        _("`x`: the tokens, of shape (T, d)"),
        _("`w_gate_up`: of shape (d, 2f); W_gate is its first f columns, W_up its last f"),
        _("`w_down`: of shape (f, d)"),
    ),
    returns=_("an array of shape (T, d)"),
    solution=lambda x, w, d: swiglu(x, *_halves(w), d),
    inputs=_fused,
    mistakes=(
        Mistake(
            "content first",
            lambda x, w, d: swiglu(x, *_halves(w)[::-1], d),
            _(
                "You take the first half for the content and the second for the gate. Here the gate comes first;"
                " torch's glu has the content first, so look which order a checkpoint has."
            ),
        ),
        Mistake(
            "interleaved",
            lambda x, w, d: swiglu(x, w[:, ::2], w[:, 1::2], d),
            _(
                "You take every second column for the gate. Here the matrix holds two halves; some checkpoints do"
                " interleave them."
            ),
        ),
        Mistake(
            "sigmoid gate",
            lambda x, w, d: glu(x, *_halves(w), d),
            _("Your gate is a sigmoid: that is GLU. SwiGLU's gate is SiLU."),
        ),
        Mistake(
            "activation missing",
            lambda x, w, d: glu(x, *_halves(w), d, activation=lambda g: g),
            _("SiLU is missing: you multiply the two halves as they are."),
        ),
        Mistake(
            "both activated",
            lambda x, w, d: np.multiply(*_halves(silu(x @ w))) @ d,
            _("You apply SiLU before splitting, so that the content is activated too. Split first."),
        ),
        Mistake(
            "halves added",
            lambda x, w, d: (silu(x @ _halves(w)[0]) + x @ _halves(w)[1]) @ d,
            _("You add the halves; multiply them."),
        ),
    ),
    hints=(
        _("One product x @ w_gate_up gives both branches, side by side in the last axis."),
        _("gate, up = np.split(x @ w_gate_up, 2, axis=-1)"),
        _("return (gate / (1 + np.exp(-gate)) * up) @ w_down"),
    ),
)


def _backward(rng):
    shape = tuple(rng.integers(2, 6, 2))
    return 1.5 * rng.standard_normal(shape), rng.standard_normal(shape), rng.standard_normal(shape)


GATE_GRADIENT = Exercise(
    task=_("gate_gradient(g, u, dh): the gradient of the loss with respect to g, where h = SiLU(g) ⊙ u"),
    takes=(
        _("`g`: the gate's branch before SiLU, of shape (T, f)"),
        _("`u`: the content, of shape (T, f)"),
        _("`dh`: the gradient of the loss with respect to h, of shape (T, f)"),
    ),
    returns=_("the gradient with respect to `g`, of shape (T, f)"),
    solution=lambda g, u, dh: dh * u * silu_derivative(g),
    inputs=_backward,
    mistakes=(
        Mistake(
            "that of the content",
            lambda g, u, dh: dh * silu(g),
            _("That is the gradient with respect to the content u. For g it is u that multiplies, and SiLU'(g)."),
        ),
        Mistake(
            "derivative missing",
            lambda g, u, dh: dh * u,
            _(
                "That is the gradient with respect to the gate SiLU(g). One more step of the chain rule: times"
                " SiLU'(g)."
            ),
        ),
        Mistake(
            "SiLU for its derivative",
            lambda g, u, dh: dh * u * silu(g),
            _("You multiply by SiLU(g); it is its derivative, σ(g)·(1 + g·(1 − σ(g)))."),
        ),
        Mistake(
            "sigmoid's derivative",
            lambda g, u, dh: dh * u * sigmoid(g) * sigmoid(-g),
            _("You multiply by σ(g)·(1 − σ(g)), which is right for GLU. SiLU's slope is σ(g)·(1 + g·(1 − σ(g)))."),
        ),
        Mistake(
            "σ(g)",
            lambda g, u, dh: dh * u * sigmoid(g),
            _("You treat the factor σ(g) of SiLU as a constant. Its own derivative adds g·σ(g)·(1 − σ(g))."),
        ),
        Mistake(
            "ReLU's derivative",
            lambda g, u, dh: dh * u * (g > 0),
            _("Your slope is 0 or 1, that of ReGLU."),
        ),
        Mistake(
            "content missing",
            lambda g, u, dh: dh * silu_derivative(g),
            _("The content u is missing: h = SiLU(g)·u, so u multiplies the slope."),
        ),
        Mistake(
            "dh missing",
            lambda g, u, dh: u * silu_derivative(g),
            _("The gradient dh that comes from above is missing: multiply by it."),
        ),
    ),
    hints=(
        _("Chain rule in each entry: dL/dg = dL/dh · dh/dg."),
        _("h = SiLU(g)·u, so dh/dg = SiLU'(g)·u."),
        _("s = 1 / (1 + np.exp(-g)); return dh * u * s * (1 + g * (1 - s))"),
    ),
)
