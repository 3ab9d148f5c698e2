"""Exercises of notebook 10: right answers that have only the formulas pass, others' mistakes get their names.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import norm_placement as exercises

SEEDS = range(40)


def rms_norm(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


BLOCKS = (
    lambda t, w, a: t + rms_norm(t) @ w,
    lambda t, w, a: rms_norm(t + t @ w),
    lambda t, w, a: t + rms_norm(rms_norm(t) @ w),
    lambda t, w, a: rms_norm(a * t + t @ w),
)


def layer(x, w_attn, w_ffn, alpha):
    return [block(block(x, w_attn, alpha), w_ffn, alpha) for block in BLOCKS]


def backward(grad, x, w):
    """By central differences: slow, and right to about 1e-10."""
    out = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-3
        along = [np.vdot(grad, x + k * step + rms_norm(x + k * step) @ w) for k in (2, 1, -1, -2)]
        out[at] = (-along[0] + 8 * along[1] - 8 * along[2] + along[3]) / 12e-3
    return out


@pytest.mark.parametrize("seed", SEEDS)
def test_the_formulas_pass(seed):
    assert exercises.LAYER.check(layer, seed=seed).passed


def test_differences_agree_with_the_solution(rng):
    grad, x, w = rng.normal(size=(3, 5)), 1 + rng.random((3, 5)), rng.normal(size=(5, 5))
    np.testing.assert_allclose(exercises.BACKWARD.solution(grad, x, w), backward(grad, x, w), atol=1e-8)


def with_entry(index, function):
    """A reader's answer in which one placement is another's."""

    def answer(x, w_attn, w_ffn, alpha):
        out = layer(x, w_attn, w_ffn, alpha)
        out[index] = function(x, w_attn, w_ffn, alpha)
        return out

    return answer


def twice(block):
    return lambda x, w_attn, w_ffn, alpha: block(block(x, w_attn, alpha), w_ffn, alpha)


@pytest.mark.parametrize(
    ("answer", "mistake"),
    [
        (with_entry(0, twice(lambda t, w, a: rms_norm(t) + rms_norm(t) @ w)), "Pre normalises the stream"),
        (with_entry(1, twice(lambda t, w, a: t + rms_norm(t @ w))), "Post normalises the branch alone"),
        (with_entry(2, twice(lambda t, w, a: t + rms_norm(t @ w))), "sandwich without its inner norm"),
        (with_entry(3, twice(lambda t, w, a: a * t + rms_norm(t @ w))), "DeepNorm's norm of the branch alone"),
        (with_entry(3, twice(lambda t, w, a: rms_norm(t + a * (t @ w)))), "α on the branch"),
        (with_entry(3, twice(lambda t, w, a: rms_norm(t + t @ w))), "α forgotten"),
        (with_entry(3, twice(lambda t, w, a: rms_norm(t + t @ w / a))), "branch divided by α"),
        (with_entry(2, twice(lambda t, w, a: t + rms_norm(t) @ w)), "sandwich without its outer norm"),
        (lambda x, w_attn, w_ffn, a: [f(x, w_attn, a) for f in BLOCKS], "one branch only"),
    ],
)
def test_mistakes_written_differently_are_named(answer, mistake):
    for seed in SEEDS:
        assert exercises.LAYER.check(answer, seed=seed).mistake == mistake


def test_mistakes_of_the_backward_pass_written_differently_are_named():
    def no_stream(grad, x, w):
        return exercises.BACKWARD.solution(grad, x, w) - grad

    def plain_w(grad, x, w):
        return exercises.BACKWARD.solution(grad, x, w.T)

    for seed in SEEDS:
        assert exercises.BACKWARD.check(no_stream, seed=seed).mistake == "stream forgotten"
        assert exercises.BACKWARD.check(plain_w, seed=seed).mistake == "w not transposed"
        assert exercises.BACKWARD.check(lambda grad, x, w: grad, seed=seed).mistake == "branch forgotten"
