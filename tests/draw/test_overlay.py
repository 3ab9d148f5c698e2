"""What lies over pictures: words at line ends keep apart, grips may be taken over two pairs of axes."""

import numpy as np
import pytest

from transformer_parts.draw.overlay import Word, apart, spread_out
from transformer_parts.explore.budget import BudgetCost


def test_words_keep_their_order_and_a_gap(rng):
    heights = dict(zip("abcdefg", rng.uniform(0, 60, 7).tolist(), strict=True))
    places = spread_out(heights, 14)
    assert sorted(places, key=places.get) == sorted(heights, key=heights.get)
    assert (np.diff(sorted(places.values())) >= 14 - 1e-9).all()


def test_words_that_are_apart_stay_where_they_are():
    assert spread_out({"a": 10.0, "b": 40.0}, 14) == {"a": 10.0, "b": 40.0}


def test_words_below_one_another_keep_all_but_their_heights():
    words = [Word("low", 3, 50, "#004488", "left"), Word("high", 4, 45), Word("far", 5, 90)]
    high, low, far = apart(words, 14)
    assert (high, far) == (words[1]._replace(y=high.y), words[2])
    assert low == words[0]._replace(y=low.y)
    assert low.y - high.y >= 14 - 1e-9


def test_a_grip_over_two_pairs_of_axes_and_a_word_at_a_point():
    panel = BudgetCost()
    view = panel.view.update(panel.compute(**panel.state))
    left, top, width, height = view.grip(view.bytes, 16, 1e9, anywhere=True, down_to=view.flops).box
    upper, lower = (
        view.at(view.bytes, 1, view.bytes.get_ylim()[1]),
        view.at(view.flops, 2**20, view.flops.get_ylim()[0]),
    )
    assert (left, top) == pytest.approx(upper, abs=1)
    assert (left + width, top + height) == pytest.approx(lower, abs=1)
    word = view.word("here", view.bytes, 16, 1e9, up=5)
    assert (word.x, word.y + 5) == pytest.approx(view.at(view.bytes, 16, 1e9))
