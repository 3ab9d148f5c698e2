"""Feed-forward layers: the worked example, slow loops and torch, what the layer cannot see, and bad input."""

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.activations import gelu, gelu_tanh, relu, sigmoid, silu
from transformer_parts.maths.feedforward import GLU_FAMILY, count_gates, ffn, fractions_in_bins, gated, glu, swiglu
from transformer_parts.models.excerpt import load_excerpt

D, F = 5, 7


@pytest.fixture
def w(rng):
    """Weights (and biases) of a plain and of a gated layer."""
    shapes = {
        "w_in": (D, F), "b_in": (F,), "w_out": (F, D), "b_out": (D,),
        "w_gate": (D, F), "w_up": (D, F), "w_down": (F, D),
    }  # fmt: skip
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


@pytest.fixture
def x(rng):
    return rng.standard_normal((2, 3, D))


def matrices(w):
    return w["w_gate"], w["w_up"], w["w_down"]


def test_the_hand_calculation():
    x, w_gate, w_up = np.array([1.0, 2.0]), np.array([[1.0, -1], [0, 0]]), np.array([[2.0, 1], [0, 1]])
    assert_array_equal(x @ w_gate, [1, -1])
    assert_array_equal(x @ w_up, [2, 3])
    assert_allclose(silu(x @ w_gate), [0.731059, -0.268941], atol=5e-7)
    assert_allclose(swiglu(x, w_gate, w_up, np.eye(2)), [1.462117, -0.806824], atol=5e-7)


def test_ffn_is_the_formula_summed_entry_by_entry(x, w):
    expected = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        hidden = [max(0.0, sum(x[place][d] * w["w_in"][d, f] for d in range(D)) + w["b_in"][f]) for f in range(F)]
        for d in range(D):
            expected[place][d] = sum(hidden[f] * w["w_out"][f, d] for f in range(F)) + w["b_out"][d]
    y = ffn(x, w["w_in"], w["w_out"], b_in=w["b_in"], b_out=w["b_out"])
    assert_allclose(y, expected, rtol=1e-12, atol=1e-13)
    assert np.abs(ffn(x, w["w_in"], w["w_out"]) - y).max() > 0.1


@pytest.mark.parametrize(
    ("name", "f"),
    [
        ("glu", lambda g: 1 / (1 + np.exp(-g))),
        ("bilinear", lambda g: g),
        ("reglu", lambda g: max(g, 0)),
        ("geglu", lambda g: gelu(g)),
        ("swiglu", lambda g: g / (1 + np.exp(-g))),
    ],
)
def test_the_family_is_the_formula_summed_entry_by_entry(x, w, name, f):
    expected = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        for k in range(F):
            gate = sum(x[place][d] * w["w_gate"][d, k] for d in range(D))
            up = sum(x[place][d] * w["w_up"][d, k] for d in range(D))
            expected[place] += f(gate) * up * w["w_down"][k]
    assert_allclose(glu(x, *matrices(w), activation=GLU_FAMILY[name]), expected, rtol=1e-12, atol=1e-13)
    if name == "glu":
        assert_array_equal(glu(x, *matrices(w)), glu(x, *matrices(w), activation=sigmoid))
    if name == "swiglu":
        assert_array_equal(swiglu(x, *matrices(w)), glu(x, *matrices(w), activation=silu))


def test_the_family_cannot_be_changed():
    assert list(GLU_FAMILY) == ["glu", "bilinear", "reglu", "geglu", "swiglu"]
    with pytest.raises(TypeError):
        GLU_FAMILY["glu"] = relu


@pytest.mark.oracle
def test_agrees_with_torch(torch, rng):
    d, f = 67, 131
    x, w_gate, w_up = rng.standard_normal((3, 11, d)), rng.standard_normal((d, f)), rng.standard_normal((d, f))
    w_down, b_in, b_out = rng.standard_normal((f, d)), rng.standard_normal(f), rng.standard_normal(d)
    functional, t = torch.nn.functional, torch.from_numpy
    # torch's glu halves one projection, content first
    both = torch.cat([t(x) @ t(w_up), t(x) @ t(w_gate)], -1)
    assert_allclose(glu(x, w_gate, w_up, w_down), functional.glu(both) @ t(w_down), rtol=1e-9, atol=1e-10)
    expected = functional.linear(functional.gelu(functional.linear(t(x), t(w_up.T), t(b_in))), t(w_down.T), t(b_out))
    y = ffn(x, w_up, w_down, b_in=b_in, b_out=b_out, activation=gelu)
    assert_allclose(y, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.oracle
def test_swiglu_is_transformers_llama_mlp(torch, transformers, x, w):
    config = transformers.LlamaConfig(hidden_size=D, intermediate_size=F, num_attention_heads=1, head_dim=2)
    mlp = transformers.models.llama.modeling_llama.LlamaMLP(config).double()
    for name in ("gate", "up", "down"):
        getattr(mlp, f"{name}_proj").weight.data = torch.from_numpy(w[f"w_{name}"].T.copy())
    with torch.no_grad():
        expected = mlp(torch.from_numpy(x)).numpy()
    assert_allclose(swiglu(x, *matrices(w)), expected, rtol=1e-12, atol=1e-13)


LAYERS = pytest.mark.parametrize(
    "layer",
    [
        lambda x, w: ffn(x, w["w_in"], w["w_out"], b_in=w["b_in"], b_out=w["b_out"]),
        lambda x, w: ffn(x, w["w_in"], w["w_out"], activation=gelu_tanh),
        lambda x, w: swiglu(x, *matrices(w)),
    ],
)


@LAYERS
def test_each_position_is_by_itself(layer, x, w):
    y = layer(x, w)
    assert y.shape == x.shape
    changed = x.copy()
    changed[1, 2] += 1
    differs = np.any(layer(changed, w) != y, axis=-1)
    assert_array_equal(np.argwhere(differs), [[1, 2]])
    assert_allclose(layer(x[:, ::-1], w), y[:, ::-1], rtol=1e-13, atol=1e-14)  # equivariant, and a non-contiguous view
    assert_allclose(layer(x[0, 1], w), y[0, 1], rtol=1e-13, atol=1e-14)


@LAYERS
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_dtype_of_x_is_kept_and_16_bits_are_rounded_once(layer, x, w, dtype):
    x, w = x.astype(dtype), {name: v.astype(dtype) for name, v in w.items()}
    y = layer(x, w)
    assert y.dtype == dtype
    wide = layer(x.astype(np.float32), {name: v.astype(np.float32) for name, v in w.items()})
    assert_array_equal(y, wide.astype(dtype))


@LAYERS
def test_integers_become_float64_and_nothing_is_written_to(layer, w):
    x = np.arange(2 * D).reshape(2, D)
    before = {name: v.copy() for name, v in w.items()}
    assert layer(x, w).dtype == np.float64
    assert_array_equal(x, np.arange(2 * D).reshape(2, D))
    for name, value in before.items():
        assert_array_equal(w[name], value)


def test_an_activation_may_return_its_argument_or_a_wider_array(x, w):
    args = [v.astype(np.float32) for v in (x, *matrices(w))]
    narrow = glu(*args, activation=lambda g: g)
    wide = glu(*args, activation=lambda g: g.astype(np.float64))
    assert narrow.dtype == wide.dtype == np.float32
    assert_array_equal(narrow, wide)


def test_an_array_that_the_activation_keeps_is_not_written_to(x, w):
    kept = np.full((2, 3, F), 0.5)
    y = glu(x, *matrices(w), activation=lambda g: kept)
    assert_array_equal(kept, np.full((2, 3, F), 0.5))
    assert_allclose(y, (x @ w["w_up"] / 2) @ w["w_down"], rtol=1e-12, atol=1e-13)


def test_the_output_may_have_another_width(x, w):
    assert ffn(x, w["w_in"], w["w_out"][:, :3]).shape == (2, 3, 3)
    assert swiglu(x, w["w_gate"], w["w_up"], w["w_down"][:, :3]).shape == (2, 3, 3)


# --- the steps of a gated layer


@pytest.mark.parametrize("name", GLU_FAMILY)
def test_steps_lead_to_the_result_and_leave_each_other_alone(x, w, name):
    steps = gated(x, w["w_gate"], w["w_up"], activation=GLU_FAMILY[name])
    assert_allclose(steps.pre, x @ w["w_gate"], rtol=1e-13)
    assert_allclose(steps.up, x @ w["w_up"], rtol=1e-13)
    assert_array_equal(steps.gate, GLU_FAMILY[name](steps.pre))
    assert_array_equal(steps.hidden, steps.gate * steps.up)
    assert_allclose(steps.hidden @ w["w_down"], glu(x, *matrices(w), activation=GLU_FAMILY[name]), rtol=1e-12)
    assert not np.shares_memory(steps.pre, steps.gate)


def test_steps_refuse_what_the_layer_refuses(x, w):
    with pytest.raises(ValueError, match=r"^w_up: got shape \(5, 6\), want shape \(5, 7\), that of w_gate"):
        gated(x, w["w_gate"], np.ones((5, 6)))
    with pytest.raises(ValueError, match=r"^w_gate: got shape \(4, 7\)"):
        gated(x, np.ones((4, 7)), w["w_up"])
    with pytest.raises(ValueError, match=r"^x: got nan"):
        gated(np.full((1, 5), np.nan), w["w_gate"], w["w_up"])
    one, large = np.ones((1, 1), np.float32), np.full((1, 1), 1e30, np.float32)
    with pytest.raises(ValueError, match=r"^hidden.*: got inf at index"):
        gated(one, large, large)


# --- bad input


@pytest.mark.parametrize("name", ["x", "w_in", "w_out", "b_in", "b_out"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_ffn_names_the_argument_that_is_not_finite(x, w, name, bad):
    arguments = {"x": x, **{n: w[n] for n in ("w_in", "w_out", "b_in", "b_out")}}
    last = tuple(n - 1 for n in arguments[name].shape)
    arguments[name][last] = bad
    where = ", ".join(map(str, last)) + ("," if len(last) == 1 else "")
    with pytest.raises(ValueError, match=rf"^{name}: got .* at index \({where}\)"):
        ffn(**arguments)


@pytest.mark.parametrize("name", ["x", "w_gate", "w_up", "w_down"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_glu_names_the_argument_that_is_not_finite(x, w, name, bad):
    arguments = {"x": x, **{n: w[n] for n in ("w_gate", "w_up", "w_down")}}
    arguments["x"][..., 0] = 0  # 0·∞ must not hide it
    arguments[name].flat[0] = bad
    with pytest.raises(ValueError, match=rf"^{name}: got .* at index \(0, 0"):
        swiglu(**arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": np.ones((2, 4))}, r"w_in: got shape \(5, 7\), want shape \(4, F\)"),
        ({"w_in": np.ones(5)}, r"w_in: got shape \(5,\), want shape \(5, F\)"),
        ({"w_in": np.ones((7, 5))}, r"w_in: got shape \(7, 5\), want shape \(5, F\)"),
        ({"w_out": np.ones((6, 5))}, r"w_out: got shape \(6, 5\), want shape \(7, D\)"),
        ({"b_in": np.ones(5)}, r"b_in: got shape \(5,\), want shape \(7,\)"),
        ({"b_out": np.ones(1)}, r"b_out: got shape \(1,\), want shape \(5,\)"),
        ({"x": 1.0}, "x: .* want at least 1 axis"),
        ({"w_in": [["a"]]}, "w_in: .* want real numbers"),
        ({"activation": "relu"}, "activation: got 'relu', want a function"),
        ({"activation": lambda h: h[..., :1]}, r"activation's result: got shape .*, want shape \(2, 3, 7\)"),
        ({"activation": lambda h: h * np.nan}, "activation's result: got nan at index"),
        ({"activation": lambda h: None}, "activation's result: got"),
    ],
)
def test_ffn_names_what_does_not_fit(x, w, changed, message):
    arguments = {"x": x, "w_in": w["w_in"], "w_out": w["w_out"], "b_in": w["b_in"], "b_out": w["b_out"]} | changed
    with pytest.raises(ValueError, match="^" + message):
        ffn(**arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"w_gate": np.ones((4, 7))}, r"w_gate: got shape \(4, 7\), want shape \(5, F\)"),
        ({"w_up": np.ones((5, 6))}, r"w_up: got shape \(5, 6\), want shape \(5, 7\), that of w_gate"),
        ({"w_down": np.ones((5, 7))}, r"w_down: got shape \(5, 7\), want shape \(7, D\)"),
        ({"activation": None}, "activation: got None, want a function"),
    ],
)
def test_glu_names_what_does_not_fit(x, w, changed, message):
    arguments = {"x": x, "w_gate": w["w_gate"], "w_up": w["w_up"], "w_down": w["w_down"]} | changed
    with pytest.raises(ValueError, match="^" + message):
        glu(**arguments)


def test_an_overflow_is_refused_and_named():
    one, large = np.ones((1, 1), np.float32), np.full((1, 1), 1e30, np.float32)
    with pytest.raises(ValueError, match=r"^x: got entries up to 1e\+30, want a product with w_in within float32"):
        ffn(large, large, one)
    with pytest.raises(ValueError, match=r"^hidden.*: got entries up to .* a product with w_out within float32"):
        ffn(one, large, large)
    with pytest.raises(ValueError, match=r"^hidden.*: got inf at index"):
        glu(one, large, large, one, activation=relu)
    with pytest.raises(ValueError, match=r"^x: got .* want a result within float16"):
        ffn(one.astype(np.float16), 300 * one, 300 * one)
    with pytest.raises(ValueError, match=r"^w_in: got 1e.300, want numbers within float32"):
        ffn(one, [[1e300]], one)


def test_counts_are_counted_one_by_one(rng):
    gates = 2 * rng.standard_normal((3, 5, 7))
    flat = [float(g) for g in gates.flat]
    counts = count_gates(gates)
    assert counts.negative == sum(g < 0 for g in flat) / 105
    assert counts.above_one == sum(g > 1 for g in flat) / 105
    assert (counts.lowest, counts.highest) == (min(flat), max(flat))
    assert counts.share_above_one == pytest.approx(sum(g * g for g in flat if g > 1) / sum(g * g for g in flat))


def test_the_edges_of_what_a_probability_may_be_are_inside():
    assert count_gates([0.0, 1.0])[:2] == (0, 0)
    assert np.isnan(count_gates([0.0, 0.0]).share_above_one)
    assert count_gates(np.float16([300, -300])).share_above_one == 0.5  # squares beyond float16


def test_a_sigmoid_is_never_outside_and_silu_reaches_its_bound(rng):
    pre = 4 * rng.standard_normal(997)
    assert count_gates(sigmoid(pre))[:2] == (0, 0)
    counts = count_gates(silu(pre))
    assert counts.negative == (pre < 0).mean()
    assert -0.27847 < counts.lowest < -0.2784


def test_real_gates_are_no_probabilities():
    excerpt = load_excerpt()
    counts = [count_gates(excerpt.gate_activation(layer)) for layer in excerpt.gate_layers]
    assert excerpt.gate_layers == (11, 16, 29)
    assert_allclose([c.negative for c in counts], [0.713, 0.567, 0.512], atol=6e-4)
    assert_allclose([c.above_one for c in counts], [0.008, 0.025, 0.153], atol=6e-4)


def test_histogram_is_numpys_with_what_lies_beyond(rng):
    values, edges = 2 * rng.standard_normal((3, 331)), np.array([-2.0, -0.5, 0.0, 0.1, 3.0])
    expected, _ = np.histogram(np.clip(values, -2, 2.999), edges)
    assert_allclose(fractions_in_bins(values, edges), expected / values.size, rtol=1e-14)
    assert fractions_in_bins(values, edges).sum() == pytest.approx(1)


def test_a_bin_holds_its_left_edge():
    assert_array_equal(fractions_in_bins([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]), [0.25, 0.25, 0.5])
    assert_array_equal(fractions_in_bins([5.0], [0.0, 1.0]), [1.0])


@pytest.mark.parametrize(
    ("values", "edges", "message"),
    [
        ([np.nan], [0.0, 1.0], "values: got nan"),
        ([1.0], [0.0, np.inf], "edges: got inf"),
        ([1.0], [0.0], "edges: got 1 entries, not all rising, want at least two rising entries"),
        ([1.0], [0.0, 1.0, 1.0], "edges: got 3 entries, not all rising"),
        ([1.0], [[0.0, 1.0]], r"edges: got shape \(1, 2\)"),
    ],
)
def test_histogram_refuses_bad_input(values, edges, message):
    with pytest.raises(ValueError, match="^" + message):
        fractions_in_bins(values, edges)


def test_squares_of_gates_do_not_overflow():
    assert count_gates([1e200, 1e200, -1e200]).share_above_one == pytest.approx(2 / 3)
    assert np.isnan(count_gates([0.0, 0.0]).share_above_one)


def test_counts_refuse_what_is_not_finite():
    with pytest.raises(ValueError, match=r"^gates: got inf"):
        count_gates([np.inf])
