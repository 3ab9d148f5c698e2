"""The values of a control: by what numbers a page knows them, what it must know to show them, and their order."""

import itertools

import pytest
from ipywidgets import HTML

from transformer_parts.explore import controls, ranges
from transformer_parts.explore.ranges import Range, bring, coarse_to_fine, described, in_reach, options, place, places

HEIGHT = {"name": "height", "label": "height", "hidden": False, "kind": "slider", "low": 2, "high": 20, "step": 3}
ALL = {
    "height": (lambda: controls.integer("height", 5, 2, 20, step=3), HEIGHT, 5, dict.fromkeys(range(2, 21, 3))),
    "extra": (
        lambda: controls.real("extra", 0.5, 0, 2, step=0.5),
        {"name": "extra", "label": "extra", "hidden": False, "kind": "slider"}
        | {"labels": ["0.00", "0.50", "1.00", "1.50", "2.00"]},
        1,
        dict(enumerate((0.0, 0.5, 1.0, 1.5, 2.0))),
    ),
    "red": (
        lambda: controls.switch("red"),
        {"name": "red", "label": "red", "hidden": False, "kind": "switch"},
        0,
        {0: False, 1: True},
    ),
    "kind": (
        lambda: controls.choice("kind", {"one": "a", "two": "b"}, "b"),
        {"name": "kind", "label": "kind", "hidden": False, "kind": "menu", "labels": ["one", "two"]},
        1,
        {0: "a", 1: "b"},
    ),
}


@pytest.mark.parametrize("name", ALL)
def test_a_control_is_described_and_its_values_have_places(name):
    make, description, at, values = ALL[name]
    control = make()
    assert described(name, control) == description
    assert place(control) == at
    assert places(control) == ({key: key for key in values} if name == "height" else values)
    for there, value in places(control).items():
        bring(control, there)
        assert control.value is value or control.value == value
        assert type(control.value) is type(value)
        assert place(control) == there


def test_a_control_that_is_not_shown_is_described_so():
    control = controls.switch("red")
    control.layout.display = "none"
    assert described("red", control)["hidden"] is True


def test_what_has_no_places_has_none():
    assert places(HTML()) == {}
    assert place(HTML()) is None


@pytest.mark.parametrize("given", [["a", "b"], [("one", "a"), ("two", "b")]])
def test_options_are_labels_and_values_whatever_form_they_were_given_in(given):
    labels = ["a", "b"] if given == ["a", "b"] else ["one", "two"]
    control = controls.choice("kind", given if labels[0] == "a" else dict(given), "a")
    assert options(control) == list(zip(labels, "ab", strict=True))


@pytest.mark.parametrize("count", range(20))
def test_order_takes_each_once_and_halves_the_gaps(count):
    order = list(coarse_to_fine(range(count)))
    assert sorted(order) == list(range(count))
    for taken in range(2, count):
        gaps = sorted(b - a for a, b in itertools.pairwise(sorted(order[:taken])))
        assert gaps[-1] <= 2 * max(count // taken, 1) + 1


@pytest.mark.parametrize("pixels", [1, 7, 230, 1000])
@pytest.mark.parametrize("at", [0, 3, 500, 999])
def test_the_reach_has_both_ends_the_start_and_no_gap_of_more_than_a_pixel(at, pixels):
    reach = in_reach(1000, at, pixels)
    assert {0, at, 999} <= {*reach}
    assert max(b - a for a, b in itertools.pairwise(reach)) <= -(-999 // pixels)
    assert len(reach) <= pixels + 3


def test_a_place_that_the_page_does_not_have_is_not_named():
    assert ranges._place_of(3, {0: 1, 1: 3}) == 1
    assert ranges._place_of(4, {0: 1, 1: 3}) is None


# ---------------------------------------------------------------- order


class Slider:
    """What a range needs of a panel."""

    def __init__(self, count: int, step: int = 1):
        self.controls = {"height": controls.integer("height", 0, 0, count - 1, step=step)}
        self.state = {"height": 0}


def order(range_: Range, most: int = 4) -> list[int]:
    keys = []
    while len(keys) < most and (key := range_.next()) is not None:
        keys.append(key)
        range_.sent.add(key)
    return keys


def test_what_is_near_the_pointer_comes_first_and_then_an_even_choice():
    range_ = Range("1", Slider(21, 2), ("height",), None)
    range_.near(4, None)
    range_.moved(20)
    assert order(range_, most=8) == [20, 18, 16, 14, 10, 0, 8, 4]
    assert sorted(range_.sent | {*order(range_, most=99)}) == [*range(0, 21, 2)]


def test_nothing_is_drawn_ahead_where_nothing_is_wanted_or_too_much_was_sent():
    range_ = Range("1", Slider(21), ("height",), None)
    range_.near(4, None)
    range_.wanted = False
    assert range_.next() is None
    range_.wanted, range_.bytes = True, ranges.MOST_BYTES
    assert range_.next() is None
    range_.bytes = ranges.MOST_BYTES - 1
    assert range_.next() == 4


def test_what_failed_is_not_tried_again():
    range_ = Range("1", Slider(5), ("height",), None)
    range_.near(2, None)
    range_.failed |= {2, 3}
    assert order(range_, most=9) == [1, 4, 0]


def test_of_a_long_range_only_what_a_pointer_reaches_is_drawn():
    range_ = Range("1", Slider(10_001), ("height",), None)
    range_.near(5000, 10)
    steps = [5000, 5001, 4999, 5002, 4998, 5003, 4997, 5005, 4995]
    drawn = order(range_, most=100)
    assert drawn[: len(steps)] == steps
    assert sorted(drawn[len(steps) :]) == [n for n in range(0, 10_001, 1000) if n != 5000]


def test_from_another_start_only_what_looks_different_is_drawn_anew():
    range_ = Range("1", Slider(10_001), ("height",), None)
    range_.near(5000, 10)
    order(range_, most=100)
    # A pixel is a thousand steps: a tenth of it does not show, half of it does.
    range_.near(5100, 10)
    assert set(order(range_, most=100)) <= {*range(5090, 5111)}
    range_.near(5600, 10)
    drawn = order(range_, most=100)
    assert {600, 1600, 9600} <= {*drawn}


def test_a_state_beside_others_is_the_present_one_with_this_value():
    panel = Slider(5)
    panel.state = {"height": 0, "other": "x"}
    range_ = Range("1", panel, ("height",), None)
    assert range_.state(3) == {"height": 3, "other": "x"}
    assert range_.state(9) is None
    assert range_.along(3) == {}
