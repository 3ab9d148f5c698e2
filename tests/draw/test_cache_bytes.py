"""cache_bytes: the lines are the data, and the marks stand on them."""

import numpy as np
import pytest

from transformer_parts.draw.cache_bytes import CacheBytes, CacheBytesView

TOKENS = np.array([1, 16, 256])
PER_TOKEN = {8: 800, 2: 200, 1: 100}
DATA = CacheBytes(
    n_layers=3,
    n_heads=8,
    n_kv_heads=2,
    head_dim=4,
    value_bytes=2,
    tokens=TOKENS,
    curves={heads: TOKENS * float(size) for heads, size in PER_TOKEN.items()},
    length=16,
    held={heads: 16 * size for heads, size in PER_TOKEN.items()},
    per_token=PER_TOKEN,
    memory=750,
    fits={8: 0, 2: 3, 1: 7},
)
NAMES = {"all": 8, "chosen": 2, "one": 1}


@pytest.fixture
def view():
    return CacheBytesView(scale=1).update(DATA)


def test_lines_and_marks_are_the_data(view):
    for name, heads in NAMES.items():
        np.testing.assert_array_equal(view.lines[name].get_xydata(), [*zip(TOKENS, DATA.curves[heads], strict=True)])
        np.testing.assert_array_equal(view.marks[name].get_xydata(), [(16, DATA.held[heads])])
    assert len(set(view.looks.values())) == len(view.lines) == 3
    assert list(view.place.get_xdata()) == [16, 16]


def test_memory_is_a_level_line_with_a_dot_where_it_is_full(view):
    assert list(view.memory.get_ydata()) == [750, 750]
    # what holds not one token has no place on a logarithmic scale
    assert sorted(map(tuple, view.full.get_xydata())) == [(3, 750), (7, 750)]
