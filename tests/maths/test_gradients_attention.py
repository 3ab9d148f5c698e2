import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.attention import attention, attention_weights
from transformer_parts.maths.gradients_attention import attention_backward


def tensors(rng, n_heads=6, n_groups=3, length=3, n_keys=5, lead=(2,)):
    query = rng.normal(size=(*lead, n_heads, length, 4))
    key, value = rng.normal(size=(*lead, n_groups, n_keys, 4)), rng.normal(size=(*lead, n_groups, n_keys, 2))
    return query, key, value, rng.normal(size=(*lead, n_heads, length, 2))


@pytest.mark.parametrize("n_groups", [1, 3, 6])
@pytest.mark.parametrize("how", ["plain", "causal", "mask", "bias", "scale"])
def test_attention_by_differences(rng, differences, n_groups, how):
    query, key, value, grad = tensors(rng, n_groups=n_groups, lead=())
    mask = rng.random((6, 3, 5)) < 0.7
    mask[..., 0] = True
    settings = {
        "plain": {},
        "causal": {"causal": True},
        "mask": {"mask": mask},
        "bias": {"bias": rng.normal(size=(6, 3, 5))},
        "scale": {"scale": 1.7},
    }[how]
    weights = attention_weights(query, key, **settings)
    found = attention_backward(grad, query, key, value, weights, scale=settings.get("scale"))

    def total(query, key, value, settings=settings):
        return np.vdot(grad, attention(query, key, value, **settings))

    close = {"rtol": 1e-8, "atol": 1e-9}
    assert_allclose(found.query, differences(lambda x: total(x, key, value), query), **close)
    assert_allclose(found.key, differences(lambda x: total(query, x, value), key), **close)
    assert_allclose(found.value, differences(lambda x: total(query, key, x), value), **close)
    if how == "bias":
        wanted = differences(lambda b: total(query, key, value, {"bias": b}), settings["bias"])
        assert_allclose(found.bias, wanted, **close)
    if how == "mask":
        assert_array_equal(found.bias[~mask], 0)


def test_a_causal_query_gives_no_gradient_to_later_keys(rng):
    query, key, value, grad = tensors(rng, length=5)
    grad[..., 2:, :] = 0  # only the first two outputs count
    found = attention_backward(grad, query, key, value, attention_weights(query, key, causal=True))
    assert_array_equal(found.key[..., 2:, :], 0)
    assert_array_equal(found.value[..., 2:, :], 0)
    assert np.abs(found.value[..., :2, :]).min() > 0


def test_a_shared_key_has_the_sum_of_its_query_heads(rng):
    query, key, value, grad = tensors(rng)
    weights = attention_weights(query, key)
    found = attention_backward(grad, query, key, value, weights)
    copies = attention_backward(grad, query, np.repeat(key, 2, -3), np.repeat(value, 2, -3), weights)
    for got, each in ((found.key, copies.key), (found.value, copies.value)):
        assert_allclose(got, each.reshape(2, 3, 2, 5, -1).sum(2), rtol=1e-12, atol=1e-14)
    assert_allclose(found.query, copies.query, rtol=1e-12, atol=1e-14)


@pytest.mark.oracle
@pytest.mark.parametrize("n_groups", [1, 3, 6])
def test_attention_agrees_with_autograd(rng, torch, n_groups):
    query, key, value, grad = tensors(rng, n_groups=n_groups, length=5)
    leaves = [torch.tensor(x, requires_grad=True) for x in (query, key, value)]
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True, enable_gqa=True)
    out.backward(torch.tensor(grad))
    found = attention_backward(grad, query, key, value, attention_weights(query, key, causal=True))
    for got, leaf in zip(found, leaves, strict=False):
        assert_allclose(got, leaf.grad.numpy(), rtol=1e-10, atol=1e-13)


def test_float32_stays(rng):
    query, key, value, grad = (x.astype(np.float32) for x in tensors(rng))
    found = attention_backward(grad, query, key, value, attention_weights(query, key))
    assert {g.dtype for g in found} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("query", (6, 3, 5)),
        ("query", (4, 3, 4)),
        ("key", (3, 5, 3)),
        ("value", (3, 4, 2)),
        ("weights", (6, 3, 3)),
        ("grad", (6, 3, 7)),
        ("grad", (3, 2)),
    ],
)
def test_what_does_not_fit_is_refused(name, shape):
    given = {"grad": (6, 3, 2), "query": (6, 3, 4), "key": (3, 5, 4), "value": (3, 5, 2), "weights": (6, 3, 5)}
    given = {n: np.ones(s) for n, s in (given | {name: shape}).items()}
    wanted = "key" if (name, shape) == ("query", (6, 3, 5)) else name
    with pytest.raises(ValueError, match=f"^{wanted}: got .*, want "):
        attention_backward(**given)
    with pytest.raises(ValueError, match=r"^scale: got"):
        attention_backward(*(np.ones(s) for s in ((1, 1, 1),) * 5), scale=np.nan)
