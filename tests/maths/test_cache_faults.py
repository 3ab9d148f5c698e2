import numpy as np
import pytest

from transformer_parts.maths import rope
from transformer_parts.maths.cache_faults import FAULTS, LONGER, Chunk, Fault, FaultyCache
from transformer_parts.maths.context_extension import dynamic_ntk

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
