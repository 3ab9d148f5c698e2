import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths.cache import KVCache
from transformer_parts.maths.cache_decoding import layer_step, position_ids, rotation_settings, stack_step
from transformer_parts.maths.context_extension import dynamic_ntk
from transformer_parts.maths.decoder import DecoderLayer

EXACT = 1e-12  # of outputs whose entries are of order 1 to 10, in float64


def a_stack(n=3, **settings):
    sizes = {"d_model": 13, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 17, "std": 0.25}
    return [DecoderLayer.random(**(sizes | settings), seed=seed) for seed in range(n)]


def at_once(layers, x, positions=None):
    for layer in layers:
        x = layer(x, positions)
    return x


def in_chunks(layers, x, edges, caches=None, **settings):
    """Run x through the caches, cut at the edges, and return all outputs."""
    caches = caches or [KVCache() for _ in layers]
    chunks = zip([0, *edges], [*edges, x.shape[-2]], strict=True)
    cut = {name: np.asarray(value) for name, value in settings.items()}
    outputs = [
        stack_step(layers, x[..., a:b, :], caches, **{name: value[..., a:b] for name, value in cut.items()})
        for a, b in chunks
    ]
    return np.concatenate(outputs, axis=-2)


@settings(deadline=None, max_examples=30)
@given(edges=st.lists(st.integers(1, 22), unique=True, max_size=22).map(sorted), seed=st.integers(0, 99))
def test_the_whole_sequence_and_chunks_of_any_size_agree(edges, seed):
    layers, x = a_stack(2), np.random.default_rng(seed).normal(size=(23, 13))
    assert np.abs(in_chunks(layers, x, edges) - at_once(layers, x)).max() < EXACT


@pytest.mark.parametrize("rotated", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layout": "split"},
        {"rotary_dim": 4},
        {"inv_freq": [2.0, 0.3, 0.1, 0.0, 0.7]},
        {"n_kv_heads": 6},
        {"n_kv_heads": 1},
        {"scale": 0.5, "eps": 1e-3, "rope_base": 50.0},
    ],
    ids=str,
)
def test_token_by_token_agrees_in_every_setting(rng, settings, rotated):
    layers = a_stack(**settings)
    x = rng.normal(size=(2, 11, 13))
    caches = [KVCache(rotated=rotated, capacity=3) for _ in layers]
    got = in_chunks(layers, x, range(1, 11), caches)
    assert np.abs(got - at_once(layers, x)).max() < EXACT


def test_as_many_tokens_as_heads_are_no_trap(rng):
    # Where L = G = H or S = G, code that reads the length from the axis of the heads goes unseen; elsewhere not.
    for length in (1, 3, 6, 7):
        layers, x = a_stack(1), rng.normal(size=(length + 6, 13))
        got = in_chunks(layers, x, [length])
        assert np.abs(got - at_once(layers, x)).max() < EXACT


def test_float32_is_kept_and_agrees_to_its_precision(rng):
    layers = a_stack(dtype=np.float32)
    x = rng.normal(size=(11, 13)).astype(np.float32)
    caches = [KVCache() for _ in layers]
    got = in_chunks(layers, x, range(1, 11), caches)
    assert got.dtype == caches[0].keys.dtype == np.float32
    wanted = at_once(layers, x)
    assert np.abs(got - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_sixteen_bits_are_computed_in_32_and_rounded_once(rng):
    layers = a_stack(dtype=np.float32)
    x = rng.normal(size=(11, 13)).astype(np.float16)
    got = in_chunks(layers, x, [7])
    assert got.dtype == np.float16
    # three layers, and each rounds what it returns
    np.testing.assert_allclose(got, at_once(layers, x), rtol=2e-2, atol=2e-2)
    caches = [KVCache(dtype=np.float16) for _ in layers]
    narrow = in_chunks(layers, x.astype(np.float32), [7], caches)
    assert caches[0].keys.dtype == np.float16
    np.testing.assert_allclose(narrow, at_once(layers, x.astype(np.float32)), rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("rotated", [True, False])
def test_left_padding_changes_nothing(rng, rotated):
    layers = a_stack()
    long, short = rng.normal(size=(13, 13)), rng.normal(size=(9, 13))
    padded = np.stack([long, np.concatenate([100 * rng.normal(size=(4, 13)), short])])
    valid = np.ones((2, 13), bool)
    valid[1, :4] = False
    for edges in ([], [7], [7, 8, 9, 10, 11, 12], [2, 4, 6]):
        caches = [KVCache(rotated=rotated) for _ in layers]
        got = in_chunks(layers, padded, edges, caches, valid=valid)
        assert np.abs(got[0] - at_once(layers, long)).max() < EXACT
        assert np.abs(got[1, 4:] - at_once(layers, short)).max() < EXACT
        np.testing.assert_array_equal(caches[0].positions[1], [0, 0, 0, 0, *range(9)])
    # the same with the position ids given
    caches = [KVCache(rotated=rotated) for _ in layers]
    got = in_chunks(layers, padded, [7, 8], caches, valid=valid, positions=position_ids(valid))
    assert np.abs(got[1, 4:] - at_once(layers, short)).max() < EXACT


def test_rope_forgives_padding_that_is_counted_everywhere(rng):
    # Only offsets matter: the mask is needed, position ids are not as long as all tokens are moved alike.
    layers, short = a_stack(), rng.normal(size=(9, 13))
    padded = np.concatenate([rng.normal(size=(4, 13)), short])
    got = in_chunks(layers, padded, [7, 8], valid=np.arange(13) >= 4, positions=np.arange(13))
    assert np.abs(got[4:] - at_once(layers, short)).max() < EXACT


def test_given_positions_are_used(rng):
    layers, x = a_stack(), rng.normal(size=(2, 7, 13))
    positions = np.array([[0, 1, 2, 5, 6, 11, 12], [3, 4, 5, 6, 7, 8, 40]])
    got = in_chunks(layers, x, [3, 5], positions=positions)
    assert np.abs(got - at_once(layers, x, positions)).max() < EXACT
    assert np.abs(got - at_once(layers, x)).max() > 0.1


def test_every_layer_has_the_token_at_one_position(rng):
    layers, x = a_stack(), rng.normal(size=(8, 13))
    caches = [KVCache() for _ in layers]
    in_chunks(layers, x, [5, 6, 7], caches)
    for cache in caches:
        np.testing.assert_array_equal(cache.positions, np.arange(8))


def test_a_base_that_follows_the_length_is_exact_with_unrotated_keys_in_one_layer(rng):
    (layer,), x = a_stack(1), rng.normal(size=(19, 13))
    cache = KVCache(rotated=False)
    layer_step(layer, x[:8], cache)
    for length in range(9, 20):
        now = dynamic_ntk(10, length, 8).inv_freq
        got = layer_step(layer, x[length - 1 : length], cache, inv_freq=now)
        wanted = dataclasses.replace(layer, inv_freq=now)(x[:length])
        assert np.abs(got - wanted[-1]).max() < EXACT
    # a short text after the long one starts from the trained base again
    short = layer_step(layer, x[:5], KVCache(rotated=False), inv_freq=dynamic_ntk(10, 5, 8).inv_freq)
    assert np.abs(short - layer(x[:5])).max() < EXACT


def test_frequencies_are_refused_where_keys_are_turned_already(rng):
    (layer,), x = a_stack(1), rng.normal(size=(3, 13))
    cache = KVCache()
    layer_step(layer, x, cache)
    with pytest.raises(ValueError, match=r"^inv_freq: got frequencies for a cache of rotated keys"):
        layer_step(layer, x[:1], cache, inv_freq=np.ones(5))
    assert len(cache) == 3


@pytest.mark.parametrize("rotated", [True, False])
def test_the_notes_are_those_of_a_trace(rng, rotated):
    (layer,), x = a_stack(1), rng.normal(size=(7, 13))
    cache, noted = KVCache(rotated=rotated), {}
    layer_step(layer, x[:6], cache)
    layer_step(layer, x[6:], cache, note=lambda name, axes, value: noted.update({name: value}))
    whole = {step.name: step.value for step in layer.trace(x)}
    for name in ("norm1", "q", "k", "v", "scores", "weights", "mixed", "attention", "norm2", "product", "ffn"):
        tokens = -1 if whole[name].ndim == 2 else (slice(None), -1)
        np.testing.assert_allclose(noted[name].reshape(whole[name][tokens].shape), whole[name][tokens], atol=EXACT)


def test_position_ids_count_the_real_tokens_before():
    valid = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 0, 1, 1]], bool)
    wanted = [[sum(row[:j]) for j in range(5)] for row in valid]
    np.testing.assert_array_equal(position_ids(valid), wanted)
    np.testing.assert_array_equal(position_ids(valid, [10, 20, 30]), np.add(wanted, [[10], [20], [30]]))


@pytest.mark.parametrize(
    ("name", "valid", "start"),
    [
        ("valid", [1, 0], 0),
        ("valid", True, 0),
        ("start", [[True]], [1, 2]),
        ("start", [True], np.nan),
        ("start", [True], "one"),
    ],
)
def test_position_ids_refuse_what_does_not_fit(name, valid, start):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        position_ids(valid, start)


BAD = [
    ("x", {"x": np.ones((2, 1, 12))}),
    ("x", {"x": np.ones(13)}),
    ("x", {"x": np.full((2, 1, 13), np.nan)}),
    ("x's leading axes", {"x": np.ones((3, 1, 13))}),
    ("key", {"x": np.ones((3, 1, 13)), "positions": [5]}),
    ("positions", {"positions": [5, 6]}),
    ("positions", {"positions": [4]}),
    ("positions", {"positions": [[5], [6], [7]]}),
    ("valid", {"valid": [1]}),
    ("valid", {"valid": [True, True]}),
    ("caches", {"caches": 2}),
    ("caches", {"caches": "same"}),
    ("caches", {"caches": "uneven"}),
    ("layers", {"layers": []}),
]


@pytest.mark.parametrize(("name", "changed"), BAD, ids=range(len(BAD)))
def test_what_does_not_fit_is_refused_and_nothing_is_changed(rng, name, changed):
    layers = a_stack()
    caches = [KVCache() for _ in layers]
    stack_step(layers, rng.normal(size=(2, 5, 13)), caches)
    given = {"layers": layers, "x": np.ones((2, 1, 13)), "caches": caches} | changed
    other = KVCache()
    layer_step(layers[0], np.ones((2, 4, 13)), other)
    special = {2: caches[:2], "same": [caches[0]] * 3, "uneven": [*caches[:2], other]}
    if not isinstance(given["caches"], list):
        given["caches"] = special[given["caches"]]
    with pytest.raises(ValueError, match=f"^{name}: got "):
        stack_step(**given)
    assert [len(cache) for cache in caches] == [5, 5, 5]
    stack_step(layers, np.ones((2, 1, 13)), caches)


def test_a_layer_that_fails_leaves_no_cache_grown(rng):
    layers, x = a_stack(), rng.normal(size=(6, 13))
    caches = [KVCache(), KVCache(), KVCache(max_tokens=5, capacity=5)]
    stack_step(layers, x[:5], caches)
    with pytest.raises(ValueError, match=r"^key: got 6 tokens in all, want at most max_tokens, 5"):
        stack_step(layers, x[5:], caches)
    assert [len(cache) for cache in caches] == [5, 5, 5]
    # attention that overflows fails after its own cache has taken the token
    fierce = dataclasses.replace(layers[0], w_q=layers[0].w_q * 1e160, w_k=layers[0].w_k * 1e160)
    cache = KVCache()
    with pytest.raises(ValueError, match="range of float64"):
        layer_step(fierce, x, cache)
    assert len(cache) == 0


def test_the_settings_are_those_of_the_layer():
    layer = a_stack(1, layout="split", rotary_dim=4, rope_base=50.0)[0]
    assert rotation_settings(layer) == {"rope_base": 50.0, "inv_freq": None, "layout": "split", "rotary_dim": 4}
    assert rotation_settings(layer, [1.0])["inv_freq"] == [1.0]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.past_key_values. is deprecated:FutureWarning")  # the name before 5.40
def test_decoding_agrees_with_transformers(rng, torch, transformers):
    """A padded batch, prefill and ten steps, through transformers' Llama and its DynamicCache."""
    from transformers.models.llama.modeling_llama import LlamaModel

    config = transformers.LlamaConfig(
        vocab_size=31,
        hidden_size=42,
        intermediate_size=17,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=10,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        attn_implementation="sdpa",
        use_cache=True,
    )
    torch.manual_seed(3)
    theirs = LlamaModel(config).double().eval()
    theirs.norm = torch.nn.Identity()
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
    layers = []
    for block in theirs.layers:
        weights = {}
        for ours, name in names.items():
            parameter = block.get_submodule(name).weight
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(0.4 * rng.normal(size=parameter.shape) + (parameter.ndim == 1)))
            weights[ours] = parameter.detach().numpy().T
        shape = {"n_heads": 6, "n_kv_heads": 3, "layout": "split", "eps": 1e-5, "rope_base": 500.0}
        layers.append(DecoderLayer(**weights, **shape))

    x, valid = rng.normal(size=(2, 17, 42)), np.ones((2, 17), bool)
    valid[1, :4] = False
    caches, past = [KVCache() for _ in layers], transformers.DynamicCache()
    for start, stop in [(0, 7), *((t, t + 1) for t in range(7, 17))]:
        ours = stack_step(layers, x[:, start:stop], caches, valid=valid[:, start:stop])
        with torch.no_grad():
            wanted = theirs(
                inputs_embeds=torch.from_numpy(x[:, start:stop]),
                attention_mask=torch.from_numpy(valid[:, :stop]).long(),
                position_ids=torch.from_numpy(caches[0].positions[:, start:stop].copy()).long(),
                past_key_values=past,
            ).last_hidden_state.numpy()
        real = valid[:, start:stop]
        # transformers' tables of sines are float32, hence the tolerance
        np.testing.assert_allclose(ours[real], wanted[real], rtol=0, atol=5e-6 * np.abs(wanted[real]).max())
    assert past.get_seq_length() == len(caches[0]) == 17
    keys = past.layers[1].keys.numpy()[:, :, 4:]
    np.testing.assert_allclose(caches[1].keys[:, :, 4:], keys, rtol=0, atol=1e-5 * np.abs(keys).max())
