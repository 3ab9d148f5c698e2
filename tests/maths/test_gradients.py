"""Backward passes of the single parts, against central differences, laws, and PyTorch's autograd."""

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import rope
from transformer_parts.maths.attention import softmax
from transformer_parts.maths.cross_entropy import cross_entropy
from transformer_parts.maths.gradients import (
    cross_entropy_backward,
    embedding_backward,
    linear_backward,
    rotate_backward,
    softmax_backward,
)

CLOSE = {"rtol": 1e-9, "atol": 1e-10}


def test_linear_by_differences(rng, differences):
    x, w, grad = rng.normal(size=(2, 3, 5)), rng.normal(size=(5, 7)), rng.normal(size=(2, 3, 7))
    grad_x, grad_w = linear_backward(grad, x, w)
    assert_allclose(grad_x, differences(lambda x: np.vdot(grad, x @ w), x), **CLOSE)
    assert_allclose(grad_w, differences(lambda w: np.vdot(grad, x @ w), w), **CLOSE)


def test_embedding_by_differences(rng, differences):
    tokens, table, grad = rng.integers(0, 7, (3, 5)), rng.normal(size=(11, 2)), rng.normal(size=(3, 5, 2))
    got = embedding_backward(grad, tokens, 11)
    assert_allclose(got, differences(lambda e: np.vdot(grad, e[tokens]), table), **CLOSE)
    assert_array_equal(got[7:], 0)  # these tokens do not occur


def test_embedding_is_the_plain_loop(rng):
    tokens, grad = rng.integers(0, 13, 101), rng.normal(size=(101, 3))
    wanted = np.zeros((13, 3))
    for token, row in zip(tokens, grad, strict=True):
        wanted[token] += row
    assert_allclose(embedding_backward(grad, tokens, 13), wanted, rtol=1e-13)


@pytest.mark.parametrize("layout", ["interleaved", "split"])
@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_rotate_by_differences(rng, differences, layout, rotary_dim):
    x, grad, positions = rng.normal(size=(2, 3, 6)), rng.normal(size=(2, 3, 6)), [2, 0, 11]
    settings = {"layout": layout, "rotary_dim": rotary_dim, "rope_base": 50.0}
    got = rotate_backward(grad, positions, **settings)
    assert_allclose(got, differences(lambda x: np.vdot(grad, rope.rotate(x, positions, **settings)), x), **CLOSE)
    assert_allclose(rope.rotate(got, positions, **settings), grad, rtol=0, atol=1e-14)  # the rotation undone


def test_rotate_with_given_frequencies(rng):
    grad, frequencies = rng.normal(size=(3, 4)), [0.7, 0.01]
    got = rotate_backward(grad, [1, 5, 9], inv_freq=frequencies)
    assert_array_equal(got, rope.rotate(grad, [-1, -5, -9], inv_freq=frequencies))
    # the forward rotation in its place is another thing
    assert np.abs(got - rope.rotate(grad, [1, 5, 9], inv_freq=frequencies)).max() > 0.1


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_by_differences(rng, differences, axis):
    x, grad = rng.normal(size=(3, 5, 2)), rng.normal(size=(3, 5, 2))
    got = softmax_backward(grad, softmax(x, axis), axis)
    assert_allclose(got, differences(lambda x: np.vdot(grad, softmax(x, axis)), x), **CLOSE)
    assert_allclose(got.sum(axis), 0, atol=1e-15)


def test_softmax_passes_nothing_to_what_has_no_weight(rng):
    weights = softmax([0.3, -np.inf, 2.0])
    assert softmax_backward(rng.normal(size=3), weights)[1] == 0


def test_cross_entropy_by_differences(rng, differences):
    logits, targets = rng.normal(size=(3, 5, 7)), rng.integers(-1, 7, (3, 5))
    got = cross_entropy_backward(logits, targets)
    assert_allclose(got, differences(lambda z: cross_entropy(z, targets), logits), **CLOSE)
    assert_array_equal(got[targets == -1], 0)
    assert_allclose(got.sum(-1), 0, atol=1e-16)


@pytest.mark.oracle
def test_single_parts_agree_with_autograd(rng, torch):
    def leaf(x):
        return torch.tensor(x, requires_grad=True)

    x, w = leaf(rng.normal(size=(2, 3, 5))), leaf(rng.normal(size=(5, 7)))
    grad = rng.normal(size=(2, 3, 7))
    (x @ w).backward(torch.tensor(grad))
    for got, wanted in zip(linear_backward(grad, x.detach().numpy(), w.detach().numpy()), (x, w), strict=True):
        assert_allclose(got, wanted.grad.numpy(), rtol=1e-12)

    table, tokens, grad = leaf(rng.normal(size=(11, 3))), rng.integers(0, 11, (5, 2)), rng.normal(size=(5, 2, 3))
    torch.nn.functional.embedding(torch.tensor(tokens), table).backward(torch.tensor(grad))
    assert_allclose(embedding_backward(grad, tokens, 11), table.grad.numpy(), rtol=1e-12, atol=1e-14)

    logits, targets = leaf(rng.normal(size=(13, 7))), rng.integers(-1, 7, 13)
    torch.nn.functional.cross_entropy(logits, torch.tensor(targets), ignore_index=-1).backward()
    got = cross_entropy_backward(logits.detach().numpy(), targets)
    assert_allclose(got, logits.grad.numpy(), rtol=1e-12, atol=1e-15)


def test_the_dtype_of_the_computation_is_kept(rng):
    x, w = rng.normal(size=(3, 5)), rng.normal(size=(5, 2))
    for dtype, wanted in ((np.float32, np.float32), (np.float16, np.float32), (ml_dtypes.bfloat16, np.float32)):
        grad_x, grad_w = linear_backward(x.astype(dtype) @ w.astype(dtype), x.astype(dtype), w.astype(dtype))
        assert grad_x.dtype == grad_w.dtype == wanted
    assert cross_entropy_backward(x.astype(np.float32), [0, 1, 2]).dtype == np.float32
    assert embedding_backward(x.astype(np.float16), [0, 1, 1], 2).dtype == np.float32
    assert softmax_backward([1, 0], [0.5, 0.5]).dtype == np.float64


def test_nothing_given_is_written_into(rng):
    grad, x, w = rng.normal(size=(3, 2)), rng.normal(size=(3, 5)), rng.normal(size=(5, 2))
    logits, targets = rng.normal(size=(3, 5)), np.array([0, 4, -1])
    before = [a.copy() for a in (grad, x, w, logits, targets)]
    linear_backward(grad, x, w)
    softmax_backward(grad, grad)
    embedding_backward(grad, [0, 1, 0], 2)
    rotate_backward(grad, [0, 1, 2])
    cross_entropy_backward(logits, targets)
    for a, b in zip((grad, x, w, logits, targets), before, strict=True):
        assert_array_equal(a, b)


ONES = np.ones((3, 4))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: linear_backward(ONES, ONES, np.ones((3, 4))), "w"),
        (lambda: linear_backward(np.ones((2, 4)), ONES, np.ones((4, 4))), "grad"),
        (lambda: linear_backward(ONES * np.nan, ONES, np.ones((4, 4))), "grad"),
        (lambda: embedding_backward(ONES, [0, 1, 5], 5), "tokens"),
        (lambda: embedding_backward(ONES, [0, 1, -1], 5), "tokens"),
        (lambda: embedding_backward(ONES, [0.0, 1.0, 2.0], 5), "tokens"),
        (lambda: embedding_backward(ONES, [0, 1], 5), "tokens"),
        (lambda: embedding_backward(ONES, [0, 1, 2], 0), "vocab_size"),
        (lambda: rotate_backward(ONES, [0, 1]), "positions"),
        (lambda: rotate_backward(ONES, [0, 1, 2], layout="pairs"), "layout"),
        (lambda: softmax_backward(ONES, np.ones((4, 3))), "grad"),
        (lambda: softmax_backward(ONES, ONES, axis=2), "axis"),
        (lambda: cross_entropy_backward(ONES, [0, 1, 4]), "targets"),
        (lambda: cross_entropy_backward(ONES, [-1, -1, -1]), "targets"),
        (lambda: cross_entropy_backward(ONES, [[0, 1, 2]]), "targets"),
        (lambda: cross_entropy_backward(ONES * np.inf, [0, 1, 2]), "logits"),
    ],
)
def test_what_does_not_fit_is_refused(call, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        call()
