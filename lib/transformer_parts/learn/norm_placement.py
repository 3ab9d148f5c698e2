"""Exercises on the placement of norms (notebook 10)."""

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn.exercise import Exercise, Mistake
from transformer_parts.maths.gradients import rms_norm_backward
from transformer_parts.maths.norm_placement import deep_norm, post_norm, pre_norm, sandwich_norm
from transformer_parts.maths.norms import layer_norm, rms_norm

_EPS = 1e-6


def _norm(x):
    return rms_norm(x, eps=_EPS)


def _layer_solution(x, w_attn, w_ffn, alpha):
    rows = []
    for place in (
        lambda x, f: pre_norm(x, f, _norm),
        lambda x, f: post_norm(x, f, _norm),
        lambda x, f: sandwich_norm(x, f, _norm, _norm),
        lambda x, f: deep_norm(x, f, _norm, alpha),
    ):
        u = place(x, lambda t: t @ w_attn)
        rows.append(place(u, lambda t: t @ w_ffn))
    return np.array(rows)


def _layer_with(*, pre=None, post=None, sandwich=None, deepnorm=None, norm=_norm, branches=2):
    """Return the layer with some of its placements replaced; each is a function of x, F and α."""
    places = (
        pre or (lambda x, f, alpha: x + f(norm(x))),
        post or (lambda x, f, alpha: norm(x + f(x))),
        sandwich or (lambda x, f, alpha: x + norm(f(norm(x)))),
        deepnorm or (lambda x, f, alpha: norm(alpha * x + f(x))),
    )

    def function(x, w_attn, w_ffn, alpha):
        rows = [x] * len(places)
        for w in (w_attn, w_ffn)[:branches]:
            rows = [place(row, lambda t, w=w: t @ w, alpha) for place, row in zip(places, rows, strict=True)]
        return np.array(rows)

    return function


def _parallel(x, w_attn, w_ffn, alpha):
    w = w_attn + w_ffn
    return np.array(
        [
            x + _norm(x) @ w,
            _norm(x + x @ w),
            x + _norm(_norm(x) @ w_attn) + _norm(_norm(x) @ w_ffn),
            _norm(alpha * x + x @ w),
        ]
    )


def _layer_inputs(rng):
    d = int(rng.choice([3, 5, 7]))
    return rng.normal(0, 2, (3, d)), rng.normal(size=(d, d)), rng.normal(size=(d, d)), float(rng.uniform(1.5, 3))


LAYER = Exercise(
    task=_(
        "my_layer(x, w_attn, w_ffn, alpha): one layer of two branches, x @ w_attn and then x @ w_ffn, under each"
        " placement: an array [Pre, Post, Sandwich, DeepNorm]. The norm is rms_norm(x, eps=1e-6); x has shape (L, D)"
    ),
    solution=_layer_solution,
    inputs=_layer_inputs,
    mistakes=(
        Mistake(
            "Pre normalises the stream",
            _layer_with(pre=lambda x, f, alpha: _norm(x) + f(_norm(x))),
            _("In your Pre the stream itself is normalised. Only what the branch reads is: x + F(Norm(x))."),
        ),
        Mistake(
            "Post normalises the branch alone",
            _layer_with(post=lambda x, f, alpha: x + _norm(f(x))),
            _("Your Post normalises the branch's output and then adds it. The norm is of the sum: Norm(x + F(x))."),
        ),
        Mistake(
            "Post normalises twice",
            _layer_with(post=lambda x, f, alpha: _norm(x + f(_norm(x)))),
            _("The branch of your Post reads a norm. It reads the stream itself: the norm is of the sum."),
        ),
        Mistake(
            "Pre and Post exchanged",
            _layer_with(
                pre=lambda x, f, alpha: _norm(x + f(x)),
                post=lambda x, f, alpha: x + f(_norm(x)),
            ),
            _("You exchanged Pre and Post. The name says where the norm stands: before the branch, or after the sum."),
        ),
        Mistake(
            "sandwich without its inner norm",
            _layer_with(sandwich=lambda x, f, alpha: x + _norm(f(x))),
            _("Your sandwich has one slice: the branch must read Norm(x), not x."),
        ),
        Mistake(
            "sandwich without its outer norm",
            _layer_with(sandwich=lambda x, f, alpha: x + f(_norm(x))),
            _("Your sandwich is Pre: what the branch writes must be normalised as well."),
        ),
        Mistake(
            "sandwich round the sum",
            _layer_with(sandwich=lambda x, f, alpha: _norm(x + f(_norm(x)))),
            _("The outer norm of your sandwich takes in the stream. It is of the branch's output alone."),
        ),
        Mistake(
            "DeepNorm's norm of the branch alone",
            _layer_with(deepnorm=lambda x, f, alpha: alpha * x + _norm(f(x))),
            _("You computed αx + Norm(F(x)). In DeepNorm the norm is of all of it: Norm(αx + F(x))."),
        ),
        Mistake(
            "α on the branch",
            _layer_with(deepnorm=lambda x, f, alpha: _norm(x + alpha * f(x))),
            _("α multiplies the stream, so that the branch counts for less; you made it count for more."),
        ),
        Mistake(
            "branch divided by α",
            _layer_with(deepnorm=lambda x, f, alpha: _norm(x + f(x) / alpha)),
            _("You divide the branch by α. But for ε that is the same; do as the paper does, and multiply the stream."),
        ),
        Mistake(
            "α on both",
            _layer_with(deepnorm=lambda x, f, alpha: _norm(alpha * (x + f(x)))),
            _("You multiplied the whole sum by α. The norm undoes a common factor: that is Post."),
        ),
        Mistake(
            "α forgotten",
            _layer_with(deepnorm=lambda x, f, alpha: _norm(x + f(x))),
            _("Your DeepNorm is Post: α is missing."),
        ),
        Mistake(
            "branches in parallel",
            _parallel,
            _(
                "Both of your branches read the layer's input. The second reads what the first has left: do one, then"
                " the other."
            ),
        ),
        Mistake(
            "one branch only",
            _layer_with(branches=1),
            _("Your layer has one branch. The second, x @ w_ffn, follows on what the first has left."),
        ),
        Mistake(
            "LayerNorm",
            _layer_with(norm=lambda x: layer_norm(x, eps=_EPS)),
            _("Your norm subtracts the mean: that is LayerNorm, as in the papers; here it is rms_norm."),
        ),
    ),
    hints=(
        _("Write each placement as a function of x and a branch f; use it twice."),
        _("Pre: x + f(norm(x)). Post: norm(x + f(x)). What do the other two add to these?"),
        _(
            "Sandwich: x + norm(f(norm(x))). DeepNorm: norm(alpha * x + f(x)). First with f = x @ w_attn, then, on the"
            " result, with f = x @ w_ffn."
        ),
    ),
)


def _backward_solution(grad, x, w):
    through_branch, _weight_grad = rms_norm_backward(grad @ w.T, x, eps=_EPS)
    return grad + through_branch


def _rms(x):
    return np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + _EPS)


def _backward_with(*, stream=1.0, matrix=lambda w: w.T, back=None):
    def function(grad, x, w):
        inner = grad @ matrix(w)
        normed = x / _rms(x)
        if back is None:
            inner = (inner - normed * np.mean(inner * normed, axis=-1, keepdims=True)) / _rms(x)
        else:
            inner = back(inner, x, normed)
        return stream * grad + inner

    return function


def _backward_inputs(rng):
    d = int(rng.choice([3, 5, 7]))
    return rng.normal(size=(3, d)), rng.normal(0, 2, (3, d)), rng.normal(size=(d, d))


BACKWARD = Exercise(
    task=_(
        "my_backward(grad, x, w): the gradient at x of y = x + rms_norm(x, eps=1e-6) @ w, given the gradient at y; grad"
        " and x have shape (L, D), w has (D, D)"
    ),
    solution=_backward_solution,
    inputs=_backward_inputs,
    mistakes=(
        Mistake(
            "stream forgotten",
            _backward_with(stream=0.0),
            _("The path past the branch is missing: y contains x itself, so grad arrives at x unchanged as well."),
        ),
        Mistake(
            "branch forgotten",
            lambda grad, x, w: grad + 0 * x,
            _("Only the stream's gradient is there; what comes back through the branch must be added."),
        ),
        Mistake(
            "w not transposed",
            _backward_with(matrix=lambda w: w),
            _("Backward through x @ w is grad @ w.T: your result uses w itself."),
        ),
        Mistake(
            "norm passed over",
            _backward_with(back=lambda inner, x, normed: inner),
            _("You went back through w but not through the norm."),
        ),
        Mistake(
            "norm taken for a constant factor",
            _backward_with(back=lambda inner, x, normed: inner / _rms(x)),
            _("You divided by the RMS as if it did not depend on x. Take away the part along the normalised x."),
        ),
        Mistake(
            "not divided by the RMS",
            _backward_with(
                back=lambda inner, x, normed: inner - normed * np.mean(inner * normed, axis=-1, keepdims=True)
            ),
            _("The projection is right, but the norm divided by the RMS, and so does its backward pass."),
        ),
        Mistake(
            "sum for mean",
            _backward_with(
                back=lambda inner, x, normed: (
                    (inner - normed * np.sum(inner * normed, axis=-1, keepdims=True)) / _rms(x)
                )
            ),
            _("The part along the normalised x is its inner product over D, a mean: its length is √D, not 1."),
        ),
        Mistake(
            "part along x itself",
            _backward_with(back=lambda inner, x, normed: (inner - x * np.mean(inner * x, -1, keepdims=True)) / _rms(x)),
            _("You take away the part along x. It is the part along the normalised x, x divided by its RMS."),
        ),
        Mistake(
            "norm before the matrix",
            lambda grad, x, w: grad + rms_norm_backward(grad, x, eps=_EPS)[0] @ w.T,
            _("You go back through the norm first. What came last is undone first: grad @ w.T, then the norm."),
        ),
        Mistake(
            "norm run forward",
            _backward_with(back=lambda inner, x, normed: inner / _rms(inner)),
            _("You normalised the gradient. The backward pass multiplies by the norm's Jacobian at x."),
        ),
    ),
    hints=(
        _("Two paths lead from x to y; their gradients are added."),
        _("Through the branch: first grad @ w.T, then back through the norm."),
        _("With r = 1/RMS(x), n = r·x and g = grad @ w.T: grad + r·(g − n·mean(g·n))."),
    ),
)
