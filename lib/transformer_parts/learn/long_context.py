"""Exercises on long context (notebook 16)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.long_context import windowed_keys


def _pairs_inputs(rng):
    window = int(rng.integers(5, 40))
    return window + int(rng.integers(3, 60)), window


PAIRS = Exercise(
    task=_(
        "pairs(length, window): how many pairs of query and key a causal sequence has if a query sees the last window"
        " keys, its own among them, and window is below length"
    ),
    solution=windowed_keys,
    inputs=_pairs_inputs,
    mistakes=(
        Mistake(
            "no mask and no window",
            lambda length, window: length**2,
            _(
                "This is every query with every key. A query sees no later key, and of the earlier ones only the"
                " window."
            ),
        ),
        Mistake(
            "no window",
            lambda length, window: length * (length + 1) // 2,
            _(
                "This is the whole causal triangle. Beyond the window a query sees window keys, however many came"
                " before."
            ),
        ),
        Mistake(
            "full windows everywhere",
            lambda length, window: length * window,
            _("The first queries have not got window keys yet: query m sees m of them until m reaches the window."),
        ),
        Mistake(
            "the beginning left out",
            lambda length, window: (length - window) * window,
            _("You count the queries with a whole window. The first window queries see 1, 2, 3 … keys: add those."),
        ),
        Mistake(
            "own key forgotten",
            lambda length, window: window * (window - 1) // 2 + (length - window) * (window - 1),
            _("A query sees itself too; its own key is among the window."),
        ),
        Mistake(
            "one key more",
            lambda length, window: window * (window + 1) // 2 + (length - window) * (window + 1),
            _("Your queries beyond the window see window keys and themselves. Their own key is one of the window."),
        ),
        Mistake(
            "the window to both sides",
            lambda length, window: length * (2 * window - 1) - window * (window - 1),
            _("You let a query see the window to its right as well. A causal query sees no later key."),
        ),
    ),
    hints=(
        _("Query m, counted from 1, sees min(m, window) keys."),
        _("The first window queries form a triangle: 1 + 2 + … + window."),
        _("window·(window + 1)/2 + (length − window)·window"),
    ),
)


def _perplexity_solution(losses, block):
    return np.exp(losses.reshape(-1, block).mean(axis=-1))


def _perplexity_inputs(rng):
    block = int(rng.integers(4, 8))
    # Losses that rise from block to block, as beyond the trained length, and vary within one.
    blocks = int(rng.integers(3, 6))
    return (np.arange(blocks)[:, None] * 0.7 + rng.gamma(3.0, 0.6, (blocks, block))).ravel(), block


PERPLEXITY = Exercise(
    task=_("perplexity(losses, block): the perplexity of each block of so many losses, given in nats"),
    solution=_perplexity_solution,
    inputs=_perplexity_inputs,
    mistakes=(
        Mistake(
            "mean of perplexities",
            lambda losses, block: np.exp(losses).reshape(-1, block).mean(axis=-1),
            _("You averaged exp(loss), which a few bad tokens rule. Perplexity is exp of the mean loss."),
        ),
        Mistake(
            "loss for perplexity",
            lambda losses, block: losses.reshape(-1, block).mean(axis=-1),
            _("These are the mean losses. Perplexity is exp of them."),
        ),
        Mistake(
            "everything so far",
            lambda losses, block: np.exp(np.cumsum(losses) / np.arange(1, len(losses) + 1))[block - 1 :: block],
            _(
                "Each of your numbers averages all tokens up to there, which hides where it breaks. Take each block"
                " alone."
            ),
        ),
        Mistake(
            "base 2",
            lambda losses, block: 2 ** losses.reshape(-1, block).mean(axis=-1),
            _("The losses are in nats: the base is e. For bits it would be 2."),
        ),
        Mistake(
            "interleaved",
            lambda losses, block: np.exp(losses.reshape(block, -1).mean(axis=0)),
            _("Your groups are made of every n-th loss. A block is block losses in a row."),
        ),
        Mistake(
            "sum for mean",
            lambda losses, block: np.exp(losses.reshape(-1, block).sum(axis=-1)),
            _("This is the inverse probability of the whole block. Divide the sum of losses by the block first."),
        ),
        Mistake(
            "the last of each block",
            lambda losses, block: np.exp(losses[block - 1 :: block]),
            _("You took one token of each block. Take the mean over the block."),
        ),
    ),
    hints=(
        _("losses.reshape(-1, block) has a row for each block."),
        _("The mean of a row is the block's loss."),
        _("np.exp(losses.reshape(-1, block).mean(axis=-1))"),
    ),
)
