"""Exercises on a real model's predictions (notebook 18)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.sampling import next_token_probabilities


def _log_probabilities(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _of(rows, tokens):
    return rows[np.arange(len(tokens)), tokens]


def _next(logits, tokens):
    """Return the log-probability of each token but the first."""
    return _of(_log_probabilities(logits)[:-1], tokens[1:])


def _loss_solution(logits, tokens):
    return -_next(logits, tokens).mean()


def _loss_inputs(rng):
    length, vocabulary = int(rng.integers(5, 10)), int(rng.integers(7, 12))
    return rng.normal(0.0, 2.0, (length, vocabulary)), rng.integers(0, vocabulary, length)


NEXT_LOSS = Exercise(
    task=_(
        "next_loss(logits, tokens): the mean loss of the tokens but the first, in nats; row t of the logits was made of"
        " tokens 0 … t"
    ),
    solution=_loss_solution,
    inputs=_loss_inputs,
    mistakes=(
        Mistake(
            "not shifted",
            lambda logits, tokens: -_of(_log_probabilities(logits), tokens).mean(),
            _("You ask row t for token t, which it has just read. It predicts token t + 1."),
        ),
        Mistake(
            "shifted the wrong way",
            lambda logits, tokens: -_of(_log_probabilities(logits)[1:], tokens[:-1]).mean(),
            _("You ask each row for the token before its own. Row t predicts token t + 1."),
        ),
        Mistake(
            "wrapped around",
            lambda logits, tokens: -_of(_log_probabilities(logits), np.roll(tokens, -1)).mean(),
            _("Your last row is asked for the first token. Nothing follows the last token: leave that row out."),
        ),
        Mistake(
            "sign forgotten",
            lambda logits, tokens: _next(logits, tokens).mean(),
            _("This is the mean of ln p. The loss is its negative: the likelier the token, the smaller."),
        ),
        Mistake(
            "sum for mean",
            lambda logits, tokens: -_next(logits, tokens).sum(),
            _("These are the right losses, summed. Asked for is their mean."),
        ),
        Mistake(
            "divided by one too many",
            lambda logits, tokens: -_next(logits, tokens).sum() / len(tokens),
            _("You divide by the number of tokens. The first has no loss: there is one fewer."),
        ),
        Mistake(
            "logits not normalised",
            lambda logits, tokens: -_of(logits[:-1], tokens[1:]).mean(),
            _("You averaged the logits. Subtract each row's log-sum-exp first: probabilities sum to 1, logits do not."),
        ),
        Mistake(
            "probability for its logarithm",
            lambda logits, tokens: -np.exp(_next(logits, tokens)).mean(),
            _("You averaged the probabilities. The loss is the mean of −ln p."),
        ),
        Mistake(
            "logarithm of the mean",
            lambda logits, tokens: -np.log(np.exp(_next(logits, tokens)).mean()),
            _("You took the logarithm of the mean probability. Take the logarithms first, then their mean."),
        ),
        Mistake(
            "bits for nats",
            lambda logits, tokens: -_next(logits, tokens).mean() / np.log(2),
            _("Your logarithm is that of base 2. Nats are of base e."),
        ),
        Mistake(
            "perplexity",
            lambda logits, tokens: np.exp(-_next(logits, tokens).mean()),
            _("This is the perplexity, exp of the loss."),
        ),
    ),
    hints=(
        _("Rows 0 … T − 2 predict tokens 1 … T − 1: logits[:-1] goes with tokens[1:]."),
        _("ln p = logit − log-sum-exp of its row."),
        _("-(z[np.arange(n), tokens[1:]] - np.log(np.exp(z).sum(-1))).mean() with z = logits[:-1], n = len(z)"),
    ),
)


def _kept(probabilities, keep):
    out = np.where(keep, probabilities, 0.0)
    return out / out.sum()


def _nucleus_solution(probabilities, top_p):
    return next_token_probabilities(np.log(probabilities), top_p=top_p)


def _by_rank(probabilities, count):
    """Keep the `count` likeliest tokens."""
    keep = np.zeros(len(probabilities), dtype=bool)
    keep[np.argsort(-probabilities)[:count]] = True
    return _kept(probabilities, keep)


def _nucleus_size(probabilities, top_p):
    return 1 + int(np.searchsorted(np.cumsum(np.sort(probabilities)[::-1]), top_p))


def _one_left_out(probabilities, top_p):
    return _by_rank(probabilities, _nucleus_size(probabilities, top_p) - 1)


def _one_too_many(probabilities, top_p):
    return _by_rank(probabilities, _nucleus_size(probabilities, top_p) + 1)


def _in_order_of_index(probabilities, top_p):
    return _kept(probabilities, np.cumsum(probabilities) - probabilities < top_p)


def _least_likely(probabilities, top_p):
    order = np.argsort(probabilities)
    before = np.cumsum(probabilities[order]) - probabilities[order]
    keep = np.zeros(len(probabilities), dtype=bool)
    keep[order[before < top_p]] = True
    return _kept(probabilities, keep)


def _threshold(probabilities, top_p):
    return _kept(probabilities, probabilities >= (1 - top_p) * probabilities.max())


def _not_renormalised(probabilities, top_p):
    return np.where(_nucleus_solution(probabilities, top_p) > 0, probabilities, 0.0)


def _softmax_again(probabilities, top_p):
    kept = _nucleus_solution(probabilities, top_p) > 0
    return _kept(np.exp(probabilities), kept)


def _sorted(probabilities, top_p):
    return np.sort(_nucleus_solution(probabilities, top_p))[::-1]


def _ranks_for_indices(probabilities, top_p):
    return _kept(probabilities, np.arange(len(probabilities)) < _nucleus_size(probabilities, top_p))


def _evenly(probabilities, top_p):
    return _kept(np.ones(len(probabilities)), _nucleus_solution(probabilities, top_p) > 0)


_NUCLEUS_MISTAKES = (
    Mistake(
        "not renormalised",
        _not_renormalised,
        _("The right tokens are left, and their probabilities no longer sum to 1: divide by their sum."),
    ),
    Mistake(
        "the crossing token left out",
        _one_left_out,
        _("Your set holds less than top_p: the token with which the sum reaches it belongs to the set."),
    ),
    Mistake(
        "one token too many",
        _one_too_many,
        _("Your set holds one token more than it needs to reach top_p."),
    ),
    Mistake(
        "in order of the index",
        _in_order_of_index,
        _("You added probabilities in the order of the vocabulary. Begin with the likeliest token."),
    ),
    Mistake(
        "the least likely kept",
        _least_likely,
        _("You began with the least likely token. Begin with the likeliest."),
    ),
    Mistake(
        "a threshold on each token",
        _threshold,
        _("You compare each probability with the largest one (this is min-p). Top-p looks at the sum."),
    ),
    Mistake(
        "softmax again",
        _softmax_again,
        _("You put probabilities through a softmax. Renormalising is dividing by the sum."),
    ),
    Mistake(
        "sorted",
        _sorted,
        _("The right numbers at the wrong places: each token keeps its index."),
    ),
    Mistake(
        "ranks taken for indices",
        _ranks_for_indices,
        _("You found how many tokens to keep in the sorted order, and kept so many of the unsorted ones."),
    ),
    Mistake(
        "evenly",
        _evenly,
        _("The right tokens are left, all alike. Among them the probabilities keep their proportions."),
    ),
    Mistake(
        "nothing cut",
        lambda probabilities, top_p: probabilities,
        _("Your function returns the probabilities as they were."),
    ),
)


def _nucleus_inputs(rng):
    """Draw until the right answer and all mistakes differ from each other."""
    while True:
        probabilities = rng.dirichlet(np.full(int(rng.integers(7, 11)), 0.9))
        top_p = float(rng.choice([0.5, 0.6, 0.7, 0.8]))
        if probabilities.min() < 1e-4 or probabilities.max() >= top_p:
            continue
        if _nucleus_size(probabilities, top_p) > len(probabilities) - 2:
            continue
        results = [_nucleus_solution(probabilities, top_p)]
        results += [mistake.function(probabilities, top_p) for mistake in _NUCLEUS_MISTAKES]
        if all(np.abs(a - b).max() > 1e-3 for i, a in enumerate(results) for b in results[:i]):
            return probabilities, top_p


NUCLEUS = Exercise(
    task=_("nucleus(probabilities, top_p): the probabilities to draw from by top-p, an array of the same length"),
    solution=_nucleus_solution,
    inputs=_nucleus_inputs,
    mistakes=_NUCLEUS_MISTAKES,
    hints=(
        _("Sort from the likeliest down and add up until the sum reaches top_p."),
        _("The token with which it does is the last one kept; all others get 0."),
        _("Divide what is left by its sum, each token at its own index."),
    ),
)
