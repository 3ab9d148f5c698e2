import itertools
import math
import tracemalloc

import ml_dtypes
import mpmath
import numpy as np
import onnx.backend.test.case.node as onnx_node
import onnx.backend.test.case.node.attention
import onnx.backend.test.case.node.softmax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from transformer_parts.maths import attention as attention_module
from transformer_parts.maths.attention import attention, attention_weights, causal_mask, entropy, scores, softmax

# Cases of ONNX whose settings are ours too; the others cap the scores, slide a window, fold the heads into the
# last axis, pad the keys, or give zeros (where we refuse) for a query without a key.
ONNX_CASES = {
    case.name: case
    for case in onnx_node._NodeTestCases
    if case.model.graph.node[0].op_type == "Attention"
    and "expanded" not in case.name
    and {a.name for a in case.model.graph.node[0].attribute} <= {"scale", "is_causal", "qk_matmul_output_mode"}
    and "nonpad_kv_seqlen" not in case.model.graph.node[0].input
    and not {"fullymasked", "robustness"} & set(case.name.split("_"))
}


def qkv(rng, lead=(), heads=6, groups=3, queries=5, keys=11, width=7, value_width=13, dtype=np.float64):
    shapes = (heads, queries, width), (groups, keys, width), (groups, keys, value_width)
    return [rng.normal(size=(*lead, *shape)).astype(dtype) for shape in shapes]


def by_loops(query, key, value, allowed, bias, scale):
    """Compute attention from the formula, number by number; query head h reads kv head h // (H // G)."""
    n_heads, n_queries, width = query.shape
    n_groups, n_keys, value_width = value.shape
    weights = np.zeros((n_heads, n_queries, n_keys))
    out = np.zeros((n_heads, n_queries, value_width))
    for h, i in itertools.product(range(n_heads), range(n_queries)):
        g = h // (n_heads // n_groups)
        e = {}
        for j in range(n_keys):
            if allowed[h, i, j]:
                dot = math.fsum(query[h, i, c] * key[g, j, c] for c in range(width))
                e[j] = math.exp(scale * dot + bias[h, i, j])
        for j, power in e.items():
            weights[h, i, j] = power / math.fsum(e.values())
        for c in range(value_width):
            out[h, i, c] = math.fsum(weights[h, i, j] * value[g, j, c] for j in e)
    return weights, out


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_formula(rng, groups, causal):
    q, k, v = qkv(rng, groups=groups)
    bias = rng.normal(size=(6, 5, 11))
    mask = rng.random((6, 5, 11)) < 0.7
    mask[..., 0] = True
    allowed = mask & np.array([[j <= i + 6 for j in range(11)] for i in range(5)]) if causal else mask
    weights, out = by_loops(q, k, v, allowed, bias, scale=0.3)
    settings = {"mask": mask, "bias": bias, "scale": 0.3, "causal": causal}
    np.testing.assert_allclose(attention_weights(q, k, **settings), weights, rtol=0, atol=1e-15)
    np.testing.assert_allclose(attention(q, k, v, **settings), out, rtol=0, atol=4e-15)


@pytest.mark.parametrize("name", ONNX_CASES)
def test_attention_agrees_with_onnx(name):
    case = ONNX_CASES[name]
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    inputs = dict(zip((i for i in node.input if i), case.data_sets[0][0], strict=True))
    outputs = dict(zip((o for o in node.output if o), case.data_sets[0][1], strict=True))
    q, k, v = inputs["Q"], inputs["K"], inputs["V"]
    mask = bias = None
    if "attn_mask" in inputs:
        given = inputs["attn_mask"]
        mask, bias = (given, None) if given.dtype == bool else (None, given)
    past = 0
    if "past_key" in inputs:
        past = inputs["past_key"].shape[-2]
        k, v = np.concatenate([inputs["past_key"], k], -2), np.concatenate([inputs["past_value"], v], -2)
    causal = bool(attributes.get("is_causal", 0))
    if causal and k.shape[-2] - q.shape[-2] != past:
        # ONNX counts the first query as the first key where it knows of no past; we align the last ones.
        causal, corner = False, np.tri(q.shape[-2], k.shape[-2], past, dtype=bool)
        mask = corner if mask is None else mask & corner
    settings = {"mask": mask, "bias": bias, "scale": attributes.get("scale"), "causal": causal}
    # what ONNX computes in 16 bits throughout, we round once
    tolerance = {"rtol": 0, "atol": {2: 4 * float(ml_dtypes.finfo(q.dtype).eps), 4: 1e-6}[q.itemsize]}

    got = attention(q, k, v, **settings)
    assert got.dtype == q.dtype
    np.testing.assert_allclose(got.astype(float), outputs["Y"].astype(float), **tolerance)
    mode = attributes.get("qk_matmul_output_mode", 0)
    if "qk_matmul_output" in outputs and mode != 2:
        whole = scores(q, k) if mode == 0 else attention_weights(q, k, **settings)
        np.testing.assert_allclose(whole, outputs["qk_matmul_output"], **tolerance)


def test_the_onnx_cases_cover_grouped_heads_masks_and_caches():
    assert len(ONNX_CASES) >= 30
    for word in ("gqa", "attn_mask_bool", "causal", "past", "scaled", "bf16", "qk_matmul_softmax"):
        assert any(word in name for name in ONNX_CASES), word


@pytest.mark.oracle
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "bias", "scale"])
def test_attention_agrees_with_torch(rng, torch, case):
    q, k, v = qkv(rng, lead=(2,), queries=11)
    mask = rng.random((2, 1, 11, 11)) < 0.6
    mask[..., 3] = True
    ours = {
        "plain": {},
        "causal": {"causal": True},
        "mask": {"mask": mask},
        "bias": {"bias": rng.normal(size=(6, 11, 11))},
        "scale": {"scale": 0.7},
    }[case]
    names = {"causal": "is_causal", "mask": "attn_mask", "bias": "attn_mask", "scale": "scale"}
    theirs = {names[key]: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for key, x in ours.items()}
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(x) for x in (q, k, v)), enable_gqa=True, **theirs
    )
    np.testing.assert_allclose(attention(q, k, v, **ours), wanted.numpy(), rtol=0, atol=4e-15)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block_bytes", [1, 700, 3_000, 9_000, 30_000, 10**9])
def test_blocked_equals_unblocked(rng, monkeypatch, causal, block_bytes):
    q, k, v = qkv(rng, lead=(2, 3), queries=11, keys=17)
    mask = rng.random((3, 1, 11, 17)) < 0.7
    mask[..., 0] = True
    settings = {"mask": mask, "bias": rng.normal(size=(2, 1, 6, 1, 17)), "causal": causal}
    weights = attention_weights(q, k, **settings).reshape(2, 3, 3, 2, 11, 17)
    wanted = (weights @ v[..., None, :, :]).reshape(2, 3, 6, 11, 13)
    monkeypatch.setattr(attention_module, "BLOCK_BYTES", block_bytes)
    np.testing.assert_allclose(attention(q, k, v, **settings), wanted, rtol=0, atol=4e-15)


def peak_of(function, *args, **settings):
    tracemalloc.start()
    try:
        function(*args, **settings)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("causal", [False, True])
def test_memory_does_not_grow_with_the_square_of_the_length(rng, monkeypatch, causal):
    limit = 2**20
    monkeypatch.setattr(attention_module, "BLOCK_BYTES", limit)
    peaks = {}
    for length in (1009, 4001):
        args = qkv(rng, heads=3, groups=1, queries=length, keys=length, width=8, value_width=8, dtype=np.float32)
        result = args[0].nbytes
        peaks[length] = peak_of(attention, *args, causal=causal) - result
        # the block itself, and small change for the mask of its last columns and the mixed rows
        assert peaks[length] < 1.5 * limit
    assert 100 * limit < 4001**2 * 3 * 4
    assert peaks[4001] < 1.1 * peaks[1009]


def test_memory_does_not_grow_with_the_batch(rng, monkeypatch):
    limit = 2**16
    monkeypatch.setattr(attention_module, "BLOCK_BYTES", limit)
    q, k, v = qkv(rng, lead=(67,), heads=4, groups=2, queries=257, keys=257, dtype=np.float32)
    one_row_of_all = 67 * 4 * 257 * 4
    assert one_row_of_all > 4 * limit
    assert peak_of(attention, q, k, v) - 67 * 4 * 257 * 13 * 4 < 2 * limit


def test_a_key_is_not_copied_for_each_query_head(rng):
    q, k, v = qkv(rng, heads=64, groups=1, queries=1, keys=4001, width=32, value_width=32, dtype=np.float32)
    assert peak_of(attention, q, k, v, causal=True) < 64 * k.nbytes / 10


def test_weights_sum_to_one_and_are_nothing_where_masked(rng):
    q, k, _ = qkv(rng, lead=(2,))
    mask = rng.random((2, 6, 5, 11)) < 0.5
    mask[..., 10] = True
    weights = attention_weights(q, k, mask=mask)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-15)
    np.testing.assert_array_equal(weights[~mask], 0)
    assert (weights[mask] > 0).all()


def test_weights_are_the_softmax_of_the_scores(rng):
    q, k, _ = qkv(rng)
    bias = rng.normal(size=(5, 11))
    np.testing.assert_allclose(attention_weights(q, k, bias=bias), softmax(scores(q, k) + bias), atol=1e-15)


def test_without_a_mask_attention_is_equivariant_and_with_one_it_is_not(rng):
    x = rng.normal(size=(1, 13, 7))
    order = rng.permutation(13)
    moved = attention(x[:, order], x[:, order], x[:, order])
    np.testing.assert_allclose(moved, attention(x, x, x)[:, order], rtol=0, atol=2e-15)
    moved = attention(x[:, order], x[:, order], x[:, order], causal=True)
    assert np.abs(moved - attention(x, x, x, causal=True)[:, order]).max() > 0.5


@given(token=st.integers(0, 12), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_causal_attention_does_not_see_a_later_token(token, seed):
    rng = np.random.default_rng(seed)
    q, k, v = qkv(rng, queries=13, keys=13)
    before = attention(q, k, v, causal=True)
    q[:, token], k[:, token], v[:, token] = (rng.normal(size=x[:, token].shape) for x in (q, k, v))
    after = attention(q, k, v, causal=True)
    np.testing.assert_array_equal(before[:, :token], after[:, :token])
    assert np.abs(before - after)[:, token:].max() > 1e-3


def test_causal_is_the_causal_mask_and_goes_together_with_another(rng):
    q, k, v = qkv(rng)
    mask = rng.random((5, 11)) < 0.5
    mask[:, 0] = True
    np.testing.assert_array_equal(attention(q, k, v, causal=True), attention(q, k, v, mask=causal_mask(5, 11)))
    np.testing.assert_allclose(
        attention(q, k, v, mask=mask, causal=True),
        attention(q, k, v, mask=mask & causal_mask(5, 11)),
        atol=1e-15,
    )


def test_a_bias_of_minus_infinity_is_a_mask(rng):
    q, k, v = qkv(rng)
    mask = causal_mask(5, 11)
    bias = np.where(mask, 0.0, -np.inf)
    np.testing.assert_array_equal(attention(q, k, v, bias=bias), attention(q, k, v, mask=mask))


def test_causal_mask_aligns_the_last_query_with_the_last_key():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    mask = causal_mask(2, 5)
    assert mask.dtype == bool
    assert mask.sum(-1).tolist() == [4, 5]
    assert causal_mask(1, 7).all()


def test_leading_axes_broadcast(rng):
    q, _, _ = qkv(rng, lead=(2, 1))
    _, k, v = qkv(rng, lead=(3,))
    got = attention(q, k, v)
    assert got.shape == (2, 3, 6, 5, 13)
    for a, b in np.ndindex(2, 3):
        np.testing.assert_allclose(got[a, b], attention(q[a, 0], k[b], v[b]), rtol=0, atol=2e-15)


def test_huge_scores_do_not_overflow():
    q = np.full((1, 1, 2), 1e3)
    k = np.array([[[1e3, 1e3], [1e3, 0.0]]])
    np.testing.assert_array_equal(attention_weights(q, k), [[[1.0, 0.0]]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_dtype_is_kept_and_16_bits_are_rounded_once(rng, dtype):
    q, k, v = qkv(rng, dtype=dtype)
    kept = [x.copy() for x in (q, k, v)]
    wide = [x.astype(np.float64 if dtype is np.float64 else np.float32) for x in (q, k, v)]
    bias = rng.normal(size=(5, 11))  # float64, and yet the result is not
    for function, n in ((scores, 2), (attention_weights, 2), (attention, 3)):
        settings = {} if function is scores else {"bias": bias}
        got = function(*(q, k, v)[:n], **settings)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, function(*wide[:n], **settings).astype(dtype))
    for x, before in zip((q, k, v), kept, strict=True):
        np.testing.assert_array_equal(x, before)


def test_mixed_dtypes_give_one_that_holds_all(rng):
    q, k, v = qkv(rng, dtype=np.float16)
    assert attention(q, k.astype(np.float32), v).dtype == np.float32
    assert attention(q, k.astype(ml_dtypes.bfloat16), v).dtype == np.float32


Q, K, V = np.zeros((6, 5, 7)), np.zeros((3, 11, 7)), np.zeros((3, 11, 13))
EMPTY_ROW = np.ones((6, 5, 11), bool)
EMPTY_ROW[4, 2] = False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": Q[0]}, "^query: got shape .* at least 3 axes"),
        ({"query": Q[:5]}, "^query: got 5 heads, want a multiple of the 3 heads of key"),
        ({"query": np.where(np.arange(7) == 3, np.nan, Q)}, r"^query: got nan at index \(0, 0, 3\)"),
        ({"key": K[..., :5]}, "^key: got .* a last axis of 7"),
        ({"key": K + np.inf}, "^key: got inf"),
        ({"value": V[:1]}, r"^value: got shape \(1, 11, 13\), want \(…, 3, 11, Kv\)"),
        ({"value": V[:, :10]}, r"^value: got shape \(3, 10, 13\)"),
        ({"value": V * np.nan}, "^value: got nan"),
        ({"value": np.zeros((2, 3, 11, 13)), "key": np.zeros((5, 3, 11, 7))}, "^query, key, value: got shapes"),
        ({"mask": np.ones((5, 11))}, "^mask: got float64, want bool.*bias"),
        ({"mask": np.ones((5, 10), bool)}, "^mask: got .*broadcasts to .6, 5, 11."),
        ({"mask": EMPTY_ROW}, r"^mask: got no key to attend to at index \(4, 2\) of \(…, head, query\)"),
        ({"bias": np.zeros((3, 5, 11))}, "^bias: got .*broadcasts to .6, 5, 11."),
        ({"bias": np.full((5, 11), np.inf)}, "^bias: got inf, want finite numbers or -inf"),
        ({"bias": np.full((5, 11), np.nan)}, "^bias: got nan"),
        ({"bias": np.where(EMPTY_ROW, 0, -np.inf)}, r"^bias: got no key to attend to at index \(4, 2\)"),
        ({"scale": np.nan}, "^scale: got nan"),
        ({"scale": "0.5"}, "^scale: got '0.5'"),
        ({"causal": "no"}, "^causal: got 'no', want True or False"),
        ({"causal": True, "query": np.zeros((6, 13, 7))}, "^causal: got 13 queries and 11 keys"),
        ({"query": np.full((6, 5, 7), 1e200), "key": np.full((3, 11, 7), 1e200)}, "^query: got scores beyond"),
        ({"query": np.full((6, 5, 7), 1e200), "key": np.full((3, 11, 7), -1e200)}, "^query: got scores beyond"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        attention(**({"query": Q, "key": K, "value": V} | change))
    if "value" not in change:
        with pytest.raises(ValueError, match=message):
            attention_weights(**({"query": Q, "key": K} | change))


@pytest.mark.parametrize("block_bytes", [1, 1_000, 5_000])
def test_the_row_without_a_key_is_named_in_any_block(rng, monkeypatch, block_bytes):
    monkeypatch.setattr(attention_module, "BLOCK_BYTES", block_bytes)
    q, k, v = qkv(rng, lead=(2,))
    mask = np.ones((2, 6, 5, 11), bool)
    mask[1, 4, 3] = False
    with pytest.raises(ValueError, match=r"^mask: got no key to attend to at index \(1, 4, 3\)"):
        attention(q, k, v, mask=mask)


def test_a_mask_and_causal_may_leave_a_row_without_a_key():
    mask = np.ones((5, 11), bool)
    mask[1, :8] = False  # causal lets query 1 see the keys 0 … 7
    with pytest.raises(ValueError, match=r"^mask: got no key to attend to at index \(0, 1\)"):
        attention(Q, K, V, mask=mask, causal=True)


@pytest.mark.parametrize(("args", "name"), [((0,), "L"), ((3, 2), "S"), ((2.0,), "L"), ((True,), "L")])
def test_causal_mask_refuses(args, name):
    with pytest.raises(ValueError, match=f"^{name}: got"):
        causal_mask(*args)


ONNX_CASES_of_softmax = {
    case.name: case
    for case in onnx_node._NodeTestCases
    if case.model.graph.node[0].op_type == "Softmax" and "expanded" not in case.name
}
logits = hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 7)), elements=st.floats(-1e4, 1e4))


@pytest.mark.parametrize("name", ONNX_CASES_of_softmax)
def test_softmax_agrees_with_onnx(name):
    case = ONNX_CASES_of_softmax[name]
    axis = {a.name: a.i for a in case.model.graph.node[0].attribute}.get("axis", -1)
    ((x,), (wanted,)) = case.data_sets[0]
    got = softmax(x, axis)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-12)


def test_there_are_onnx_cases():
    assert len(ONNX_CASES_of_softmax) >= 7


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
