"""Exercises on RMSNorm and LayerNorm (notebook 09)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths import norms

_X = _("`x`: the tokens, of shape (T, d)")
_WEIGHT = _("`weight`: the γ itself, of shape (d,)")
_EPS = _("`eps`: a positive number ε, added to the mean square inside the root")
_BIAS = _("`bias`: the β, of shape (d,), added after γ")


def _case(rng):
    # Tokens and channels differ in number, the mean is not small and ε is large, so that every mistake
    # changes the result.
    length, width = rng.choice(np.arange(3, 9), 2, replace=False)
    x = rng.uniform(0.2, 2) * rng.standard_normal((length, width)) + rng.uniform(-1, 1, (length, 1))
    weight, bias = rng.uniform(0.5, 2, width), rng.uniform(0.2, 1, width)
    return x, weight, bias, float(rng.choice([1e-3, 1e-2, 1e-1]))


def _rms_inputs(rng):
    x, weight, _bias, eps = _case(rng)
    return x, weight, eps


def _mean_square(x, axis=-1):
    return np.mean(x * x, axis=axis, keepdims=True)


def _by_tokens(x, weight, eps):
    return x / np.sqrt(_mean_square(x, 0) + eps) * weight


RMS_NORM = Exercise(
    task=_("my_rms_norm(x, weight, eps): RMSNorm of each token: the last axis is normalised"),
    takes=(_X, _WEIGHT, _EPS),
    returns=_("an array of shape (T, d)"),
    solution=norms.rms_norm,
    inputs=_rms_inputs,
    mistakes=(
        Mistake("identity", lambda x, w, e: x, _("Your function returns x as it was.")),
        Mistake(
            "mean removed",
            lambda x, w, e: norms.layer_norm(x, w, eps=e),
            _("You subtract the mean: that is LayerNorm. RMSNorm leaves the mean in."),
        ),
        Mistake(
            "sum instead of mean",
            lambda x, w, e: x / np.sqrt(x.shape[-1] * _mean_square(x) + e) * w,
            _(
                "You divide by the root of the sum of squares, which is the vector's length. RMS is the root of their"
                " mean: the output has RMS 1 and length √D."
            ),
        ),
        Mistake(
            "divided by the norm",
            lambda x, w, e: x / np.linalg.norm(x, axis=-1, keepdims=True) * w,
            _("You divide by the length: the output has length 1. RMS is length / √d, with ε under its root."),
        ),
        Mistake(
            "D − 1",
            lambda x, w, e: x / np.sqrt(x.shape[-1] / (x.shape[-1] - 1) * _mean_square(x) + e) * w,
            _("You divide the sum of squares by D − 1; it is the mean, 1/D."),
        ),
        Mistake(
            "ε outside the root",
            lambda x, w, e: x / (np.sqrt(_mean_square(x)) + e) * w,
            _("You add ε after the root. It stands under it, beside the mean square: √(mean(x²) + ε)."),
        ),
        Mistake(
            "ε missing",
            lambda x, w, e: x / np.sqrt(_mean_square(x)) * w,
            _("ε is missing: a token of zeros would give 0/0, and small tokens come out too large."),
        ),
        Mistake(
            "root forgotten",
            lambda x, w, e: x / (_mean_square(x) + e) * w,
            _("You divide by the mean square itself; take its root."),
        ),
        Mistake(
            "mean of absolute values",
            lambda x, w, e: x / (np.mean(np.abs(x), -1, keepdims=True) + e) * w,
            _("You divide by the mean of |x|; RMS is the root of the mean of x²."),
        ),
        Mistake(
            "over the tokens",
            _by_tokens,
            _("Your mean runs over the tokens (axis 0). Each token is normalised over its channels (axis −1)."),
        ),
        Mistake(
            "over everything",
            lambda x, w, e: x / np.sqrt(_mean_square(x, None) + e) * w,
            _("You have one RMS for all tokens together. Each token has its own: mean over axis −1, keepdims=True."),
        ),
        Mistake(
            "γ forgotten",
            lambda x, w, e: norms.rms_norm(x, eps=e),
            _("The normalised rows are right; multiply them by the weight γ."),
        ),
        Mistake(
            "γ added",
            lambda x, w, e: norms.rms_norm(x, eps=e) + w,
            _("You add γ; it multiplies, channel by channel. RMSNorm adds nothing."),
        ),
        Mistake(
            "1 + γ",
            lambda x, w, e: norms.rms_norm(x, 1 + w, e),
            _("You multiply by 1 + γ: that is how Gemma stores its weight. Here the weight is γ itself."),
        ),
        Mistake(
            "γ before the norm",
            lambda x, w, e: norms.rms_norm(x * w, eps=e),
            _("You multiply by γ before dividing, so γ is in the RMS too. Normalise first, then multiply."),
        ),
    ),
    hints=(
        _("What single number does each token need? It comes from the squares of its own channels."),
        _("np.mean(x * x, axis=-1, keepdims=True) is the mean square as a column; add eps, then take the root."),
        _("x / root * weight: the column divides each row, the weight multiplies each channel."),
    ),
)


def _layer_with(center=True, denominator=None, affine=None):
    """Build LayerNorm with one step replaced."""

    def function(x, weight, bias, eps):
        mean = x.mean(-1, keepdims=True)
        variance = _mean_square(x - mean)
        rows = (x - mean if center else x) / (denominator or (lambda x, v, e: np.sqrt(v + e)))(x, variance, eps)
        return (affine or (lambda y, w, b: y * w + b))(rows, weight, bias)

    return function


def _batch_norm(x, weight, bias, eps):
    return (x - x.mean(0)) / np.sqrt(x.var(0) + eps) * weight + bias


LAYER_NORM = Exercise(
    task=_("my_layer_norm(x, weight, bias, eps): LayerNorm of each token: the last axis is normalised"),
    takes=(
        _X,
        _("`weight`: the γ, of shape (d,)"),
        _BIAS,
        _("`eps`: a positive number ε, added to the variance (with 1/d) inside the root"),
    ),
    returns=_("an array of shape (T, d)"),
    solution=norms.layer_norm,
    inputs=_case,
    mistakes=(
        Mistake("identity", lambda x, w, b, e: x, _("Your function returns x as it was.")),
        Mistake(
            "unbiased variance",
            _layer_with(denominator=lambda x, v, e: np.sqrt(v * x.shape[-1] / (x.shape[-1] - 1) + e)),
            _("Your variance divides by D − 1, as torch.var and np.var(ddof=1) do. LayerNorm divides by D."),
        ),
        Mistake(
            "mean not removed",
            lambda x, w, b, e: norms.rms_norm(x, w, e) + b,
            _("You do not subtract the mean: this is RMSNorm with a β."),
        ),
        Mistake(
            "mean not removed from the numerator",
            _layer_with(center=False),
            _("You divide by the standard deviation, but x itself stands above the line; it is x − μ."),
        ),
        Mistake(
            "RMS of x",
            _layer_with(denominator=lambda x, v, e: np.sqrt(_mean_square(x) + e)),
            _("You subtract the mean but divide by the RMS of x; the variance is the mean square of x − μ."),
        ),
        Mistake(
            "sum instead of mean",
            _layer_with(denominator=lambda x, v, e: np.sqrt(v * x.shape[-1] + e)),
            _("You divide by the root of the sum of squares, which is a length; the variance is their mean, 1/D."),
        ),
        Mistake(
            "ε outside the root",
            _layer_with(denominator=lambda x, v, e: np.sqrt(v) + e),
            _("You add ε after the root. It stands under it: √(σ² + ε)."),
        ),
        Mistake(
            "ε missing",
            _layer_with(denominator=lambda x, v, e: np.sqrt(v)),
            _("ε is missing: a token of equal entries would give 0/0."),
        ),
        Mistake(
            "root forgotten",
            _layer_with(denominator=lambda x, v, e: v + e),
            _("You divide by the variance; take its root."),
        ),
        Mistake(
            "over the tokens",
            _batch_norm,
            _("Mean and variance run over the tokens (axis 0), as in BatchNorm. LayerNorm takes axis −1."),
        ),
        Mistake(
            "over everything",
            lambda x, w, b, e: (x - x.mean()) / np.sqrt(x.var() + e) * w + b,
            _("You have one mean and one variance for all tokens together. Each token has its own: axis −1."),
        ),
        Mistake("γ forgotten", _layer_with(affine=lambda y, w, b: y + b), _("γ is missing: multiply before adding β.")),
        Mistake("β forgotten", _layer_with(affine=lambda y, w, b: y * w), _("β is missing: add it at the end.")),
        Mistake(
            "γ and β forgotten",
            _layer_with(affine=lambda y, w, b: y),
            _("The normalised rows are right; multiply them by γ, then add β."),
        ),
        Mistake(
            "β before γ",
            _layer_with(affine=lambda y, w, b: (y + b) * w),
            _("You add β first and multiply both by γ. The order is γ·y + β."),
        ),
        Mistake(
            "γ added",
            _layer_with(affine=lambda y, w, b: y + w + b),
            _("You add γ; it multiplies, channel by channel."),
        ),
    ),
    hints=(
        _("Each token needs two numbers of its own: its mean and its variance, both over axis −1."),
        _("Subtract the mean, keepdims=True. The variance is the mean of the squares of what is left (1/D)."),
        _("(x − μ) / √(variance + eps) * weight + bias"),
    ),
)


CENTER = Exercise(
    task=_("my_center(w): the matrix w' with rms_norm(x @ w') equal to layer_norm(x @ w) for every x"),
    takes=(_("`w`: of shape (in, out); both norms run over the out channels, without γ and β, with the same ε"),),
    returns=_("the matrix w', of shape (in, out)"),
    solution=lambda w: w - w.mean(axis=1, keepdims=True),
    inputs=lambda rng: (rng.standard_normal(rng.choice(np.arange(3, 9), 2, replace=False)) + rng.uniform(0.5, 1),),
    mistakes=(
        Mistake(
            "identity", lambda w: w, _("Your matrix is w itself: x @ w still has a mean, and RMSNorm leaves it in.")
        ),
        Mistake(
            "mean over the inputs",
            lambda w: w - w.mean(axis=0),
            _("You subtract the mean over the inputs (axis 0). The channels of x @ w are the columns: axis 1."),
        ),
        Mistake(
            "one mean for all",
            lambda w: w - w.mean(),
            _("You subtract one number from the whole matrix. Each input has its own mean over the outputs."),
        ),
        Mistake(
            "mean added",
            lambda w: w + w.mean(axis=1, keepdims=True),
            _("You add the mean of each row; subtract it."),
        ),
        Mistake(
            "rows normalised too",
            lambda w: (w - w.mean(axis=1, keepdims=True)) / w.std(axis=1, keepdims=True),
            _("Centring is enough. The division depends on x, so it cannot go into the matrix; RMSNorm does it."),
        ),
        Mistake(
            "sum instead of mean",
            lambda w: w - w.sum(axis=1, keepdims=True),
            _("You subtract the sum of each row; subtract its mean."),
        ),
    ),
    hints=(
        _(
            "LayerNorm is RMSNorm of what is left when the mean is subtracted. Which matrix makes x @ w' have mean"
            " zero?"
        ),
        _("The mean of x @ w over the channels is x @ (the mean of each row of w)."),
        _("Subtract from each row of w (one input) its mean over the columns (the outputs), keepdims=True."),
    ),
)
