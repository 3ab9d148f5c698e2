"""Exercises on the score against the offset, and on the wavelengths behind it (notebook 05)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import rope, rope_scores


def _solution(query, key, offsets, inv_freq):
    return rope_scores.scores_by_offset(query, key, offsets, inv_freq=inv_freq)


def _inputs(rng):
    # At least two pairs, so that pairing and frequencies matter, and offsets of both signs.
    head_dim = 2 * int(rng.integers(2, 6))
    offsets = rng.choice(np.concatenate([np.arange(-60, 0), np.arange(1, 61)]), 5, replace=False)
    return *rng.standard_normal((2, head_dim)), offsets, rope.inv_freq(head_dim, float(rng.choice([100.0, 10000.0])))


def _sum_of_waves(angle=lambda offsets, f: np.outer(offsets, f), phase=1, scale=lambda d: d**-0.5):
    """Build the sum of amplitude · cos(angle + phase) over the pairs, with one part replaced."""

    def function(query, key, offsets, inv_freq):
        amplitude, own_phase = rope_scores.pair_waves(query, key)
        return (amplitude * np.cos(angle(offsets, inv_freq) + phase * own_phase)).sum(-1) * scale(len(query))

    return function


def _dot_products_only(query, key, offsets, inv_freq):
    products = (query * key).reshape(-1, 2).sum(-1)
    return np.cos(np.outer(offsets, inv_freq)) @ products / np.sqrt(len(query))


def _split(query, key, offsets, inv_freq):
    return rope_scores.scores_by_offset(query, key, offsets, inv_freq=inv_freq, layout="split")


SCORES = Exercise(
    task=_(
        "scores_without_turning(query, key, offsets, inv_freq): the score at each offset n − m, turning neither vector"
    ),
    takes=(
        _("`query`, `key`: one vector each, of shape (d,), d even, not rotated"),
        _("`offsets`: whole numbers n − m, of shape (count,): position of the key minus position of the query"),
        _("`inv_freq`: of shape (d/2,), in rad per position: one frequency for each pair (0, 1), (2, 3) …"),
    ),
    returns=_("an array of shape (count,): the scores, divided by √d"),
    solution=_solution,
    inputs=_inputs,
    mistakes=(
        Mistake(
            "missing scale",
            _sum_of_waves(scale=lambda d: 1.0),
            _("The sum of the pairs is right; the score divides it by √head_dim."),
        ),
        Mistake(
            "scaled by the pairs",
            _sum_of_waves(scale=lambda d: (d / 2) ** -0.5),
            _("You divide by the root of the number of pairs; head_dim counts channels, twice as many."),
        ),
        Mistake(
            "scaled by head_dim",
            _sum_of_waves(scale=lambda d: 1 / d),
            _("You divide by head_dim; the score divides by its square root."),
        ),
        Mistake(
            "offset turned round",
            _sum_of_waves(phase=-1),
            _(
                "Your curve is mirrored: it belongs to m − n. The offset is n − m, key minus query, and the phase is"
                " the key's direction minus the query's."
            ),
        ),
        Mistake(
            "phases left out",
            _sum_of_waves(phase=0),
            _(
                "Each cosine begins at its own phase, the angle from the query's pair to the key's at offset 0; you let"
                " all begin at 0, as if q and k pointed alike in every pair."
            ),
        ),
        Mistake(
            "inner products only",
            _dot_products_only,
            _(
                "You turn the inner product of each pair by its cosine alone. The part at a right angle comes in with"
                " the sine: (a·c + b·d)·cos Δθ + (b·c − a·d)·sin Δθ for the pairs (a, b) and (c, d)."
            ),
        ),
        Mistake(
            "halves instead of neighbours",
            _split,
            _("You paired channel i with channel i + d/2: that is the split layout. Here pairs are neighbours."),
        ),
        Mistake(
            "one frequency for all pairs",
            _sum_of_waves(angle=lambda offsets, f: np.outer(offsets, np.full_like(f, f[0]))),
            _("You turn every pair by offset · inv_freq[0]; pair i turns by offset · inv_freq[i]."),
        ),
        Mistake(
            "degrees",
            _sum_of_waves(angle=lambda offsets, f: np.radians(np.outer(offsets, f))),
            _("You took the angle for degrees; offset times frequency is in radians already."),
        ),
    ),
    hints=(
        _(
            "A head's score is a sum over its pairs. What does the pair (a, b) of the query give with the pair (c, d)"
            " of the key when only the key is turned, by Δθ?"
        ),
        _(
            "Each pair gives |q||k| cos(Δθ + φ), with φ the angle from the query's pair to the key's. As complex"
            " numbers: the real part of conj(a + ib) · (c + id) · exp(iΔθ)."
        ),
        _(
            "np.outer(offsets, inv_freq) holds all angles, one row for each offset; sum over the pairs and divide by"
            " √head_dim."
        ),
    ),
)


def _wavelength_solution(pair, head_dim, rope_base):
    return rope.wavelengths(rope.inv_freq(head_dim, rope_base))[pair]


def _wavelength_inputs(rng):
    # From pair 1 on: at pair 0 the exponent is 0 and half of the mistakes are right.
    head_dim = 2 * int(rng.integers(3, 65))
    return int(rng.integers(1, head_dim // 2)), head_dim, float(rng.choice([1e4, 1e5, 5e5]))


WAVELENGTH = Exercise(
    task=_(
        "wavelength(pair, head_dim, rope_base): how many positions that pair, counted from 0, takes for a whole turn"
    ),
    takes=(
        _("`pair`: a whole number i from 0 on"),
        _("`head_dim`: width d of the head, even"),
        _("`rope_base`: the base; pair i turns by base^(−2i/d) rad per position"),
    ),
    returns=_("one number, not rounded"),
    solution=_wavelength_solution,
    inputs=_wavelength_inputs,
    tolerance=1e-6,
    mistakes=(
        Mistake(
            "frequency",
            lambda i, d, base: base ** (-2 * i / d),
            _("That is the frequency, in radians per position; the wavelength is 2π divided by it."),
        ),
        Mistake(
            "without 2π",
            lambda i, d, base: base ** (2 * i / d),
            _("That is how many positions a turn by 1 radian takes; a whole turn is 2π radians."),
        ),
        Mistake(
            "half a turn",
            lambda i, d, base: np.pi * base ** (2 * i / d),
            _("A whole turn is 2π radians; π is half of it."),
        ),
        Mistake(
            "sign of the exponent",
            lambda i, d, base: 2 * np.pi * base ** (-2 * i / d),
            _("Your later pairs have shorter waves. They turn more slowly: their wavelengths grow with i."),
        ),
        Mistake(
            "exponent without the 2",
            lambda i, d, base: 2 * np.pi * base ** (i / d),
            _("Your exponent is i/d with i counting pairs; it is 2i/d."),
        ),
        Mistake(
            "counted from 1",
            lambda i, d, base: 2 * np.pi * base ** (2 * (i - 1) / d),
            _(
                "You counted pairs from 1, as the RoFormer paper does; here the first pair is 0 and has the wavelength"
                " 2π."
            ),
        ),
        Mistake(
            "up to the base",
            lambda i, d, base: 2 * np.pi * base ** (i / (d / 2 - 1)),
            _(
                "You let the exponents run from 0 to exactly 1; they run to (d − 2)/d, so that the last wave stays"
                " below 2π · base."
            ),
        ),
        Mistake(
            "degrees",
            lambda i, d, base: 360 * base ** (2 * i / d),
            _("A turn has 360 degrees, but the frequencies are in radians: a turn is 2π."),
        ),
    ),
    hints=(
        _("By how many radians does pair i turn from one position to the next?"),
        _("Its frequency is base^(−2i/d) radians per position, and a whole turn has 2π radians."),
        _("2π divided by base^(−2i/d)."),
    ),
)


def _count(turns=1.0, exponent=2, first=0):
    def function(head_dim, rope_base, length):
        pairs = np.arange(first, head_dim // 2)
        return int((turns * rope_base ** (exponent * pairs / head_dim) <= length).sum())

    return function


_complete = _count(turns=2 * np.pi)


def _complete_solution(head_dim, rope_base, length):
    return int((rope.wavelengths(rope.inv_freq(head_dim, rope_base)) <= length).sum())


def _complete_inputs(rng):
    while True:
        head_dim, rope_base = 32 * int(rng.integers(2, 5)), float(rng.choice([1e4, 1e5]))
        length = int(rng.integers(200, 8000))
        # Not where half of the pairs complete a turn: there, counting the other half gives the same number.
        if 2 * _complete(head_dim, rope_base, length) != head_dim // 2:
            return head_dim, rope_base, length


COMPLETE = Exercise(
    task=_(
        "complete(head_dim, rope_base, length): how many pairs make at least one whole turn within `length` positions"
    ),
    takes=(
        _("`head_dim`: width d of the head, even"),
        _("`rope_base`: the base; pair i turns by base^(−2i/d) rad per position, i from 0"),
        _("`length`: a number of positions; a turn that takes exactly so many counts"),
    ),
    returns=_("a whole number from 0 to d/2"),
    solution=_complete_solution,
    inputs=_complete_inputs,
    mistakes=(
        Mistake(
            "the others",
            lambda d, base, length: d // 2 - _complete(d, base, length),
            _("You counted the pairs that do not complete a turn."),
        ),
        Mistake(
            "radians for turns",
            _count(turns=1.0),
            _("You compare 1/θ with the length: that is a turn by 1 radian. A whole turn takes 2π/θ positions."),
        ),
        Mistake(
            "half a turn",
            _count(turns=np.pi),
            _("You count pairs that make half a turn; a whole one takes 2π/θ positions."),
        ),
        Mistake(
            "channels for pairs",
            lambda d, base, length: 2 * _complete(d, base, length),
            _("You counted channels; each pair has two."),
        ),
        Mistake(
            "pair 0 left out",
            _count(turns=2 * np.pi, first=1),
            _("One too few: pairs are counted from 0, and pair 0 turns fastest of all."),
        ),
        Mistake(
            "exponent without the 2",
            _count(turns=2 * np.pi, exponent=1),
            _("Your wavelengths are 2π · base^(i/d) with i counting pairs; the exponent is 2i/d."),
        ),
    ),
    hints=(
        _("How long is the wave of pair i?"),
        _("2π · base^(2i/d) positions; a pair completes a turn if that is at most the length."),
        _("Count the i from 0 to d/2 − 1 for which it holds."),
    ),
)
