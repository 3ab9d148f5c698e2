"""What the wrong layout does to scores: against matrices, random content and a slow loop."""

import numpy as np
import pytest

from transformer_parts.maths import attention, rope, rope_layout, rope_layout_errors

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
    got = rope_layout_errors.read_scores([1, 2, 3, 4], [2, 1, 0, 1], [0, 2], range(4), "split")
    first = 1 * 2 * np.cos(2) + 3 * 2 * np.sin(2)
    second = 2 * (np.cos(0.02) - np.sin(0.02)) + 4 * (np.cos(0.02) + np.sin(0.02))
    assert first == pytest.approx(4.623491, abs=5e-7)
    assert second == pytest.approx(6.038797, abs=5e-7)
    np.testing.assert_allclose(got.right, [4, 2.501254], atol=6e-7)
    np.testing.assert_allclose(got.read, [4, (first + second) / 2], atol=1e-14)
    assert got.read[1] == pytest.approx(5.331144, abs=6e-7)
    np.testing.assert_array_equal(got.difference, got.read - got.right)


def test_agreement_falls_with_distance():
    got = rope_layout_errors.agreement(*pairings(64), rope.inv_freq(64), 64, [0, 1, 8, 64, 512])
    np.testing.assert_allclose(got, [1, 0.939, 0.544, 0.234, 0.085], atol=5e-4)


# ---------------------------------------------------------------- readings


@pytest.mark.parametrize("rotary_dim", [None, 6])
@pytest.mark.parametrize("trained", ["interleaved", "split"])
def test_read_scores_are_those_of_turned_vectors(rng, rotary_dim, trained):
    query, key = rng.normal(size=(2, 10))
    order = rng.permutation(10)
    settings = {"rope_base": 300.0, "rotary_dim": rotary_dim}
    got = rope_layout_errors.read_scores(query, key, [3, -5], order, "split", trained=trained, **settings)
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
        read = rope_layout_errors.read_scores(query, key, OFFSETS, order, layout, rotary_dim=rotary_dim)
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
    got = rope_layout_errors.agreement(pairs, other, theta, head_dim, OFFSETS)
    wanted = [
        np.trace(matrices(pairs, theta, head_dim, n).T @ matrices(other, theta, head_dim, n)) / head_dim
        for n in OFFSETS
    ]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)
    swapped = pairs[:, ::-1]
    got = rope_layout_errors.agreement(pairs, swapped, theta, head_dim, OFFSETS)
    wanted = [np.trace(matrices(pairs, theta, head_dim, n) @ matrices(pairs, theta, head_dim, n)) for n in OFFSETS]
    np.testing.assert_allclose(got, np.array(wanted) / head_dim, rtol=0, atol=1e-14)


def test_agreement_with_itself_is_one():
    pairs, _ = pairings(10)
    np.testing.assert_array_equal(rope_layout_errors.agreement(pairs, pairs, rope.inv_freq(10), 10, OFFSETS), 1)


def test_agreement_is_the_correlation_over_random_content(rng):
    """40 000 contents: the standard error of a correlation is below 0.005."""
    query, key = rng.normal(size=(2, 40_000, 10))
    offsets = [1, 2, 5, 17]
    right, read = (
        rope.scores_by_offset(query, key, offsets, layout=layout, rotary_dim=8) for layout in ("interleaved", "split")
    )
    wanted = rope_layout_errors.agreement(*pairings(10, 8), rope.inv_freq(8), 10, offsets)
    for i in range(4):
        assert np.corrcoef(right[:, i], read[:, i])[0, 1] == pytest.approx(wanted[i], abs=0.02)
    np.testing.assert_allclose((read - right).std(axis=0), np.sqrt(2 - 2 * wanted), rtol=0.02)


def test_difference_std_is_that_over_all_directions(rng):
    query, key = rng.normal(size=(2, 60_000, 6))
    query *= 3 / np.linalg.norm(query, axis=-1, keepdims=True)
    key *= 5 / np.linalg.norm(key, axis=-1, keepdims=True)
    read = rope_layout_errors.read_scores(query, key, [4], range(6), "split")
    agreement = rope_layout_errors.agreement(*pairings(6), rope.inv_freq(6), 6, [4])
    wanted = rope_layout_errors.difference_std(query[0], key[0], agreement)
    assert read.difference.std() == pytest.approx(wanted.item(), rel=0.02)
    assert abs(read.difference.mean()) < 0.03


# ---------------------------------------------------------------- over a passage


def test_rms_by_distance_against_a_loop(rng):
    values = rng.normal(size=(7, 7))
    wanted = [np.sqrt(np.mean([values[i, i - d] ** 2 for i in range(d, 7)])) for d in range(7)]
    np.testing.assert_allclose(rope_layout_errors.rms_by_distance(values), wanted, rtol=1e-14)
    values[np.triu_indices(7, 1)] = 1e9
    np.testing.assert_allclose(rope_layout_errors.rms_by_distance(values), wanted, rtol=1e-14)


def test_total_variation_is_the_largest_difference_of_any_set(rng):
    p, q = attention.softmax(rng.normal(size=(2, 3, 7)))
    sets = (np.arange(2**7)[:, None] >> np.arange(7)) & 1
    wanted = np.abs((p - q) @ sets.T).max(axis=-1)
    np.testing.assert_allclose(rope_layout_errors.total_variation(p, q), wanted, rtol=1e-12)


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
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(rope_layout_errors)
