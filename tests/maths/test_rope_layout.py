"""The two layouts and the permutation between them, against published converters, ONNX and transformers."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from transformer_parts.maths import attention, rope, rope_layout

LAYOUTS = ("interleaved", "split")
OTHER = {"interleaved": "split", "split": "interleaved"}
laws = settings(max_examples=60, deadline=None)
widths = st.integers(1, 37).map(lambda pairs: 2 * pairs)


def permuted_by_loop(rows, n_heads):
    """The rule of the published Llama converter, one row at a time, from interleaved rows to split ones.

    It views each head's rows as (K/2, 2, in) and transposes the first two: row 2i + j of a head goes to row j·K/2 + i.
    """
    head_dim = len(rows) // n_heads
    out = [None] * len(rows)
    for head in range(n_heads):
        for i in range(head_dim // 2):
            for j in range(2):
                out[head * head_dim + j * (head_dim // 2) + i] = rows[head * head_dim + 2 * i + j]
    return np.array(out)


def score(query, key, m, n, **settings):
    return (rope.rotate(query[None], [m], **settings) @ rope.rotate(key[None], [n], **settings).T).item()


# ---------------------------------------------------------------- pairs


def test_pairs_of_eight_channels():
    assert rope_layout.pair_indices(8).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert rope_layout.pair_indices(8, "split").tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert rope_layout.pair_indices(9, "split", rotary_dim=6).tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(2, None), (10, None), (14, 6), (7, 4)])
def test_these_are_the_pairs_that_rotate_turns(rng, layout, head_dim, rotary_dim):
    """Turn one unit vector at a time: its partner is where the sine goes, and pair i has frequency i."""
    pairs = rope_layout.pair_indices(head_dim, layout, rotary_dim=rotary_dim)
    turned = rope.rotate(np.eye(head_dim), np.ones(head_dim), rotary_dim=rotary_dim or head_dim, layout=layout)
    theta = rope.inv_freq(rotary_dim or head_dim)
    assert sorted(pairs.reshape(-1).tolist()) == list(range(rotary_dim or head_dim))
    for (a, b), angle in zip(pairs.tolist(), theta, strict=True):
        assert turned[a, b] == pytest.approx(math.sin(angle), abs=1e-15)
        assert turned[b, a] == pytest.approx(-math.sin(angle), abs=1e-15)
        assert turned[a, a] == turned[b, b] == pytest.approx(math.cos(angle), abs=1e-15)


# ---------------------------------------------------------------- the permutation


def test_permutation_of_eight_channels():
    assert rope_layout.permutation(8, "split").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert rope_layout.permutation(8, "interleaved").tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert rope_layout.permutation(8, "interleaved", rotary_dim=6).tolist() == [0, 3, 1, 4, 2, 5, 6, 7]


@laws
@given(widths, st.integers(0, 9), st.sampled_from(LAYOUTS))
def test_the_directions_are_inverse(rotary_dim, beyond, to):
    there = rope_layout.permutation(rotary_dim + beyond, to, rotary_dim=rotary_dim)
    back = rope_layout.permutation(rotary_dim + beyond, OTHER[to], rotary_dim=rotary_dim)
    assert there[back].tolist() == back[there].tolist() == list(range(rotary_dim + beyond))
    assert there[rotary_dim:].tolist() == list(range(rotary_dim, rotary_dim + beyond))


@pytest.mark.parametrize("rotary_dim", range(2, 40, 2))
def test_four_channels_do_not_tell_the_directions_apart(rotary_dim):
    """A test with head_dim 4 lets the inverse permutation pass."""
    same = np.array_equal(*(rope_layout.permutation(rotary_dim, to) for to in LAYOUTS))
    assert same == (rotary_dim <= 4)


@pytest.mark.parametrize("to", LAYOUTS)
def test_matrix_is_orthogonal_and_acts_from_either_side(rng, to):
    order = rope_layout.permutation(10, to, rotary_dim=6)
    matrix = rope_layout.permutation_matrix(order)
    x, w = rng.normal(size=10), rng.normal(size=(7, 10))
    np.testing.assert_array_equal(matrix @ x, x[order])
    np.testing.assert_array_equal(matrix.T @ matrix, np.eye(10))
    np.testing.assert_array_equal(w @ matrix.T, rope_layout.convert_projection(w, 10, to, rotary_dim=6))
    np.testing.assert_array_equal(matrix @ w.T, rope_layout.convert_projection(w.T, 10, to, rotary_dim=6, out_axis=0))


# ---------------------------------------------------------------- rotations agree


@laws
@given(st.integers(0, 2**32 - 1), widths, st.integers(0, 5), st.integers(-9999, 9999), st.sampled_from(LAYOUTS))
def test_moved_channels_turned_are_turned_channels_moved(seed, rotary_dim, beyond, position, to):
    x = np.random.default_rng(seed).normal(size=(3, 1, rotary_dim + beyond))
    moved = rope_layout.reorder(x, to, rotary_dim=rotary_dim)
    turned = rope.rotate(moved, [position], layout=to, rotary_dim=rotary_dim)
    wanted = rope_layout.reorder(rope.rotate(x, [position], layout=OTHER[to], rotary_dim=rotary_dim), to,
                                 rotary_dim=rotary_dim)  # fmt: skip
    np.testing.assert_allclose(turned, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize("to", LAYOUTS)
def test_scores_by_offset_are_the_same_bit_for_bit(rng, rotary_dim, to):
    query, key = rng.normal(size=(2, 22))
    moved = [rope_layout.reorder(x, to, rotary_dim=rotary_dim) for x in (query, key)]
    offsets = np.arange(-500, 501)
    got = rope.scores_by_offset(*moved, offsets, layout=to, rotary_dim=rotary_dim)
    wanted = rope.scores_by_offset(query, key, offsets, layout=OTHER[to], rotary_dim=rotary_dim)
    np.testing.assert_array_equal(got, wanted)
    wrong = rope.scores_by_offset(query, key, offsets, layout=to, rotary_dim=rotary_dim)
    assert np.abs(wrong - wanted).max() > 0.1
    assert wrong[500] == pytest.approx(wanted[500], abs=1e-15)


@pytest.mark.parametrize("rotary_dim", [None, 6])
def test_onnx_gives_the_same_scores_with_moved_channels(rng, rotary_dim):
    """ONNX's attribute ``interleaved`` is the layout; its rotation is not ours."""
    turned = rotary_dim or 10
    angles = np.arange(29)[:, None] * 10000.0 ** (-np.arange(0, turned, 2) / turned)
    positions = rng.integers(0, 29, size=(1, 7))

    def scores(query, key, interleaved):
        q, k = (
            rotary_embedding(x, np.cos(angles), np.sin(angles), position_ids=positions, interleaved=interleaved,
                             rotary_embedding_dim=rotary_dim)
            for x in (query, key)
        )  # fmt: skip
        return q @ np.swapaxes(k, -1, -2)

    query, key = rng.normal(size=(2, 1, 3, 7, 10))
    moved = [rope_layout.reorder(x, "split", rotary_dim=rotary_dim) for x in (query, key)]
    np.testing.assert_allclose(scores(*moved, 0), scores(query, key, 1), rtol=0, atol=1e-13)
    assert np.abs(scores(query, key, 0) - scores(query, key, 1)).max() > 0.1


# ---------------------------------------------------------------- projections


@pytest.mark.parametrize("n_heads", [1, 3, 7])
def test_rows_move_as_the_published_converter_moves_them(rng, n_heads):
    w = rng.normal(size=(n_heads * 10, 13))
    got = rope_layout.convert_projection(w, 10, "split", out_axis=0)
    np.testing.assert_array_equal(got, permuted_by_loop(w, n_heads))


@pytest.mark.oracle
@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(6, 2), (5, 5)])
def test_rows_move_as_transformers_moves_those_of_a_gguf_file(rng, transformers, n_heads, n_kv_heads):
    """A GGUF file of a Llama has interleaved rows; transformers, which pairs halves, converts them on loading."""
    from transformers.modeling_gguf_pytorch_utils import LlamaTensorProcessor

    config = {"num_attention_heads": n_heads, "num_key_value_heads": n_kv_heads}
    processor = LlamaTensorProcessor(config=config)
    for name, heads in (("blk.0.attn_q.weight", n_heads), ("blk.0.attn_k.weight", n_kv_heads)):
        w = rng.normal(size=(heads * 14, 11))
        theirs = processor.process(w, name).weights
        np.testing.assert_array_equal(rope_layout.convert_projection(w, 14, "split", out_axis=0), theirs)


@pytest.mark.oracle
def test_converted_weights_score_alike_in_gptj_and_llama(rng, torch, transformers):
    """GPT-J's own rotation (neighbours, part of the head) and Llama's own (halves), with our rows moved between."""
    from transformers.models.gptj import modeling_gptj
    from transformers.models.llama import modeling_llama

    head_dim, n_heads, width = 22, 3, 17
    x, w_q, w_k = torch.tensor(rng.normal(size=(1, 7, width))), *rng.normal(size=(2, width, n_heads * head_dim))

    def heads(w):
        return (x @ torch.tensor(w)).reshape(1, 7, n_heads, head_dim)

    sin, cos = modeling_gptj.create_sinusoidal_positions(7, head_dim)[None].double().split(head_dim // 2, dim=-1)
    q, k = (modeling_gptj.apply_rotary_pos_emb(heads(w), sin, cos) for w in (w_q, w_k))
    wanted = torch.einsum("blhk,bshk->bhls", q, k)

    moved = [rope_layout.convert_projection(w, head_dim, "split") for w in (w_q, w_k)]
    both = (torch.cat([angle, angle], dim=-1) for angle in (cos, sin))
    q, k = modeling_llama.apply_rotary_pos_emb(*(heads(w).transpose(1, 2) for w in moved), *both)
    # Both get the same float32 angles; what is left is the rounding of float64 sums.
    np.testing.assert_allclose((q @ k.transpose(-1, -2)).numpy(), wanted.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize("to", LAYOUTS)
def test_attention_with_grouped_heads_is_unchanged(rng, rotary_dim, to):
    """W_q of six heads, W_k of two: the same head_dim for both, W_v left alone."""
    x, positions = rng.normal(size=(11, 13)), np.arange(11)
    w_q, w_k, w_v = (rng.normal(size=(13, heads * 10)) for heads in (6, 2, 2))

    def attend(w_q, w_k, w_v, layout):
        q, k, v = ((x @ w).reshape(11, -1, 10).swapaxes(0, 1) for w in (w_q, w_k, w_v))
        q, k = (rope.rotate(y, positions, layout=layout, rotary_dim=rotary_dim) for y in (q, k))
        return attention.attention(q, k, v, causal=True)

    moved = [rope_layout.convert_projection(w, 10, to, rotary_dim=rotary_dim) for w in (w_q, w_k)]
    wanted = attend(w_q, w_k, w_v, OTHER[to])
    np.testing.assert_allclose(attend(*moved, w_v, to), wanted, rtol=0, atol=1e-13)
    for wrong in ((w_q, w_k, w_v), (moved[0], w_k, w_v), (w_q, moved[1], w_v)):
        assert np.abs(attend(*wrong, to) - wanted).max() > 0.1
    v_moved = rope_layout.convert_projection(w_v, 10, to, rotary_dim=rotary_dim)
    assert np.abs(attend(*moved, v_moved, to) - wanted).max() > 0.1


def test_a_norm_over_the_head_needs_its_weight_moved_too(rng):
    """QK-norm: RMSNorm over the channels of a head, whose weight has one number for each channel."""
    from transformer_parts.maths.norms import rms_norm

    x, weight = rng.normal(size=(2, 1, 10)), rng.normal(1, 0.5, size=10)
    wanted = score(*rms_norm(x, weight)[:, 0], 3, 8)
    moved = rope_layout.reorder(x, "split")
    got = score(*rms_norm(moved, rope_layout.reorder(weight, "split"))[:, 0], 3, 8, layout="split")
    assert got == pytest.approx(wanted, abs=1e-14)
    assert abs(score(*rms_norm(moved, weight)[:, 0], 3, 8, layout="split") - wanted) > 0.01


DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ">f4", np.int8, np.uint8, np.int64)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize(("shape", "axis"), [((7, 30), -1), ((30, 7), 0), ((3, 30, 7), -2), ((30,), 0), ((30, 7), -2)])
def test_there_and_back_is_the_same_bit_for_bit(rng, dtype, rotary_dim, shape, axis):
    w = rng.integers(0, 256, size=(*shape, np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype)[..., 0]
    before = w.tobytes()
    there = rope_layout.convert_projection(w, 10, "split", rotary_dim=rotary_dim, out_axis=axis)
    back = rope_layout.convert_projection(there, 10, "interleaved", rotary_dim=rotary_dim, out_axis=axis)
    assert there.dtype == back.dtype == w.dtype
    assert back.tobytes() == before != there.tobytes()
    assert w.tobytes() == before
    assert not np.shares_memory(there, w)


def test_partial_channels_stay(rng):
    w = rng.normal(size=(5, 22))
    got = rope_layout.convert_projection(w, 11, "split", rotary_dim=6).reshape(5, 2, 11)
    np.testing.assert_array_equal(got[..., 6:], w.reshape(5, 2, 11)[..., 6:])
    np.testing.assert_array_equal(got[..., :6], w.reshape(5, 2, 11)[..., [0, 2, 4, 1, 3, 5]])


def test_rotary_dim_of_two_moves_nothing(rng):
    w = rng.normal(size=(5, 22))
    np.testing.assert_array_equal(rope_layout.convert_projection(w, 11, "split", rotary_dim=2), w)


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rope_layout.pair_indices(7),
            "head_dim: got 7, want an integer of at least 2 and at most 1048576 that is even",
        ),
        (lambda: rope_layout.pair_indices(8.0), "head_dim: got 8.0"),
        (lambda: rope_layout.pair_indices(8, "halves"), "layout: got 'halves', want one of 'interleaved', 'split'"),
        (lambda: rope_layout.pair_indices(8, rotary_dim=5), "rotary_dim: got 5"),
        (lambda: rope_layout.pair_indices(8, rotary_dim=10), "rotary_dim: got 10, want .* at most 8"),
        (lambda: rope_layout.pair_indices(1, rotary_dim=2), "head_dim: got 1"),
        (lambda: rope_layout.permutation(8, "neox"), "to: got 'neox'"),
        (lambda: rope_layout.permutation(6, "split", rotary_dim=0), "rotary_dim: got 0"),
        (lambda: rope_layout.permutation_matrix([0, 2]), "order: got int64 of shape"),
        (lambda: rope_layout.permutation_matrix([0.0, 1.0]), "order: got float64"),
        (lambda: rope_layout.permutation_matrix([[0, 1]]), "order: got int64 of shape"),
        (lambda: rope_layout.reorder(3.0, "split"), "x: got shape"),
        (lambda: rope_layout.reorder([[1, 2], [3]], "split"), "x: got a list, want an array whose rows"),
        (lambda: rope_layout.reorder(["a", "b"], "split"), "x: got an array of <U1, want numbers"),
        (lambda: rope_layout.reorder([1.0, 2.0, 3.0], "split"), "head_dim: got 3"),
        (lambda: rope_layout.convert_projection(np.ones((3, 15)), 10, "split"), "w: got 15 channels along axis -1"),
        (lambda: rope_layout.convert_projection(np.ones((3, 20)), 10, "split", out_axis=2), "out_axis: got 2"),
        (lambda: rope_layout.convert_projection(np.ones((3, 20)), 10, "split", out_axis=0), "w: got 3 channels"),
        (lambda: rope_layout.convert_projection(np.ones((3, 20)), 0, "split"), "head_dim: got 0"),
        (lambda: rope_layout.convert_projection(np.ones((3, 0)), 10, "split"), "w: got shape"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


OFFSETS = np.arange(-40, 41)


def matrices(pairs, inv_freq, head_dim, offset):
    """The K × K rotation of a pairing, entry by entry."""
    out = np.eye(head_dim)
    for (a, b), theta in zip(pairs.tolist(), inv_freq, strict=True):
        cos, sin = np.cos(offset * theta), np.sin(offset * theta)
        out[a, a] = out[b, b] = cos
        out[a, b], out[b, a] = -sin, sin
    return out


def pairings(head_dim, rotary_dim=None):
    return [rope_layout.pair_indices(head_dim, layout, rotary_dim=rotary_dim) for layout in ("interleaved", "split")]


# ---------------------------------------------------------------- worked numbers


def test_four_channels_by_hand():
    """Offset 2: pairs (1, 2), (3, 4) give 5.002509; read as (1, 3), (2, 4) they give 2cos2 + 6sin2 + …"""
    got = rope_layout.read_scores([1, 2, 3, 4], [2, 1, 0, 1], [0, 2], range(4), "split")
    first = 1 * 2 * np.cos(2) + 3 * 2 * np.sin(2)
    second = 2 * (np.cos(0.02) - np.sin(0.02)) + 4 * (np.cos(0.02) + np.sin(0.02))
    assert first == pytest.approx(4.623491, abs=5e-7)
    assert second == pytest.approx(6.038797, abs=5e-7)
    np.testing.assert_allclose(got.right, [4, 2.501254], atol=6e-7)
    np.testing.assert_allclose(got.read, [4, (first + second) / 2], atol=1e-14)
    assert got.read[1] == pytest.approx(5.331144, abs=6e-7)
    np.testing.assert_array_equal(got.difference, got.read - got.right)


def test_agreement_falls_with_distance():
    got = rope_layout.agreement(*pairings(64), rope.inv_freq(64), 64, [0, 1, 8, 64, 512])
    np.testing.assert_allclose(got, [1, 0.939, 0.544, 0.234, 0.085], atol=5e-4)


# ---------------------------------------------------------------- readings


@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize("trained", ["interleaved", "split"])
def test_read_scores_are_those_of_turned_vectors(rng, rotary_dim, trained):
    query, key = rng.normal(size=(2, 10))
    order = rng.permutation(10)
    settings = {"rope_base": 300.0, "rotary_dim": rotary_dim}
    got = rope_layout.read_scores(query, key, [3, -5], order, "split", trained=trained, **settings)
    for n, right, read in zip((3, -5), got.right, got.read, strict=True):
        for vectors, layout, wanted in (((query, key), trained, right), ((query[order], key[order]), "split", read)):
            q, k = (
                rope.rotate(x[None], [at], layout=layout, **settings) for x, at in zip(vectors, (7, 7 + n), strict=True)
            )
            assert attention.scores(q[None], k[None]).item() == pytest.approx(wanted, abs=1e-13)


@pytest.mark.parametrize("rotary_dim", [2, 4, 6, 12])
def test_order_and_layout_that_fit_leave_no_difference_at_all(rng, rotary_dim):
    query, key = rng.normal(size=(2, 12))
    to_split = rope_layout.permutation(12, "split", rotary_dim=rotary_dim)
    inverse = rope_layout.permutation(12, "interleaved", rotary_dim=rotary_dim)
    as_trained = np.arange(12)

    def largest(order, layout):
        read = rope_layout.read_scores(query, key, OFFSETS, order, layout, rotary_dim=rotary_dim)
        assert abs(read.difference[40]) < 1e-14  # offset 0
        return np.abs(read.difference).max()

    assert largest(as_trained, "interleaved") == largest(to_split, "split") == 0
    assert (largest(as_trained, "split") > 1e-3) == (rotary_dim > 2)
    assert (largest(inverse, "split") > 1e-3) == (rotary_dim > 4)
    assert (largest(to_split, "interleaved") > 1e-3) == (rotary_dim > 2)


# ---------------------------------------------------------------- agreement


@pytest.mark.parametrize(("head_dim", "rotary_dim"), [(2, 2), (4, 4), (10, 10), (11, 6), (7, 2)])
def test_agreement_is_the_trace_of_the_matrices(head_dim, rotary_dim):
    pairs, other = pairings(head_dim, rotary_dim)
    theta = rope.inv_freq(rotary_dim, 50.0)
    got = rope_layout.agreement(pairs, other, theta, head_dim, OFFSETS)
    wanted = [
        np.trace(matrices(pairs, theta, head_dim, n).T @ matrices(other, theta, head_dim, n)) / head_dim
        for n in OFFSETS
    ]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)
    swapped = pairs[:, ::-1]
    got = rope_layout.agreement(pairs, swapped, theta, head_dim, OFFSETS)
    wanted = [np.trace(matrices(pairs, theta, head_dim, n) @ matrices(pairs, theta, head_dim, n)) for n in OFFSETS]
    np.testing.assert_allclose(got, np.array(wanted) / head_dim, rtol=0, atol=1e-14)


def test_agreement_with_itself_is_one():
    pairs, _ = pairings(10)
    np.testing.assert_array_equal(rope_layout.agreement(pairs, pairs, rope.inv_freq(10), 10, OFFSETS), 1)


def test_agreement_is_the_correlation_over_random_content(rng):
    """40 000 contents: the standard error of a correlation is below 0.005."""
    query, key = rng.normal(size=(2, 40_000, 10))
    offsets = [1, 2, 5, 17]
    right, read = (
        rope.scores_by_offset(query, key, offsets, layout=layout, rotary_dim=8) for layout in ("interleaved", "split")
    )
    wanted = rope_layout.agreement(*pairings(10, 8), rope.inv_freq(8), 10, offsets)
    for i in range(4):
        assert np.corrcoef(right[:, i], read[:, i])[0, 1] == pytest.approx(wanted[i], abs=0.02)
    np.testing.assert_allclose((read - right).std(axis=0), np.sqrt(2 - 2 * wanted), rtol=0.02)


def test_difference_std_is_that_over_all_directions(rng):
    query, key = rng.normal(size=(2, 60_000, 6))
    query *= 3 / np.linalg.norm(query, axis=-1, keepdims=True)
    key *= 5 / np.linalg.norm(key, axis=-1, keepdims=True)
    read = rope_layout.read_scores(query, key, [4], range(6), "split")
    agreement = rope_layout.agreement(*pairings(6), rope.inv_freq(6), 6, [4])
    wanted = rope_layout.difference_std(query[0], key[0], agreement)
    assert read.difference.std() == pytest.approx(wanted.item(), rel=0.02)
    assert abs(read.difference.mean()) < 0.03


# ---------------------------------------------------------------- over a passage


def test_rms_by_distance_against_a_loop(rng):
    values = rng.normal(size=(7, 7))
    wanted = [np.sqrt(np.mean([values[i, i - d] ** 2 for i in range(d, 7)])) for d in range(7)]
    np.testing.assert_allclose(rope_layout.rms_by_distance(values), wanted, rtol=1e-14)
    values[np.triu_indices(7, 1)] = 1e9
    np.testing.assert_allclose(rope_layout.rms_by_distance(values), wanted, rtol=1e-14)


def test_total_variation_is_the_largest_difference_of_any_set(rng):
    p, q = attention.softmax(rng.normal(size=(2, 3, 7)))
    sets = (np.arange(2**7)[:, None] >> np.arange(7)) & 1
    wanted = np.abs((p - q) @ sets.T).max(axis=-1)
    np.testing.assert_allclose(rope_layout.total_variation(p, q), wanted, rtol=1e-12)


# ---------------------------------------------------------------- bad input

PAIRS = [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.read_scores([1, 2], [1, 2, 3], [0], [0, 1], "split"), "key: got shape"),
        (lambda e: e.read_scores([1, 2], [1, np.nan], [0], [0, 1], "split"), "key: got nan"),
        (lambda e: e.read_scores([1, 2], [1, 2], [0], [0, 0], "split"), "order: got int64"),
        (lambda e: e.read_scores([1, 2], [1, 2], [0], [0, 1, 2], "split"), r"order: got shape \(3,\)"),
        (lambda e: e.read_scores([1, 2], [1, 2], [0], [0, 1], "half"), "layout: got 'half'"),
        (lambda e: e.read_scores([1, 2], [1, 2], [0], [0, 1], "split", trained="half"), "layout: got 'half'"),
        (lambda e: e.agreement(PAIRS, [[0, 1]], [1, 0.1], 4, [0]), "other: got int64 of shape"),
        (lambda e: e.agreement([[0, 1], [1, 2]], PAIRS, [1, 0.1], 4, [0]), "pairs: got .* distinct channels below 4"),
        (lambda e: e.agreement(PAIRS, PAIRS, [1, 0.1], 3, [0]), "pairs: got .* distinct channels below 3"),
        (lambda e: e.agreement(PAIRS, PAIRS, [1, np.inf], 4, [0]), "inv_freq: got inf"),
        (lambda e: e.agreement(PAIRS, PAIRS, [1, 0.1], 4, [[0]]), "offsets: got shape"),
        (lambda e: e.agreement(PAIRS, PAIRS, [1, 0.1], 4.0, [0]), "head_dim: got 4.0"),
        (lambda e: e.difference_std([1, 2], [1], [0.5]), "key: got shape"),
        (lambda e: e.difference_std([[1, 2]], [[1, 2]], [0.5]), "query: got shape"),
        (lambda e: e.difference_std([1, 2], [1, 2], [1.5]), "agreement: got 1.5"),
        (lambda e: e.rms_by_distance(np.ones((2, 3))), "values: got shape"),
        (lambda e: e.total_variation([0.5, 0.5], [1.0]), "other: got shape"),
        (lambda e: e.total_variation([0.5, np.nan], [1.0, 0.0]), "weights: got nan"),
    ],
)
def test_bad_input_is_refused_rope_layout_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(rope_layout)
