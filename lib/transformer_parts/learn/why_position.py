"""Exercises on what attention knows of order (notebook 01)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import why_position as maths
from transformer_parts.maths.attention import softmax


def _gap_inputs(rng):
    """Draw until the largest difference is negative and not the first token's, so that every mistake differs."""
    while True:
        n_tokens, d_model = int(rng.integers(4, 8)), 4 * int(rng.integers(1, 4))
        scheme = str(rng.choice(["none", "sinusoidal", "rope"]))
        attend = maths.SelfAttention.random(d_model, 2, scheme=scheme, causal=True, seed=int(rng.integers(1000)))
        x = rng.standard_normal((n_tokens, d_model))
        # A cycle of all tokens, so that it and its inverse differ.
        order = np.roll(np.arange(n_tokens), int(rng.choice([-1, 1])))
        gap = maths.equivariance_gap(attend, x, order)
        if -gap[1:].min() == np.abs(gap).max():
            return attend, x, order


def _gap_with(compare, measure=lambda difference: np.abs(difference).max()):
    return lambda attend, x, order: measure(compare(attend, x, order))


GAP = Exercise(
    task=_("my_gap(attend, x, order): how far attend is from equivariance, the largest |attend(x[order]) − …|"),
    solution=_gap_with(maths.equivariance_gap),
    inputs=_gap_inputs,
    mistakes=(
        Mistake(
            "invariance",
            _gap_with(lambda attend, x, order: attend(x[order]) - attend(x)),
            _(
                "You asked for invariance: that outputs stay where they are. Equivariant means that they move as the"
                " tokens do, so the outputs of the unmoved tokens must be moved before you compare."
            ),
        ),
        Mistake(
            "input not reordered",
            _gap_with(lambda attend, x, order: attend(x) - attend(x)[order]),
            _("Both outputs are of the tokens as they stood. One of them must be of x[order]."),
        ),
        Mistake(
            "inverse permutation",
            _gap_with(lambda attend, x, order: attend(x[order]) - attend(x)[np.argsort(order)]),
            _(
                "The outputs were moved back where they should be moved along: the same index on both sides. (Two"
                " swapped tokens would not have shown it, a swap is its own inverse.)"
            ),
        ),
        Mistake(
            "signs left in",
            _gap_with(maths.equivariance_gap, np.max),
            _("The largest difference, but a negative one counts as well: take the absolute value first."),
        ),
        Mistake(
            "mean for maximum",
            _gap_with(maths.equivariance_gap, lambda difference: np.abs(difference).mean()),
            _(
                "That is the mean. One token that changes among many that do not is enough to break equivariance; take"
                " the largest."
            ),
        ),
        Mistake(
            "outputs summed first",
            _gap_with(lambda attend, x, order: attend(x[order]).sum(0) - attend(x).sum(0)),
            _("You summed over the tokens. A sum is the same in every order; compare token by token."),
        ),
        Mistake(
            "first token alone",
            _gap_with(maths.equivariance_gap, lambda difference: np.abs(difference[0]).max()),
            _("That is the first token's difference. Compare all of them."),
        ),
        Mistake(
            "length of the difference",
            _gap_with(maths.equivariance_gap, np.linalg.norm),
            _(
                "That is the length of the whole difference, which grows with the number of entries; the task asks for"
                " its largest one."
            ),
        ),
    ),
    hints=(
        _("(PX)_i is x[order][i]. What should the output at place i be, if outputs move along?"),
        _("Compare attend(x[order]) with attend(x)[order]: one index moves tokens and outputs alike."),
        _("np.abs(…).max() of their difference."),
    ),
)


def _attend(x, w_query, w_key, w_value, *, scale=True, seen=np.tri, hidden=-np.inf, after=False, axis=-1, swap=False):
    query, key, value = x @ w_query, x @ w_key, x @ w_value
    if swap:
        query, key = key, query
    scores = query @ key.T / (np.sqrt(query.shape[1]) if scale else 1.0)
    mask = seen(len(x)).astype(bool)
    if after:
        return np.where(mask, softmax(scores, axis), 0.0) @ value
    return softmax(np.where(mask, scores, hidden), axis) @ value


def _attend_with(**settings):
    return lambda *arguments: _attend(*arguments, **settings)


def _attend_inputs(rng):
    n_tokens, d_model, head_dim = int(rng.integers(4, 8)), int(rng.integers(3, 6)), int(rng.integers(2, 5))
    return (
        rng.standard_normal((n_tokens, d_model)),
        *(rng.standard_normal((d_model, head_dim)) for _matrix in range(3)),
    )


ATTEND = Exercise(
    task=_("my_attend(x, w_query, w_key, w_value): one head of causal self-attention that is told no positions"),
    solution=_attend,
    inputs=_attend_inputs,
    mistakes=(
        Mistake(
            "no mask",
            _attend_with(seen=lambda n: np.ones((n, n))),
            _(
                "Every token sees all others. Without positions and without a mask nothing tells the order; here the"
                " mask is asked for."
            ),
        ),
        Mistake(
            "future instead of past",
            _attend_with(seen=lambda n: np.tri(n).T),
            _(
                "Your tokens see themselves and those after them. Row i is query i: keys 0 … i are allowed, the lower"
                " triangle."
            ),
        ),
        Mistake(
            "one token too many",
            _attend_with(seen=lambda n: np.tri(n, k=1)),
            _("Each token sees the next one as well. The diagonal is the last allowed key."),
        ),
        Mistake(
            "masked scores set to 0",
            _attend_with(hidden=0.0),
            _("A score of 0 is an ordinary score: e⁰ = 1. Hidden keys need −∞."),
        ),
        Mistake(
            "masked after the softmax",
            _attend_with(after=True),
            _("You masked the weights, and what is left no longer sums to 1. Mask the scores, before the softmax."),
        ),
        Mistake(
            "missing scale",
            _attend_with(scale=False),
            _("The scores were not divided by √head_dim (the columns of w_query)."),
        ),
        Mistake(
            "query and key exchanged",
            _attend_with(swap=True),
            _("Rows of your scores are keys. Row i belongs to query i: (x @ w_query) @ (x @ w_key).T."),
        ),
        Mistake(
            "softmax over the queries",
            _attend_with(axis=0),
            _("Your weights sum to 1 over the queries. Each query shares 1 among the keys it sees: the last axis."),
        ),
        Mistake(
            "values from w_query",
            lambda x, w_query, w_key, w_value: _attend(x, w_query, w_key, w_query),
            _("You projected the values with w_query; they have their own matrix, w_value."),
        ),
    ),
    hints=(
        _("Three projections, a table of scores, a softmax for each query, and the values mixed."),
        _("scores = (x @ w_query) @ (x @ w_key).T / √head_dim; where a key is later than the query put −np.inf."),
        _("np.tri(len(x)) is 1 where a token may look; after the softmax over the last axis multiply by x @ w_value."),
    ),
)


def _prefix_inputs(rng):
    """Return an order: a fixed run, two swapped tokens, a fixed run, an odd number reversed, one fixed token."""
    first, second, half = rng.integers(1, 3, size=3)
    swapped, turned = first, first + 2 + second
    order = np.arange(turned + 2 * half + 2)
    order[swapped : swapped + 2] = swapped + 1, swapped
    order[turned:-1] = order[turned:-1][::-1]
    return (order,)


def _same_sets(order):
    return np.maximum.accumulate(order) == np.arange(len(order))


STAYS = Exercise(
    task=_("my_stays(order): which places have the same output for x[order] as for x; one causal layer, no positions"),
    solution=maths.sees_the_same,
    inputs=_prefix_inputs,
    mistakes=(
        Mistake(
            "fixed tokens",
            lambda order: order == np.arange(len(order)),
            _(
                "A token that stays where it is can still see others than before: look at the set of tokens up to it,"
                " too."
            ),
        ),
        Mistake(
            "sets alone",
            _same_sets,
            _(
                "The set of tokens up to a place may be the old one with another token standing there, and its query is"
                " another. It must be the same token as well."
            ),
        ),
        Mistake(
            "order within the set",
            lambda order: np.logical_and.accumulate(order == np.arange(len(order))),
            _(
                "You let a reordered past change everything after it. One layer without positions reads its past as a"
                " set: order within it is not seen. (From the second layer on you would be right.)"
            ),
        ),
        Mistake(
            "own token forgotten",
            lambda order: np.concatenate([[True], _same_sets(order)[:-1]]),
            _("You looked at the tokens before a place. A token sees itself too, and its query is its own."),
        ),
        Mistake(
            "as if there were no mask",
            lambda order: np.ones(len(order), dtype=bool),
            _(
                "Not every output stays: that (moved along) holds without a mask. With it the earlier tokens are"
                " others."
            ),
        ),
        Mistake(
            "as if nothing stayed",
            lambda order: np.zeros(len(order), dtype=bool),
            _("Some outputs do stay: think of a token that stands where it stood, with the same tokens before it."),
        ),
        Mistake(
            "last token alone",
            lambda order: np.arange(len(order)) == len(order) - 1,
            _("The last token sees them all and stays if it was last before; others can stay for the same reason."),
        ),
    ),
    hints=(
        _("What does the output at place t depend on, when nothing but the mask tells positions?"),
        _("On the token at t, for its query, and on the set of the tokens at 0 … t, for keys and values."),
        _("order[t] == t, and set(order[: t + 1]) == set(range(t + 1))."),
    ),
)
