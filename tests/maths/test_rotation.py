"""Pairs as complex numbers: angles, phases, the two ways to turn, and sums of turned numbers."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths import rotation


def test_turns_as_the_onnx_node_cases(onnx_cases):
    """Their cos and sin are random numbers, so every sign and every place in the array is seen."""
    seen = set()
    for case in onnx_cases("rotaryembedding"):
        (x, cos, sin, *position_ids), (wanted,) = case.inputs, case.outputs
        if "num_heads" in case.attributes:
            heads = case.attributes["num_heads"]
            x, wanted = (y.reshape(*y.shape[:2], heads, -1).swapaxes(1, 2) for y in (x, wanted))
        if position_ids:
            cos, sin = cos[position_ids[0]], sin[position_ids[0]]
        phases = (cos + 1j * sin)[:, None]
        interleaved, turned = case.attributes.get("interleaved", 0), 2 * phases.shape[-1]
        out = x.copy()
        turn = rotation.turn_interleaved if interleaved else rotation.turn_split
        turn(x[..., :turned], phases, out[..., :turned])
        np.testing.assert_allclose(out, wanted, rtol=1e-6, atol=1e-7, err_msg=case.name)
        seen.add((bool(interleaved), turned < x.shape[-1], x.flags.c_contiguous, bool(position_ids)))
    # Both layouts, whole and partial, with ids; and layout by layout without ids or with the heads last.
    assert {(i, p, True, True) for i in (False, True) for p in (False, True)} <= seen
    assert {(True, False, True, False), (False, True, True, False), (False, False, False, True)} <= seen


# ---------------------------------------------------------------- angles and phases


def test_angles_are_position_times_frequency(rng):
    positions, frequencies = rng.normal(size=(3, 7)), rng.normal(size=5)
    got = rotation.angles(positions.astype(np.float32), frequencies)
    assert got.dtype == np.float64
    assert got.shape == (3, 7, 5)
    for index in np.ndindex(got.shape):
        assert got[index] == np.float64(np.float32(positions[index[:2]])) * frequencies[index[2]]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("positions", ([np.nan], [1.0])),
        ("positions", (1.0, [1.0])),
        ("positions", ([True], [1.0])),
        ("positions", ([], [1.0])),
        ("inv_freq", ([1.0], [[1.0]])),
        ("inv_freq", ([1.0], [np.inf])),
        ("inv_freq", ([1.0], 1.0)),
        ("positions times inv_freq", ([1e200], [-1e200])),
    ],
)
def test_angles_refuses_bad_input(name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        rotation.angles(*arguments)


@pytest.mark.parametrize(
    ("dtype", "phase_dtype", "bound"),
    [
        (
            np.float32,
            np.complex64,
            2.5e-7,
        ),  # 1.2e-7 rad of the angle and half a unit in the last place of each part
        (np.float64, np.complex128, 3e-16),
        (np.longdouble, np.clongdouble, 3e-16),
    ],
)
def test_phases_lie_on_the_unit_circle_at_any_angle(rng, dtype, phase_dtype, bound):
    whole = np.arange(-3, 4) * math.pi
    angle = np.concatenate([whole, whole / 2, rng.uniform(-10, 10, 53), rng.uniform(-1e6, 1e6, 53)])
    got = rotation.phases_of(angle, np.dtype(dtype))
    assert got.dtype == phase_dtype
    with mpmath.workdps(40):
        wanted = np.array([complex(mpmath.expj(a)) for a in angle.tolist()])
    # The float32 path reduces by a float64 multiple of 2π, whose rounding is 1e6 · 2⁻⁵³ at most.
    assert (abs(got - wanted) <= bound + 2.3e-16 * abs(angle)).all()
    np.testing.assert_array_equal(rotation.phases_of(np.zeros((2, 3)), np.dtype(dtype)), np.ones((2, 3)))


# ---------------------------------------------------------------- pairs


def test_pairs_are_neighbours_or_halves(rng):
    x = rng.normal(size=(3, 5, 14))
    for layout, first, second in (
        ("interleaved", range(0, 14, 2), range(1, 14, 2)),
        ("split", range(7), range(7, 14)),
    ):
        got = rotation.to_pairs(x, layout)
        np.testing.assert_array_equal(got.real, x[..., list(first)])
        np.testing.assert_array_equal(got.imag, x[..., list(second)])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("the last axis of x", (np.ones((2, 5)),)),
        ("x", (np.ones((2, 0)),)),
        ("x", (np.array([np.nan, 1.0]),)),
        ("x", (np.ones(4, complex),)),
        ("layout", (np.ones(4), "half")),
    ],
)
def test_to_pairs_refuses_bad_input(name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        rotation.to_pairs(*arguments)


def test_query_and_key_may_differ_in_leading_axes_alone():
    query, key = rotation.query_and_key(np.ones((3, 1, 4), np.float32), np.ones((5, 4), int))
    assert (query.shape, query.dtype) == ((3, 1, 4), np.float32)
    assert (key.shape, key.dtype) == ((5, 4), np.float64)
    for name, bad in (("key", np.ones((5, 6))), ("key's leading axes", np.ones((2, 1, 4))), ("key", [np.nan] * 4)):
        with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
            rotation.query_and_key(np.ones((3, 1, 4)), bad)


# ---------------------------------------------------------------- turning


@pytest.mark.parametrize("turn", [rotation.turn_interleaved, rotation.turn_split])
def test_turning_writes_out_and_nothing_else(rng, turn):
    x, frame = rng.normal(size=(3, 5, 6)), np.full((3, 5, 8), 7.0)
    before = x.copy()
    phases = rotation.phases_of(rng.normal(size=(5, 3)), np.dtype(np.float64))
    turn(x, phases, frame[..., :6])
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(frame[..., 6:], 7.0)
    layout = "split" if turn is rotation.turn_split else "interleaved"
    wanted = rotation.to_pairs(x, layout) * phases
    np.testing.assert_allclose(rotation.to_pairs(frame[..., :6], layout), wanted, rtol=0, atol=1e-15)


def test_turn_split_never_writes_to_a_copy_of_out():
    """An `out` whose leading axes cannot be merged would be left untouched by writing to a copy."""
    x, out = np.ones((3, 2, 5, 4)), np.zeros((2, 3, 5, 4)).swapaxes(0, 1)
    with pytest.raises(ValueError, match="copy"):
        rotation.turn_split(x, np.ones((5, 2), complex), out)


# ---------------------------------------------------------------- sums over offsets


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    first=st.integers(-5000, 5000) | st.floats(-5000, 5000),
    step=st.integers(-7, 7) | st.floats(-7, 7),
)
def test_evenly_spaced_offsets_give_what_single_ones_give(seed, count, first, step):
    products = np.random.default_rng(seed).normal(size=(2, 5, 2)) @ [1, 1j]
    frequencies = np.array([1.0, 0.3, 0.02, 0.001, 2.5])
    offsets = first + step * np.arange(count)
    together = rotation.sums_of_turned(products, offsets, frequencies)
    assert together.shape == (2, count)
    direct = (products[:, None, :] * np.exp(1j * offsets[:, None] * frequencies)).sum(axis=-1).real
    np.testing.assert_allclose(together, direct, rtol=0, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 25, 26, 1009])
def test_every_count_of_offsets_fills_its_grid(count):
    offsets = np.arange(count) - count // 2
    got = rotation.sums_of_turned(np.array([2 - 1j]), offsets, np.array([0.1]))
    wanted = [2 * math.cos(0.1 * d) + math.sin(0.1 * d) for d in offsets]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    assert got.flags.owndata


def test_offsets_that_are_only_nearly_even_are_not_taken_for_even():
    offsets = np.arange(101.0)
    offsets[57] += 1e-3
    got = rotation.sums_of_turned(np.array([1j]), offsets, np.array([1.0]))
    np.testing.assert_allclose(got, -np.sin(offsets), rtol=0, atol=1e-13)
