"""Drills about norms, their gradient, and gated layers."""

import numpy as np

from transformer_parts.language import _
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
    title=_("RMSNorm of a short vector"),
    notebook="09_norms",
    draw=lambda rng: {"x": _varied(rng, int(rng.integers(2, 5)))},
    task=lambda x: _("Give $\\mathrm{{RMSNorm}}(x)$ for $x={x}$, with $\\gamma=1$ and $\\varepsilon=0$.", x=_vector(x)),
    answer=lambda x: rms_norm(np.array(x, float), eps=_EPS),
    working=lambda x: _(
        "Mean square ${squares}/{size}={mean:.4f}$, root ${rms:.6f}$; divide each entry by it",
        squares=sum(v * v for v in x),
        size=len(x),
        mean=np.mean(np.square(x)),
        rms=_rms(x),
    ),
    slips=(
        Slip(
            _("divided by the length"),
            lambda x: np.array(x) / np.linalg.norm(x),
            _("You divided by the vector's length: the mean is missing under the root. The result should have RMS 1."),
        ),
        Slip(
            _("LayerNorm"),
            lambda x: (np.array(x) - np.mean(x)) / np.std(x),
            _("That is LayerNorm: RMSNorm subtracts no mean."),
        ),
        Slip(
            _("no root"),
            lambda x: np.array(x) / np.mean(np.square(x)),
            _("You divided by the mean square; its root is missing."),
        ),
        Slip(
            _("mean of the sizes"),
            lambda x: np.array(x) / np.mean(np.abs(x)),
            _("You divided by the mean of the absolute values. Square first, then the mean, then the root."),
        ),
        Slip(
            _("divided by D − 1"),
            lambda x: np.array(x) / np.sqrt(np.sum(np.square(x)) / (len(x) - 1)),
            _("You took the mean with D − 1. RMSNorm divides the sum of squares by D."),
        ),
    ),
)

LAYER_NORM = Drill(
    name="layer_norm",
    title=_("LayerNorm of a short vector"),
    notebook="09_norms",
    draw=lambda rng: {"x": _varied(rng, int(rng.integers(3, 5)))},
    task=lambda x: _(
        "Give $\\mathrm{{LayerNorm}}(x)$ for $x={x}$, with $\\gamma=1$, $\\beta=0$ and $\\varepsilon=0$.", x=_vector(x)
    ),
    answer=lambda x: layer_norm(np.array(x, float), eps=_EPS),
    working=lambda x: _(
        "Mean ${mean:.4f}$, variance ${variance:.4f}$ (divided by {size}), root ${root:.6f}$; subtract the"
        " mean, divide by the root",
        mean=np.mean(x),
        variance=np.var(x),
        size=len(x),
        root=np.std(x),
    ),
    slips=(
        Slip(
            _("unbiased variance"),
            lambda x: (np.array(x) - np.mean(x)) / np.std(x, ddof=1),
            _("You divided the sum of squares by D − 1. LayerNorm takes the biased variance, divided by D."),
        ),
        Slip(
            _("RMSNorm"),
            lambda x: np.array(x) / _rms(x),
            _("That is RMSNorm: LayerNorm subtracts the mean first."),
        ),
        Slip(
            _("no root"),
            lambda x: (np.array(x) - np.mean(x)) / np.var(x),
            _("You divided by the variance; its root is missing."),
        ),
        Slip(
            _("mean alone"),
            lambda x: np.array(x) - np.mean(x),
            _("You subtracted the mean and did not divide by the standard deviation."),
        ),
        Slip(
            _("divided by the RMS of x"),
            lambda x: (np.array(x) - np.mean(x)) / _rms(x),
            _("You subtracted the mean, but divided by the RMS of x. The statistic is taken after subtracting."),
        ),
        Slip(
            _("mean left in"),
            lambda x: np.array(x) / np.std(x),
            _("You divided by the standard deviation and did not subtract the mean."),
        ),
    ),
)


def _varied(rng: np.random.Generator, size: int) -> list[int]:
    """Return numbers that are not all the same."""
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
    return {"x": _varied(rng, size), "g": _varied(rng, size)}


GRADIENT = Drill(
    name="rms_norm_gradient",
    title=_("Gradient of RMSNorm"),
    notebook="09_norms",
    draw=_x_and_g,
    task=lambda x, g: _(
        "$y=\\mathrm{{RMSNorm}}(x)$ with $\\gamma=1$, $\\varepsilon=0$, at $x={x}$. The loss has the"
        " gradient $g=\\partial L/\\partial y={g}$. Give $\\partial L/\\partial x$.",
        x=_vector(x),
        g=_vector(g),
    ),
    answer=lambda x, g: rms_norm_backward(np.array(g, float), np.array(x, float), None, _EPS)[0],
    working=lambda x, g: _(
        "$r={r:.6f}$, $\\hat x=x/r$, mean of $g\\hat x$: ${mean:.6f}$; $\\frac1r\\bigl(g-\\hat"
        " x\\,\\overline{{g\\hat x}}\\bigr)$",
        r=_rms(x),
        mean=np.dot(g, x) / _rms(x) / len(x),
    ),
    slips=(
        Slip(
            _("RMS taken for a constant"),
            lambda x, g: np.array(g) / _rms(x),
            _("You treated the RMS as a constant. It depends on x: the part of g along x̂ must be taken away."),
        ),
        Slip(
            _("plus for minus"),
            lambda x, g: _gradient(x, g, sign=1.0),
            _("The part along x̂ is subtracted, not added: the result must be orthogonal to x."),
        ),
        Slip(
            _("sum for mean"),
            lambda x, g: _gradient(x, g, mean=False),
            _("You took the sum of g·x̂; it is its mean, since r² is a mean."),
        ),
        Slip(
            _("1/r forgotten"),
            lambda x, g: _gradient(x, g, divide=False),
            _("The direction is right; divide by the RMS."),
        ),
        Slip(
            _("LayerNorm's gradient"),
            lambda x, g: np.asarray(layer_norm_backward(np.array(g, float), np.array(x, float), None, _EPS)[0]),
            _("That is LayerNorm's gradient: no mean is subtracted here."),
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
    title=_("A SwiGLU value"),
    notebook="12_swiglu",
    draw=_swiglu_values,
    task=lambda x, gate, up: _(
        "$x={x}$. One hidden channel of a SwiGLU layer has the gate's column $w_g={gate}$ and the"
        " content's column $w_u={up}$. Give the channel's value before $W_d$.",
        x=_vector(x),
        gate=_vector(gate),
        up=_vector(up),
    ),
    answer=lambda x, gate, up: swiglu(
        np.array(x, float), np.array(gate, float)[:, None], np.array(up, float)[:, None], np.ones((1, 1))
    ),
    working=lambda x, gate, up: _(
        "$x\\cdot w_g={gate:g}$, $x\\cdot w_u={content:g}$; $\\mathrm{{SiLU}}({gate:g})={silu:.6f}$, times the content",
        gate=_products(x, gate, up)[0],
        content=_products(x, gate, up)[1],
        silu=float(silu(np.array(_products(x, gate, up)[0]))),
    ),
    slips=(
        Slip(_("sigmoid for SiLU"), _gated(sigmoid), _("You took the sigmoid, which is GLU. SiLU is z·σ(z).")),
        Slip(_("ReLU for SiLU"), _gated(relu), _("You took ReLU, which is ReGLU. SiLU is z·σ(z).")),
        Slip(_("GELU for SiLU"), _gated(gelu), _("You took GELU, which is GEGLU. SiLU is z·σ(z).")),
        Slip(
            _("branches exchanged"),
            _gated(silu, on="up"),
            _("You activated the content. SiLU acts on x·w_g, and its result multiplies x·w_u."),
        ),
        Slip(
            _("content forgotten"),
            lambda x, gate, up: float(silu(np.array(_products(x, gate, up)[0]))),
            _("That is the gate alone; multiply it by x·w_u."),
        ),
        Slip(
            _("activated after the product"),
            _gated(silu, on="product"),
            _("You multiplied first and then took SiLU. The activation acts on the gate's branch alone."),
        ),
        Slip(
            _("no activation"),
            _gated(lambda z: z),
            _("You multiplied the two branches as they are, which is the bilinear layer. The gate goes through SiLU."),
        ),
    ),
)
