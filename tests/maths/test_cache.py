import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_parts.maths import rope
from transformer_parts.maths.budget import DecoderConfig
from transformer_parts.maths.budget_cost import kv_cache_bytes
from transformer_parts.maths.cache import KVCache


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
