import dataclasses
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths import rope
from transformer_parts.maths.attention import attention_weights
from transformer_parts.maths.budget import DecoderConfig, kv_cache_bytes
from transformer_parts.maths.cache import (
    FAULTS,
    LONGER,
    Chunk,
    Fault,
    FaultyCache,
    KVCache,
    decode,
    head_run,
    head_whole,
    layer_step,
    misplaced,
    position_ids,
    stack_step,
    whole,
)
from transformer_parts.maths.context_extension import dynamic_ntk
from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.maths.decoder.steps import recorder


def entries(rng, length, *, lead=(2,), groups=3, width=10, value_width=14, dtype=np.float64):
    """Return a key and a value for so many tokens, of prime and unlike sizes."""
    key = rng.normal(size=(*lead, groups, length, width))
    return key.astype(dtype), rng.normal(size=(*lead, groups, length, value_width)).astype(dtype)


def filled(rng, length, **settings):
    cache = KVCache(**settings)
    cache.append(*entries(rng, length), np.arange(length))
    return cache


def everything(cache):
    """What a cache holds, as copies."""
    if not len(cache):
        return 0, cache.next_position.tolist()
    parts = (cache.keys, cache.values, cache.positions, cache.valid, cache.next_position)
    return len(cache), [part.tolist() for part in parts]


@settings(deadline=None, max_examples=40)
@given(chunks=st.lists(st.integers(1, 9), min_size=1, max_size=8), capacity=st.integers(1, 20))
def test_what_was_appended_is_there_in_order(chunks, capacity):
    rng = np.random.default_rng(5)
    key, value = entries(rng, sum(chunks))
    positions = np.cumsum(rng.integers(1, 4, size=(2, sum(chunks))), axis=-1)
    cache, start = KVCache(capacity=capacity), 0
    for chunk in chunks:
        part = slice(start, start + chunk)
        cache.append(key[..., part, :], value[..., part, :], positions[:, part])
        start += chunk
    np.testing.assert_array_equal(cache.keys, key)
    np.testing.assert_array_equal(cache.values, value)
    np.testing.assert_array_equal(cache.positions, positions)
    np.testing.assert_array_equal(cache.next_position, positions[:, -1] + 1)
    assert cache.valid.all()
    assert len(cache) == sum(chunks)
    assert cache.capacity <= max(capacity, 2 * len(cache))


def test_a_step_copies_no_more_than_its_own_token(rng):
    cache, moved, room = KVCache(capacity=4), 0, 4
    for step in range(257):
        before = cache.keys if step else None
        cache.append(*entries(rng, 1), [step])
        if step and not np.shares_memory(before, cache.keys):
            moved, room = moved + step, 2 * room
        assert cache.capacity == room
    # each of the doublings 4 → 512 moved what there was
    assert moved == 4 + 8 + 16 + 32 + 64 + 128 + 256
    assert moved < 2 * len(cache)


def test_the_reserve_is_no_more_than_was_allowed(rng):
    cache = KVCache(capacity=3, max_tokens=7)
    for step in range(7):
        cache.append(*entries(rng, 1), [step])
    assert cache.capacity == 7
    kept = everything(cache)
    with pytest.raises(ValueError, match=r"^key: got 8 tokens in all, want at most max_tokens, 7"):
        cache.append(*entries(rng, 1), [7])
    assert everything(cache) == kept


def test_views_cannot_be_written_to(rng):
    cache = filled(rng, 3)
    for name in ("keys", "values", "positions", "valid"):
        view = getattr(cache, name)
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0
    # turning the cached keys in place, and so twice, is what that prevents
    with pytest.raises(ValueError, match="read-only"):
        np.multiply(cache.keys, 2, out=cache.keys)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_the_dtype_is_kept(rng, dtype):
    cache = KVCache()
    key, value = entries(rng, 5, dtype=dtype)
    cache.append(key, value, np.arange(5))
    assert cache.keys.dtype == cache.values.dtype == dtype
    np.testing.assert_array_equal(cache.keys, key)


def test_a_narrower_store_rounds_once_and_refuses_what_overflows(rng):
    cache = KVCache(dtype=np.float16)
    key, value = entries(rng, 5)
    cache.append(key, value, np.arange(5))
    np.testing.assert_array_equal(cache.keys, key.astype(np.float16))
    with pytest.raises(ValueError, match=r"^value: got 1000000.0, want numbers within float16"):
        cache.append(key[..., :1, :], np.full_like(value[..., :1, :], 1e6), [5])
    assert len(cache) == 5


@pytest.mark.parametrize(("dtype", "size"), [(np.float16, 2), (np.float32, 4), (np.float64, 8)])
def test_bytes_are_those_of_the_formula(rng, dtype, size):
    config = DecoderConfig(d_model=70, n_layers=5, n_heads=7, n_kv_heads=7, d_ff=11, vocab_size=0, head_dim=10)
    caches = [KVCache() for _ in range(config.n_layers)]
    for cache in caches:
        cache.append(*entries(rng, 13, lead=(), groups=7, value_width=10, dtype=dtype), np.arange(13))
    assert sum(cache.nbytes for cache in caches) == kv_cache_bytes(config, 13, size)
    assert kv_cache_bytes(config, 1, size) == 2 * 5 * 7 * 10 * size
    assert KVCache().nbytes == 0


def test_the_next_position_goes_on_where_each_row_stands(rng):
    cache = KVCache()
    assert cache.next_position == 0
    valid = np.array([[False, False, True, True], [True, True, True, True]])
    cache.append(*entries(rng, 4), [[0, 0, 0, 1], [0, 1, 2, 3]], valid=valid)
    np.testing.assert_array_equal(cache.next_position, [2, 4])
    np.testing.assert_array_equal(cache.valid, valid)
    cache.append(*entries(rng, 1), [[2], [4]])
    np.testing.assert_array_equal(cache.next_position, [3, 5])
    only_padding = KVCache()
    only_padding.append(*entries(rng, 2), [0, 0], valid=[False, False])
    np.testing.assert_array_equal(only_padding.next_position, [0, 0])


def test_tokens_are_forgotten_from_the_end(rng):
    cache = filled(rng, 6)
    six = everything(cache)
    cache.append(*entries(rng, 3), [6, 7, 8])
    cache.truncate(6)
    assert everything(cache) == six
    valid = np.array([[True], [False]])
    cache.append(*entries(rng, 1), [[9], [9]], valid=valid)
    np.testing.assert_array_equal(cache.next_position, [10, 6])
    cache.append(*entries(rng, 1), [[10], [6]])
    cache.truncate(7)
    np.testing.assert_array_equal(cache.next_position, [10, 6])
    cache.truncate(0)
    assert (len(cache), cache.next_position, cache.nbytes, cache.capacity) == (0, 0, 0, 16)
    # an empty cache takes any sizes and dtypes
    cache.append(*entries(rng, 2, lead=(), groups=1, width=4, dtype=np.float32), [0, 1])
    assert cache.keys.shape == (1, 2, 4)
    with pytest.raises(ValueError, match=r"^length: got 3"):
        cache.truncate(3)


def test_unrotated_keys_are_turned_by_the_frequencies_of_the_moment(rng):
    cache = KVCache(rotated=False)
    key, value = entries(rng, 5)
    positions = np.array([[0, 1, 2, 5, 6], [3, 4, 5, 6, 7]])
    cache.append(key, value, positions)
    np.testing.assert_array_equal(cache.keys, key)
    for base in (10000.0, 50.0):
        turned = cache.turned_keys(rope_base=base)
        for b, g, s, i in np.ndindex(2, 3, 5, 5):
            angle = positions[b, s] * base ** (-2 * i / 10)
            a, c = key[b, g, s, 2 * i : 2 * i + 2]
            wanted = (a * math.cos(angle) - c * math.sin(angle), a * math.sin(angle) + c * math.cos(angle))
            np.testing.assert_allclose(turned[b, g, s, 2 * i : 2 * i + 2], wanted, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(
        cache.turned_keys(layout="split", rotary_dim=4),
        rope.rotate(key, positions[:, None], layout="split", rotary_dim=4),
    )
    np.testing.assert_array_equal(cache.keys, key)


def test_rotated_keys_are_not_turned_again(rng):
    with pytest.raises(ValueError, match=r"^turned_keys: got a cache of rotated keys, want one made with rotated=Fa"):
        filled(rng, 2).turned_keys()


def test_order_is_held_where_it_is_meant(rng):
    for positions in ([0, 1, 1], [0, 2, 1], [4, 5, 6]):
        cache = filled(rng, 5)
        kept = everything(cache)
        with pytest.raises(ValueError, match=r"^positions: got .* after .*, want positions that rise"):
            cache.append(*entries(rng, 3), positions)
        assert everything(cache) == kept
        free = filled(rng, 5, ordered=False)
        free.append(*entries(rng, 3), positions)
        np.testing.assert_array_equal(free.positions[0, 5:], positions)
    # one row of two is enough
    with pytest.raises(ValueError, match=r"^positions: got 4.0 after 4.0"):
        filled(rng, 5).append(*entries(rng, 1), [[5], [4]])
    # gaps and fractions are no disorder, padding has no order
    cache = filled(rng, 5)
    cache.append(*entries(rng, 3), [4.5, 5.0, 9.0])
    cache.append(*entries(rng, 2), [0, 10], valid=[False, True])


BAD = [
    ("key", {"key": np.ones((2, 3, 1, 9))}),
    ("key", {"key": np.ones((2, 2, 1, 10)), "value": np.ones((2, 2, 1, 14))}),
    ("key", {"key": np.ones((3, 3, 1, 10)), "value": np.ones((3, 3, 1, 14))}),
    ("key", {"key": np.ones((3, 1, 10)), "value": np.ones((3, 1, 14))}),
    ("key", {"key": np.full((2, 3, 1, 10), np.nan)}),
    ("key", {"key": np.ones((2, 3, 1, 10), np.float32), "value": np.ones((2, 3, 1, 14), np.float32)}),
    ("key", {"key": np.ones((2, 3, 0, 10)), "value": np.ones((2, 3, 0, 14))}),
    ("key", {"key": "keys"}),
    ("value", {"value": np.ones((2, 3, 2, 14))}),
    ("value", {"value": np.ones((2, 1, 1, 14))}),
    ("value", {"value": np.ones((2, 3, 1, 10))}),
    ("value", {"value": np.full((2, 3, 1, 14), np.inf)}),
    ("value", {"value": np.ones((2, 3, 1, 14), np.float32)}),
    ("positions", {"positions": [5, 6]}),
    ("positions", {"positions": 5}),
    ("positions", {"positions": [[5], [5], [5]]}),
    ("positions", {"positions": [np.nan]}),
    ("positions", {"positions": [4]}),
    ("positions", {"positions": ["five"]}),
    ("valid", {"valid": [1]}),
    ("valid", {"valid": [True, True]}),
    ("valid", {"valid": [[True]] * 3}),
]


@pytest.mark.parametrize(("name", "changed"), BAD, ids=range(len(BAD)))
def test_what_does_not_fit_is_refused_and_nothing_is_changed(rng, name, changed):
    good = {"key": np.ones((2, 3, 1, 10)), "value": np.ones((2, 3, 1, 14)), "positions": [5], "valid": [True]}
    cache = filled(rng, 5)
    kept = everything(cache)
    with pytest.raises(ValueError, match=f"^{name}: got "):
        cache.append(**(good | changed))
    assert everything(cache) == kept
    cache.append(**good)
    assert len(cache) == 6


def test_the_first_tokens_must_fit_each_other(rng):
    cache = KVCache()
    with pytest.raises(ValueError, match=r"^value: got float32, want float64, as the first key"):
        cache.append(np.ones((1, 2, 4)), np.ones((1, 2, 4), np.float32), [0, 1])
    with pytest.raises(ValueError, match=r"^positions: got 0.0 after 1.0"):
        cache.append(np.ones((1, 2, 4)), np.ones((1, 2, 4)), [1, 0])
    assert len(cache) == 0
    for name in ("keys", "values", "positions", "valid"):
        with pytest.raises(ValueError, match=f"^{name}: got an empty cache"):
            getattr(cache, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rotated", 1),
        ("ordered", "yes"),
        ("capacity", 0),
        ("capacity", 9),
        ("max_tokens", 0),
        ("max_tokens", 2.5),
        ("dtype", np.int8),
    ],
)
def test_bad_settings_are_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name}: got "):
        KVCache(**({"capacity": 8, "max_tokens": 8} | {name: value}))


def test_it_says_what_it_holds(rng):
    assert repr(KVCache()) == "KVCache(empty)"
    assert repr(filled(rng, 4)) == "KVCache(rotated keys (2, 3, 4, 10), float64)"
    assert repr(filled(rng, 4, rotated=False)).startswith("KVCache(unrotated keys")


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
    cache, steps = KVCache(rotated=rotated), []
    layer_step(layer, x[:6], cache)
    layer_step(layer, x[6:], cache, note=recorder(steps, layer.weights, layer.config))
    noted = {step.name: step.value for step in steps}
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


BAD_of_cache_decoding = [
    ("x", {"x": np.ones((2, 1, 12))}),
    ("x", {"x": np.ones(13)}),
    ("x", {"x": np.full((2, 1, 13), np.nan)}),
    ("x's leading axes", {"x": np.ones((3, 1, 13))}),
    ("x, positions", {"x": np.ones((3, 1, 13)), "positions": [5]}),
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


@pytest.mark.parametrize(("name", "changed"), BAD_of_cache_decoding, ids=range(len(BAD_of_cache_decoding)))
def test_what_does_not_fit_is_refused_and_nothing_is_changed_cache_decoding(rng, name, changed):
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
    with pytest.raises(ValueError, match=r"^x: got .* key: got 6 tokens in all, want at most max_tokens, 5"):
        stack_step(layers, x[5:], caches)
    assert [len(cache) for cache in caches] == [5, 5, 5]
    # attention that overflows fails after its own cache has taken the token
    fierce = dataclasses.replace(layers[0], w_q=layers[0].w_q * 1e160, w_k=layers[0].w_k * 1e160)
    cache = KVCache()
    with pytest.raises(ValueError, match="range of float64"):
        layer_step(fierce, x, cache)
    assert len(cache) == 0


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


PROMPT = Chunk(start=0, length=7, pad=2, layer=0, n_kv_heads=3)
TOKEN = Chunk(start=9, length=1, pad=2, layer=0, n_kv_heads=3)


@pytest.mark.parametrize(
    ("fault", "prompt", "token"),
    [
        ("none", [0, 0, 0, 1, 2, 3, 4], [7]),
        ("restart", [0, 0, 0, 1, 2, 3, 4], [0]),
        ("off by one", [0, 0, 0, 1, 2, 3, 4], [8]),
        ("head axis", [0, 0, 0, 1, 2, 3, 4], [3]),
        ("padding counted", [0, 1, 2, 3, 4, 5, 6], [9]),
        ("padding counted once decoding", [0, 0, 0, 1, 2, 3, 4], [9]),
    ],
)
def test_tokens_are_placed_as_the_fault_says(fault, prompt, token):
    assert FAULTS[fault].place(PROMPT).tolist() == prompt
    assert FAULTS[fault].place(TOKEN).tolist() == token


def test_a_later_layer_reads_a_length_that_has_grown():
    place = FAULTS["per layer"].place
    assert place(PROMPT).tolist() == PROMPT.right.tolist()
    assert place(PROMPT._replace(layer=1)).tolist() == [7, 7, 7, 8, 9, 10, 11]
    assert place(TOKEN._replace(layer=2)).tolist() == [8]


def heads(rng, length):
    return rng.normal(size=(6, length, 4)), rng.normal(size=(3, length, 4)), rng.normal(size=(3, length, 5))


@pytest.mark.parametrize("fault", [name for name, fault in FAULTS.items() if fault.scaling == "none"])
def test_keys_and_query_stand_where_they_are_placed(rng, fault):
    cache = FaultyCache(FAULTS[fault], pad=2, layer=1, settings={"rope_base": 50.0})
    query, key, value = heads(rng, 12)
    placed = []
    for start, stop in [(0, 9), (9, 10), (10, 11), (11, 12)]:
        part = slice(start, stop)
        turned, keys, values, mask = cache.take(query[:, part], key[:, part], value[:, part])
        placed = [*placed, *FAULTS[fault].place(Chunk(start, stop - start, 2, 1, 3)).tolist()]
        np.testing.assert_array_equal(values, value[:, :stop])
        np.testing.assert_allclose(turned, rope.rotate(query[:, part], placed[start:], rope_base=50.0), atol=1e-14)
        # turned once when it came, and with the fault once more at every step since
        turns = [1 + FAULTS[fault].again * (stop - max(9, slot + 1)) for slot in range(stop)]
        wanted = rope.rotate(key[:, :stop], np.multiply(placed, turns), rope_base=50.0)
        np.testing.assert_allclose(keys, wanted, atol=1e-13)
        allowed = [
            [j <= i and (j >= 2 or j == i or fault == "padding seen") for j in range(stop)] for i in range(start, stop)
        ]
        np.testing.assert_array_equal(mask, allowed)


def test_the_frequencies_follow_the_fault(rng):
    query, key, value = heads(rng, 9)
    first, second, now, left = (dynamic_ntk(4, n, 6, rope_base=50.0).inv_freq for n in (7, 8, 9, LONGER * 6))
    assert now[-1] < second[-1] < first[-1] < rope.inv_freq(4, 50.0)[-1]
    for fault, frequencies in {
        "base changed, rotated keys": [first, second, now],
        "base changed, unrotated keys": [now, now, now],
        "base not restored": [left, left, left],
    }.items():
        cache = FaultyCache(FAULTS[fault], trained_length=6, settings={"rope_base": 50.0})
        for start, stop in [(0, 7), (7, 8), (8, 9)]:
            part = slice(start, stop)
            turned, keys, _, _ = cache.take(query[:, part], key[:, part], value[:, part])
        np.testing.assert_allclose(turned, rope.rotate(query[:, 8:], [8], inv_freq=frequencies[2]), atol=1e-14)
        for slots, each in zip((slice(0, 7), slice(7, 8), slice(8, 9)), frequencies, strict=True):
            wanted = rope.rotate(key[:, slots], np.arange(9)[slots], inv_freq=each)
            np.testing.assert_allclose(keys[:, slots], wanted, atol=1e-14)


def test_frequencies_below_the_trained_length_are_the_trained_ones():
    for fault in FAULTS.values():
        turn = fault.turn(5, 6, 4, {"rope_base": 50.0})
        if fault.scaling != "left over":
            np.testing.assert_array_equal(turn["inv_freq"], rope.inv_freq(4, 50.0))
        assert turn["rope_base"] == 50.0
    own = FAULTS["none"].turn(12, 6, 4, {"inv_freq": [2.0, 0.5]})
    np.testing.assert_array_equal(own["inv_freq"], [2.0, 0.5])
    partial = FAULTS["base changed, rotated keys"].turn(12, 6, 10, {"rope_base": 50.0, "rotary_dim": 4})
    np.testing.assert_array_equal(partial["inv_freq"], dynamic_ntk(4, 12, 6, rope_base=50.0).inv_freq)


def test_the_default_is_the_right_way():
    assert FAULTS["none"].place(TOKEN).tolist() == Fault().place(TOKEN).tolist() == [7]
    assert sum(fault == Fault(place=fault.place) for fault in FAULTS.values()) == 7


EXACT_of_cache_fault_heads = 1e-12
HARMLESS = (
    "none",
    "padding seen",
    "padding counted",
    "padding counted once decoding",
    "base changed, unrotated keys",
)
SETTINGS = ({"rope_base": 50.0, "layout": "split"}, {"rope_base": 50.0, "layout": "interleaved"})


def by_formula(query, key, length, base, layout):
    """Weights of the last of so many tokens, all turned by one base."""
    turned = [
        rope.rotate(part[None, :length], np.arange(length), inv_freq=base, layout=layout) for part in (query, key)
    ]
    return attention_weights(*turned, causal=True)[0, -1]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("trained_length", [None, 3, 8, 20])
def test_the_right_answer_is_attention_over_every_length(rng, settings, trained_length):
    query, key = rng.normal(size=(2, 11, 6))
    glances = head_whole(query, key, 5, trained_length=trained_length, settings=settings)
    assert len(glances) == 7
    for length, glance in enumerate(glances, start=5):
        base = rope.inv_freq(6, 50.0)
        if trained_length is not None:
            base = dynamic_ntk(6, length, trained_length, rope_base=50.0).inv_freq
        wanted = by_formula(query, key, length, base, settings["layout"])
        np.testing.assert_allclose(glance.weights[0], wanted, rtol=0, atol=EXACT_of_cache_fault_heads)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_but_the_harmless_misplaces_attention(rng, fault, settings):
    query, key = rng.normal(size=(2, 13, 6))
    run = head_run(query, key, 7, fault, trained_length=8, settings=settings)
    right = head_whole(query, key, 7, trained_length=8 if FAULTS[fault].dynamic else None, settings=settings)
    shares = [misplaced(glance.weights, wanted.weights)[0] for glance, wanted in zip(run, right, strict=True)]
    if fault in HARMLESS:
        assert max(shares) < EXACT_of_cache_fault_heads
    else:
        assert max(shares) > 1e-3
    for length, glance in enumerate(run, start=7):
        assert (glance.query.shape, glance.keys.shape) == ((1, 6), (1, length, 6))
        logits = glance.keys[0] @ glance.query[0] / 6**0.5
        np.testing.assert_allclose(glance.weights[0], np.exp(logits) / np.exp(logits).sum(), atol=1e-14)


def test_a_head_after_the_first_layer_sees_the_grown_length(rng):
    # the prompt is moved by its length, a decoded token by 1: all offsets to the prompt are too small by 6
    query, key = rng.normal(size=(2, 9, 6))
    glance = head_run(query, key, 7, "per layer")[-1]
    wanted = rope.rotate(key, [7, 8, 9, 10, 11, 12, 13, 8, 9])
    np.testing.assert_allclose(glance.keys[0], wanted, atol=1e-14)


def test_the_misplaced_share_is_a_distance_of_two_rows_of_weights(rng):
    one, other = rng.dirichlet(np.ones(7), size=(2, 3, 5))
    wanted = np.zeros((3, 5))
    for i, j, token in np.ndindex(3, 5, 7):
        wanted[i, j] += max(one[i, j, token] - other[i, j, token], 0)
    np.testing.assert_allclose(misplaced(one, other), wanted, atol=1e-15)
    assert misplaced(one, one).max() == 0
    assert misplaced(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("query", (np.ones(4), np.ones((3, 4)), 2)),
        ("query", (np.ones((1, 3, 4)), np.ones((3, 4)), 2)),
        ("key", (np.ones((3, 4)), np.ones((3, 6)), 2)),
        ("key", (np.ones((3, 4)), np.full((3, 4), np.nan), 2)),
        ("prompt", (np.ones((3, 4)), np.ones((3, 4)), 4)),
        ("prompt", (np.ones((3, 4)), np.ones((3, 4)), 0)),
    ],
)
def test_bad_input_is_refused(name, arguments):
    for function in (head_run, head_whole):
        with pytest.raises(ValueError, match=f"^{name}: got "):
            function(*arguments)
    with pytest.raises(ValueError, match=r"^fault: got 'of mine', want one of 'none', "):
        head_run(np.ones((3, 4)), np.ones((3, 4)), 2, "of mine")
    for function in (head_run, head_whole):
        with pytest.raises(ValueError, match=r"^trained_length: got 0"):
            function(np.ones((3, 4)), np.ones((3, 4)), 2, trained_length=0)


EXACT_of_cache_fault_runs = 1e-12


def errors(rng, fault, *, layers=3, prompt=7, pad=3, trained_length=9, steps=6, **settings):
    stack, x = a_stack(layers, **settings), rng.normal(size=(pad + prompt + steps, 13))
    dynamic = trained_length if FAULTS[fault].dynamic else None
    right = whole(stack, x, prompt, pad=pad, trained_length=dynamic)
    return decode(stack, x, prompt, fault, pad=pad, trained_length=trained_length).errors(right)


@pytest.mark.parametrize("layout", ["interleaved", "split"])
def test_the_right_way_is_that_of_the_library(rng, layout):
    stack, x = a_stack(layout=layout), rng.normal(size=(14, 13))
    caches = [KVCache() for _ in stack]
    chunks = [x[:7], *x[7:, None]]
    valid = [np.arange(7) >= 3, *[np.array([True])] * 7]
    wanted = [stack_step(stack, chunk, caches, valid=v)[-1] for chunk, v in zip(chunks, valid, strict=True)]
    run = decode(stack, x, 4, pad=3, layer=2)
    np.testing.assert_allclose(run.outputs, wanted, rtol=0, atol=EXACT_of_cache_fault_runs)
    np.testing.assert_allclose(
        run.glances[-1].keys[:, 3:], caches[2].keys[:, 3:], rtol=0, atol=EXACT_of_cache_fault_runs
    )


def test_the_right_answer_is_a_pass_of_the_layers(rng):
    stack, x = a_stack(), rng.normal(size=(12, 13))
    run = whole(stack, x, 5, pad=2, layer=1)
    stream = stack[0](x[2:])
    steps = {step.name: step.value for step in stack[1].trace(stream)}
    np.testing.assert_array_equal(run.outputs, stack[2](stack[1](stream))[4:])
    for t, glance in enumerate(run.glances, start=4):
        np.testing.assert_array_equal(glance.query, steps["q_rotated"][:, t])
        np.testing.assert_array_equal(glance.keys, steps["k_rotated"][:, : t + 1])
        np.testing.assert_array_equal(glance.weights, steps["weights"][:, t, : t + 1])


def test_with_a_base_that_follows_the_length_every_length_is_a_pass(rng):
    stack, x = a_stack(), rng.normal(size=(12, 13))
    run = whole(stack, x, 5, trained_length=8)
    for output, length in zip(run.outputs, range(5, 13), strict=True):
        now = dynamic_ntk(10, length, 8).inv_freq
        stream = x[:length]
        for layer in stack:
            stream = dataclasses.replace(layer, inv_freq=now)(stream)
        np.testing.assert_allclose(output, stream[-1], rtol=0, atol=EXACT_of_cache_fault_runs)
    np.testing.assert_array_equal(whole(stack, x, 5, trained_length=12).outputs, whole(stack, x, 5).outputs)
    assert whole(stack, x, 5, trained_length=2).outputs.shape == (8, 13)


@pytest.mark.parametrize("fault", ["restart", "off by one", "head axis", "rotated again", "per layer"])
def test_these_show_at_the_first_decoded_token_and_not_before(rng, fault):
    made = errors(rng, fault)
    assert made[0] < EXACT_of_cache_fault_runs
    assert (made[1:] > 0.01).all()


def test_padding_that_is_seen_is_wrong_from_the_prompt_on(rng):
    assert (errors(rng, "padding seen") > 0.01).all()
    assert (errors(rng, "padding seen", pad=0) < EXACT_of_cache_fault_runs).all()


def test_padding_that_is_counted_is_wrong_only_where_it_is_not_counted_everywhere(rng):
    assert (errors(rng, "padding counted") < EXACT_of_cache_fault_runs).all()
    made = errors(rng, "padding counted once decoding")
    assert made[0] < EXACT_of_cache_fault_runs
    assert (made[1:] > 0.01).all()
    assert (errors(rng, "padding counted once decoding", pad=0) < EXACT_of_cache_fault_runs).all()


def test_one_layer_has_no_other_layer_to_disagree_with(rng):
    assert (errors(rng, "per layer", layers=1) < EXACT_of_cache_fault_runs).all()


def test_a_base_that_changes_is_exact_only_with_unrotated_keys_and_in_one_layer(rng):
    # lengths 7 … 13, trained 9: the base changes from the third further token on
    for fault, layers, exact in (
        ("base changed, rotated keys", 1, False),
        ("base changed, unrotated keys", 1, True),
        ("base changed, rotated keys", 3, False),
        ("base changed, unrotated keys", 3, False),
    ):
        made = errors(rng, fault, layers=layers, rope_base=50.0)
        assert (made[:3] < EXACT_of_cache_fault_runs).all()
        assert (made[3:] < EXACT_of_cache_fault_runs).all() == exact
        assert exact or made[3:].max() > 1e-3


def test_a_base_that_is_not_restored_is_wrong_for_a_short_text(rng):
    assert (errors(rng, "base not restored", steps=1, rope_base=50.0) > 1e-3).all()


def test_a_prompt_of_one_token_hides_what_moves_all_tokens_alike(rng):
    # Token 0 at 0 and every later token one place too far: all offsets among the later ones are right.
    stack, x = a_stack(1), rng.normal(size=(6, 13))
    glance = decode(stack, x, 1, "off by one").glances[-1]
    right = whole(stack, x, 1).glances[-1]
    scores, wanted = (np.einsum("gk,gsk->gs", g.query[::2], g.keys) for g in (glance, right))
    np.testing.assert_allclose(scores[:, 1:], wanted[:, 1:], atol=EXACT_of_cache_fault_runs)
    assert np.abs(scores[:, 0] - wanted[:, 0]).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("fault", {"fault": "of mine"}),
        ("x", {"x": np.ones((2, 9, 13))}),
        ("x", {"x": np.full((9, 13), np.nan)}),
        ("prompt", {"prompt": 0}),
        ("prompt", {"prompt": 8}),
        ("pad", {"pad": -1}),
        ("pad", {"pad": 9}),
        ("layer", {"layer": 3}),
        ("layers", {"layers": []}),
        ("trained_length", {"trained_length": 0}),
    ],
)
def test_bad_input_is_refused_cache_fault_runs(name, changed):
    given = {"layers": a_stack(), "x": np.ones((9, 13)), "prompt": 5, "fault": "none", "pad": 2, "layer": 0}
    with pytest.raises(ValueError, match=f"^{name}: got "):
        decode(**(given | changed))
    given.pop("fault")
    if name != "fault":
        with pytest.raises(ValueError, match=f"^{name}: got "):
            whole(**(given | changed))
