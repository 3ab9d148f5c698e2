"""Sinusoidal and learned positions: the paper's formula number by number, another library's table, and the laws."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths.positions import (
    lookup,
    shift_error,
    shift_inner_product,
    shift_matrix,
    sinusoidal,
    sinusoidal_at,
)
from transformer_parts.maths.rope import rotate


@pytest.mark.parametrize(("seq_len", "d_model", "base"), [(11, 14, 10000.0), (7, 2, 10000.0), (13, 6, 37.5)])
def test_table_is_the_formula(seq_len, d_model, base):
    table = sinusoidal(seq_len, d_model, base)
    assert table.shape == (seq_len, d_model)
    with mpmath.workdps(40):
        for p, i in itertools.product(range(seq_len), range(d_model // 2)):
            angle = p / mpmath.mpf(base) ** (mpmath.mpf(2 * i) / d_model)
            assert table[p, 2 * i] == pytest.approx(float(mpmath.sin(angle)), abs=4e-15)
            assert table[p, 2 * i + 1] == pytest.approx(float(mpmath.cos(angle)), abs=4e-15)


def test_far_positions_keep_their_digits():
    row = sinusoidal_at(131_071, 8)
    with mpmath.workdps(40):
        wanted = [
            float(f(131_071 / mpmath.mpf(10000) ** (mpmath.mpf(2 * i) / 8)))
            for i in range(4)
            for f in (mpmath.sin, mpmath.cos)
        ]
    np.testing.assert_allclose(row, wanted, atol=4e-11)


def test_table_agrees_with_distilbert(transformers, torch):
    from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings

    out = torch.empty(512, 768)
    create_sinusoidal_embeddings(n_pos=512, dim=768, out=out)
    np.testing.assert_allclose(sinusoidal(512, 768), out.numpy(), rtol=0, atol=1e-7)  # stored in float32


def test_golden_values():
    """Position 1 of four channels: sin and cos of 1 and of 0.01."""
    wanted = [[0, 1, 0, 1], [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004]]
    np.testing.assert_allclose(sinusoidal(2, 4), wanted, atol=5e-11)


def test_positions_of_any_shape_and_sign(rng):
    places = rng.integers(-50, 50, (2, 3, 5))
    found = sinusoidal_at(places, 6)
    assert found.shape == (2, 3, 5, 6)
    whole = sinusoidal_at(np.arange(-50, 50), 6)
    assert np.array_equal(found, whole[places + 50])
    assert np.array_equal(sinusoidal(50, 6), whole[50:])
    assert sinusoidal_at(np.float32(3), 6).dtype == np.float64


@pytest.mark.parametrize(("d_model", "base"), [(2, 10000.0), (14, 10000.0), (64, 500000.0), (6, 3.0)])
@pytest.mark.parametrize("k", [0, 1, -7, 100, 0.5])
def test_one_matrix_moves_every_position(d_model, base, k):
    matrix = shift_matrix(k, d_model, base)
    error = shift_error(matrix, k, np.arange(500), d_model, base)
    assert error.shape == (500,)
    assert error.max() < 3e-13  # an angle of 600 rad is itself rounded by 1e-13
    assert shift_error(matrix, k, np.arange(8), d_model, base).max() < 1e-14 or abs(k) == 100


def test_the_matrix_is_block_rotation_by_hand():
    cos, sin = np.cos(0.03), np.sin(0.03)
    wanted = np.zeros((4, 4))
    wanted[:2, :2] = [[np.cos(3), np.sin(3)], [-np.sin(3), np.cos(3)]]
    wanted[2:, 2:] = [[cos, sin], [-sin, cos]]
    np.testing.assert_allclose(shift_matrix(3, 4), wanted, atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.integers(-300, 300), st.integers(-300, 300), st.integers(1, 12))
def test_shift_matrices_are_a_group(k, other, half):
    d_model = 2 * half
    product = shift_matrix(k, d_model) @ shift_matrix(other, d_model)
    np.testing.assert_allclose(product, shift_matrix(k + other, d_model), atol=3e-13)
    np.testing.assert_allclose(shift_matrix(k, d_model).T, shift_matrix(-k, d_model), atol=0)
    np.testing.assert_allclose(shift_matrix(k, d_model) @ shift_matrix(k, d_model).T, np.eye(d_model), atol=1e-15)


def test_another_matrix_has_an_error_of_order_one():
    wrong = shift_matrix(4, 8)
    assert shift_error(wrong, 3, np.arange(20), 8).min() > 0.1
    assert shift_error(shift_matrix(3, 8).T, 3, np.arange(20), 8).max() > 0.5


def test_error_is_the_largest_difference():
    rows, moved = sinusoidal_at([2.0, 5.0], 6), sinusoidal_at([4.0, 7.0], 6)
    matrix = np.diag(np.arange(6.0))
    wanted = [max(abs(moved[n, c] - c * rows[n, c]) for c in range(6)) for n in range(2)]
    np.testing.assert_allclose(shift_error(matrix, 2, [2, 5], 6), wanted, rtol=1e-15)


def test_the_shift_matrix_is_ropes_rotation():
    """Read as (cos, sin), a pair is turned by k as RoPE turns it."""
    swapped = sinusoidal(9, 10).reshape(9, 5, 2)[..., ::-1].reshape(9, 10)
    np.testing.assert_allclose(rotate(swapped, np.full(9, 3.0)), sinusoidal_at(np.arange(9) + 3, 10)
                               .reshape(9, 5, 2)[..., ::-1].reshape(9, 10), atol=1e-14)  # fmt: skip


@pytest.mark.parametrize(("d_model", "base"), [(2, 10000.0), (34, 10000.0), (128, 1e6)])
def test_inner_product_depends_on_the_shift_alone(d_model, base):
    shifts = np.arange(-40, 41)
    found = shift_inner_product(shifts, d_model, base)
    for p in (0, 17, 300):
        rows = sinusoidal_at(p + shifts, d_model, base)
        np.testing.assert_allclose(rows @ sinusoidal_at(p, d_model, base), found, atol=1e-11)
    assert found[40] == d_model / 2
    assert np.array_equal(found, found[::-1])
    assert (found[:40] < d_model / 2).all()


def test_every_vector_has_the_same_length():
    np.testing.assert_allclose((sinusoidal(301, 26) ** 2).sum(-1), 13, rtol=1e-14)


# ---------------------------------------------------------------- a learned table


def test_lookup_gives_rows_and_keeps_the_dtype(rng):
    table = rng.standard_normal((7, 5)).astype(np.float32)
    places = np.array([[0, 6, 3], [3, 3, 1]], dtype=np.uint8)
    found = lookup(table, places)
    assert found.dtype == np.float32
    assert found.shape == (2, 3, 5)
    for where in itertools.product(range(2), range(3)):
        assert found[where].tolist() == table[places[where]].tolist()
    found[...] = 0
    assert table.any()


def test_lookup_agrees_with_torch(torch, rng):
    table = rng.standard_normal((11, 4))
    places = rng.integers(0, 11, (3, 5))
    wanted = torch.nn.functional.embedding(torch.tensor(places), torch.tensor(table)).numpy()
    assert np.array_equal(lookup(table, places), wanted)


@pytest.mark.parametrize("outside", [-1, 7, -7, 700, np.iinfo(np.int64).min])
def test_nothing_wraps(outside):
    """NumPy itself would take −1 for the last row."""
    with pytest.raises(ValueError, match=f"positions: got {outside}, want 0 to 6, the rows that the table has"):
        lookup(np.ones((7, 3)), [0, outside, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal(0, 4), "seq_len: got 0"),
        (lambda: sinusoidal(3.0, 4), "seq_len: got 3.0"),
        (lambda: sinusoidal(3, 5), "d_model: got 5, want .* even"),
        (lambda: sinusoidal(3, 0), "d_model: got 0"),
        (lambda: sinusoidal(3, 4, 0), "base: got 0"),
        (lambda: sinusoidal(3, 4, -1.0), "base: got -1.0"),
        (lambda: sinusoidal(3, 4, np.inf), "base: got inf"),
        (lambda: sinusoidal_at([np.nan], 4), "positions: got nan"),
        (lambda: shift_matrix(np.inf, 4), "k: got inf"),
        (lambda: shift_matrix(1, 3), "d_model: got 3"),
        (lambda: shift_error(np.eye(3), 1, [0], 4), r"matrix: got shape \(3, 3\), want shape \(4, 4\)"),
        (lambda: shift_error(np.eye(4) * np.nan, 1, [0], 4), "matrix: got nan"),
        (lambda: shift_error(np.eye(4), np.nan, [0], 4), "k: got nan"),
        (lambda: shift_inner_product([np.inf], 4), "shifts: got inf"),
        (lambda: lookup(np.ones(3), [0]), r"table: got shape \(3,\), want exactly 2 axes"),
        (lambda: lookup(np.full((2, 2), np.nan), [0]), "table: got nan"),
        (lambda: lookup(np.ones((3, 2)), [0.0]), "positions: got an array of float64, want integers"),
        (lambda: lookup(np.ones((3, 2)), [True]), "positions: got an array of bool, want integers"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
