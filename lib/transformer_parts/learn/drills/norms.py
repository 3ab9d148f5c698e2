"""Drills about norms, their gradient, and gated layers."""

import numpy as np

from transformer_parts.learn.drills.drill import Drill, Slip
from transformer_parts.maths.activations import gelu, relu, sigmoid, silu
from transformer_parts.maths.feedforward import swiglu
from transformer_parts.maths.gradients import layer_norm_backward, rms_norm_backward
from transformer_parts.maths.norms import layer_norm, rms_norm

_EPS = 1e-15


def _whole(rng: np.random.Generator, size: int, largest: int = 6) -> list[int]:
    return [int(number) for number in rng.integers(-largest, largest + 1, size)]


def _vector(numbers: list[int]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _rms(x: list[int]) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


RMS_NORM = Drill(
    name="rms_norm",
    title="RMSNorm of a short vector",
    notebook="09_norms",
    draw=lambda rng: {"x": _telling(rng, int(rng.integers(2, 5)))},
    task=lambda x: f"Give $\\mathrm{{RMSNorm}}(x)$ for $x={_vector(x)}$, with $\\gamma=1$ and $\\varepsilon=0$.",
    answer=lambda x: rms_norm(np.array(x, float), eps=_EPS),
    working=lambda x: (
        f"Mean square ${sum(v * v for v in x)}/{len(x)}={np.mean(np.square(x)):.4f}$, root"
        f" ${_rms(x):.6f}$; divide each entry by it"
    ),
    slips=(
        Slip(
            "divided by the length",
            lambda x: np.array(x) / np.linalg.norm(x),
            "You divided by the vector's length: the mean is missing under the root. The result should have RMS 1.",
        ),
        Slip(
            "LayerNorm",
            lambda x: (np.array(x) - np.mean(x)) / np.std(x),
            "That is LayerNorm: RMSNorm subtracts no mean.",
        ),
        Slip(
            "no root",
            lambda x: np.array(x) / np.mean(np.square(x)),
            "You divided by the mean square; its root is missing.",
        ),
        Slip(
            "mean of the sizes",
            lambda x: np.array(x) / np.mean(np.abs(x)),
            "You divided by the mean of the absolute values. Square first, then the mean, then the root.",
        ),
        Slip(
            "divided by D − 1",
            lambda x: np.array(x) / np.sqrt(np.sum(np.square(x)) / (len(x) - 1)),
            "You took the mean with D − 1. RMSNorm divides the sum of squares by D.",
        ),
    ),
)

LAYER_NORM = Drill(
    name="layer_norm",
    title="LayerNorm of a short vector",
    notebook="09_norms",
    draw=lambda rng: {"x": _telling(rng, int(rng.integers(3, 5)))},
    task=lambda x: (
        f"Give $\\mathrm{{LayerNorm}}(x)$ for $x={_vector(x)}$, with $\\gamma=1$, $\\beta=0$ and $\\varepsilon=0$."
    ),
    answer=lambda x: layer_norm(np.array(x, float), eps=_EPS),
    working=lambda x: (
        f"Mean ${np.mean(x):.4f}$, variance ${np.var(x):.4f}$ (divided by {len(x)}), root ${np.std(x):.6f}$;"
        " subtract the mean, divide by the root"
    ),
    slips=(
        Slip(
            "unbiased variance",
            lambda x: (np.array(x) - np.mean(x)) / np.std(x, ddof=1),
            "You divided the sum of squares by D − 1. LayerNorm takes the biased variance, divided by D.",
        ),
        Slip(
            "RMSNorm",
            lambda x: np.array(x) / _rms(x),
            "That is RMSNorm: LayerNorm subtracts the mean first.",
        ),
        Slip(
            "no root",
            lambda x: (np.array(x) - np.mean(x)) / np.var(x),
            "You divided by the variance; its root is missing.",
        ),
        Slip(
            "mean alone",
            lambda x: np.array(x) - np.mean(x),
            "You subtracted the mean and did not divide by the standard deviation.",
        ),
        Slip(
            "divided by the RMS of x",
            lambda x: (np.array(x) - np.mean(x)) / _rms(x),
            "You subtracted the mean, but divided by the RMS of x. The statistic is taken after subtracting.",
        ),
        Slip(
            "mean left in",
            lambda x: np.array(x) / np.std(x),
            "You divided by the standard deviation and did not subtract the mean.",
        ),
    ),
)


def _telling(rng: np.random.Generator, size: int) -> list[int]:
    """Return numbers that are not all alike."""
    while len(set(x := _whole(rng, size))) == 1:
        pass
    return x


def _gradient(x, g, *, sign=-1.0, mean=True, divide=True):
    r = _rms(x)
    x_hat = np.array(x) / r
    along = np.dot(g, x_hat) / (len(x) if mean else 1)
    return (np.array(g) + sign * x_hat * along) / (r if divide else 1)


def _x_and_g(rng: np.random.Generator) -> dict[str, list[int]]:
    size = int(rng.integers(2, 4))
    return {"x": _telling(rng, size), "g": _telling(rng, size)}


GRADIENT = Drill(
    name="rms_norm_gradient",
    title="Gradient of RMSNorm",
    notebook="09_norms",
    draw=_x_and_g,
    task=lambda x, g: (
        f"$y=\\mathrm{{RMSNorm}}(x)$ with $\\gamma=1$, $\\varepsilon=0$, at $x={_vector(x)}$. The loss has the gradient"
        f" $g=\\partial L/\\partial y={_vector(g)}$. Give $\\partial L/\\partial x$."
    ),
    answer=lambda x, g: rms_norm_backward(np.array(g, float), np.array(x, float), None, _EPS)[0],
    working=lambda x, g: (
        f"$r={_rms(x):.6f}$, $\\hat x=x/r$, mean of $g\\hat x$:"
        f" ${np.dot(g, x) / _rms(x) / len(x):.6f}$; $\\frac1r\\bigl(g-\\hat x\\,\\overline{{g\\hat x}}\\bigr)$"
    ),
    slips=(
        Slip(
            "RMS taken for a constant",
            lambda x, g: np.array(g) / _rms(x),
            "You treated the RMS as a constant. It depends on x: the part of g along x̂ must be taken away.",
        ),
        Slip(
            "plus for minus",
            lambda x, g: _gradient(x, g, sign=1.0),
            "The part along x̂ is subtracted, not added: the result must be orthogonal to x.",
        ),
        Slip(
            "sum for mean",
            lambda x, g: _gradient(x, g, mean=False),
            "You took the sum of g·x̂; it is its mean, since r² is a mean.",
        ),
        Slip(
            "1/r forgotten",
            lambda x, g: _gradient(x, g, divide=False),
            "The direction is right; divide by the RMS.",
        ),
        Slip(
            "LayerNorm's gradient",
            lambda x, g: np.asarray(layer_norm_backward(np.array(g, float), np.array(x, float), None, _EPS)[0]),
            "That is LayerNorm's gradient: no mean is subtracted here.",
        ),
    ),
)


def _swiglu_values(rng: np.random.Generator) -> dict[str, list[int]]:
    """Return x and the two columns; the gate's branch stays where the activations differ."""
    while True:
        values = {name: _whole(rng, 2, 2) for name in ("x", "gate", "up")}
        g, u = _products(**values)
        if g in (-3, -2, -1, 1, 2) and u not in (0, 1, g):
            return values


def _products(x, gate, up) -> tuple[float, float]:
    return float(np.dot(x, gate)), float(np.dot(x, up))


def _gated(function, *, on="gate"):
    def value(x, gate, up):
        g, u = _products(x, gate, up)
        if on == "product":
            return float(function(np.array(g * u)))
        return float(function(np.array(g)) * u) if on == "gate" else float(g * function(np.array(u)))

    return value


SWIGLU = Drill(
    name="swiglu_value",
    title="A SwiGLU value",
    notebook="12_swiglu",
    draw=_swiglu_values,
    task=lambda x, gate, up: (
        f"$x={_vector(x)}$. One hidden channel of a SwiGLU layer has the gate's column $w_g={_vector(gate)}$ and the"
        f" content's column $w_u={_vector(up)}$. Give the channel's value before $W_d$."
    ),
    answer=lambda x, gate, up: swiglu(
        np.array(x, float), np.array(gate, float)[:, None], np.array(up, float)[:, None], np.ones((1, 1))
    ),
    working=lambda x, gate, up: (
        "$x\\cdot w_g={:g}$, $x\\cdot w_u={:g}$;".format(*_products(x, gate, up))
        + f" $\\mathrm{{SiLU}}({_products(x, gate, up)[0]:g})={float(silu(np.array(_products(x, gate, up)[0]))):.6f}$,"
        " times the content"
    ),
    slips=(
        Slip("sigmoid for SiLU", _gated(sigmoid), "You took the sigmoid, which is GLU. SiLU is z·σ(z)."),
        Slip("ReLU for SiLU", _gated(relu), "You took ReLU, which is ReGLU. SiLU is z·σ(z)."),
        Slip("GELU for SiLU", _gated(gelu), "You took GELU, which is GEGLU. SiLU is z·σ(z)."),
        Slip(
            "branches exchanged",
            _gated(silu, on="up"),
            "You activated the content. SiLU acts on x·w_g, and its result multiplies x·w_u.",
        ),
        Slip(
            "content forgotten",
            lambda x, gate, up: float(silu(np.array(_products(x, gate, up)[0]))),
            "That is the gate alone; multiply it by x·w_u.",
        ),
        Slip(
            "activated after the product",
            _gated(silu, on="product"),
            "You multiplied first and then took SiLU. The activation acts on the gate's branch alone.",
        ),
        Slip(
            "no activation",
            _gated(lambda z: z),
            "You multiplied the two branches as they are, which is the bilinear layer. The gate goes through SiLU.",
        ),
    ),
)
