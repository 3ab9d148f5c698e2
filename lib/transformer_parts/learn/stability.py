"""Exercises of notebook 15: clip to a global norm, narrow a residual projection, bound the logits."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.norms import layer_norm, rms_norm


def _norms(gradients):
    """Return the norm of each step's gradients, shape (T, 1, 1)."""
    return np.sqrt((gradients**2).sum(axis=(1, 2), keepdims=True))


def _clipped_by(measure):
    """Build clipping by a measure of the gradients."""

    def function(gradients, max_norm):
        return gradients * np.minimum(1.0, max_norm / measure(gradients))

    return function


def _steps(rng):
    """Return the gradients of a few steps, some of them far above the limit and some below."""
    rows, columns = rng.integers(2, 5), rng.integers(5, 8)
    gradients = rng.standard_normal((rng.integers(2, 5), rows, columns)) * rng.uniform(0.3, 3, (rows, 1))
    # The first is so far above the limit that its root mean square (of 28 numbers at most) is above it too.
    sizes = rng.permutation([rng.uniform(6, 9), rng.uniform(0.3, 0.9), *rng.uniform(0.5, 9, len(gradients) - 2)])
    max_norm = float(rng.uniform(0.3, 3))
    return gradients / _norms(gradients) * sizes[:, None, None] * max_norm, max_norm


CLIP = Exercise(
    task=_(
        "my_clip(gradients, max_norm): gradients of shape (T, P, N), T steps with P parameters of N entries each; scale"
        " each step so that the norm of all its parameters together is at most max_norm"
    ),
    solution=_clipped_by(_norms),
    inputs=_steps,
    mistakes=(
        Mistake("identity", lambda g, c: g, _("Your function returns the gradients as they were.")),
        Mistake(
            "each parameter by itself",
            _clipped_by(lambda g: np.sqrt((g**2).sum(axis=2, keepdims=True))),
            _(
                "You clip each parameter by its own norm: large ones shrink, small ones don't, and the direction of the"
                " whole turns. One norm over all parameters, one factor for all of them."
            ),
        ),
        Mistake(
            "all steps together",
            _clipped_by(lambda g: np.sqrt((g**2).sum())),
            _("You have one norm for all steps. Each step (axis 0) is clipped by its own."),
        ),
        Mistake(
            "entry by entry",
            lambda g, c: np.clip(g, -c, c),
            _("You cut single entries at ±max_norm: that turns the direction, and their norm may still be larger."),
        ),
        Mistake(
            "always scaled",
            lambda g, c: g * c / _norms(g),
            _("You scale small gradients up too. Below max_norm nothing is to be changed: the factor is at most 1."),
        ),
        Mistake(
            "always to norm 1",
            lambda g, c: g / _norms(g),
            _("You divide every step by its norm: all come out with norm 1, whatever max_norm is and small ones too."),
        ),
        Mistake(
            "an ε in the norm",
            _clipped_by(lambda g: _norms(g) + 1e-6),
            _("Almost: you divide by norm + 10⁻⁶, as PyTorch does. Here the norm is to be max_norm exactly."),
        ),
        Mistake(
            "the larger factor",
            lambda g, c: g * np.maximum(1, c / _norms(g)),
            _(
                "You take the larger of 1 and max_norm / norm: large gradients stay and small ones grow. Take the"
                " smaller."
            ),
        ),
        Mistake(
            "to norm 1",
            lambda g, c: g * np.minimum(1, 1 / _norms(g)),
            _("You clip to norm 1, whatever max_norm is."),
        ),
        Mistake(
            "root forgotten",
            _clipped_by(lambda g: _norms(g) ** 2),
            _("You compare with the sum of squares; the norm is its root."),
        ),
        Mistake(
            "mean of squares",
            _clipped_by(lambda g: np.sqrt((g**2).mean(axis=(1, 2), keepdims=True))),
            _("You take the root of the mean of the squares. The norm is the root of their sum."),
        ),
        Mistake(
            "sum of absolute values",
            _clipped_by(lambda g: np.abs(g).sum(axis=(1, 2), keepdims=True)),
            _("You take the sum of absolute values; the norm that is meant is the Euclidean one."),
        ),
        Mistake(
            "largest entry",
            _clipped_by(lambda g: np.abs(g).max(axis=(1, 2), keepdims=True)),
            _("You compare with the largest entry; it is the norm of all entries together that counts."),
        ),
    ),
    hints=(
        _("One number decides for each step: the Euclidean norm of all entries of all its parameters together."),
        _("norm = np.sqrt((gradients**2).sum(axis=(1, 2), keepdims=True)); up to max_norm nothing changes."),
        _("gradients * np.minimum(1, max_norm / norm)"),
    ),
)


def _projection(rng):
    return rng.standard_normal(rng.choice(np.arange(3, 8), 2, replace=False)), int(rng.integers(3, 97))


def _times(factor):
    return lambda w, n_layers: w * factor(w, n_layers)


NARROW = Exercise(
    task=_(
        "my_narrow(w, n_layers): the initial weights of a residual projection, narrowed for a pre-norm decoder of"
        " n_layers layers"
    ),
    solution=lambda w, n_layers: w / np.sqrt(2 * n_layers),
    inputs=_projection,
    mistakes=(
        Mistake("identity", lambda w, n: w, _("Your function returns w as it was.")),
        Mistake(
            "one branch a layer",
            _times(lambda w, n: n**-0.5),
            _("You count one branch a layer. Each has two, attention and feed-forward: 2L of them."),
        ),
        Mistake(
            "root forgotten",
            _times(lambda w, n: 1 / (2 * n)),
            _("You divide by 2L. Variances add, so it is the variance that is divided by 2L, and w by its root."),
        ),
        Mistake(
            "layers, root forgotten",
            _times(lambda w, n: 1 / n),
            _("You divide by L. There are 2L branches, and the root of their number divides w."),
        ),
        Mistake(
            "wider",
            _times(lambda w, n: (2 * n) ** 0.5),
            _("You multiply by √(2L): the deeper, the wider. It is to be the other way round."),
        ),
        Mistake(
            "by the width",
            _times(lambda w, n: w.shape[0] ** -0.5),
            _(
                "You divide by the root of the fan-in. That is for the product with this one matrix; the factor asked"
                " for is for the sum of many branches, and knows only their number."
            ),
        ),
        Mistake(
            "fourth root",
            _times(lambda w, n: (8 * n) ** -0.25),
            _("That is DeepNorm's β, (8L)^(−1/4), for its own placement of norms."),
        ),
    ),
    hints=(
        _("How many branches write into the residual stream of L layers? Their variances add."),
        _("There are 2L. Each may have 1/(2L) of the variance."),
        _("w / np.sqrt(2 * n_layers)"),
    ),
)


def _heads(rng):
    length, width = rng.choice(np.arange(3, 9), 2, replace=False)
    # Not so large that an ε of 10⁻⁶ in the norm would be lost in the tolerance.
    return (*rng.standard_normal((2, length, width)) * rng.uniform(2, 8), float(rng.uniform(0.5, 3)))


def _logits(q, k, gain, norm=lambda x: rms_norm(x, eps=1e-12)):
    return gain**2 * norm(q) @ norm(k).T / np.sqrt(q.shape[1])


def _by_tokens(x):
    return x / np.sqrt((x**2).mean(axis=0))


def _by_all(x):
    return x / np.sqrt((x**2).mean())


QK_NORM = Exercise(
    task=_(
        "my_logits(q, k, gain): attention logits under QK-norm; q and k of shape (L, K), both normalised by RMSNorm (ε"
        " = 0) and multiplied by gain, then scaled by 1/√K"
    ),
    solution=_logits,
    inputs=_heads,
    mistakes=(
        Mistake(
            "no norm",
            lambda q, k, g: g**2 * q @ k.T / np.sqrt(q.shape[1]),
            _("You normalise nothing: the logits grow with q and k."),
        ),
        Mistake(
            "query alone",
            lambda q, k, g: g**2 * rms_norm(q, eps=1e-12) @ k.T / np.sqrt(q.shape[1]),
            _("The keys are not normalised, so the logits still grow with them."),
        ),
        Mistake(
            "key alone",
            lambda q, k, g: g**2 * q @ rms_norm(k, eps=1e-12).T / np.sqrt(q.shape[1]),
            _("The queries are not normalised, so the logits still grow with them."),
        ),
        Mistake(
            "gain once",
            lambda q, k, g: _logits(q, k, g) / g,
            _("Queries and keys have a gain each: their product has it twice."),
        ),
        Mistake(
            "gain forgotten",
            lambda q, k, g: _logits(q, k, 1.0),
            _("The gain is missing: without it no logit can pass √K, and attention can never be sharp."),
        ),
        Mistake(
            "1/√K forgotten",
            lambda q, k, g: _logits(q, k, g) * np.sqrt(q.shape[1]),
            _("The scale 1/√K is missing."),
        ),
        Mistake(
            "length 1",
            lambda q, k, g: _logits(q, k, g) / q.shape[1],
            _("You divide by the length, so your vectors have length 1. RMSNorm leaves RMS 1, that is length √K."),
        ),
        Mistake(
            "over the tokens",
            lambda q, k, g: _logits(q, k, g, _by_tokens),
            _("Your mean runs over the tokens (axis 0). Each vector is normalised by itself, over its channels."),
        ),
        Mistake(
            "over everything",
            lambda q, k, g: _logits(q, k, g, _by_all),
            _("You have one mean square for all tokens together. Each vector is normalised by its own."),
        ),
        Mistake(
            "LayerNorm",
            lambda q, k, g: _logits(q, k, g, lambda x: layer_norm(x, eps=1e-12)),
            _("You subtract the mean too: that is LayerNorm, as in ViT-22B. Asked for is RMSNorm."),
        ),
        Mistake(
            "an ε in the norm",
            lambda q, k, g: _logits(q, k, g, rms_norm),
            _("Almost: your norm adds an ε of 10⁻⁶, as in practice it should. Here it is to be 0."),
        ),
    ),
    hints=(
        _("Each row of q and of k is divided by its own RMS, over the last axis."),
        _("q / np.sqrt((q**2).mean(-1, keepdims=True)) * gain, and the same for k."),
        _("The product of the two, q @ k.T, over √K."),
    ),
)
