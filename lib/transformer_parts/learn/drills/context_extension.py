"""Drills about longer contexts: angles and frequencies of Position Interpolation, NTK-aware scaling and YaRN."""

import math

from transformer_parts.language import _
from transformer_parts.learn.drills.drill import Drill, Slip
from transformer_parts.maths import context_extension

POSITION_INTERPOLATION = Drill(
    name="position_interpolation",
    title=_("Position Interpolation: an angle"),
    notebook="08_context_extension",
    draw=lambda rng: {
        "position": int(rng.integers(500, 8000)),
        "pair": int(rng.integers(1, 4)),
        "factor": int(rng.choice([2, 4, 8])),
    },
    task=lambda position, pair, factor: _(
        "Head of 8 channels, base 10000. The context is extended from 1,024 to {length:,} by Position"
        " Interpolation. By which angle, in radians, is pair $i={pair}$ turned at position {position:,}?",
        length=1024 * factor,
        pair=pair,
        position=position,
    ),
    answer=lambda position, pair, factor: float(
        position * context_extension.position_interpolation(8, factor).inv_freq[pair]
    ),
    working=lambda position, pair, factor: _(
        "$\\theta_i=10000^{{-2\\cdot{pair}/8}}={frequency:g}$; position ${position}/{factor}={scaled:g}$;"
        " their product",
        pair=pair,
        frequency=10.0**-pair,
        position=position,
        factor=factor,
        scaled=position / factor,
    ),
    slips=(
        Slip(
            _("not scaled"),
            lambda position, pair, factor: position * 10.0**-pair,
            _("That is the angle without interpolation. Divide the position by the factor."),
        ),
        Slip(
            _("multiplied by s"),
            lambda position, pair, factor: position * factor * 10.0**-pair,
            _("You multiplied by the factor. Interpolation squeezes: position · L/L'."),
        ),
        Slip(
            _("scaled twice"),
            lambda position, pair, factor: position / factor**2 * 10.0**-pair,
            _("You divided both the position and the frequency. One of them is enough."),
        ),
        Slip(
            _("NTK-aware"),
            lambda position, pair, factor: position * 10.0**-pair * factor ** (-2 * pair / 8),
            _("You changed the base. Position Interpolation divides every frequency by the same factor."),
        ),
        Slip(
            _("pairs counted from 1"),
            lambda position, pair, factor: position / factor * 10.0 ** (1 - pair),
            _("That is the pair before: the first has i = 0 and frequency 1."),
        ),
        Slip(
            _("degrees"),
            lambda position, pair, factor: math.degrees(position / factor * 10.0**-pair),
            _("That is the angle in degrees; it is asked for in radians."),
        ),
    ),
)

NTK = Drill(
    name="ntk_frequency",
    title=_("NTK-aware: a frequency"),
    notebook="08_context_extension",
    draw=lambda rng: {
        "head_dim": int(rng.choice([8, 10, 12, 16])),
        "share": float(rng.uniform()),
        "factor": int(rng.choice([4, 8, 16])),
    },
    task=lambda head_dim, share, factor: _(
        "Head of {head_dim} channels, base 10000. NTK-aware scaling by $s={factor}$. Give the new"
        " frequency of pair $i={pair}$ (counted from 0).",
        head_dim=head_dim,
        factor=factor,
        pair=_pair(head_dim, share),
    ),
    answer=lambda head_dim, share, factor: float(
        context_extension.ntk_aware(head_dim, factor).inv_freq[_pair(head_dim, share)]
    ),
    working=lambda head_dim, share, factor: (
        f"$\\theta_i'=\\theta_i\\,s^{{-2i/(d-2)}}=10000^{{-{2 * _pair(head_dim, share)}/{head_dim}}}\\cdot"
        f"{factor}^{{-{2 * _pair(head_dim, share)}/{head_dim - 2}}}$"
    ),
    slips=(
        Slip(
            _("position interpolation"),
            lambda head_dim, share, factor: _theta(head_dim, share) / factor,
            _(
                "You divided by s, as Position Interpolation does. NTK-aware changes the base, so each pair its own"
                " share."
            ),
        ),
        Slip(
            _("exponent 1"),
            lambda head_dim, share, factor: _theta(head_dim, share, 10_000 * factor),
            _("You multiplied the base by s. The exponent is d/(d − 2): base · s^(d/(d−2))."),
        ),
        Slip(
            _("not scaled"),
            lambda head_dim, share, factor: _theta(head_dim, share),
            _("That is the frequency before scaling."),
        ),
        Slip(
            _("base divided"),
            lambda head_dim, share, factor: (
                _theta(head_dim, share) * factor ** (2 * _pair(head_dim, share) / (head_dim - 2))
            ),
            _("The base grows, so frequencies fall: the exponent of s is negative."),
        ),
        Slip(
            _("fast pairs slowed"),
            lambda head_dim, share, factor: (
                _theta(head_dim, share) * factor ** (2 * _pair(head_dim, share) / (head_dim - 2) - 1)
            ),
            _("You slowed the fast pairs and left the slow ones. It is the other way round: pair 0 stays."),
        ),
    ),
)


def _pair(head_dim: int, share: float) -> int:
    """Return one of the pairs between the first and the last."""
    return 1 + int(share * (head_dim // 2 - 2))


def _theta(head_dim: int, share: float, base: float = 10_000) -> float:
    return base ** (-2 * _pair(head_dim, share) / head_dim)


def _yarn(theta, length, factor, *, kept=lambda rotations: (rotations - 1) / 31, rotations=None):
    rotations = length * theta / (2 * math.pi) if rotations is None else rotations
    share = min(max(kept(rotations), 0.0), 1.0)
    return share * theta + (1 - share) * theta / factor


YARN = Drill(
    name="yarn_frequency",
    title=_("YaRN: a frequency"),
    notebook="08_context_extension",
    draw=lambda rng: {
        "theta": int(rng.integers(10, 100)) / 1000,
        "length": int(rng.choice([512, 1024, 2048, 4096])),
        "factor": int(rng.choice([4, 8, 16])),
    },
    task=lambda theta, length, factor: _(
        "A pair has the frequency $\\theta={theta}$; the model was trained on {length:,} positions and is extended by"
        " $s={factor}$. Give YaRN's new frequency by the paper's ramp, from $\\alpha=1$ to $\\beta=32$ rotations.",
        theta=theta,
        length=length,
        factor=factor,
    ),
    # A head of 4 channels whose second pair has that frequency.
    answer=lambda theta, length, factor: float(
        context_extension.yarn(4, factor, length, rope_base=theta**-2, ramp="rotations").inv_freq[1]
    ),
    working=lambda theta, length, factor: _(
        "Rotations $L\\theta/2\\pi={rotations:.4f}$; share kept $\\gamma=(r-1)/31={kept:.4f}$;"
        " $\\gamma\\theta+(1-\\gamma)\\theta/s$",
        rotations=length * theta / (2 * math.pi),
        kept=(length * theta / (2 * math.pi) - 1) / 31,
    ),
    slips=(
        Slip(
            _("ramp reversed"),
            lambda theta, length, factor: _yarn(theta, length, factor, kept=lambda r: 1 - (r - 1) / 31),
            _("The ramp is reversed: pairs with many rotations are kept, those with few are divided by s."),
        ),
        Slip(
            _("divided by s"),
            lambda theta, length, factor: theta / factor,
            _("That is full interpolation, for pairs with fewer than one rotation. This one is on the ramp."),
        ),
        Slip(
            _("left alone"),
            lambda theta, length, factor: theta,
            _("That is the old frequency, for pairs with more than 32 rotations. This one is on the ramp."),
        ),
        Slip(
            _("forgot 2π"),
            lambda theta, length, factor: _yarn(theta, length, factor, rotations=length * theta),
            _("You took L·θ for the number of rotations; that is radians. Divide by 2π."),
        ),
        Slip(
            _("ramp from 0"),
            lambda theta, length, factor: _yarn(theta, length, factor, kept=lambda r: r / 32),
            _("The ramp begins at α = 1: γ = (r − α)/(β − α)."),
        ),
        Slip(
            _("wavelengths blended"),
            lambda theta, length, factor: 1 / _yarn(1 / theta, 1, 1 / factor, rotations=length * theta / (2 * math.pi)),
            _("You blended the wavelengths. YaRN blends the frequencies."),
        ),
    ),
)
