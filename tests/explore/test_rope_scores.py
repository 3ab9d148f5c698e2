"""The explorers of notebook 05: worked numbers on the screen, and content of many kinds over the offset."""

import numpy as np
import pytest
from panel_table import after

from transformer_parts.draw.artists import window_of
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.rope_scores import COLUMNS, MEAN, RopeHeads, RopeScores, RopeSpectrum
from transformer_parts.maths import attention, rope
from transformer_parts.models.excerpt import load_excerpt


def shown(panel, label: str) -> str:
    """Return the value beside a label that begins so; the same text must stand on the page."""
    (value,) = [row.value for row in panel.rows(panel.compute(**panel.state)) if row.label.startswith(label)]
    assert f"<td>{value}</td>" in panel.readout.value.replace("\N{NO-BREAK SPACE}%", " %")
    return value


@pytest.fixture(scope="module")
def scores():
    return RopeScores()


@pytest.fixture(scope="module")
def heads():
    return RopeHeads()


@pytest.fixture(autouse=True)
def _at_the_start(scores, heads):
    scores.reset()
    heads.reset()


def test_all_are_in_the_catalogue():
    assert {RopeScores, RopeSpectrum, RopeHeads} <= set(PANELS)


# ---------------------------------------------------------------- made content


def test_the_hand_calculation_stands_on_the_screen(scores):
    after(scores, "By hand: m=1, n=3")
    assert shown(scores, "positions") == "1, 3"
    assert shown(scores, "score on the curve") == "2.501254"
    assert shown(scores, "score from turning") == "2.501254"
    assert shown(scores, "inner product") == "5.002509"
    assert shown(scores, "no score can exceed") == "5.0000"


def test_equal_content_is_not_monotone_on_the_screen(scores):
    after(scores, "q = k: not monotone")
    assert shown(scores, "negative at") == "840 of 8,193 offsets, 10.25 %"
    assert shown(scores, "one step further away raises it") == "3,984 of 8,192 steps, 48.63 %"
    assert shown(scores, "score on the curve, at offset 1,707") == "-0.088199"
    assert scores.state == scores.initial, "the notebook begins with this preset"


def test_random_content_does_not_decay(scores):
    after(scores, "Random: nothing decays")
    assert shown(scores, "random content here") == "0.0000 ± 1.0000"
    data = scores.compute(**scores.state)
    assert not data.mean.any()
    np.testing.assert_allclose(data.deviation, 1, rtol=1e-12)
    far = np.abs(data.envelope.middles) > 65_536
    assert data.envelope.highest[far].max() > 3
    assert data.envelope.lowest[far].min() < -3


def test_the_bound_is_far_above_everything(scores):
    after(scores, "RoFormer's bound")
    data = scores.compute(**scores.state)
    assert shown(scores, "no score can exceed") == "11.3137"
    # head_dim 128: Σ|S_j| = 1 + 2 + … + 64 = 2080, |h_i| = 2 and the last step is from 2 to 0.
    peak = 2080 * 2 / np.sqrt(128)
    assert data.bound.max() == data.bound[data.bound_offsets == 0] == pytest.approx(peak, rel=1e-12)
    assert scores.view.bound.get_ydata().max() == data.bound.max()
    assert data.bound.min() > data.largest >= data.envelope.highest.max()


@pytest.mark.parametrize("span", [64, 512, 4096, 131072])
def test_the_bound_is_drawn_at_offset_0_whatever_the_columns(scores, span):
    scores.set(bound=True, span=span, offset=0)
    data = scores.compute(**scores.state)
    assert np.count_nonzero(data.bound_offsets == 0) == 1
    assert (np.diff(data.bound_offsets) > 0).all()
    assert data.bound.max() == data.bound_here


def test_what_no_score_can_exceed_is_not_said_to_be_reached(scores):
    """For k = −q all pairs would have to stand half way round at once, which they do at none of these offsets."""
    scores.set(content="ones", similarity=-1.0, span=131072)
    assert shown(scores, "no score can exceed") == "11.3137"
    assert round(scores.compute(**scores.state).envelope.highest.max(), 2) == 3.37
    assert not any("largest score" in row.label for row in scores.rows(scores.compute(**scores.state)))


def test_a_larger_base_lifts_the_far_curve(scores):
    after(scores, "q = k, base 500,000")
    assert shown(scores, "negative at") == "0 of 8,193 offsets, 0.00 %"


@pytest.mark.parametrize("offset", [-4096, -7, 0, 5, 4096])
@pytest.mark.parametrize("content", ["ones", "random"])
def test_moving_both_moves_nothing(scores, offset, content):
    scores.set(content=content, similarity=0.4, offset=offset)
    first = scores.compute(**scores.state)
    for shift in (1, 513, 8192):
        scores.set(shift=shift)
        moved = scores.compute(**scores.state)
        assert np.array_equal(moved.wave, first.wave)
        assert min(moved.positions) == shift
        assert moved.positions[1] - moved.positions[0] == offset
        assert moved.turned_score == pytest.approx(first.score, abs=1e-9)


@pytest.mark.parametrize("span", [64, 512, 4096, 131072])
def test_no_whole_offset_is_left_out(scores, span):
    scores.set(content="random", similarity=0.0, span=span)
    data = scores.compute(**scores.state)
    query, key = scores._content("random", 128, 0.0, 0)
    every = rope.scores_by_offset(query, key, np.arange(-span, span + 1))
    assert data.envelope.lowest.min() == every.min()
    assert data.envelope.highest.max() == every.max()
    assert len(data.envelope.middles) <= COLUMNS
    width = window_of(2 * span + 1, COLUMNS)
    assert span != 131072 or width == 772, "the notebook says so"


@pytest.mark.parametrize(
    ("span", "least", "most"), [(64, 0.99, 1.0), (512, 0.1, 0.5), (4096, 0, 0.05), (131072, 0, 0.01)]
)
def test_the_fastest_pair_fades_where_columns_are_wide(scores, span, least, most):
    scores.set(span=span)
    data = scores.compute(**scores.state)
    assert least <= np.abs(data.pairs[0]).max() / data.largest_pair <= most
    assert np.abs(data.pairs[-1]).max() / data.largest_pair > 0.98


def test_the_colours_are_the_parts_of_the_curve(scores):
    scores.set(content="random", similarity=0.3, span=64)
    data = scores.compute(**scores.state)
    np.testing.assert_allclose(data.pairs.sum(axis=0), data.dots, rtol=0, atol=1e-12)
    assert np.abs(data.pairs).max() <= data.largest_pair


def test_the_hand_calculation_is_left_when_its_content_is_changed(scores):
    after(scores, "By hand: m=1, n=3")
    scores.controls["seed"].value = 3
    assert scores.state["content"] == "random"
    scores.controls["content"].value = "hand"
    assert scores.state["head_dim"] == 4
    scores.controls["head_dim"].value = 64
    assert scores.state["content"] == "random"
    assert scores.error is None


def test_the_offset_stays_within_what_is_shown(scores):
    scores.set(span=131072, offset=-100_000)
    scores.controls["span"].value = 64
    assert scores.state["offset"] == -64
    assert scores.error is None
    with pytest.raises(ValueError, match=r"^offset: got 65, want -64 to 64"):
        scores.set(offset=65)


# ---------------------------------------------------------------- wavelengths


@pytest.mark.parametrize(
    ("preset", "complete", "others", "slowest"),
    [
        ("Trained on 4,096", "46 of 64", "18 of 64", "54410.1"),
        ("Base 500,000", "32 of 64", "32 of 64", "2559195.5"),
        ("By hand: head_dim 4", "1 of 2", "1 of 2", "628.3"),
    ],
)
def test_pairs_are_counted_on_the_screen(preset, complete, others, slowest):
    panel = after(RopeSpectrum(), preset)
    assert shown(panel, "pairs that complete a turn") == complete
    assert shown(panel, "pairs that do not") == others
    assert shown(panel, "fastest pair") == "6.2832"
    assert shown(panel, "slowest pair") == slowest


def test_mean_of_the_cosines_is_the_mean_curve_of_equal_content(scores):
    panel = after(RopeSpectrum(), "Far apart")
    mean = panel.compute(**panel.state).alignment.mean()
    assert mean * np.sqrt(128) == pytest.approx(scores.compute(**scores.state).score)


# ---------------------------------------------------------------- real heads


def test_the_previous_token_head_stands_on_the_screen(heads):
    after(heads, "Layer 16 head 0: the previous token")
    assert shown(heads, "highest up to offset 0") == "2.3463 at offset -1"
    assert shown(heads, "R² of the curve over the passage's 2,485 scores") == "0.939"
    heads.set(sink=True)
    assert shown(heads, "R² of the curve over the passage's 2,556 scores") == "0.797"


def test_the_induction_head_finds_the_token_that_followed(heads):
    after(heads, "Layer 17 head 4: “past” finds “four”")
    assert shown(heads, "query, key") == "“past” at 47, “four” at 11"
    assert shown(heads, "score on the curve, at offset -36") == "10.421519"
    assert shown(heads, "every query with every key") == "-3.9128 ± 3.8190"


@pytest.mark.parametrize("head", [(1, 2), (11, 8), (17, 4)])
@pytest.mark.parametrize("sink", [False, True])
def test_dots_are_the_scores_of_the_passage(heads, head, sink):
    heads.set(head=head, sink=sink)
    data = heads.compute(**heads.state)
    excerpt, first = load_excerpt(), 0 if sink else 1
    length = len(excerpt.token_texts)
    turned = [
        rope.rotate(vectors(*head), np.arange(length), rope_base=excerpt.rope_base)
        for vectors in (excerpt.query, excerpt.key)
    ]
    table = attention.scores(turned[0][None], turned[1][None])[0]
    wanted = sorted((n - m, table[m, n]) for m in range(first, length) for n in range(first, m + 1))
    np.testing.assert_allclose(sorted(zip(data.dot_offsets, data.dots, strict=True)), wanted, rtol=0, atol=1e-11)


def test_a_chosen_pair_goes_through_its_own_dot(heads):
    heads.controls["query"].value = 30
    assert heads.state["offset"] == -1, "a mean has no place in the passage"
    heads.controls["key"].value = 25
    assert heads.state["offset"] == -5
    data = heads.compute(**heads.state)
    own = data.dots[(data.dot_offsets == -5)]
    assert np.abs(own - data.score).min() < 1e-11
    heads.controls["key"].value = 60
    assert heads.state["offset"] == 0, "no query sees a later key"
    heads.controls["key"].value = MEAN
    assert heads.error is None


@pytest.mark.parametrize("span", [72, 8192])
def test_band_is_over_every_query_with_every_key(heads, span):
    heads.set(head=(11, 1), span=span)
    data = heads.compute(**heads.state)
    queries, keys = heads.excerpt.query(11, 1)[1:], heads.excerpt.key(11, 1)[1:]
    at = [0, len(data.band_offsets) // 2, len(data.band_offsets) - 1]
    offsets = np.rint(data.band_offsets[at]) if span == 8192 else data.band_offsets[at]
    every = rope.scores_by_offset(queries[:, None], keys, offsets, rope_base=1e5)
    np.testing.assert_allclose(data.deviation[at], every.std(axis=(0, 1)), rtol=1e-10)
    if span == 72:
        np.testing.assert_allclose(data.mean[at], every.mean(axis=(0, 1)), rtol=0, atol=1e-10)
    else:
        np.testing.assert_allclose(data.mean, data.wave, rtol=0, atol=1e-10)


# ---------------------------------------------------------------- wrong states


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"content": "hand"}, "inv_freq: got shape"),
        ({"head_dim": 7}, "head_dim: got 7, want an integer of at least 2 and at most 1048576 that is even"),
        ({"rope_base": 0.0}, "rope_base: got 0.0, want"),
        ({"similarity": 1.5}, "similarity: got 1.5, want"),
    ],
)
def test_states_that_cannot_be_are_refused_by_name(scores, state, message):
    with pytest.raises(ValueError, match=message):
        scores.compute(**{**scores.state, **state})


@pytest.mark.parametrize(
    ("state", "message"),
    [({"head": (2, 0)}, "layer: got 2, want one of 1, 11, 16, 17"), ({"rope_base": -1.0}, "rope_base: got -1.0")],
)
def test_heads_that_are_not_there_are_refused_by_name(heads, state, message):
    with pytest.raises(ValueError, match=message):
        heads.compute(**{**heads.state, **state})
