"""Backward passes of the single parts, against central differences, laws, and PyTorch's autograd."""

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths import rope
from transformer_parts.maths.attention import attention, attention_weights, softmax
from transformer_parts.maths.cross_entropy import cross_entropy, cross_entropy_backward
from transformer_parts.maths.feedforward import ACTIVATIONS, GLU_FAMILY, ffn, glu
from transformer_parts.maths.gradients import (
    DERIVATIVES,
    attention_backward,
    embedding_backward,
    ffn_backward,
    glu_backward,
    layer_norm_backward,
    linear_backward,
    rms_norm_backward,
    rotate_backward,
    softmax_backward,
)
from transformer_parts.maths.norms import layer_norm, rms_norm

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
def test_what_does_not_fit_is_refused_gradients_attention(name, shape):
    given = {"grad": (6, 3, 2), "query": (6, 3, 4), "key": (3, 5, 4), "value": (3, 5, 2), "weights": (6, 3, 5)}
    given = {n: np.ones(s) for n, s in (given | {name: shape}).items()}
    wanted = "key" if (name, shape) == ("query", (6, 3, 5)) else name
    with pytest.raises(ValueError, match=f"^{wanted}: got .*, want "):
        attention_backward(**given)
    with pytest.raises(ValueError, match=r"^scale: got"):
        attention_backward(*(np.ones(s) for s in ((1, 1, 1),) * 5), scale=np.nan)


PLAIN = ("relu", "gelu", "gelu_tanh", "silu")
CLOSE_of_gradients_feedforward = {"rtol": 1e-8, "atol": 1e-9}


def test_every_kind_has_a_function_and_its_derivative(rng, differences):
    assert ACTIVATIONS.keys() == DERIVATIVES.keys() == {*PLAIN, *GLU_FAMILY}
    x = rng.normal(size=31)
    for kind, activation in ACTIVATIONS.items():
        assert_allclose(
            DERIVATIVES[kind](x), differences(lambda x, f=activation: f(x).sum(), x), **CLOSE_of_gradients_feedforward
        )


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("biases", [True, False])
def test_ffn_by_differences(rng, differences, kind, biases):
    x, grad = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 3, 2))
    given = {"x": x, "w_in": rng.normal(size=(5, 7)), "w_out": rng.normal(size=(7, 2))}
    given |= {"b_in": rng.normal(size=7), "b_out": rng.normal(size=2)} if biases else {}
    hidden = x @ given["w_in"] + given.get("b_in", 0)
    kept = {"hidden": hidden, "activated": ACTIVATIONS[kind](hidden)}
    found = ffn_backward(grad, x, given["w_in"], given["w_out"], kind=kind, **kept)
    for name, value in given.items():
        wanted = differences(
            lambda v, n=name: np.vdot(grad, ffn(**(given | {n: v}), activation=ACTIVATIONS[kind])), value
        )
        assert_allclose(getattr(found, name), wanted, **CLOSE_of_gradients_feedforward)


def gated(rng):
    names, sizes = ("x", "w_gate", "w_up", "w_down"), ((2, 3, 5), (5, 7), (5, 7), (7, 2))
    return {name: rng.normal(size=size) for name, size in zip(names, sizes, strict=True)}, rng.normal(size=(2, 3, 2))


def kept_of(given, kind):
    gate = given["x"] @ given["w_gate"]
    return {"gate": gate, "activated": ACTIVATIONS[kind](gate), "up": given["x"] @ given["w_up"]}


@pytest.mark.parametrize("kind", GLU_FAMILY)
def test_glu_by_differences(rng, differences, kind):
    given, grad = gated(rng)
    found = glu_backward(grad, *given.values(), kind=kind, **kept_of(given, kind))
    for name, value in given.items():
        wanted = differences(
            lambda v, n=name: np.vdot(grad, glu(**(given | {n: v}), activation=GLU_FAMILY[kind])), value
        )
        assert_allclose(getattr(found, name), wanted, **CLOSE_of_gradients_feedforward)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", GLU_FAMILY)
def test_glu_agrees_with_autograd(rng, torch, kind):
    theirs = {
        "glu": torch.sigmoid,
        "bilinear": lambda x: x,
        "reglu": torch.relu,
        "geglu": torch.nn.functional.gelu,
        "swiglu": torch.nn.functional.silu,
    }[kind]
    given, grad = gated(rng)
    x, w_gate, w_up, w_down = leaves = [torch.tensor(v, requires_grad=True) for v in given.values()]
    ((theirs(x @ w_gate) * (x @ w_up)) @ w_down).backward(torch.tensor(grad))
    found = glu_backward(grad, *given.values(), kind=kind, **kept_of(given, kind))
    for got, leaf in zip(found, leaves, strict=True):
        assert_allclose(got, leaf.grad.numpy(), rtol=1e-11, atol=1e-13)


def test_what_was_kept_is_not_written_into(rng):
    given, grad = gated(rng)
    kept = kept_of(given, "swiglu")
    before = {name: value.copy() for name, value in (given | kept | {"grad": grad}).items()}
    glu_backward(grad, *given.values(), kind="swiglu", **kept)
    for name, value in (given | kept | {"grad": grad}).items():
        assert_array_equal(value, before[name])
    hidden = given["x"] @ given["w_up"]
    activated = ACTIVATIONS["gelu"](hidden)
    copies = hidden.copy(), activated.copy()
    ffn_backward(grad, given["x"], given["w_up"], given["w_down"], kind="gelu", hidden=hidden, activated=activated)
    assert_array_equal(hidden, copies[0])
    assert_array_equal(activated, copies[1])


def test_float32_stays_gradients_feedforward(rng):
    given, grad = gated(rng)
    given = {name: value.astype(np.float32) for name, value in given.items()}
    for kind in GLU_FAMILY:
        found = glu_backward(grad.astype(np.float32), *given.values(), kind=kind, **kept_of(given, kind))
        assert {g.dtype for g in found} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"kind": "tanh"}, "kind"),
        ({"gate": np.ones((3, 7))}, "gate"),
        ({"up": np.ones((2, 3, 5))}, "up"),
        ({"activated": np.full((2, 3, 7), np.inf)}, "activated"),
        ({"w_down": np.ones((5, 2))}, "w_gate"),
        ({"grad": np.ones((2, 2, 2))}, "grad"),
    ],
)
def test_what_does_not_fit_is_refused_gradients_feedforward(rng, change, name):
    given, grad = gated(rng)
    arguments = given | kept_of(given, "glu") | {"grad": grad, "kind": "glu"} | change
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        glu_backward(**arguments)
    if name == "kind":
        with pytest.raises(ValueError, match=r"^kind: got 'tanh'"):
            ffn_backward(grad, given["x"], given["w_up"], given["w_down"], kind="tanh", hidden=grad, activated=grad)


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
def test_nothing_given_is_written_into_gradients_norms(rng, norm, backward):
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
def test_what_does_not_fit_is_refused_gradients_norms(norm, backward, change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        backward(**({"grad": np.ones((3, 5)), "x": np.ones((3, 5))} | change))
