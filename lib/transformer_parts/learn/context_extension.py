"""Exercises on context extension (notebook 08)."""

import math

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import context_extension, rope


def _base_solution(base, factor, head_dim):
    return context_extension.ntk_base(head_dim, factor, rope_base=base)


def _base_inputs(rng):
    return float(rng.choice([10000.0, 500000.0])), float(rng.choice([2.0, 3.0, 8.0])), int(rng.choice([32, 64, 128]))


NTK_BASE = Exercise(
    task=_("new_base(base, factor, head_dim): the base of NTK-aware scaling, dividing the slowest pair by factor"),
    solution=_base_solution,
    inputs=_base_inputs,
    mistakes=(
        Mistake(
            "base unchanged",
            lambda base, factor, head_dim: base,
            _(
                "You return the old base. The slowest pair has the frequency base^(−(d−2)/d): which base divides it by"
                " s?"
            ),
        ),
        Mistake(
            "base times s",
            lambda base, factor, head_dim: base * factor,
            _("With base·s the slowest pair is divided by s^((d−2)/d), a little less than s. Raise s to d/(d−2)."),
        ),
        Mistake(
            "exponent inverted",
            lambda base, factor, head_dim: base * factor ** ((head_dim - 2) / head_dim),
            _(
                "Your exponent is (d−2)/d, the slowest pair's own. Solve base'^(−(d−2)/d) = base^(−(d−2)/d)/s for"
                " base'."
            ),
        ),
        Mistake(
            "pairs for channels",
            lambda base, factor, head_dim: base * factor ** (head_dim / 2 / (head_dim / 2 - 2)),
            _("You counted d/2 pairs where the exponent d/(d−2) counts channels."),
        ),
        Mistake(
            "base to the power",
            lambda base, factor, head_dim: (base * factor) ** (head_dim / (head_dim - 2)),
            _("The power d/(d−2) belongs to s alone; you raised the base too."),
        ),
        Mistake(
            "base divided",
            lambda base, factor, head_dim: base / factor ** (head_dim / (head_dim - 2)),
            _("You made the base smaller, which makes every pair faster. Longer contexts need slower pairs."),
        ),
    ),
    hints=(
        _("The slowest pair is i = d/2 − 1: its exponent is 2i/d = (d − 2)/d."),
        _("base'^(−(d−2)/d) shall be base^(−(d−2)/d) / s."),
        _("Take both sides to the power −d/(d−2): base' = base · s^(d/(d−2))."),
    ),
    tolerance=1e-6,
)


def _angle_solution(position, theta, trained_length, length):
    return position * trained_length / length * theta


def _angle_inputs(rng):
    trained_length = int(rng.choice([512, 2048, 4096]))
    factor = int(rng.choice([2, 3, 8]))
    # Beyond the trained length and no multiple of the factor: there, rounding the scaled position would change nothing.
    position = factor * int(rng.integers(-(-trained_length // factor), trained_length)) + int(rng.integers(1, factor))
    return position, float(rng.uniform(0.05, 1.0)), trained_length, trained_length * factor


PI_ANGLE = Exercise(
    task=_("angle(position, theta, trained_length, length): the angle of one pair under Position Interpolation"),
    solution=_angle_solution,
    inputs=_angle_inputs,
    mistakes=(
        Mistake(
            "not interpolated",
            lambda position, theta, L, new: position * theta,
            _("This is RoPE as trained: positions beyond the trained length keep their own angle. Scale the position."),
        ),
        Mistake(
            "stretched",
            lambda position, theta, L, new: position * theta * new / L,
            _("You multiplied by L'/L. Interpolation presses L' positions into L: multiply by L/L'."),
        ),
        Mistake(
            "clipped",
            lambda position, theta, L, new: min(position, L) * theta,
            _("You stop at the trained length: all later positions become one. Interpolation moves every position."),
        ),
        Mistake(
            "wrapped",
            lambda position, theta, L, new: position % L * theta,
            _(
                "You begin anew after the trained length: two tokens share a position. Interpolation moves every"
                " position."
            ),
        ),
        Mistake(
            "rounded down",
            lambda position, theta, L, new: position * L // new * theta,
            _("You rounded the scaled position: neighbours become one. RoPE takes fractions; keep them."),
        ),
        Mistake(
            "only beyond the trained length",
            lambda position, theta, L, new: (L + (position - L) * L / new) * theta,
            _(
                "You left the first L positions as they were and pressed the rest. Every position is multiplied by"
                " L/L'."
            ),
        ),
        Mistake(
            "by the square",
            lambda position, theta, L, new: position * theta * (L / new) ** 2,
            _("You scaled twice, position and frequency. Once is enough: only their product matters."),
        ),
    ),
    hints=(
        _("Position L' shall get the angle that position L had in training."),
        _("So every position is multiplied by L/L'; fractions are welcome."),
        _("position · trained_length / length · theta"),
    ),
)


def _yarn(theta, factor, trained_length, *, low=1.0, high=32.0, rotations=None, power=2, log=math.log):
    """Return the frequencies of the paper's ramp, then the factor of the logits; the keywords make the mistakes."""
    turned = trained_length * theta / (2 * np.pi) if rotations is None else rotations
    kept = np.clip((turned - low) / (high - low), 0, 1)
    return np.append(theta * kept + theta / factor * (1 - kept), (0.1 * log(factor) + 1) ** power)


def _index_ramp(theta, factor, trained_length):
    base = float(theta[1] ** -len(theta))
    parts = context_extension.ntk_by_parts(2 * len(theta), factor, trained_length, rope_base=base)
    return np.append(parts.inv_freq, _yarn(theta, factor, trained_length)[-1])


def _reversed_ramp(theta, factor, trained_length):
    right = _yarn(theta, factor, trained_length)
    right[:-1] = theta + theta / factor - right[:-1]
    return right


def _not_clipped(theta, factor, trained_length):
    right = _yarn(theta, factor, trained_length)
    kept = (trained_length * theta / (2 * np.pi) - 1) / 31
    right[:-1] = theta * kept + theta / factor * (1 - kept)
    return right


def _wavelengths_blended(theta, factor, trained_length):
    right = _yarn(theta, factor, trained_length)
    kept = np.clip((trained_length * theta / (2 * np.pi) - 1) / 31, 0, 1)
    right[:-1] = 1 / (kept / theta + (1 - kept) * factor / theta)
    return right


def _yarn_inputs(rng):
    head_dim = int(rng.choice([32, 64, 128]))
    return rope.inv_freq(head_dim), float(rng.choice([4.0, 8.0, 16.0])), int(rng.choice([2048, 4096, 8192]))


YARN = Exercise(
    task=_(
        "yarn(theta, factor, trained_length): an array of the new frequency of each pair, by the paper's ramp from 1 to"
        " 32 rotations, and as its last entry what the logits are multiplied by"
    ),
    solution=_yarn,
    inputs=_yarn_inputs,
    mistakes=(
        Mistake(
            "temperature once",
            lambda theta, s, L: _yarn(theta, s, L, power=1),
            _("The frequencies are right. 0.1·ln s + 1 multiplies the query and the key, so the logits by its square."),
        ),
        Mistake(
            "temperature on the wrong side",
            lambda theta, s, L: _yarn(theta, s, L, power=-2),
            _("The frequencies are right, but you soften the attention: √(1/t) = 0.1·ln s + 1, so 1/t multiplies."),
        ),
        Mistake(
            "logarithm of base 10",
            lambda theta, s, L: _yarn(theta, s, L, log=math.log10),
            _("The frequencies are right. The temperature's logarithm is the natural one."),
        ),
        Mistake(
            "ramp reversed",
            _reversed_ramp,
            _("You slow the fast pairs and leave the slow ones. Fast pairs have seen every angle: leave them."),
        ),
        Mistake(
            "ramp not clipped",
            _not_clipped,
            _("Your blend goes on outside 1 … 32 rotations, so fast pairs are sped up. Clip it to 0 … 1."),
        ),
        Mistake(
            "wavelength for rotations",
            lambda theta, s, L: _yarn(theta, s, L, rotations=2 * np.pi / theta),
            _("You put the wavelength 2π/θ into the ramp. It wants the rotations within the trained length, L/λ."),
        ),
        Mistake(
            "2π forgotten",
            lambda theta, s, L: _yarn(theta, s, L, rotations=L * theta),
            _("Your ramp is in radians. Rotations are radians over 2π."),
        ),
        Mistake(
            "the extended length",
            lambda theta, s, L: _yarn(theta, s, L, rotations=s * L * theta / (2 * np.pi)),
            _("You counted the rotations within the extended length. Training has seen the trained one."),
        ),
        Mistake(
            "the code's ramp",
            _index_ramp,
            _("This is the ramp of the released code, in the pair's index. Asked for is the paper's, in rotations."),
        ),
        Mistake(
            "wavelengths blended",
            _wavelengths_blended,
            _("You blended wavelengths. The paper blends the frequencies, θ and θ/s."),
        ),
        Mistake(
            "every pair interpolated",
            lambda theta, s, L: _yarn(theta, s, L, rotations=0 * theta),
            _("This slows every pair alike: Position Interpolation. Pairs with many rotations shall stay."),
        ),
    ),
    hints=(
        _("The rotations of a pair within the trained length are L·θ/2π."),
        _("kept = clip((rotations − 1) / 31, 0, 1); the new frequency is kept·θ + (1 − kept)·θ/s."),
        _("The logits are multiplied by (0.1·ln s + 1)²: np.append(frequencies, …)."),
    ),
    tolerance=1e-10,
)
