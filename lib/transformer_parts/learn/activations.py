"""Exercises on activations, their derivatives and dead units (notebook 11)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import activations
from transformer_parts.maths.activations import gelu, gelu_tanh, relu, sigmoid, silu, silu_derivative


def _numbers(rng):
    """Numbers near zero and some that are not, so that every mistake gives another result."""
    x = 2 * rng.standard_normal(rng.integers(5, 9))
    x[:3] = rng.uniform(0.3, 1.0), rng.uniform(-1.5, -0.3), rng.uniform(2.0, 3.0)
    return (x,)


def _gelu_by(z):
    """Return x/2·(1 + tanh z(x))."""
    return lambda x: x / 2 * (1 + np.tanh(z(x)))


_ROOT = np.sqrt(2 / np.pi)

GELU_TANH = Exercise(
    task=_("my_gelu(x): GELU by tanh, x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))"),
    takes=(_("`x`: an array of any shape"),),
    returns=_("an array of the same shape, in float64"),
    solution=gelu_tanh,
    inputs=_numbers,
    mistakes=(
        Mistake("identity", lambda x: x, _("Your function returns x as it was.")),
        Mistake("ReLU", relu, _("That is ReLU: it has no value below 0 and a corner at 0.")),
        Mistake(
            "SiLU", silu, _("That is SiLU, x·σ(x): the sigmoid of x itself, and not of 2·√(2/π)·(x + 0.044715·x³).")
        ),
        Mistake(
            "by erf",
            gelu,
            _(
                "That is the exact GELU, x·Φ(x): right as a function, and up to 4.7e-4 away from the form asked for."
                " A checkpoint trained with one should be run with that one."
            ),
        ),
        Mistake(
            "1.702",
            lambda x: activations.swish(x, 1.702),
            _("That is x·σ(1.702·x), the paper's other approximation; it is off by up to 0.02."),
        ),
        Mistake("cube missing", _gelu_by(lambda x: _ROOT * x), _("The term 0.044715·x³ is missing within tanh.")),
        Mistake(
            "square instead of cube",
            _gelu_by(lambda x: _ROOT * (x + 0.044715 * x**2)),
            _("You take x² within tanh; it is x³, so that tanh stays an odd function of x."),
        ),
        Mistake(
            "√(2/π) on the first term alone",
            _gelu_by(lambda x: _ROOT * x + 0.044715 * x**3),
            _("√(2/π) multiplies the whole bracket, the cube too."),
        ),
        Mistake(
            "2/π",
            _gelu_by(lambda x: 2 / np.pi * (x + 0.044715 * x**3)),
            _("You multiply by 2/π; it is its square root, 0.7979."),
        ),
        Mistake(
            "√(π/2)",
            _gelu_by(lambda x: np.sqrt(np.pi / 2) * (x + 0.044715 * x**3)),
            _("You multiply by √(π/2), 1.2533; it is √(2/π), 0.7979."),
        ),
        Mistake("half missing", lambda x: 2 * gelu_tanh(x), _("The ½ is missing: for large x the result is 2x.")),
        Mistake("x missing", lambda x: gelu_tanh(x) / x, _("That is the gate alone; multiply it by x.")),
        Mistake(
            "1 missing",
            lambda x: gelu_tanh(x) - x / 2,
            _("The 1 beside tanh is missing: your function gives −x/2·… on the left, an even function."),
        ),
    ),
    hints=(
        _("Build it from the inside: first the argument of tanh."),
        _("z = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)"),
        _("return x / 2 * (1 + np.tanh(z))"),
    ),
)


SILU_SLOPE = Exercise(
    task=_("my_silu_slope(x): the derivative of SiLU, x·σ(x), at each x of an array"),
    takes=(_("`x`: an array of any shape"),),
    returns=_("an array of the same shape, in float64"),
    solution=silu_derivative,
    inputs=_numbers,
    mistakes=(
        Mistake("SiLU itself", silu, _("That is SiLU; its derivative is asked for.")),
        Mistake("σ(x)", sigmoid, _("You differentiate the factor x alone. By the product rule, add x·σ'(x).")),
        Mistake(
            "x·σ'(x)",
            lambda x: x * sigmoid(x) * sigmoid(-x),
            _("You differentiate the factor σ(x) alone. By the product rule, add σ(x)."),
        ),
        Mistake(
            "σ'(x)",
            activations.sigmoid_derivative,
            _("That is σ(x)·(1 − σ(x)), the sigmoid's derivative. SiLU is x times the sigmoid: use the product rule."),
        ),
        Mistake(
            "σ' without 1 − σ",
            lambda x: sigmoid(x) + x * sigmoid(x),
            _("Your σ'(x) is σ(x); it is σ(x)·(1 − σ(x))."),
        ),
        Mistake(
            "1 − SiLU",
            lambda x: sigmoid(x) * (1 - silu(x)),
            _("You return σ(x)·(1 − x·σ(x)). Right is σ(x)·(1 + x·(1 − σ(x)))."),
        ),
        Mistake(
            "sign of the second term",
            lambda x: sigmoid(x) - x * sigmoid(x) * sigmoid(-x),
            _("The second term has the wrong sign: it is added."),
        ),
        Mistake(
            "x missing in the second term",
            lambda x: sigmoid(x) + sigmoid(x) * sigmoid(-x),
            _("The factor x is missing in x·σ'(x)."),
        ),
        Mistake(
            "ReLU's",
            activations.relu_derivative,
            _("That is ReLU's derivative, 0 or 1. SiLU's is smooth, negative below −1.2785 and above 1 beyond 1.2785."),
        ),
        Mistake(
            "GELU's",
            activations.gelu_derivative,
            _("That is the derivative of GELU, Φ(x) + x·φ(x). Take σ instead of Φ, and σ' instead of φ."),
        ),
    ),
    hints=(
        _("Product rule: (x·σ(x))' = σ(x) + x·σ'(x)."),
        "σ'(x) = σ(x)·(1 − σ(x)).",
        _("s = 1 / (1 + np.exp(-x)); return s + x * s * (1 - s)"),
    ),
)


def _units(rng):
    # More than 100 inputs, so that "zero at 99 % of them" and "dead" differ.
    n_inputs, n_units = int(rng.integers(120, 150)), int(rng.integers(9, 13))
    pre = rng.standard_normal((n_inputs, n_units)) - 1
    some = int(rng.integers(1, n_inputs - 1))  # neither the first input nor the last
    pre[:, :4] = -np.abs(pre[:, :4]) - 0.1  # dead
    pre[some, 1] = 0.5  # alive at one input, below 0 on average
    pre[some, 2] = 0.0  # dead: it only touches 0
    pre[some, 3] = 10.0 * n_inputs  # alive at one input, and above 0 on average
    pre[:, 4:7] = np.abs(pre[:, 4:7]) + 0.5
    pre[(some, 0, -1), (4, 5, 6)] = -0.1  # below 0 at one input alone
    order = rng.permutation(n_units)
    return (pre[:, order],)


DEAD = Exercise(
    task=_("my_dead(pre): for each unit, whether ReLU leaves it dead over all inputs"),
    takes=(_("`pre`: the pre-activations, of shape (inputs, units)"),),
    returns=_("an array of bool, of shape (units,): True where the unit's output is 0 at every input"),
    solution=lambda pre: (pre <= 0).all(axis=0),
    inputs=_units,
    mistakes=(
        Mistake(
            "zeros counted",
            lambda pre: (pre <= 0).mean(axis=0),
            _("You return the fraction of a unit's outputs that is zero. It is dead if all are zero."),
        ),
        Mistake(
            "activity counted",
            lambda pre: (pre > 0).mean(axis=0),
            _("You return how often a unit is active. It is dead if it never is."),
        ),
        Mistake(
            "any input",
            lambda pre: (pre <= 0).any(axis=0),
            _("You call a unit dead if it is zero at some input. Dead means zero at every input."),
        ),
        Mistake(
            "mean pre-activation",
            lambda pre: pre.mean(axis=0) <= 0,
            _("You look at the mean over the inputs. A single input above 0 gives a gradient, whatever the mean is."),
        ),
        Mistake(
            "first input",
            lambda pre: pre[0] <= 0,
            _("You look at the first input only. Dead is a statement about all inputs of the data set."),
        ),
        Mistake(
            "last input",
            lambda pre: pre[-1] <= 0,
            _("You look at the last input only. Dead is a statement about all inputs of the data set."),
        ),
        Mistake(
            "most inputs",
            lambda pre: np.median(pre, axis=0) <= 0,
            _("You go by what a unit does at most inputs. A single input above 0 keeps it alive."),
        ),
        Mistake(
            "below zero strictly",
            lambda pre: (pre < 0).all(axis=0),
            _("A pre-activation of exactly 0 has output 0 and slope 0 too: compare by <=."),
        ),
        Mistake(
            "alive",
            lambda pre: (pre > 0).any(axis=0),
            _("You return the units that are alive. The task asks for the dead ones."),
        ),
    ),
    hints=(
        _("For one unit: which outputs does ReLU give over all inputs?"),
        _("pre <= 0 is True where the output is 0. A unit is one column: all of it must be True."),
        _("return (pre <= 0).all(axis=0)"),
    ),
)
