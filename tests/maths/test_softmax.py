import ml_dtypes
import mpmath
import numpy as np
import onnx.backend.test.case.node as onnx_node
import onnx.backend.test.case.node.softmax  # noqa: F401 - importing it collects its cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transformer_parts.maths.attention import entropy, softmax

ONNX_CASES = {
    case.name: case
    for case in onnx_node._NodeTestCases
    if case.model.graph.node[0].op_type == "Softmax" and "expanded" not in case.name
}
logits = hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 7)), elements=st.floats(-1e4, 1e4))


@pytest.mark.parametrize("name", ONNX_CASES)
def test_softmax_agrees_with_onnx(name):
    case = ONNX_CASES[name]
    axis = {a.name: a.i for a in case.model.graph.node[0].attribute}.get("axis", -1)
    ((x,), (wanted,)) = case.data_sets[0]
    got = softmax(x, axis)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-12)


def test_there_are_onnx_cases():
    assert len(ONNX_CASES) >= 7


def test_softmax_agrees_with_mpmath_where_exp_would_overflow():
    x = [-1000.0, 900.0, 901.5, 0.25]
    with mpmath.workdps(40):
        powers = [mpmath.exp(v) for v in x]
        wanted = [float(p / mpmath.fsum(powers)) for p in powers]
    np.testing.assert_allclose(softmax(x), wanted, rtol=1e-15, atol=0)


@given(logits, st.floats(-1e4, 1e4))
@settings(max_examples=60, deadline=None)
def test_softmax_sums_to_one_and_ignores_a_common_shift(x, shift):
    p = softmax(x)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-15)
    np.testing.assert_allclose(softmax(x + shift), p, rtol=1e-10, atol=1e-300)


@given(logits)
@settings(max_examples=40, deadline=None)
def test_softmax_along_an_axis_is_that_of_the_transpose_along_the_last(x):
    np.testing.assert_array_equal(softmax(x, axis=0), softmax(np.ascontiguousarray(x.T)).T)
    np.testing.assert_array_equal(softmax(x, axis=-2), softmax(x, axis=0))


def test_minus_infinity_has_no_weight_and_the_rest_is_unchanged():
    np.testing.assert_array_equal(softmax([1.0, -np.inf, 3.0])[[0, 2]], softmax([1.0, 3.0]))
    assert softmax([1.0, -np.inf, 3.0])[1] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_softmax_keeps_the_dtype_and_its_input(rng, dtype):
    x = rng.normal(size=(3, 11)).astype(dtype)
    before = x.copy()
    got = softmax(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(x, before)
    compute = np.float64 if dtype is np.float64 else np.float32
    np.testing.assert_array_equal(got, softmax(x.astype(compute)).astype(dtype))  # rounded once
    assert softmax([1, 2]).dtype == np.float64


@pytest.mark.parametrize(
    ("x", "axis", "message"),
    [
        ([1.0, np.nan], -1, r"^x: got nan at index \(1,\).*want no NaN"),
        ([1.0, np.inf], -1, r"^x: got inf, want finite numbers or -inf"),
        ([[0.0, 1.0], [-np.inf, -np.inf]], -1, r"^x: got nothing but -inf in the slice \(1,\) along axis 1"),
        ([[-np.inf, 1.0], [-np.inf, 1.0]], 0, r"^x: got nothing but -inf in the slice \(0,\) along axis 0"),
        ([1.0, 2.0], 1, "^axis: got 1, want an integer of at least -1 and at most 0"),
        ([1.0, 2.0], -2, "^axis: got -2"),
        ([1.0, 2.0], 0.0, "^axis: got 0.0"),
        ([], -1, "^x: got shape"),
        (1.0, -1, "^x: got shape"),
        ([True, False], -1, "^x: got an array of bool"),
    ],
)
def test_softmax_refuses(x, axis, message):
    with pytest.raises(ValueError, match=message):
        softmax(x, axis)


def test_entropy_agrees_with_mpmath(rng):
    p = softmax(rng.normal(size=(3, 7)) * 4)
    p[1] = [0, 0, 0.25, 0, 0.5, 0.25, 0]
    with mpmath.workdps(40):
        wanted = [float(-mpmath.fsum(mpmath.mpf(v) * mpmath.log(v) for v in row if v)) for row in p]
    np.testing.assert_allclose(entropy(p), wanted, rtol=1e-14)
    np.testing.assert_array_equal(entropy(p.T, axis=0), entropy(p))


@pytest.mark.oracle
def test_entropy_agrees_with_torch(rng, torch):
    p = softmax(rng.normal(size=(5, 13)))
    wanted = torch.distributions.Categorical(probs=torch.from_numpy(p)).entropy()
    np.testing.assert_allclose(entropy(p), wanted.numpy(), rtol=1e-13)


@given(logits)
@settings(max_examples=40, deadline=None)
def test_entropy_lies_between_one_key_and_all_keys_alike(x):
    got = entropy(softmax(x))
    assert (got >= 0).all()
    assert (got <= np.log(x.shape[-1]) + 1e-14).all()
    n = x.shape[-1]
    np.testing.assert_allclose(entropy(np.full(n, 1 / n)), np.log(n), atol=1e-15)
    sure = entropy(np.eye(n))
    assert (sure == 0).all()
    assert not np.signbit(sure).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_entropy_takes_the_weights_of_every_dtype(rng, dtype):
    p = softmax(rng.normal(size=(3, 997)).astype(dtype))  # whose sums miss 1 by the rounding of each weight
    got, wide = entropy(p), p.astype(np.float64)
    assert got.dtype == dtype
    wanted = -(wide * np.log(wide)).sum(-1)
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=float(ml_dtypes.finfo(dtype).eps))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.6], r"^weights: got sums along axis 0 that miss 1 by 0\.1, want sums of 1"),
        ([1.5, -0.5], "^weights: got -0.5, want no negative weight"),
        ([np.nan, 1.0], "^weights: got nan"),
    ],
)
def test_entropy_refuses_what_are_no_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        entropy(weights)
    with pytest.raises(ValueError, match=r"^axis: got 3"):
        entropy([1.0], axis=3)
