"""Drills about RoPE: a rotation, a score, a wavelength."""

import math

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.drills.drill import Drill, Slip
from transformer_parts.maths import rope


def _signed(rng: np.random.Generator, size: int, largest: int = 5) -> list[int]:
    return [int(number) for number in rng.choice([-1, 1], size) * rng.integers(1, largest + 1, size)]


def _printed(number: float, form: str = "") -> str:
    return format(number, form).replace("-", "−")


def _vector(numbers: list[int]) -> str:
    return f"({', '.join(map(str, numbers))})"


# ---------------------------------------------------------------- rotate


def _turn(x: list[int], angle: float) -> tuple[float, float]:
    return x[0] * math.cos(angle) - x[1] * math.sin(angle), x[0] * math.sin(angle) + x[1] * math.cos(angle)


ROTATE = Drill(
    name="rotate",
    title=_("Rotate a vector"),
    notebook="04_rope",
    draw=lambda rng: {"x": _signed(rng, 2), "m": int(rng.integers(2, 9)), "theta": int(rng.integers(1, 13)) / 10},
    task=lambda x, m, theta: _(
        "A query's pair of channels is $q={x}$, its frequency $\\theta={theta}$ rad per position. Give"
        " the pair after RoPE at position $m={m}$ (column vectors, counter-clockwise).",
        x=_vector(x),
        theta=theta,
        m=m,
    ),
    answer=lambda x, m, theta: rope.rotate([x], [m], inv_freq=[theta])[0],
    working=lambda x, m, theta: _(
        "Angle $m\\theta={angle:.4g}$ rad, $\\cos={cos:.6f}$, $\\sin={sin:.6f}$; $(a\\cos-b\\sin,\\;a\\sin+b\\cos)$",
        angle=m * theta,
        cos=math.cos(m * theta),
        sin=math.sin(m * theta),
    ),
    slips=(
        Slip(
            _("degrees for radians"),
            lambda x, m, theta: _turn(x, math.radians(m * theta)),
            _(
                "You took the angle for degrees. Frequencies are in radians per position; set the calculator to"
                " radians."
            ),
        ),
        Slip(
            _("negative angle"),
            lambda x, m, theta: _turn(x, -m * theta),
            _("You turned clockwise. With column vectors the rotation is (a·cos − b·sin, a·sin + b·cos)."),
        ),
        Slip(
            _("position counted from 1"),
            lambda x, m, theta: _turn(x, (m + 1) * theta),
            _("That is the next position: positions count from 0, so the angle is m·θ."),
        ),
        Slip(
            _("position forgotten"),
            lambda x, m, theta: _turn(x, theta),
            _("You turned by θ, the angle of position 1. Multiply it by the position."),
        ),
        Slip(
            _("reflection"),
            lambda x, m, theta: (
                x[0] * math.cos(m * theta) + x[1] * math.sin(m * theta),
                x[0] * math.sin(m * theta) - x[1] * math.cos(m * theta),
            ),
            _("The signs are those of a reflection. The minus belongs to b·sin in the first coordinate alone."),
        ),
        Slip(
            _("coordinates exchanged"),
            lambda x, m, theta: _turn(x, m * theta)[::-1],
            _("Right numbers, exchanged: the first coordinate is a·cos − b·sin."),
        ),
    ),
)

# ---------------------------------------------------------------- the score at an offset


def _score(q, k, angles, scale=0.5):
    pairs = ((q[:2], k[:2]), (q[2:], k[2:]))
    return scale * sum(np.dot(a, _turn(b, angle)) for (a, b), angle in zip(pairs, angles, strict=True))


SCORE = Drill(
    name="score",
    title=_("Score at an offset"),
    notebook="04_rope",
    draw=lambda rng: (
        {"q": _signed(rng, 4, 4), "k": _signed(rng, 4, 4)}
        | dict(zip(("m", "n"), map(int, rng.choice(np.arange(1, 40), 2, replace=False)), strict=True))
    ),
    task=lambda q, k, m, n: _(
        "A head of 4 channels, base 10000, neighbouring channels paired: $\\theta=(1,\\,0.01)$. Query $q={q}$ at"
        " position {m}, key $k={k}$ at position {n}. Give the score, divided by $\\sqrt{{d_h}}$.",
        q=_vector(q),
        m=m,
        k=_vector(k),
        n=n,
    ),
    answer=lambda q, k, m, n: float(rope.scores_by_offset(q, k, [n - m])[0]),
    working=lambda q, k, m, n: _(
        "Turn the key alone by the offset {offset}: its pairs by {offset} rad and {slow} rad. Inner products of the"
        " pairs {first} and {second}; their sum divided by 2",
        offset=_printed(n - m),
        slow=_printed((n - m) / 100),
        first=_printed(_score([*q[:2], 0, 0], k, (n - m, 0), 1), ".4f"),
        second=_printed(_score([0, 0, *q[2:]], k, (0, (n - m) / 100), 1), ".4f"),
    ),
    slips=(
        Slip(
            _("forgot √d_h"),
            lambda q, k, m, n: _score(q, k, (n - m, (n - m) / 100), 1),
            _("The inner product is right; the score divides it by √d_h, here 2."),
        ),
        Slip(
            _("divided by d_h"),
            lambda q, k, m, n: _score(q, k, (n - m, (n - m) / 100), 0.25),
            _("You divided by d_h = 4; the score divides by its square root."),
        ),
        Slip(
            _("no rotation"),
            lambda q, k, m, n: _score(q, k, (0, 0)),
            _("Nothing was turned: that is the score at offset 0."),
        ),
        Slip(
            _("sum of the positions"),
            lambda q, k, m, n: _score(q, k, (n + m, (n + m) / 100)),
            _("You turned query and key in opposite senses, or added the positions. The angle is (n − m)·θ."),
        ),
        Slip(
            _("opposite offset"),
            lambda q, k, m, n: _score(q, k, (m - n, (m - n) / 100)),
            _("The sign of the offset is reversed: the key is turned by key position minus query position."),
        ),
        Slip(
            _("degrees for radians"),
            lambda q, k, m, n: _score(q, k, (math.radians(n - m), math.radians((n - m) / 100))),
            _("You took the angles for degrees; frequencies are in radians per position."),
        ),
        Slip(
            _("one frequency for both pairs"),
            lambda q, k, m, n: _score(q, k, (n - m, n - m)),
            _("You turned both pairs with frequency 1. The second has 10000^(−2/4) = 0.01."),
        ),
    ),
)

# ---------------------------------------------------------------- wavelength


WAVELENGTH = Drill(
    name="wavelength",
    title=_("Wavelength of a pair"),
    notebook="05_rope_scores",
    draw=lambda rng: {
        "pair": int(rng.integers(4, 28)),
        "head_dim": int(rng.choice([64, 80, 96, 128])),
        "base": int(rng.choice([10_000, 500_000, 1_000_000])),
    },
    task=lambda pair, head_dim, base: _(
        "RoPE with head_dim {head_dim} and base {base:,}. How many positions does pair $i={pair}$"
        " (counted from 0) take for a whole turn?",
        head_dim=head_dim,
        base=base,
        pair=pair,
    ),
    answer=lambda pair, head_dim, base: float(rope.wavelengths(rope.inv_freq(head_dim, base))[pair]),
    working=lambda pair, head_dim, base: _(
        "$\\lambda_i=2\\pi\\cdot\\text{{base}}^{{2i/d_h}}=2\\pi\\cdot{base}^{{{twice}/{head_dim}}}$",
        base=base,
        twice=2 * pair,
        head_dim=head_dim,
    ),
    slips=(
        Slip(
            _("forgot 2π"),
            lambda pair, head_dim, base: base ** (2 * pair / head_dim),
            _("That is 1/θ, the positions for one radian. A whole turn is 2π radians."),
        ),
        Slip(
            _("exponent without the 2"),
            lambda pair, head_dim, base: 2 * math.pi * base ** (pair / head_dim),
            _("The exponent is 2i/d_h; you took i/d_h."),
        ),
        Slip(
            _("pairs counted from 1"),
            lambda pair, head_dim, base: 2 * math.pi * base ** (2 * (pair - 1) / head_dim),
            _("That is the pair before: the first has i = 0."),
        ),
        Slip(
            _("the next pair"),
            lambda pair, head_dim, base: 2 * math.pi * base ** (2 * (pair + 1) / head_dim),
            _("That is the next pair: the first has i = 0, so this one has the exponent 2i/d_h with i as given."),
        ),
        Slip(
            _("frequency for wavelength"),
            lambda pair, head_dim, base: base ** (-2 * pair / head_dim),
            _("That is the frequency θ, radians per position. The wavelength is 2π/θ."),
        ),
        Slip(
            _("multiplied by θ"),
            lambda pair, head_dim, base: 2 * math.pi * base ** (-2 * pair / head_dim),
            _("The exponent has the wrong sign: that is 2π·θ, and the wavelength is 2π/θ."),
        ),
    ),
)
