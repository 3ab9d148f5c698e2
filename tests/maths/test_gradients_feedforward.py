import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.feedforward import GLU_FAMILY, ffn, glu
from transformer_parts.maths.gradients_feedforward import ACTIVATIONS, DERIVATIVES, ffn_backward, glu_backward

PLAIN = ("relu", "gelu", "gelu_tanh", "silu")
CLOSE = {"rtol": 1e-8, "atol": 1e-9}


def test_every_kind_has_a_function_and_its_derivative(rng, differences):
    assert ACTIVATIONS.keys() == DERIVATIVES.keys() == {*PLAIN, *GLU_FAMILY}
    x = rng.normal(size=31)
    for kind, activation in ACTIVATIONS.items():
        assert_allclose(DERIVATIVES[kind](x), differences(lambda x, f=activation: f(x).sum(), x), **CLOSE)


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
        assert_allclose(getattr(found, name), wanted, **CLOSE)


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
        assert_allclose(getattr(found, name), wanted, **CLOSE)


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


def test_float32_stays(rng):
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
def test_what_does_not_fit_is_refused(rng, change, name):
    given, grad = gated(rng)
    arguments = given | kept_of(given, "glu") | {"grad": grad, "kind": "glu"} | change
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        glu_backward(**arguments)
    if name == "kind":
        with pytest.raises(ValueError, match=r"^kind: got 'tanh'"):
            ffn_backward(grad, given["x"], given["w_up"], given["w_down"], kind="tanh", hidden=grad, activated=grad)
