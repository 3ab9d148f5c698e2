"""Exercises on T5's and ALiBi's biases (notebook 03)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.attention import attention, attention_weights, causal_mask
from transformer_parts.maths.relative_bias import alibi_slopes, t5_bucket


def _bucket_inputs(rng):
    # The largest distance is a prime, so that no border between buckets depends on the rounding of a logarithm.
    most = int(rng.choice([61, 97, 131, 199]))
    return rng.permutation(np.arange(-4 * most, 4 * most + 1)), int(rng.choice([16, 24, 32, 40])), most


def _ratio(distance, e, most):
    return np.log(distance / e) / np.log(most / e)


def _bucket_with(*, sign=1, halved=True, exact=lambda n: n // 2, ratio=_ratio, whole=np.floor, first=0, last=-1):
    """Return T5's bidirectional rule with one step replaced."""

    def function(offsets, num_buckets, max_distance):
        n = num_buckets // 2 if halved else num_buckets
        e = exact(n)
        distance = np.abs(offsets)
        steps = e + first + whole(ratio(np.maximum(distance, e), e, max_distance) * (n - e))
        return np.where(distance < e, distance, np.minimum(steps, n + last)) + num_buckets // 2 * (sign * offsets > 0)

    return function


BUCKET = Exercise(
    task=_(
        "bucket(relative_position, num_buckets, max_distance): T5's bidirectional bucket of each entry of an integer"
        " array of relative positions, key minus query"
    ),
    solution=lambda offsets, n, most: t5_bucket(offsets, num_buckets=n, max_distance=most),
    inputs=_bucket_inputs,
    mistakes=(
        Mistake(
            "wrong sign",
            _bucket_with(sign=-1),
            _(
                "Your two directions are exchanged: T5's relative position is key minus query, and the keys after the"
                " query (positive) have the upper half of the buckets."
            ),
        ),
        Mistake(
            "directions not told apart",
            _bucket_with(sign=0),
            _("Keys before and after the query share your buckets. A key after the query adds num_buckets // 2."),
        ),
        Mistake(
            "buckets not halved",
            _bucket_with(halved=False),
            _("Each direction has only half of the buckets: n = num_buckets // 2, and half of those are exact."),
        ),
        Mistake(
            "off by one",
            _bucket_with(first=1),
            _("Your logarithmic buckets are one too high: distance e, the first that is not exact, is in bucket e."),
        ),
        Mistake(
            "all buckets logarithmic",
            _bucket_with(exact=lambda n: 1),
            _("Your distances are logarithmic from 1 on. Half of a direction's buckets, e = n // 2, are exact."),
        ),
        Mistake(
            "not divided by the logarithm of M/e",
            _bucket_with(ratio=lambda d, e, most: np.log(d / e)),
            _("You use the natural logarithm of d/e as it is. Divided by ln(M/e) it reaches 1 at max_distance."),
        ),
        Mistake(
            "logarithm to base 2",
            _bucket_with(ratio=lambda d, e, most: np.log2(d / e)),
            _("You use log₂(d/e). The base is M/e, so that the logarithm is 1 at max_distance: ln(d/e) / ln(M/e)."),
        ),
        Mistake(
            "ln M in place of ln(M/e)",
            _bucket_with(ratio=lambda d, e, most: np.log(d / e) / np.log(most)),
            _("You divide by ln(max_distance). Numerator and denominator both count from the exact ones: ln(M/e)."),
        ),
        Mistake(
            "clamp missing",
            _bucket_with(last=10**6),
            _(
                "Beyond max_distance your buckets go on, into those of the other direction and out of the table. All"
                " far distances share n − 1."
            ),
        ),
        Mistake(
            "clamped at n",
            _bucket_with(last=0),
            _("Your clamp lets bucket n through, which belongs to the other direction. The last one is n − 1."),
        ),
        Mistake(
            "rounded to the nearest", _bucket_with(whole=np.rint), _("You round to the nearest bucket; T5 rounds down.")
        ),
        Mistake("rounded up", _bucket_with(whole=np.ceil), _("You round the logarithmic part up; T5 rounds it down.")),
    ),
    hints=(
        _("Take the distance |j − i| first; the direction only decides whether num_buckets // 2 is added."),
        _(
            "n = num_buckets // 2 and e = n // 2. Below e the bucket is the distance. From e on it is e plus the part"
            " of n − e that ln(d/e) is of ln(M/e), rounded down."
        ),
        _(
            "np.where(d < e, d, np.minimum(n - 1, e + np.floor(np.log(np.maximum(d, e) / e) / np.log(M / e) * (n -"
            " e)))) and then + n * (relative_position > 0)."
        ),
    ),
)


def _powers(p):
    return 2.0 ** (-8 * np.arange(1, p + 1) / p)


def _power_below(n):
    return 2 ** int(np.log2(n))


def _slopes_with(chosen):
    """Return ALiBi's rule with other slopes chosen from those of the next power of two."""
    return lambda n: np.concatenate([_powers(_power_below(n)), chosen(_powers(2 * _power_below(n)))])[:n]


SLOPES = Exercise(
    task=_("slopes(n_heads): ALiBi's slope of each head, in the order of the published rule, for any number of heads"),
    solution=alibi_slopes,
    # No power of two, and at least two slopes between, so that their order shows.
    inputs=lambda rng: (int(rng.choice([6, 7, 10, 11, 12, 14, 18, 20, 24, 28, 40])),),
    mistakes=(
        Mistake(
            "one sequence",
            _powers,
            _(
                "You have the single sequence 2^(−8h/n). That is right for a power of two only; for others the rule"
                " takes the slopes of the power of two below and adds some of the next."
            ),
        ),
        Mistake(
            "h from 0",
            lambda n: alibi_slopes(n) / alibi_slopes(n)[0],
            _("Your first slope is 1. Heads are counted from 1: the first is 2^(−8/p)."),
        ),
        Mistake(
            "by size",
            lambda n: np.sort(alibi_slopes(n))[::-1],
            _("The slopes are right, their order is not: the heads of the power of two come first, then the others."),
        ),
        Mistake(
            "those between first",
            lambda n: np.roll(alibi_slopes(n), n - _power_below(n)),
            _("The slopes are right, but those between come last, not first."),
        ),
        Mistake(
            "the first of 2p",
            lambda n: _powers(2 * _power_below(n))[:n],
            _(
                "You took the first n slopes of the next power of two. The rule takes all slopes of the power below,"
                " then every other one of the next."
            ),
        ),
        Mistake(
            "every other from the second",
            _slopes_with(lambda slopes: slopes[1::2]),
            _(
                "You took the second, fourth … slope of 2p heads, which are those of p heads over again. Take the"
                " first, third, fifth."
            ),
        ),
        Mistake(
            "the next ones in a row",
            _slopes_with(lambda slopes: slopes),
            _("Of the slopes of 2p heads you took the first ones in a row; take every other one, [0::2]."),
        ),
        Mistake(
            "the smallest of those between",
            _slopes_with(lambda slopes: slopes[::2][::-1]),
            _("Of the slopes between you took the smallest; the rule takes the largest ones first."),
        ),
        Mistake(
            "negative",
            lambda n: -alibi_slopes(n),
            _("The slopes are positive; the minus sign is in the bias, −m·|i − j|."),
        ),
        Mistake(
            "base e",
            lambda n: np.exp(np.log2(alibi_slopes(n))),
            _("Your exponents are right, but the slopes are powers of 2, not of e."),
        ),
    ),
    hints=(
        _("Let p be the largest power of two up to n. p heads have the slopes 2^(−8h/p), h = 1 … p."),
        _("The n − p heads left have slopes of 2p heads: which of those are not among the p already?"),
        _("np.concatenate([of(p), of(2 * p)[0::2][: n - p]]) with of(p) = 2.0 ** (-8 * np.arange(1, p + 1) / p)"),
    ),
    tolerance=1e-12,
)


def _attend_inputs(rng):
    heads, length, width, out = 3, int(rng.integers(5, 9)), int(rng.choice([5, 6, 7])), 4
    query, key = rng.standard_normal((2, heads, length, width)) * 0.8
    return query, key, rng.standard_normal((heads, length, out)), rng.standard_normal((heads, length, length))


def _t5(query, key, value, bias):
    return attention(query, key, value, bias=bias, scale=1.0, causal=True)


ATTEND = Exercise(
    task=_(
        "attend(query, key, value, bias): a T5 decoder's causal self-attention, query and key of shape (H, L, K), bias"
        " of shape (H, L, L)"
    ),
    solution=_t5,
    inputs=_attend_inputs,
    mistakes=(
        Mistake(
            "logits divided by √K",
            lambda q, k, v, b: attention(q, k, v, bias=b, causal=True),
            _("You divide the inner products by √K. T5 does not: the factor is in the initial weights of W_q."),
        ),
        Mistake(
            "logits and bias divided by √K",
            lambda q, k, v, b: attention(q, k, v, bias=b / np.sqrt(q.shape[-1]), causal=True),
            _("You divide everything by √K, the bias too. T5 divides neither."),
        ),
        Mistake(
            "bias forgotten",
            lambda q, k, v, b: attention(q, k, v, scale=1.0, causal=True),
            _(
                "The bias does nothing in your function, or what you add is the same for all keys of a query, which the"
                " softmax does not feel."
            ),
        ),
        Mistake(
            "bias subtracted",
            lambda q, k, v, b: _t5(q, k, v, -b),
            _("You subtract the bias. It is added; a learned scalar may be negative itself."),
        ),
        Mistake(
            "bias transposed",
            lambda q, k, v, b: _t5(q, k, v, b.swapaxes(-1, -2)),
            _("Your bias is transposed: row i is the query, column j the key."),
        ),
        Mistake(
            "mask missing",
            lambda q, k, v, b: attention(q, k, v, bias=b, scale=1.0),
            _("Your queries see keys after them. A decoder masks them; that they share bucket 0 hides nothing."),
        ),
        Mistake(
            "bias of one head",
            lambda q, k, v, b: _t5(q, k, v, b[:1]),
            _("All your heads use the first head's bias. Each has its own."),
        ),
        Mistake(
            "bias added to the weights",
            lambda q, k, v, b: (
                (attention_weights(q, k, scale=1.0, causal=True) + np.where(causal_mask(q.shape[1]), b, 0)) @ v
            ),
            _("You add the bias to the weights, after the softmax; the rows no longer sum to 1. Add it to the logits."),
        ),
        Mistake(
            "bias multiplied",
            lambda q, k, v, b: _t5(np.zeros_like(q), k, v, (q @ k.swapaxes(-1, -2)) * b),
            _("You multiply the logits by the bias; it is added."),
        ),
    ),
    hints=(
        _("Logits first: query @ key transposed, nothing divided; then the bias of the head, then the mask."),
        _("np.where(np.tri(L, dtype=bool), logits, -np.inf) hides the keys after each query."),
        _("Softmax over the last axis, weights @ value."),
    ),
)
