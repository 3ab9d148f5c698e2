"""RoPE: the rotation itself, both layouts, partial rotation, precision and bad input."""

import math

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference.ops.op_rotary_embedding import rotary_embedding

from transformer_parts.maths import rope

LAYOUTS = ("interleaved", "split")
laws = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
# Two pairs or more, so that a wrong order of the frequencies shows.
widths = st.sampled_from((4, 6, 10, 14, 22))
whole_positions = st.integers(-100_000, 100_000)


def draws(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def interleave(x: np.ndarray) -> np.ndarray:
    """Put channels i and i + K/2 side by side, as channels 2i and 2i+1."""
    first, second = np.split(x, 2, axis=-1)
    return np.stack([first, second], axis=-1).reshape(x.shape)


def turned_by_loop(x, positions, frequencies, layout):
    """Multiply each pair by its 2×2 matrix, one number at a time."""
    out = [list(map(float, row)) for row in x]
    for row, position in zip(out, positions, strict=True):
        for i, theta in enumerate(frequencies):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + len(frequencies))
            cos, sin = math.cos(position * theta), math.sin(position * theta)
            row[a], row[b] = cos * row[a] - sin * row[b], sin * row[a] + cos * row[b]
    return np.array(out)


# ---------------------------------------------------------------- frequencies


@pytest.mark.parametrize("rope_base", [10000.0, 500_000, 0.5, 3])
def test_inv_freq_is_the_power_of_the_base(rope_base):
    with mpmath.workdps(40):
        wanted = [float(mpmath.mpf(rope_base) ** (mpmath.mpf(-2 * i) / 22)) for i in range(11)]
    np.testing.assert_allclose(rope.inv_freq(22, rope_base), wanted, rtol=1e-14)


def test_a_larger_base_slows_the_slowest_and_leaves_the_fastest():
    small, large = rope.inv_freq(128), rope.inv_freq(128, 500_000.0)
    assert small[0] == large[0] == 1
    assert (large[1:] < small[1:]).all()
    assert (np.diff(large / small) < 0).all()


def test_46_of_64_pairs_complete_a_turn_within_4096_positions():
    turns = rope.wavelengths(rope.inv_freq(128))
    assert (turns <= 4096).sum() == 46
    assert len(turns) == 64
    np.testing.assert_allclose(turns[[0, -1]], [2 * math.pi, 2 * math.pi * 10000 ** (126 / 128)])


def test_after_one_wavelength_a_pair_is_back():
    frequencies = rope.inv_freq(14)
    for i, length in enumerate(rope.wavelengths(frequencies)):
        x = np.zeros((1, 14))
        x[0, 2 * i : 2 * i + 2] = 3, -2
        np.testing.assert_allclose(rope.rotate(x, [length]), x, atol=1e-12)


# ---------------------------------------------------------------- worked numbers


def test_two_channels_by_hand():
    theta = [math.pi / 2]
    query, key = np.array([[1, 2]]), np.array([[2, 1]])
    for m, n in ((1, 2), (4, 5)):
        q, k = rope.rotate(query, [m], inv_freq=theta), rope.rotate(key, [n], inv_freq=theta)
        assert (q @ k.T).item() == pytest.approx(3)
        assert (q @ k.T).item() / math.sqrt(2) == pytest.approx(2.1213, abs=5e-5)
        assert (q @ q.T).item() == pytest.approx(5)
        assert (k @ k.T).item() == pytest.approx(5)
    np.testing.assert_allclose(rope.rotate(query, [1], inv_freq=theta), [[-2, 1]], atol=1e-15)
    np.testing.assert_allclose(rope.rotate(key, [2], inv_freq=theta), [[-2, -1]], atol=1e-15)
    assert (query @ key.T).item() == 4


def test_four_channels_by_hand():
    query, key = np.array([[1, 2, 3, 4]]), np.array([[2, 1, 0, 1]])
    q, k = rope.rotate(query, [1]), rope.rotate(key, [3])
    np.testing.assert_allclose(q, [[-1.142640, 1.922076, 2.959851, 4.029800]], atol=5e-7)
    np.testing.assert_allclose(k, [[-2.121105, -0.707752, -0.029996, 0.999550]], atol=5e-7)
    assert (q @ k.T).item() == pytest.approx(5.002509, abs=5e-7)
    assert (q @ k.T).item() / 2 == pytest.approx(2.501254, abs=6e-7)
    assert (query @ rope.rotate(key, [2]).T).item() == pytest.approx((q @ k.T).item(), abs=1e-14)


# ---------------------------------------------------------------- oracles


@pytest.mark.parametrize("layout", LAYOUTS)
def test_agrees_with_a_loop_over_matrices(rng, layout):
    x, positions = rng.normal(size=(7, 10)), rng.integers(-50, 5000, size=7)
    wanted = turned_by_loop(x, positions, rope.inv_freq(10), layout)
    np.testing.assert_allclose(rope.rotate(x, positions, layout=layout), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [None, 6])
def test_agrees_with_onnx(rng, layout, rotary_dim):
    x, position_ids = rng.normal(size=(2, 5, 7, 22)), rng.integers(0, 53, size=(2, 7))
    turned = rotary_dim or 22
    angles = np.arange(53)[:, None] * 10000.0 ** (-np.arange(0, turned, 2) / turned)
    wanted = rotary_embedding(
        x,
        np.cos(angles),
        np.sin(angles),
        position_ids=position_ids,
        interleaved=layout == "interleaved",
        rotary_embedding_dim=rotary_dim,
    )
    got = rope.rotate(x, position_ids[:, None, :], layout=layout, rotary_dim=rotary_dim)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("position", [1, 4096, 131_072, 1_000_000, -1_000_000])
@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 3e-7), (np.float64, 1e-9)])
def test_is_exact_at_far_positions(rng, layout, position, dtype, bound):
    """The angle is computed in float64: its rounding, 1e6 · 2⁻⁵³, is all that the distance costs."""
    x = rng.normal(size=(1, 26)).astype(dtype)
    pairs = interleave(x) if layout == "split" else x
    wanted = []
    with mpmath.workdps(40):
        for i, (a, b) in enumerate(pairs.reshape(13, 2).tolist()):
            angle = position * mpmath.mpf(10000) ** (mpmath.mpf(-2 * i) / 26)
            turned = mpmath.mpc(a, b) * mpmath.expj(angle)
            wanted.append((float(turned.real), float(turned.imag)))
    got = rope.rotate(x, [position], layout=layout)
    assert got.dtype == dtype
    got = (interleave(got) if layout == "split" else got).reshape(13, 2)
    errors = np.hypot(*(got - np.array(wanted)).T)
    assert (errors <= bound * np.hypot(*pairs.reshape(13, 2).T)).all()


@pytest.mark.oracle
def test_split_layout_agrees_with_transformers(rng, torch, transformers):
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = transformers.LlamaConfig(
        hidden_size=66,
        num_attention_heads=3,
        head_dim=22,
        rope_parameters={"rope_type": "default", "rope_theta": 7e4},
    )
    q, k = rng.normal(size=(2, 3, 7, 22)), rng.normal(size=(2, 3, 7, 22))
    positions = rng.integers(0, 41, size=(2, 7))
    cos, sin = LlamaRotaryEmbedding(config)(torch.tensor(q), torch.tensor(positions))
    wanted = apply_rotary_pos_emb(torch.tensor(q), torch.tensor(k), cos, sin)
    for x, theirs in zip((q, k), wanted, strict=True):
        ours = rope.rotate(x, positions[:, None, :], rope_base=7e4, layout="split")
        # Their angles are float32: up to 41 · 2⁻²⁴ rad off.
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=2e-5)


@pytest.mark.oracle
def test_interleaved_layout_agrees_with_complex_torch(rng, torch):
    x, positions = rng.normal(size=(3, 7, 10)), np.arange(7.0)
    angle = torch.outer(torch.tensor(positions), torch.tensor(rope.inv_freq(10)))
    pairs = torch.view_as_complex(torch.tensor(x).unflatten(-1, (5, 2)))
    wanted = torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
    np.testing.assert_allclose(rope.rotate(x, positions), wanted.numpy(), rtol=0, atol=1e-13)


# ---------------------------------------------------------------- laws


@laws
@given(seeds, widths, st.sampled_from(LAYOUTS), whole_positions, whole_positions, whole_positions)
def test_the_offset_alone_matters(seed, width, layout, m, n, shift):
    query, key = draws(seed, 1, width), draws(seed + 1, 1, width)

    def score(m, n):
        return (rope.rotate(query, [m], layout=layout) @ rope.rotate(key, [n], layout=layout).T).item()

    assert score(m + shift, n + shift) == pytest.approx(score(m, n), abs=1e-8)
    assert (query @ rope.rotate(key, [n - m], layout=layout).T).item() == pytest.approx(score(m, n), abs=1e-8)


def test_other_content_at_the_same_offset_scores_otherwise(rng):
    first, second = rng.normal(size=(2, 1, 6))
    assert abs((rope.rotate(first, [3]) @ rope.rotate(first, [5]).T).item()) > 0.1
    assert abs((rope.rotate(first, [3]) @ rope.rotate(first - second, [5]).T).item()) > 0.1


@laws
@given(seeds, widths, st.sampled_from(LAYOUTS), whole_positions)
def test_lengths_are_kept(seed, width, layout, position):
    x = draws(seed, 7, width)
    turned = rope.rotate(x, np.full(7, position), layout=layout)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-14)


@laws
@given(seeds, widths, st.sampled_from(LAYOUTS), st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))
def test_turning_twice_is_turning_by_the_sum(seed, width, layout, a, b):
    x = draws(seed, 1, width)
    twice = rope.rotate(rope.rotate(x, [a], layout=layout), [b], layout=layout)
    np.testing.assert_allclose(twice, rope.rotate(x, [a + b], layout=layout), rtol=0, atol=1e-10)


@laws
@given(seeds, widths, st.sampled_from(LAYOUTS), whole_positions)
def test_the_inverse_is_the_negative_position(seed, width, layout, position):
    x = draws(seed, 1, width)
    back = rope.rotate(rope.rotate(x, [position], layout=layout), [-position], layout=layout)
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-13)


@laws
@given(seeds, widths, whole_positions)
def test_split_is_interleaved_with_channels_permuted(seed, width, position):
    x = draws(seed, 3, 2, width)
    positions = [position, position + 1]
    split = rope.rotate(x, positions, layout="split")
    np.testing.assert_allclose(interleave(split), rope.rotate(interleave(x), positions), rtol=0, atol=1e-14)
    assert not np.allclose(split, rope.rotate(x, positions), atol=1e-3)


@laws
@given(seeds, st.sampled_from(LAYOUTS))
def test_rotation_is_linear_and_position_0_is_the_identity(seed, layout):
    x, y = draws(seed, 2, 5, 6)
    positions = [0, 1, 2, 3, 10**5]
    left = rope.rotate(2 * x - 3 * y, positions, layout=layout)
    right = 2 * rope.rotate(x, positions, layout=layout) - 3 * rope.rotate(y, positions, layout=layout)
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(rope.rotate(x, positions, layout=layout)[0], x[0])


# ---------------------------------------------------------------- shapes, dtypes, memory


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [2, 6, 8])
def test_channels_beyond_rotary_dim_pass_through(rng, layout, rotary_dim):
    x, positions = rng.normal(size=(3, 5, 11)), np.arange(1, 6)
    got = rope.rotate(x, positions, layout=layout, rotary_dim=rotary_dim)
    np.testing.assert_array_equal(got[..., rotary_dim:], x[..., rotary_dim:])
    alone = rope.rotate(x[..., :rotary_dim], positions, layout=layout)
    np.testing.assert_allclose(got[..., :rotary_dim], alone, rtol=0, atol=1e-15)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("positions_shape", [(5,), (1, 5), (3, 5), (2, 1, 5), (2, 3, 5), (1, 1, 5)])
def test_positions_broadcast_over_leading_axes(rng, layout, positions_shape):
    x, positions = rng.normal(size=(2, 3, 5, 6)), rng.integers(0, 1000, size=positions_shape)
    got = rope.rotate(x, positions, layout=layout)
    everywhere = np.broadcast_to(positions, (2, 3, 5))
    for index in np.ndindex(2, 3):
        alone = rope.rotate(x[index], everywhere[index], layout=layout)
        np.testing.assert_allclose(got[index], alone, rtol=0, atol=1e-15)


@pytest.mark.parametrize("per_batch", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 1031, 64), (1009, 7, 22), (3, 1, 64), (2, 2, 40_009, 2)])
def test_blocks_of_any_size_join(rng, shape, per_batch):
    """The split layout works in blocks; these shapes end inside one, hold many in one, or one in many."""
    x = rng.normal(size=shape)
    positions = rng.integers(0, 9999, size=(shape[0], *(1,) * (len(shape) - 3), shape[-2]) if per_batch else shape[-2])
    got = rope.rotate(x, positions, layout="split")
    np.testing.assert_allclose(interleave(got), rope.rotate(interleave(x), positions), rtol=0, atol=1e-14)


DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.longdouble, ">f2", ">f4", ">f8")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).str + np.dtype(dtype).name)
def test_dtype_is_kept(rng, layout, dtype):
    dtype = np.dtype(dtype)
    x = rng.normal(size=(3, 5, 10)).astype(dtype)
    positions = [0, 1, 77, 4095, 65_537]
    got = rope.rotate(x, positions, layout=layout, rotary_dim=6)
    assert got.dtype == dtype
    exact = rope.rotate(x.astype(np.float64), positions, layout=layout, rotary_dim=6)
    spacing = max(float(ml_dtypes.finfo(dtype.newbyteorder("=")).eps), 2e-16)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=0, atol=3 * spacing * np.abs(exact).max())
    if dtype.itemsize == 2:
        wide = rope.rotate(x.astype(np.float32), positions, layout=layout, rotary_dim=6)
        np.testing.assert_array_equal(got, wide.astype(dtype))  # rounded once


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_integers_become_float64(dtype):
    x = np.arange(12).reshape(3, 4).astype(dtype)
    got = rope.rotate(x, np.array([250, 251, 252], np.uint8))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, rope.rotate(x.astype(float), [250.0, 251.0, 252.0]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("rotary_dim", [None, 4])
def test_strided_input_gives_the_same_and_stays_as_it_was(rng, layout, dtype, rotary_dim):
    big = rng.normal(size=(4, 10, 6, 12)).astype(dtype)
    views = {
        "heads and positions exchanged": big.transpose(0, 2, 1, 3),
        "every second channel": big[..., ::2],
        "channels backwards": big[..., ::-1],
        "a slice of channels": big[..., 1:11],
        "Fortran order": np.asfortranarray(big),
        "one row repeated": np.broadcast_to(big[:1], big.shape),
    }
    for name, view in views.items():
        view.flags.writeable = False
        before, positions = view.copy(), np.arange(view.shape[-2])
        got = rope.rotate(view, positions, layout=layout, rotary_dim=rotary_dim)
        wanted = rope.rotate(before, positions, layout=layout, rotary_dim=rotary_dim)
        np.testing.assert_array_equal(got, wanted, err_msg=name)
        np.testing.assert_array_equal(view, before, err_msg=name)
        assert not np.shares_memory(got, view), name
        assert got.flags.writeable, name


def test_given_frequencies_replace_the_base(rng):
    x = rng.normal(size=(5, 6))
    frequencies = np.array([0.3, 0.2, 0.1], np.float32)
    got = rope.rotate(x, range(5), inv_freq=frequencies, rope_base=-1)
    np.testing.assert_allclose(got, turned_by_loop(x, range(5), frequencies.astype(float), "interleaved"), atol=1e-14)
    by_base = rope.rotate(x, range(5), inv_freq=rope.inv_freq(6, 77.0))
    np.testing.assert_array_equal(by_base, rope.rotate(x, range(5), rope_base=77.0))


# ---------------------------------------------------------------- bad input

NAN_X = np.ones((3, 4))
NAN_X[1, 2] = np.nan

BAD_ROTATE = [
    ("x", {"x": np.ones((3, 5))}),
    ("x", {"x": [[1, 2, 3]], "positions": [0]}),
    ("x", {"x": np.ma.masked_array(np.ones((3, 4)), np.eye(3, 4))}),
    ("x", {"x": np.ones(4)}),
    ("x", {"x": 1.0}),
    ("x", {"x": None}),
    ("x", {"x": [[1, 2], [3]]}),
    ("x", {"x": np.ones((0, 3, 4))}),
    ("x", {"x": np.ones((3, 0))}),
    ("x", {"x": NAN_X}),
    ("x", {"x": np.full((3, 4), np.inf, np.float32)}),
    ("x", {"x": np.full((3, 4), np.nan, ml_dtypes.bfloat16)}),
    ("x", {"x": np.ones((3, 4), bool)}),
    ("x", {"x": np.ones((3, 4), complex)}),
    ("x", {"x": [["a", "b"]] * 3}),
    ("positions", {"positions": [0, 1]}),
    ("positions", {"positions": [0]}),
    ("positions", {"positions": 1}),
    ("positions", {"positions": []}),
    ("positions", {"positions": np.ones((2, 3))}),
    ("positions", {"x": np.ones((2, 3, 4)), "positions": np.ones((5, 3))}),
    ("positions", {"positions": [0, 1, np.nan]}),
    ("positions", {"positions": [0, 1, -np.inf]}),
    ("positions", {"positions": [False, True, True]}),
    ("positions", {"positions": ["0", "1", "2"]}),
    ("positions", {"positions": [0, 1, 2j]}),
    ("positions times inv_freq", {"positions": [0, 1, 1e308], "inv_freq": [100.0, 1.0]}),
    ("rope_base", {"rope_base": 0}),
    ("rope_base", {"rope_base": -10000.0}),
    ("rope_base", {"rope_base": np.nan}),
    ("rope_base", {"rope_base": np.inf}),
    ("rope_base", {"rope_base": True}),
    ("rope_base", {"rope_base": "10000"}),
    ("rope_base", {"rope_base": 1e4 + 0j}),
    ("rope_base", {"rope_base": 10**400}),
    ("layout", {"layout": "halves"}),
    ("layout", {"layout": None}),
    ("layout", {"layout": np.array(["split", "interleaved"])}),
    ("rotary_dim", {"rotary_dim": 3}),
    ("rotary_dim", {"rotary_dim": 6}),
    ("rotary_dim", {"rotary_dim": 0}),
    ("rotary_dim", {"rotary_dim": -2}),
    ("rotary_dim", {"rotary_dim": 2.0}),
    ("rotary_dim", {"rotary_dim": True}),
    ("inv_freq", {"inv_freq": [1.0]}),
    ("inv_freq", {"inv_freq": [1.0, 0.1, 0.01]}),
    ("inv_freq", {"inv_freq": [1.0, 0.01], "rotary_dim": 2}),
    ("inv_freq", {"inv_freq": [[1.0, 0.01]]}),
    ("inv_freq", {"inv_freq": 1.0}),
    ("inv_freq", {"inv_freq": [1.0, np.nan]}),
    ("inv_freq", {"inv_freq": ["1", "2"]}),
]


@pytest.mark.parametrize(("name", "change"), BAD_ROTATE)
def test_rotate_refuses_bad_input(name, change):
    arguments = {"x": np.ones((3, 4)), "positions": [0, 1, 2], **change}
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        rope.rotate(**arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("head_dim", (7,)),
        ("head_dim", (0,)),
        ("head_dim", (-4,)),
        ("head_dim", (4.0,)),
        ("head_dim", (True,)),
        ("head_dim", ("8",)),
        ("head_dim", (None,)),
        ("head_dim", (10**30,)),
        ("head_dim", (2**20 + 2,)),
        ("rope_base", (8, 0.0)),
        ("rope_base", (8, -1)),
        ("rope_base", (8, np.nan)),
        ("rope_base", (8, [10000.0])),
        ("rope_base", (128, 5e-324)),
    ],
)
def test_inv_freq_refuses_bad_input(name, arguments):
    with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
        rope.inv_freq(*arguments)


def test_the_widest_head_has_its_frequencies():
    assert rope.inv_freq(2**20).shape == (2**19,)


@pytest.mark.parametrize(
    "bad", [[], 1.0, [1.0, 0.0], [1.0, -0.1], [1.0, 5e-324], [np.nan], [np.inf], ["1"], [True], [1j]]
)
def test_wavelengths_refuses_bad_input(bad):
    with pytest.raises(ValueError, match=r"^inv_freq: got .*, want "):
        rope.wavelengths(bad)


def test_the_smallest_base_and_frequency_that_have_an_answer():
    # the last frequency is base^(-(K-2)/K): at K = 8 even the smallest float64 has one, at K = 128 it has none
    for head_dim, base in ((8, 5e-324), (128, 1e-308)):
        expected = mpmath.mpf(base) ** (-mpmath.mpf(head_dim - 2) / head_dim)
        np.testing.assert_allclose(rope.inv_freq(head_dim, base)[-1], float(expected), rtol=1e-12)
    largest = np.finfo(np.float64).max
    smallest = 2 * np.pi / largest * (1 + 1e-9)
    np.testing.assert_allclose(rope.wavelengths([smallest, 1.0])[0], largest, rtol=1e-8)
    with pytest.raises(ValueError, match=r"^inv_freq: got .*, want frequencies whose wavelengths are within float64$"):
        rope.wavelengths([2 * np.pi / largest * (1 - 1e-9), 1.0])


def test_frequencies_for_gives_what_rotate_turns_by():
    np.testing.assert_array_equal(rope.frequencies_for(22, 500.0, None, None), rope.inv_freq(22, 500.0))
    np.testing.assert_array_equal(rope.frequencies_for(22, 500.0, None, 6), rope.inv_freq(6, 500.0))
    np.testing.assert_array_equal(rope.frequencies_for(23, 500.0, [3, 2, 1], 6), [3.0, 2.0, 1.0])
    with pytest.raises(ValueError, match=r"^rotary_dim: got 24, want "):
        rope.frequencies_for(22, 500.0, None, 24)


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
        turn = rope.turn_interleaved if interleaved else rope.turn_split
        turn(x[..., :turned], phases, out[..., :turned])
        np.testing.assert_allclose(out, wanted, rtol=1e-6, atol=1e-7, err_msg=case.name)
        seen.add((bool(interleaved), turned < x.shape[-1], x.flags.c_contiguous, bool(position_ids)))
    # Both layouts, whole and partial, with ids; and layout by layout without ids or with the heads last.
    assert {(i, p, True, True) for i in (False, True) for p in (False, True)} <= seen
    assert {(True, False, True, False), (False, True, True, False), (False, False, False, True)} <= seen


# ---------------------------------------------------------------- angles and phases


def test_angles_are_position_times_frequency(rng):
    positions, frequencies = rng.normal(size=(3, 7)), rng.normal(size=5)
    got = rope.angles(positions.astype(np.float32), frequencies)
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
        rope.angles(*arguments)


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
    got = rope.phases_of(angle, np.dtype(dtype))
    assert got.dtype == phase_dtype
    with mpmath.workdps(40):
        wanted = np.array([complex(mpmath.expj(a)) for a in angle.tolist()])
    # The float32 path reduces by a float64 multiple of 2π, whose rounding is 1e6 · 2⁻⁵³ at most.
    assert (abs(got - wanted) <= bound + 2.3e-16 * abs(angle)).all()
    np.testing.assert_array_equal(rope.phases_of(np.zeros((2, 3)), np.dtype(dtype)), np.ones((2, 3)))


# ---------------------------------------------------------------- pairs


def test_pairs_are_neighbours_or_halves(rng):
    x = rng.normal(size=(3, 5, 14))
    for layout, first, second in (
        ("interleaved", range(0, 14, 2), range(1, 14, 2)),
        ("split", range(7), range(7, 14)),
    ):
        got = rope.to_pairs(x, layout)
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
        rope.to_pairs(*arguments)


def test_query_and_key_may_differ_in_leading_axes_alone():
    query, key = rope.query_and_key(np.ones((3, 1, 4), np.float32), np.ones((5, 4), int))
    assert (query.shape, query.dtype) == ((3, 1, 4), np.float32)
    assert (key.shape, key.dtype) == ((5, 4), np.float64)
    for name, bad in (("key", np.ones((5, 6))), ("key's leading axes", np.ones((2, 1, 4))), ("key", [np.nan] * 4)):
        with pytest.raises(ValueError, match=rf"^{name}: got .*, want "):
            rope.query_and_key(np.ones((3, 1, 4)), bad)


# ---------------------------------------------------------------- turning


@pytest.mark.parametrize("turn", [rope.turn_interleaved, rope.turn_split])
def test_turning_writes_out_and_nothing_else(rng, turn):
    x, frame = rng.normal(size=(3, 5, 6)), np.full((3, 5, 8), 7.0)
    before = x.copy()
    phases = rope.phases_of(rng.normal(size=(5, 3)), np.dtype(np.float64))
    turn(x, phases, frame[..., :6])
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(frame[..., 6:], 7.0)
    layout = "split" if turn is rope.turn_split else "interleaved"
    wanted = rope.to_pairs(x, layout) * phases
    np.testing.assert_allclose(rope.to_pairs(frame[..., :6], layout), wanted, rtol=0, atol=1e-15)


def test_turn_split_never_writes_to_a_copy_of_out():
    """An `out` whose leading axes cannot be merged would be left untouched by writing to a copy."""
    x, out = np.ones((3, 2, 5, 4)), np.zeros((2, 3, 5, 4)).swapaxes(0, 1)
    with pytest.raises(ValueError, match="copy"):
        rope.turn_split(x, np.ones((5, 2), complex), out)


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
    together = rope.sums_of_turned(products, offsets, frequencies)
    assert together.shape == (2, count)
    direct = (products[:, None, :] * np.exp(1j * offsets[:, None] * frequencies)).sum(axis=-1).real
    np.testing.assert_allclose(together, direct, rtol=0, atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 17, 25, 26, 1009])
def test_every_count_of_offsets_fills_its_grid(count):
    offsets = np.arange(count) - count // 2
    got = rope.sums_of_turned(np.array([2 - 1j]), offsets, np.array([0.1]))
    wanted = [2 * math.cos(0.1 * d) + math.sin(0.1 * d) for d in offsets]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12)
    assert got.flags.owndata


def test_offsets_that_are_only_nearly_even_are_not_taken_for_even():
    offsets = np.arange(101.0)
    offsets[57] += 1e-3
    got = rope.sums_of_turned(np.array([1j]), offsets, np.array([1.0]))
    np.testing.assert_allclose(got, -np.sin(offsets), rtol=0, atol=1e-13)
