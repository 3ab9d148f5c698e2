import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.gradients_norms import layer_norm_backward, rms_norm_backward
from transformer_parts.maths.norms import layer_norm, rms_norm

BOTH = pytest.mark.parametrize(("norm", "backward"), [(rms_norm, rms_norm_backward), (layer_norm, layer_norm_backward)])


@BOTH
@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_norms_by_differences(rng, differences, norm, backward, gain, eps):
    x, grad = rng.normal(0.7, 2, size=(2, 3, 5)), rng.normal(size=(2, 3, 5))
    weight = rng.uniform(0.5, 2, 5) if gain else None
    found = backward(grad, x, weight, eps)
    assert_allclose(found[0], differences(lambda x: np.vdot(grad, norm(x, weight, eps=eps)), x), rtol=1e-8, atol=1e-9)
    at = np.ones(5) if weight is None else weight
    assert_allclose(found[1], differences(lambda w: np.vdot(grad, norm(x, w, eps=eps)), at), rtol=1e-9, atol=1e-9)
    if norm is layer_norm:
        bias = rng.normal(size=5)
        wanted = differences(lambda b: np.vdot(grad, layer_norm(x, weight, b, eps)), bias)
        assert_allclose(found[2], wanted, rtol=1e-9, atol=1e-9)


@BOTH
def test_what_the_norm_ignores_has_no_gradient(rng, norm, backward):
    x, grad = rng.normal(size=(3, 7)), rng.normal(size=(3, 7))
    grad_x = backward(grad, x, rng.uniform(0.5, 2, 7), 1e-12)[0]
    assert_allclose(np.vecdot(grad_x, x), 0, atol=1e-10)  # lengthening x
    if norm is layer_norm:
        assert_allclose(grad_x.sum(-1), 0, atol=1e-14)  # shifting it
    else:
        assert np.abs(grad_x.sum(-1)).min() > 1e-3


@BOTH
def test_a_larger_input_passes_a_smaller_gradient(rng, norm, backward):
    x, grad = rng.normal(size=(3, 7)), rng.normal(size=(3, 7))
    assert_allclose(backward(grad, 8 * x, eps=1e-12)[0], backward(grad, x, eps=1e-12)[0] / 8, rtol=1e-9)


@pytest.mark.oracle
@BOTH
def test_norms_agree_with_autograd(rng, torch, norm, backward):
    x, w, b = (torch.tensor(rng.normal(size=s), requires_grad=True) for s in ((2, 3, 5), 5, 5))
    grad = rng.normal(size=(2, 3, 5))
    if norm is rms_norm:
        torch.nn.functional.rms_norm(x, (5,), w, 1e-5).backward(torch.tensor(grad))
        leaves = (x, w)
    else:
        torch.nn.functional.layer_norm(x, (5,), w, b, 1e-5).backward(torch.tensor(grad))
        leaves = (x, w, b)
    found = backward(grad, x.detach().numpy(), w.detach().numpy(), 1e-5)
    for got, leaf in zip(found, leaves, strict=True):
        assert_allclose(got, leaf.grad.numpy(), rtol=1e-11, atol=1e-13)


@BOTH
def test_dtypes(rng, norm, backward):
    x = rng.normal(size=(3, 5))
    for dtype, wanted in ((np.float64, np.float64), (np.float32, np.float32), (ml_dtypes.bfloat16, np.float32)):
        assert {g.dtype for g in backward(x.astype(dtype), x.astype(dtype), np.ones(5, dtype))} == {np.dtype(wanted)}


@BOTH
def test_nothing_given_is_written_into(rng, norm, backward):
    given = [rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), rng.normal(size=5)]
    before = [a.copy() for a in given]
    backward(*given)
    for a, b in zip(given, before, strict=True):
        assert_array_equal(a, b)


@BOTH
@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"grad": np.ones((2, 5))}, "grad"),
        ({"x": np.full((3, 5), np.nan)}, "x"),
        ({"weight": np.ones(3)}, "weight"),
        ({"eps": 0.0}, "eps"),
    ],
)
def test_what_does_not_fit_is_refused(norm, backward, change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        backward(**({"grad": np.ones((3, 5)), "x": np.ones((3, 5))} | change))
