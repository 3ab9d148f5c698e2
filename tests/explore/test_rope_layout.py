"""The explorers of notebook 06: worked numbers on the page, and every wrong state says that it is wrong."""

import re

import numpy as np
import pytest

from transformer_parts.explore.rope_layout import RopeLayoutHeads, RopeLayouts
from transformer_parts.maths import rope_layout


def shown(panel, label: str) -> str:
    """The value of a row of the table, as it stands on the page."""
    cells = dict(re.findall(r"<th[^>]*>(?:<span[^>]*></span>)?(.*?)</th><td>(.*?)</td>", panel.readout.value))
    (found,) = [value for name, value in cells.items() if label in name]
    return found


@pytest.fixture
def layouts():
    return RopeLayouts()


@pytest.fixture(scope="module")
def heads():
    return RopeLayoutHeads()


# ---------------------------------------------------------------- one head


@pytest.mark.parametrize(
    ("preset", "fitting", "numbers"),
    [
        ("By hand: head_dim 4", "0 of 2", ("2.501254", "5.331144", "2.829890")),
        ("Wrong layout", "0 of 8", None),
        ("Permuted the wrong way", "0 of 8", None),
        ("Partial: 8 of 16", "0 of 4", None),
        ("Rows permuted", "8 of 8", None),
    ],
)
def test_presets(layouts, preset, fitting, numbers):
    layouts.set(**layouts.presets[preset])
    assert shown(layouts, "pairs that fit") == fitting
    largest = float(shown(layouts, "largest difference"))
    if preset == "Rows permuted":
        assert shown(layouts, "difference ŝ") == shown(layouts, "largest difference") == "0.000000"
        assert shown(layouts, "correlation") == "1.000"
    else:
        assert largest > 1
        assert float(shown(layouts, "correlation")) < 1
    if numbers:
        assert tuple(shown(layouts, label) for label in ("as trained", "as the code reads", "difference ŝ")) == numbers


@pytest.mark.parametrize(
    ("layout", "rows", "right"),
    [
        ("interleaved", "as trained", True),
        ("split", "split", True),
        ("split", "as trained", False),
        ("interleaved", "split", False),
        ("interleaved", "interleaved", False),
        ("split", "interleaved", False),
    ],
)
@pytest.mark.parametrize("rotary_dim", [6, 16])
def test_only_rows_that_fit_the_code_are_right(layouts, layout, rows, right, rotary_dim):
    layouts.set(layout=layout, rows=rows, rotary_dim=rotary_dim)
    data = layouts.compute(**layouts.state)
    assert (np.abs(data.difference).max() == 0) == right
    assert (shown(layouts, "largest difference") == "0.000000") == right
    pairs = rotary_dim // 2
    assert (shown(layouts, "pairs that fit") == f"{pairs} of {pairs}") == right
    assert np.array_equal(data.order, data.needed) == right


def test_offset_0_is_right_in_every_state(layouts):
    for preset in layouts.presets.values():
        layouts.set(**preset)
        layouts.set(offset=0)
        assert abs(layouts.compute(**layouts.state).marked[2]) < 1e-14
        assert shown(layouts, "correlation") == "1.000"


def test_rotary_dim_follows_a_whole_head_and_stays_when_partial(layouts):
    layouts.controls["head_dim"].value = 64
    assert layouts.state["rotary_dim"] == 64
    layouts.controls["rotary_dim"].value = 20
    layouts.controls["head_dim"].value = 40
    assert layouts.state["rotary_dim"] == 20
    layouts.controls["head_dim"].value = 12
    assert layouts.state["rotary_dim"] == 12
    assert layouts.error is None


def test_arcs_of_training_follow_the_rows(layouts):
    layouts.set(rows="split")
    data = layouts.compute(**layouts.state)
    np.testing.assert_array_equal(data.order[data.trained], rope_layout.pair_indices(16))
    assert shown(layouts, "channels, row by row") == "0 2 4 6 8 10 12 14 1 3 5 7 9 11 13 15"


# ---------------------------------------------------------------- real heads


@pytest.mark.parametrize(
    ("preset", "trained", "read", "moved"),
    [
        ("Previous token: 16, 0", "40 “ had”, weight 0.743", "0 “The”, weight 0.860", 0.789),
        ("Induction: 17, 4", "11 “ four”, weight 0.994", "11 “ four”, weight 0.900", 0.102),
        ("The first token", "0 “The”, weight 1.000", "0 “The”, weight 1.000", 0.789),
    ],
)
def test_presets_of_the_heads(heads, preset, trained, read, moved):
    heads.set(**heads.presets[preset])
    assert shown(heads, "as trained") == trained
    assert shown(heads, "as read") == read
    assert float(shown(heads, "mean over the passage")) == moved


def test_first_token_cannot_be_moved_and_offset_0_is_exact(heads):
    for layer in heads.excerpt.qk_layers:
        for head in range(heads.excerpt.n_heads):
            data = heads.compute(layer=layer, head=head, query=0)
            assert data.moved[0] == 0
            assert data.rms[0] < 1e-12
            assert data.rms[1:].max() > 0.1
            np.testing.assert_allclose(data.right.sum(-1), 1)
            np.testing.assert_allclose(data.read.sum(-1), 1)


def test_previous_token_head_loses_its_peak(heads):
    data = heads.compute(layer=16, head=0, query=41)
    before, after = (np.diagonal(weights, -1)[1:].mean() for weights in (data.right, data.read))
    assert before > 0.7
    assert after < 0.02
