"""Exercises on a decoder's loss and its mask (notebook 14)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.attention import causal_mask
from transformer_parts.maths.cross_entropy import cross_entropy, log_softmax


def _loss_case(rng):
    length, vocabulary = rng.choice(np.arange(4, 10), 2, replace=False)
    return 2 * rng.standard_normal((length, vocabulary)), rng.integers(0, vocabulary, length)


def _next_token_loss(logits, tokens):
    return cross_entropy(logits[:-1], tokens[1:])


def _mean_probability(logits, tokens):
    return np.exp(log_softmax(logits[:-1]))[np.arange(len(tokens) - 1), tokens[1:]].mean()


NEXT_TOKEN_LOSS = Exercise(
    task=_("my_loss(logits, tokens): mean cross-entropy of the next token in nats, logits (L, V), tokens (L,)"),
    solution=_next_token_loss,
    inputs=_loss_case,
    mistakes=(
        Mistake(
            "targets not shifted",
            cross_entropy,
            _("You hold the logits at t against token t, which the model has just read. Their target is token t + 1."),
        ),
        Mistake(
            "not shifted, last one left out",
            lambda z, y: cross_entropy(z[:-1], y[:-1]),
            _(
                "You leave out the last position, and still hold the logits at t against token t. Shift the targets:"
                " tokens[1:]."
            ),
        ),
        Mistake(
            "not shifted, first one left out",
            lambda z, y: cross_entropy(z[1:], y[1:]),
            _(
                "You leave out the first position, and hold the logits at t against token t. Of the logits the last row"
                " goes, of the tokens the first."
            ),
        ),
        Mistake(
            "shifted the wrong way",
            lambda z, y: cross_entropy(z[1:], y[:-1]),
            _("You hold the logits at t against token t − 1: shifted, but the wrong way."),
        ),
        Mistake(
            "wrapped round",
            lambda z, y: cross_entropy(z, np.roll(y, -1)),
            _(
                "np.roll gives the last position the first token as its target. The last position has none: leave it"
                " out."
            ),
        ),
        Mistake(
            "sum instead of mean",
            lambda z, y: _next_token_loss(z, y) * (len(y) - 1),
            _("You sum over the positions; take the mean."),
        ),
        Mistake(
            "divided by L",
            lambda z, y: _next_token_loss(z, y) * (len(y) - 1) / len(y),
            _("You divide by L. Only L − 1 positions have a target."),
        ),
        Mistake(
            "mean over the vocabulary too",
            lambda z, y: _next_token_loss(z, y) / z.shape[1],
            _(
                "You divide by V as well. At each position one logarithm counts, the target's; the mean is over"
                " positions."
            ),
        ),
        Mistake(
            "every position with every target",
            lambda z, y: -log_softmax(z[:-1])[:, y[1:]].mean(),
            _("You pair every position with every target, as z[:, tokens] does. Pair them one by one: z[at, tokens]."),
        ),
        Mistake(
            "sign",
            lambda z, y: -_next_token_loss(z, y),
            _("Log-probabilities are negative; the loss is minus their mean."),
        ),
        Mistake(
            "bits",
            lambda z, y: _next_token_loss(z, y) / np.log(2),
            _("Your logarithm is to the base 2: that is bits. Nats want the natural one."),
        ),
        Mistake(
            "perplexity",
            lambda z, y: np.exp(_next_token_loss(z, y)),
            _("That is the perplexity, e to the loss."),
        ),
        Mistake(
            "logarithm of the mean",
            lambda z, y: -np.log(_mean_probability(z, y)),
            _("You average probabilities and take the logarithm last. The mean is over logarithms."),
        ),
        Mistake(
            "probability instead of its logarithm",
            lambda z, y: 1 - _mean_probability(z, y),
            _("You average 1 − p; cross-entropy averages −ln p."),
        ),
        Mistake(
            "no softmax",
            lambda z, y: -z[np.arange(len(y) - 1), y[1:]].mean(),
            _("You take the logits for log-probabilities. Subtract the logarithm of the sum of their exponentials."),
        ),
        Mistake(
            "softmax over the positions",
            lambda z, y: -log_softmax(z[:-1].T).T[np.arange(len(y) - 1), y[1:]].mean(),
            _("Your softmax runs over the positions. It runs over the vocabulary: the last axis."),
        ),
    ),
    hints=(
        _("What has the model read when it makes the logits at t, and what is it to say next?"),
        _("Drop the last row of the logits and the first of the tokens; then row t belongs to target t."),
        _("z = logits[:-1]; z = z - np.log(np.exp(z).sum(-1, keepdims=True)); -z[np.arange(L - 1), tokens[1:]].mean()"),
    ),
)


def _mask_case(rng):
    length = int(rng.integers(3, 8))
    return length, length + int(rng.integers(2, 6))


def _exclusive(n, s):
    return np.tri(n, s, s - n - 1, dtype=bool)


CAUSAL_MASK = Exercise(
    task=_(
        "my_mask(n_queries, n_keys): (n_queries, n_keys), True = may attend, the last query aligned with the last key,"
        " as in decoding with a cache"
    ),
    solution=causal_mask,
    inputs=_mask_case,
    mistakes=(
        Mistake(
            "aligned at the first key",
            lambda n, s: np.tri(n, s, dtype=bool),
            _(
                "Your first query stands at the first key, as if there were no cache. The queries are the newest"
                " tokens: the last one sees all keys."
            ),
        ),
        Mistake(
            "inverted",
            lambda n, s: ~causal_mask(n, s),
            _(
                "True is hidden in your mask; here True = may attend. (PyTorch's boolean masks differ in this by"
                " class.)"
            ),
        ),
        Mistake(
            "itself not seen",
            _exclusive,
            _("Your tokens do not see themselves; the diagonal belongs to what is seen."),
        ),
        Mistake(
            "one too far",
            lambda n, s: np.tri(n, s, s - n + 1, dtype=bool),
            _("Every query but the last sees one key too many: the diagonal is off by one."),
        ),
        Mistake(
            "the wrong way",
            lambda n, s: np.triu(np.ones((n, s), bool), s - n),
            _("Your queries see themselves and what comes after."),
        ),
        Mistake(
            "the wrong way, from the first key",
            lambda n, s: np.triu(np.ones((n, s), bool)),
            _(
                "Your queries stand at the first keys and see what comes after. They are the newest tokens and look"
                " back."
            ),
        ),
        Mistake(
            "everything",
            lambda n, s: np.ones((n, s), bool),
            _("Every query sees every key; the earlier of the queries must not see the keys of the later ones."),
        ),
        Mistake(
            "nothing but itself",
            lambda n, s: np.eye(n, s, s - n, dtype=bool),
            _("Each query sees itself alone; all keys before it are open to it too."),
        ),
    ),
    hints=(
        _("The last query is the newest token: which keys may it see? And the one before it?"),
        _("Query i stands at position i + n_keys − n_queries, key j at position j."),
        _("np.arange(n_keys) <= np.arange(n_queries)[:, None] + n_keys - n_queries"),
    ),
)
