"""Exercises on the rotation itself (notebook 04)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import attention, rope


def _turn(x: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Turn neighbouring channels by an angle for each pair."""
    pairs = (x[0::2] + 1j * x[1::2]) * np.exp(1j * angle)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(-1)


def _solution(x, position, rope_base):
    return rope.rotate(x[None], [position], rope_base=rope_base)[0]


def _inputs(rng):
    # Positions from 2 on: at 0 every mistake is right, at 1 the position and its square agree.
    head_dim = 2 * int(rng.integers(2, 6))
    return rng.standard_normal(head_dim), int(rng.integers(2, 50)), float(rng.choice([100.0, 10000.0]))


def _with_angle(angle):
    return lambda x, position, rope_base: _turn(x, angle(position, rope.inv_freq(len(x), rope_base), rope_base, len(x)))


def _lengths_changed(x, position, rope_base):
    angle = np.repeat(position * rope.inv_freq(len(x), rope_base), 2)
    exchanged = np.stack([x[1::2], x[0::2]], axis=-1).reshape(-1)
    return x * np.cos(angle) + exchanged * np.sin(angle)


ROTATE = Exercise(
    task=_("rotate(x, position, rope_base): turn the neighbouring pairs (0, 1), (2, 3) … of the vector x"),
    takes=(
        _("`x`: one vector of shape (d,), d even"),
        _("`position`: a whole number from 0 on"),
        _("`rope_base`: the base; pair i turns by position · base^(−2i/d) rad, i from 0, counter-clockwise"),
    ),
    returns=_("a new array of shape (d,), the channels in the order of `x`"),
    solution=_solution,
    inputs=_inputs,
    mistakes=(
        Mistake("identity", lambda x, position, rope_base: x, _("Your function returns x as it was: nothing turned.")),
        Mistake(
            "negative angle",
            _with_angle(lambda p, theta, base, d: -p * theta),
            _(
                "You turn clockwise. Counter-clockwise is (a·cos − b·sin, a·sin + b·cos): look at the sign of the"
                " sines."
            ),
        ),
        Mistake(
            "positions from 1",
            _with_angle(lambda p, theta, base, d: (p + 1) * theta),
            _("You turn by one position too many: positions count from 0, and the vector at 0 is not turned."),
        ),
        Mistake(
            "position squared",
            _with_angle(lambda p, theta, base, d: p**2 * theta),
            _(
                "Your angle grows with the square of the position; it is position times frequency, so that differences"
                " of positions become differences of angles."
            ),
        ),
        Mistake(
            "halves instead of neighbours",
            lambda x, position, rope_base: rope.rotate(x[None], [position], rope_base=rope_base, layout="split")[0],
            _("You paired channel i with channel i + d/2: that is the split layout. Here pairs are neighbours."),
        ),
        Mistake(
            "one frequency for all pairs",
            _with_angle(lambda p, theta, base, d: p * np.ones_like(theta)),
            _("You turn every pair by the same angle. Pair i has the frequency base^(−2i/d): later pairs turn slower."),
        ),
        Mistake(
            "exponent without the 2",
            _with_angle(lambda p, theta, base, d: p * base ** (-np.arange(d // 2) / d)),
            _("Your exponent is i/d with i counting pairs; it is 2i/d, so that the exponents run from 0 to almost 1."),
        ),
        Mistake(
            "degrees",
            _with_angle(lambda p, theta, base, d: np.radians(p * theta)),
            _("You took the angle for degrees; position times frequency is in radians already."),
        ),
        Mistake(
            "a plus sign in both rows",
            _lengths_changed,
            _("Both rows of your matrix have a plus sign: that changes lengths. One of the two sines is negative."),
        ),
    ),
    hints=(
        _("How many pairs has a vector of d channels, and what is the angle of pair i at this position?"),
        _(
            "x[0::2] and x[1::2] are the first and second channels of all pairs; the angles are"
            " position · base^(−2i/d), i = 0 … d/2 − 1."
        ),
        _(
            "Turn with (a·cos − b·sin, a·sin + b·cos) and put the two results back into every other channel of an array"
            " like x."
        ),
    ),
)


def _score_solution(query, key, m, n, theta):
    return rope.scores_by_offset(query, key, [n - m], inv_freq=[theta])[0]


def _score_with(turn_query, turn_key, scale=2**-0.5):
    def function(query, key, m, n, theta):
        return float(_turn(query, turn_query(m, n, theta)) @ _turn(key, turn_key(m, n, theta)) * scale)

    return function


def _score_inputs(rng):
    m, n = rng.choice(np.arange(1, 40), 2, replace=False)
    return rng.standard_normal(2), rng.standard_normal(2), int(m), int(n), float(rng.uniform(0.2, 1.2))


SCORE = Exercise(
    task=_("score(query, key, m, n, theta): the scaled score of one pair of channels, query at m, key at n"),
    takes=(
        _("`query`, `key`: one pair each, of shape (2,), not rotated yet"),
        _("`m`, `n`: whole numbers, the positions of query and key"),
        _("`theta`: the pair's frequency in rad per position"),
    ),
    returns=_("one number: the inner product after both rotations, divided by √2"),
    solution=_score_solution,
    inputs=_score_inputs,
    mistakes=(
        Mistake(
            "missing scale",
            _score_with(lambda m, n, t: m * t, lambda m, n, t: n * t, scale=1.0),
            _("The inner product is right; the score divides it by √head_dim, here √2."),
        ),
        Mistake(
            "scaled by head_dim",
            _score_with(lambda m, n, t: m * t, lambda m, n, t: n * t, scale=0.5),
            _("You divide by head_dim; the score divides by its square root."),
        ),
        Mistake(
            "no rotation",
            _score_with(lambda m, n, t: 0, lambda m, n, t: 0),
            _(
                "Positions make no difference in your score: nothing was turned, or both by the same angle. Query and"
                " key stand at m and at n."
            ),
        ),
        Mistake(
            "only the query turned",
            _score_with(lambda m, n, t: m * t, lambda m, n, t: 0),
            _("Only the query was turned, so your score depends on m and not on n − m. Turn the key by n·θ too."),
        ),
        Mistake(
            "only the key turned, by its own position",
            _score_with(lambda m, n, t: 0, lambda m, n, t: n * t),
            _("Only the key was turned, so your score depends on n and not on n − m. Turn the query by m·θ too."),
        ),
        Mistake(
            "opposite senses",
            _score_with(lambda m, n, t: m * t, lambda m, n, t: -n * t),
            _("Query and key turn in opposite senses, so your score depends on n + m."),
        ),
    ),
    hints=(
        _("Turn the query by m·θ and the key by n·θ, then compare them."),
        _(
            "The inner product of the turned vectors depends on (n − m)·θ alone: turning only the key by that does it"
            " too."
        ),
        _("Do not forget 1/√head_dim; one pair has head_dim 2."),
    ),
)


def _attend(query, key, value, inv_freq, *, turn=(True, True, False), scale=None):
    positions = np.arange(len(query))
    query, key, value = (
        rope.rotate(x, positions, inv_freq=inv_freq) if turned else x
        for x, turned in zip((query, key, value), turn, strict=True)
    )
    return attention.attention(query[None], key[None], value[None], causal=True, scale=scale)[0]


def _attend_inputs(rng):
    length, head_dim = int(rng.integers(3, 7)), 2 * int(rng.integers(1, 4))
    return (*rng.standard_normal((3, length, head_dim)), rope.inv_freq(head_dim))


ATTEND = Exercise(
    task=_("attend(query, key, value, inv_freq): causal attention of one head with RoPE, T tokens, head width d_h"),
    takes=(
        _("`query`, `key`, `value`: of shape (T, d_h), not rotated yet; row t is at position t"),
        _("`inv_freq`: of shape (d_h/2,), the frequency of each pair of neighbouring channels"),
    ),
    returns=_(
        "an array of shape (T, d_h): for each query the softmax of its scores, scaled by 1/√d_h, over keys 0"
        " to its own, times the values"
    ),
    solution=_attend,
    inputs=_attend_inputs,
    mistakes=(
        Mistake(
            "V rotated",
            lambda q, k, v, f: _attend(q, k, v, f, turn=(True, True, True)),
            _(
                "You turned the values too. Positions belong to the comparison of query and key; the values are mixed"
                " as they are."
            ),
        ),
        Mistake(
            "no rotation",
            lambda q, k, v, f: _attend(q, k, v, f, turn=(False, False, False)),
            _("Nothing was turned: this is attention without positions."),
        ),
        Mistake(
            "only the query turned",
            lambda q, k, v, f: _attend(q, k, v, f, turn=(True, False, False)),
            _("Only the query was turned: the scores depend on m alone, not on n − m."),
        ),
        Mistake(
            "missing scale",
            lambda q, k, v, f: _attend(q, k, v, f, scale=1.0),
            _("The scores were not divided by √head_dim."),
        ),
        Mistake(
            "no causal mask",
            lambda q, k, v, f: attention.attention(
                *(rope.rotate(x, np.arange(len(x)), inv_freq=f)[None] for x in (q, k)), v[None]
            )[0],
            _("Your queries see later keys: the causal mask is missing."),
        ),
    ),
    hints=(
        _("Turn query and key by their positions 0 … L − 1, leave the values alone."),
        _(
            "Scores are turned_query @ turned_key.T / √head_dim; entries above the diagonal become −∞ before the"
            " softmax."
        ),
        _("The softmax runs over the keys: each row of weights sums to 1. Then weights @ value."),
    ),
)
