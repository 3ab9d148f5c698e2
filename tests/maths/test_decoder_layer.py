import dataclasses
import math
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from transformer_parts.maths import attention
from transformer_parts.maths.decoder import DecoderLayer

WEIGHTS = ["attn_norm", "w_q", "w_k", "w_v", "w_o", "ffn_norm", "w_gate", "w_up", "w_down"]


def a_layer(seed=11, **settings):
    """Return a layer of prime sizes whose weights and gains are large enough for every part to matter."""
    sizes = {"d_model": 13, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 17, "std": 0.4}
    layer = DecoderLayer.random(**(sizes | settings), seed=seed)
    rng = np.random.default_rng(seed)
    gains = {name: rng.uniform(0.5, 2, getattr(layer, name).shape) for name in ("attn_norm", "ffn_norm")}
    return dataclasses.replace(layer, **{name: gain.astype(layer.w_q.dtype) for name, gain in gains.items()})


def by_loops(layer, x, positions):
    """Compute one sequence's output from the formulas, token by token and head by head."""

    def norm(row, gain):
        return row / math.sqrt(np.mean(row**2) + layer.eps) * gain

    def turn(head, position):
        out, width = head.copy(), len(head)
        for i in range(width // 2):
            a, b = (2 * i, 2 * i + 1) if layer.layout == "interleaved" else (i, i + width // 2)
            angle = position * layer.rope_base ** (-2 * i / width)
            out[a] = head[a] * math.cos(angle) - head[b] * math.sin(angle)
            out[b] = head[a] * math.sin(angle) + head[b] * math.cos(angle)
        return out

    n_heads, n_groups, length = layer.n_heads, layer.n_kv_heads, len(x)
    rows = [norm(row, layer.attn_norm) for row in x]
    queries, keys, values = (
        [np.split(row @ w, n) for row in rows]
        for w, n in ((layer.w_q, n_heads), (layer.w_k, n_groups), (layer.w_v, n_groups))
    )
    out = np.empty_like(x)
    for t in range(length):
        heads = []
        for h in range(n_heads):
            g = h // (n_heads // n_groups)
            q = turn(queries[t][h], positions[t])
            powers = [math.exp(q @ turn(keys[s][g], positions[s]) / math.sqrt(len(q))) for s in range(t + 1)]
            heads.append(sum(p * values[s][g] for s, p in enumerate(powers)) / sum(powers))
        u = x[t] + np.concatenate(heads) @ layer.w_o
        row = norm(u, layer.ffn_norm)
        gate = row @ layer.w_gate
        out[t] = u + (gate / (1 + np.exp(-gate)) * (row @ layer.w_up)) @ layer.w_down
    return out


@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_the_layer_is_its_formulas(rng, layout):
    layer = a_layer(layout=layout, eps=1e-3)
    x, positions = rng.normal(size=(2, 7, 13)), np.array([0, 1, 2, 5, 6, 11, 12])
    wanted = [by_loops(layer, row, positions) for row in x]
    np.testing.assert_allclose(layer(x, positions), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(layer(x[:, None, None], positions)[:, 0, 0], wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(layer(x[1]), by_loops(layer, x[1], range(7)), rtol=1e-12, atol=1e-12)


@pytest.mark.oracle
def test_the_layer_agrees_with_transformers(rng, torch, transformers):
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = transformers.LlamaConfig(
        hidden_size=42,  # transformers wants a multiple of the heads
        intermediate_size=17,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=10,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        attn_implementation="sdpa",
    )
    theirs = LlamaDecoderLayer(config, layer_idx=0).double().eval()
    ours = a_layer(d_model=42, layout="split", eps=1e-5, rope_base=500.0)
    names = {
        "attn_norm": "input_layernorm",
        "w_q": "self_attn.q_proj",
        "w_k": "self_attn.k_proj",
        "w_v": "self_attn.v_proj",
        "w_o": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "w_gate": "mlp.gate_proj",
        "w_up": "mlp.up_proj",
        "w_down": "mlp.down_proj",
    }
    theirs.load_state_dict(
        {f"{names[name]}.weight": torch.from_numpy(getattr(ours, name).T.copy()) for name in WEIGHTS}
    )
    x = rng.normal(size=(2, 11, 42))
    stream, ids = torch.from_numpy(x), torch.arange(3, 14)[None]
    with torch.no_grad():
        tables = LlamaRotaryEmbedding(config)(stream, ids)  # of float32, hence the tolerance
        wanted = theirs(stream, attention_mask=None, position_ids=ids, position_embeddings=tables)
    wanted = (wanted[0] if isinstance(wanted, tuple) else wanted).numpy()
    got = ours(x, np.arange(3, 14))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6 * np.abs(wanted).max())
    # the tolerance tells the layouts apart
    other = dataclasses.replace(ours, layout="interleaved")(x, np.arange(3, 14))
    assert np.abs(other - wanted).max() > 1e-2


@pytest.mark.parametrize("causal", [True, False])
def test_the_trace_is_the_forward_pass(rng, causal):
    layer, x = a_layer(), rng.normal(size=(2, 7, 13))
    steps = {step.name: step.value for step in layer.trace(x, causal=causal)}
    np.testing.assert_array_equal(steps["Y"], layer(x, causal=causal))
    np.testing.assert_array_equal(steps["x"] + steps["attention"], steps["U"])
    np.testing.assert_array_equal(steps["U"] + steps["ffn"], steps["Y"])
    np.testing.assert_array_equal(steps["gate"] * steps["up"], steps["product"])
    # no later step has written into an earlier one
    np.testing.assert_array_equal(steps["x"], x)
    rms = np.sqrt(np.mean(x**2, -1, keepdims=True) + layer.eps)
    np.testing.assert_allclose(steps["norm1"], x / rms * layer.attn_norm, atol=1e-14)
    flat = steps["q"].swapaxes(-3, -2).reshape(2, 7, 60)
    np.testing.assert_allclose(flat, steps["norm1"] @ layer.w_q, atol=1e-14)
    values = np.repeat(steps["v"], 2, axis=-3)
    np.testing.assert_allclose(steps["weights"] @ values, steps["mixed"], atol=1e-14)
    keys = np.repeat(steps["k_rotated"], 2, axis=-3)
    np.testing.assert_allclose(steps["q_rotated"] @ keys.swapaxes(-1, -2) / math.sqrt(10), steps["scores"], atol=1e-13)
    np.testing.assert_allclose(
        np.linalg.norm(steps["q"], axis=-1), np.linalg.norm(steps["q_rotated"], axis=-1), rtol=1e-13
    )


@pytest.mark.parametrize("token", [0, 3, 6])
def test_changing_a_token_changes_no_output_before_it(rng, token):
    layer, x = a_layer(), rng.normal(size=(7, 13))
    before = layer(x)
    x[token] = rng.normal(size=13)
    after = layer(x)
    np.testing.assert_allclose(after[:token], before[:token], rtol=0, atol=1e-14)
    assert (np.abs(after - before)[token:].max(-1) > 1e-3).all()
    assert (np.abs(layer(x, causal=False) - layer(-x, causal=False)).max(-1) > 1e-3).all()


def test_only_differences_of_positions_matter(rng):
    layer, x = a_layer(), rng.normal(size=(7, 13))
    np.testing.assert_allclose(layer(x, np.arange(7) + 4001), layer(x), rtol=0, atol=1e-10)
    assert np.abs(layer(x, np.arange(7) * 2) - layer(x)).max() > 1e-3


def test_without_positions_and_mask_the_layer_is_equivariant(rng):
    layer, x, order = a_layer(), rng.normal(size=(7, 13)), rng.permutation(7)
    here = np.zeros(7)
    moved = layer(x[order], here, causal=False)
    np.testing.assert_allclose(moved, layer(x, here, causal=False)[order], rtol=0, atol=1e-13)
    assert np.abs(layer(x[order], causal=False) - layer(x, causal=False)[order]).max() > 1e-2


def test_the_layouts_agree_after_permuting_the_columns_of_w_q_and_w_k(rng):
    layer, x = a_layer(layout="interleaved"), rng.normal(size=(7, 13))

    def halves(w, n):  # channels 0 2 4 … 1 3 5 … of each head
        return w.reshape(13, n, 5, 2).swapaxes(-1, -2).reshape(13, -1)

    split = dataclasses.replace(layer, w_q=halves(layer.w_q, 6), w_k=halves(layer.w_k, 3), layout="split")
    np.testing.assert_allclose(split(x), layer(x), rtol=0, atol=1e-12)
    assert np.abs(dataclasses.replace(layer, layout="split")(x) - layer(x)).max() > 1e-2


def test_left_padding_with_a_mask_and_position_ids_changes_nothing(rng):
    layer, x = a_layer(), rng.normal(size=(5, 13))
    batch = np.stack([np.concatenate([rng.normal(size=(2, 13)), x]), rng.normal(size=(7, 13))])
    positions = np.stack([np.arange(7) - 2, np.arange(7)])
    # a padding token reads itself, for it must read something; no other token reads it
    mask = np.stack([(np.arange(7) >= 2) | np.eye(7, dtype=bool), np.ones((7, 7), bool)])[:, None]
    got = layer(batch, positions, mask=mask)
    np.testing.assert_allclose(got[0, 2:], layer(x), rtol=0, atol=1e-12)
    np.testing.assert_allclose(got[1], layer(batch[1]), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(layer.trace(batch, positions, mask=mask)[8].value[0, :, 3:, :2], 0)


def test_settings_of_rope_and_the_scale_reach_the_scores(rng):
    layer, x = a_layer(), rng.normal(size=(7, 13))
    frequencies = 10000.0 ** (-np.arange(5) / 5)
    np.testing.assert_array_equal(dataclasses.replace(layer, inv_freq=frequencies)(x), layer(x))
    np.testing.assert_array_equal(dataclasses.replace(layer, scale=1 / math.sqrt(10))(x), layer(x))
    for change in (
        {"inv_freq": frequencies / 2},
        {"rope_base": 50.0},
        {"rotary_dim": 4},
        {"scale": 1.0},
    ):
        assert np.abs(dataclasses.replace(layer, **change)(x) - layer(x)).max() > 1e-3
    partial = {s.name: s.value for s in dataclasses.replace(layer, rotary_dim=4).trace(x)}
    np.testing.assert_array_equal(partial["q"][..., 4:], partial["q_rotated"][..., 4:])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_dtype_is_kept_and_16_bits_are_computed_in_float32(rng, dtype):
    layer = a_layer(dtype=dtype)
    compute = np.float64 if dtype is np.float64 else np.float32
    assert {getattr(layer, name).dtype for name in WEIGHTS} == {np.dtype(compute)}
    x = rng.normal(size=(7, 13)).astype(dtype)
    before = x.copy()
    got = layer(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(got, layer(x.astype(compute)).astype(dtype))
    assert {step.value.dtype for step in layer.trace(x)} == {np.dtype(compute)}


def test_the_weights_are_not_copied(rng):
    w_q = rng.normal(size=(60, 13)).T  # columns as rows, as files hold them
    assert dataclasses.replace(a_layer(), w_q=w_q).w_q is w_q


def test_memory_does_not_grow_with_the_square_of_the_length(rng, monkeypatch):
    monkeypatch.setattr(attention, "BLOCK_BYTES", 2**19)
    layer, peaks = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, dtype=np.float32), {}
    for length in (1009, 4036):
        x = rng.normal(size=(length, 8)).astype(np.float32)
        tracemalloc.start()
        layer(x)
        peaks[length] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[4036] < 4.2 * peaks[1009]


def test_random_layers_are_seeded(rng):
    sizes = {"d_model": 64, "n_heads": 4, "d_ff": 128}
    layer, same, other = (DecoderLayer.random(**sizes, seed=s) for s in (5, np.random.default_rng(5), 6))
    for name in WEIGHTS:
        w = getattr(layer, name)
        np.testing.assert_array_equal(w, getattr(same, name))
        if w.ndim == 1:
            np.testing.assert_array_equal(w, 1)
        else:
            assert (w != getattr(other, name)).all()
            # the standard error of a standard deviation from n draws is σ/√(2n); five of them
            assert abs(w.std() - 0.02) < 5 * 0.02 / math.sqrt(2 * w.size)


def test_the_settings_print_without_the_weights():
    assert repr(a_layer()) == (
        "DecoderLayer(n_heads=6, n_kv_heads=3, rope_base=10000.0, layout='interleaved', rotary_dim=None, "
        "scale=None, eps=1e-06)"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({name: np.ones((3, 5))}, f"^{name}: got .*shape \\(3, 5\\)") for name in WEIGHTS if name != "w_gate"),
        ({"w_gate": np.ones((13, 5))}, r"^w_up: got .*shape \(13, 17\)'?, want shape \(13, 5\)"),
        ({"w_gate": np.ones((5, 17))}, r"^w_gate: got .*want shape \(13, 17\)"),
        ({"w_up": np.ones((13, 17), np.float32)}, "^w_up: got float32, want float64, as w_q"),
        ({"w_o": np.full((60, 13), np.nan)}, "^w_o: got .*nan"),
        ({"w_v": np.ones((13, 30), bool)}, "^w_v: got .*bool"),
        ({"n_heads": 5}, "^n_kv_heads: got 3, want a divisor of n_heads, which is 5"),
        ({"n_heads": 9}, "^w_q: got .*n_heads = 9"),
        ({"n_heads": 12, "n_kv_heads": 6}, r"^w_q: got shape"),
        ({"n_kv_heads": 2}, r"^w_k: got .*want shape \(13, 20\)"),
        ({"n_kv_heads": 0}, "^n_kv_heads: got 0"),
        ({"layout": "neighbours"}, "^layout: got 'neighbours'"),
        ({"eps": 0.0}, "^eps: got 0.0"),
        ({"scale": math.inf}, "^scale: got inf"),
        ({"rope_base": -1.0}, "^rope_base: got -1.0"),
        ({"rotary_dim": 12}, "^rotary_dim: got 12"),
        ({"inv_freq": np.ones(4)}, "^inv_freq: got"),
    ],
)
def test_a_layer_of_parts_that_do_not_fit_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(a_layer(), **change)


@pytest.mark.parametrize(
    ("args", "settings", "name"),
    [
        ((np.zeros(13),), {}, "x"),
        ((np.zeros((7, 11)),), {}, "x"),
        ((np.full((7, 13), np.nan),), {}, "x"),
        ((np.zeros((0, 13)),), {}, "x"),
        ((np.zeros((7, 13)), np.arange(5)), {}, "positions"),
        ((np.zeros((7, 13)), np.zeros((2, 7))), {}, "positions"),
        ((np.zeros((7, 13)), np.full(7, np.inf)), {}, "positions"),
        ((np.zeros((7, 13)),), {"mask": np.ones((7, 7))}, "mask"),
        ((np.zeros((7, 13)),), {"mask": np.ones((7, 5), bool)}, "mask"),
        ((np.zeros((7, 13)),), {"mask": np.zeros((7, 7), bool)}, "mask"),
        ((np.zeros((7, 13)),), {"causal": 1}, "causal"),
    ],
)
def test_bad_input_is_refused_by_name(args, settings, name):
    for run in (a_layer(), a_layer().trace):
        with pytest.raises(ValueError, match=f"^{name}: got"):
            run(*args, **settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 14}, "^n_heads: got 4, want a divisor of d_model, which is 14"),
        ({"d_model": 12}, "^head_dim: got 3, want .*even"),
        ({"n_kv_heads": 3}, "^n_kv_heads: got 3, want a divisor of n_heads, which is 4"),
        ({"std": -0.1}, "^std: got -0.1"),
        ({"dtype": int}, "^dtype: got int64"),
        ({"seed": -3}, "^seed: got -3"),
    ],
)
def test_random_refuses(change, message):
    with pytest.raises(ValueError, match=message):
        DecoderLayer.random(**({"d_model": 16, "n_heads": 4, "d_ff": 8} | change))
