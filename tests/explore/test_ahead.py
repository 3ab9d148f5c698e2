"""Frames ahead of the hand: which are sent, in what order, when they are given up, and what stands at rest."""

import itertools
import time
import zlib
from threading import Event

import numpy as np
import pytest

from transformer_parts.draw import frame, theme
from transformer_parts.draw.pixel_runs import SAME
from transformer_parts.draw.view import View
from transformer_parts.explore import controls, ranges
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import coarse_to_fine, in_reach, place, places
from transformer_parts.explore.readout import Row, table


class BarView(View[tuple]):
    size = (60, 40)

    def build(self):
        self.axes = theme.style(self.fig.add_axes((0.1, 0.1, 0.8, 0.8)), grid=False)
        self.limits(self.axes, x=(0, 10), y=(0, 30))
        (bar,) = self.axes.plot([5, 5], [0, 0], linewidth=8)
        self.bar = self.moving(bar)

    def update(self, data):
        self.bar.set_ydata([0, data[0]])
        self.bar.set_color(theme.KEY if data[1] else theme.QUERY)
        return self


class Bar(Panel[tuple]):
    """A bar of a height; 13 has no picture."""

    alt = "A bar"

    def __init__(self):
        self.computed: list[int] = []
        self.may_draw = Event()
        self.may_draw.set()
        super().__init__()

    def make_controls(self):
        return {
            "height": controls.integer("height", 4, 0, 20, step=2),
            "extra": controls.real("extra", 0.5, 0, 2, step=0.5),
            "red": controls.switch("red"),
        }

    def make_view(self):
        return BarView()

    def compute(self, *, height, extra, red):
        self.may_draw.wait(10)
        self.computed.append(height)
        if height == 12:
            raise ValueError("height: got 12, want another")
        return height + extra, red

    def rows(self, data):
        return [Row("height", str(data[0]))]


class Coupled(Bar):
    """The switch follows the height."""

    def couple(self, name):
        if name == "height":
            self.controls["red"].value = self.controls["height"].value > 8


class Page:
    """In place of a browser: asks for ranges and keeps what it is sent."""

    def __init__(self, panel):
        self.panel, self.messages = panel, []
        panel._ahead._send = self.take

    def take(self, content, buffers=()):
        self.messages.append((content, [bytes(buffer) for buffer in buffers]))

    def say(self, **content):
        self.panel._ahead.message(None, content, [])

    def want(self, control, name="1", **about):
        about = {"at": place(self.panel.controls[control])} | about
        self.say(type="want", range=name, control=control, **about)

    def frames(self, name="1"):
        """Return picture and table of each key, as the page makes them of what it is sent."""
        found, first = {}, None
        for content, buffers in self.messages:
            if content["type"] == "frame" and content["range"] == name:
                if first is None:
                    width, height = content["size"]
                picture = unpacked(buffers[0], first).reshape(height, width)
                first = picture if first is None else first
                found[content["key"]] = picture, content["numbers"]
        return found

    def kinds(self):
        return [content["type"] for content, _ in self.messages]

    def idle(self):
        """Wait until nothing is left to do."""
        deadline = time.monotonic() + 20
        while self.panel._ahead._thread is not None:
            assert time.monotonic() < deadline
            time.sleep(0.005)


@pytest.fixture
def panel():
    return Bar()


@pytest.fixture
def page(panel):
    return Page(panel)


def unpacked(buffer, first):
    runs = np.frombuffer(zlib.decompress(buffer), np.uint8)
    count = runs.size // 6
    pixels = np.repeat(runs[: 4 * count].view("<u4"), runs[4 * count :].view("<u2"))
    return pixels if first is None else np.where(pixels == SAME, first.ravel(), pixels)


def pixels(panel, ratio=1, **changes):
    return panel.view.pixels(panel.compute(**panel.state | changes), ratio)


def equal(one, other):
    return one.dtype == other.dtype and np.array_equal(one, other)


def test_every_control_has_places(panel):
    height, extra, red = panel.controls.values()
    assert places(height) == {value: value for value in range(0, 21, 2)}
    assert places(extra) == {0: 0.0, 1: 0.5, 2: 1.0, 3: 1.5, 4: 2.0}
    assert places(red) == {0: False, 1: True}
    assert (place(height), place(extra), place(red)) == (4, 1, 0)
    assert places(panel.status) == {}
    assert place(panel.status) is None


@pytest.mark.parametrize("count", range(20))
def test_order_takes_each_once_and_halves_the_gaps(count):
    order = list(coarse_to_fine(range(count)))
    assert sorted(order) == list(range(count))
    for taken in range(2, count):
        gaps = sorted(b - a for a, b in zip(sorted(order[:taken]), sorted(order[:taken])[1:], strict=False))
        assert gaps[-1] <= 2 * max(count // taken, 1) + 1


def test_a_range_is_sent_with_its_tables_nearest_first(panel, page):
    page.want("height")
    page.idle()
    frames = page.frames()
    assert set(frames) == set(range(0, 21, 2)) - {12}
    assert list(frames)[:3] == [4, 6, 2]
    for key, (picture, numbers) in frames.items():
        assert equal(picture, pixels(panel, height=key))
        assert numbers == table([Row("height", str(key + 0.5))])
    width, height = panel.view.size
    assert frames[4][0].shape == (height, width)


def test_a_page_of_more_pixels_gets_more_and_they_are_those_of_the_exact_frame(panel, page):
    page.want("height", ratio=2)
    page.idle()
    picture, _ = page.frames()[8]
    width, height = panel.view.size
    assert picture.shape == (2 * height, 2 * width)
    panel.frame(panel.state | {"height": 8})
    assert equal(picture, frame.pixels(panel.view._canvas))


def test_every_picture_but_the_first_is_sent_as_what_differs(panel, page):
    page.want("height")
    page.idle()
    sizes = [len(buffers[0]) for content, buffers in page.messages if content["type"] == "frame"]
    assert all(size < sizes[0] for size in sizes[1:])
    assert sum("size" in content for content, _ in page.messages) == 1


def test_a_list_slider_and_a_switch_have_ranges(panel, page):
    page.want("extra")
    page.idle()
    page.want("red", "2")
    page.idle()
    assert set(page.frames()) == {0, 1, 2, 3, 4}
    switch = page.frames("2")
    assert equal(switch[0][0], pixels(panel, red=False))
    assert equal(switch[1][0], pixels(panel, red=True))


def test_a_value_that_is_told_gives_the_exact_frame_and_the_range_stays(panel, page):
    page.want("height")
    page.idle()
    refreshes = len(panel.computed)
    panel.controls["height"].value = 10
    page.idle()
    assert panel.picture.value == panel.frame() == frame_of_another(height=10)
    content, _ = page.messages[-1]
    assert content == {
        "type": "rest",
        "told": None,
        "at": {"height": 10, "extra": 1, "red": 0},
        "bytes": len(panel.picture.value),
        "numbers": panel.readout.value,
    }
    assert "stale" not in page.kinds()
    assert len(panel.computed) == refreshes + 2  # the one refresh, and this test's own frame


def test_a_hand_that_rests_where_it_began_is_told_so(panel, page):
    before = len(panel.computed)
    page.say(type="rested", control="height", at=4, told="a")
    ((content, _),) = page.messages
    assert (content["type"], content["told"]) == ("rest", "a")
    assert content["at"] == {"height": 4, "extra": 1, "red": 0}
    assert len(panel.computed) == before


@pytest.mark.parametrize(("control", "at", "value"), [("height", 8, 8), ("extra", 3, 1.5), ("red", 1, True)])
def test_where_a_hand_rests_the_control_and_the_panel_are_brought(panel, page, control, at, value):
    page.want(control)
    page.idle()
    page.messages.clear()
    page.say(type="rested", control=control, at=at, told="a")
    assert panel.state[control] is value or panel.state[control] == value
    assert panel.picture.value == panel.frame()
    ((content, _),) = page.messages
    assert (content["type"], content["told"], content["at"][control]) == ("rest", "a", at)


def test_a_button_that_was_pressed_later_has_the_last_word_though_it_was_heard_first(panel, page):
    press = panel.widget.children[1].children[0].children[0].children[-1]
    assert press.description == "Reset"
    press.click()
    page.messages.clear()
    page.say(type="rested", control="height", at=8, told="a", presses=0)
    assert (page.kinds(), page.messages[0][0]["told"], panel.state["height"]) == (["rest"], "a", 4)
    page.say(type="rested", control="height", at=8, told="b", presses=1)
    assert panel.state["height"] == 8


def test_the_answer_comes_also_where_the_panel_cannot_follow(panel, page, logged):
    page.say(type="rested", control="height", at=12, told="a")
    assert page.kinds() == ["rest"]
    assert page.messages[0][0]["told"] == "a"
    assert "want another" in panel.status.value
    logged.clear()


def test_a_way_that_a_panel_does_not_take_back_gets_another_range():
    """What moved along stays moved when its control comes back: the frames of the way there are not those of now."""
    panel = Coupled()
    page = Page(panel)
    panel.set(red=True)
    page.want("height")
    page.idle()
    page.say(type="rested", control="height", at=2, told="a")
    assert panel.state["red"] is False
    page.messages.clear()
    page.say(type="rested", control="height", at=4, told="b")
    assert page.kinds() == ["stale", "rest"]
    assert page.messages[-1][0]["at"] == {"height": 4, "extra": 1, "red": 0}
    assert panel.picture.value == panel.frame()


def frame_of_another(**changes):
    other = Bar()
    return other.frame(other.state | changes)


def test_another_control_gives_the_range_up_at_once(panel, page):
    page.want("height")
    page.idle()
    panel.controls["red"].value = True
    assert page.kinds()[-2:] == ["stale", "rest"]
    assert panel.picture.value == panel.frame()
    panel.controls["height"].value = 8
    assert panel.picture.value == panel.frame()


def test_a_range_under_way_is_cancelled(panel, page):
    panel.may_draw.clear()
    with panel.lock:
        page.want("height")
        panel.may_draw.set()
        panel.set(red=True)
    page.idle()
    sent_after = page.kinds()[page.kinds().index("stale") :]
    assert "frame" not in sent_after


def test_a_hand_that_leaves_stops_the_drawing_and_comes_back_to_it(panel, page):
    with panel.lock:
        page.want("height")
        page.say(type="leave")
    page.idle()
    assert page.frames() == {}
    page.want("height")
    page.idle()
    assert len(page.frames()) == 10


def test_set_and_presets_end_a_range(panel, page):
    page.want("height")
    page.idle()
    panel.set(height=10)
    assert page.kinds()[-2:] == ["stale", "rest"]
    assert panel.picture.value == panel.frame()


def test_a_value_without_a_picture_is_reported_when_the_hand_rests_there(panel, page, logged):
    page.want("height")
    page.idle()
    assert panel.error is None
    panel.controls["height"].value = 10
    panel.controls["height"].value = 12
    assert "want another" in panel.status.value
    assert panel.picture.value == frame_of_another(height=10)
    assert "10.5" in panel.readout.value
    assert page.messages[-1][0]["at"]["height"] == 12
    logged.clear()
    panel.controls["height"].value = 14
    page.idle()
    assert panel.status.value == ""
    assert panel.picture.value == panel.frame()
    assert "stale" not in page.kinds()


def test_the_bytes_of_a_range_are_bounded(panel, page, monkeypatch):
    page.want("height")
    page.idle()
    most = panel._ahead._range.bytes
    # Four bytes of a colour and two of a length.
    assert most == sum(len(zlib.decompress(buffers[0])) for _, buffers in page.messages)
    monkeypatch.setattr(ranges, "MOST_BYTES", most // 2)
    page.want("height", "2")
    page.idle()
    assert 2 <= len(page.frames("2")) < len(page.frames())


def test_coupled_controls_move_along_in_the_frames():
    panel = Coupled()
    page = Page(panel)
    page.want("height")
    page.idle()
    frames = page.frames()
    assert equal(frames[10][0], pixels(panel, height=10, red=True))
    assert equal(frames[8][0], pixels(panel, height=8, red=False))
    along = {content["key"]: content["along"] for content, _ in page.messages}
    assert (along[10], along[8]) == ({"extra": 1, "red": 1}, {"extra": 1, "red": 0})
    assert panel.state == {"height": 4, "extra": 0.5, "red": False}
    panel.controls["height"].value = 10
    page.idle()
    assert panel.picture.value == panel.frame()
    assert panel.state["red"] is True
    assert "stale" not in page.kinds()


def test_a_place_that_the_page_does_not_have_is_not_named():
    assert ranges._place_of(3, {0: 1, 1: 3}) == 1
    assert ranges._place_of(4, {0: 1, 1: 3}) is None


def test_frames_of_a_state_that_is_not_reached_are_given_up():
    panel = Coupled()
    page = Page(panel)
    page.want("height")
    page.idle()
    panel._ahead._range._states[10] = panel.state | {"height": 10, "red": False}
    panel.controls["height"].value = 10
    assert page.kinds()[-2:] == ["stale", "rest"]
    assert panel.picture.value == panel.frame()


def test_nonsense_from_the_page_is_passed_over(panel, page):
    nonsense = (
        {},
        {"type": "want"},
        {"type": "want", "control": "width", "range": "1"},
        {"type": "leave"},
        {"type": "hand", "range": "1", "at": 4},
        {"type": "rested"},
    )
    for content in nonsense:
        page.say(**content)
    page.want("height")
    page.say(type="hand", range="another", at=4)
    page.say(type="hand", range="1", at=3)
    page.idle()
    assert len(page.frames()) == len(page.messages) == 10


def test_a_fault_in_the_thread_is_logged_and_the_panel_goes_on(panel, page, monkeypatch, logged):
    monkeypatch.setattr(panel._ahead, "_draw", lambda *_: 1 / 0)
    page.want("height")
    page.idle()
    assert "frames ahead" in logged.messages[0]
    logged.clear()
    panel.controls["height"].value = 8
    assert panel.picture.value == panel.frame()


def order(range_, most=4):
    keys = []
    while len(keys) < most and (key := range_.next()) is not None:
        keys.append(key)
        range_.sent.add(key)
    return keys


def test_what_is_near_the_hand_comes_first_and_then_an_even_choice(panel):
    range_ = ranges.Range("1", panel, "height", 1, None)
    range_.grabbed(4, None)
    range_.moved(20)
    assert order(range_, most=8) == [20, 18, 16, 14, 10, 0, 8, 4]


class Long(Bar):
    """As a bar of ten thousand heights."""

    def make_controls(self):
        return super().make_controls() | {"height": controls.integer("height", 5000, 0, 10_000)}


def test_of_a_long_range_only_what_a_pointer_reaches_is_drawn():
    range_ = ranges.Range("1", Long(), "height", 1, None)
    range_.grabbed(5000, 10)
    steps = [5000, 5001, 4999, 5002, 4998, 5003, 4997, 5005, 4995]
    drawn = order(range_, most=100)
    assert drawn[: len(steps)] == steps
    assert sorted(drawn[len(steps) :]) == [n for n in range(0, 10_001, 1000) if n != 5000]


def test_a_hand_that_asks_has_its_place_drawn_whatever_its_reach(panel):
    page = Page(Long())
    page.want("height", at=5000, pixels=10)
    page.idle()
    assert 1234 not in page.frames()
    page.say(type="hand", range="1", at=1234)
    page.idle()
    assert equal(page.frames()[1234][0], pixels(page.panel, height=1234))


def test_from_another_start_only_what_looks_different_is_drawn_anew():
    range_ = ranges.Range("1", Long(), "height", 1, None)
    range_.grabbed(5000, 10)
    order(range_, most=100)
    # A pixel is a thousand steps: a tenth of it does not show, half of it does.
    range_.grabbed(5100, 10)
    assert set(order(range_, most=100)) <= {*range(5090, 5111)}
    range_.grabbed(5600, 10)
    drawn = order(range_, most=100)
    assert {600, 1600, 9600} <= {*drawn}


@pytest.mark.parametrize("pixels", [1, 7, 230, 1000])
@pytest.mark.parametrize("hand", [0, 3, 500, 999])
def test_the_reach_has_both_ends_the_hand_and_no_gap_of_more_than_a_pixel(hand, pixels):
    reach = in_reach(1000, hand, pixels)
    assert {0, hand, 999} <= {*reach}
    assert max(b - a for a, b in itertools.pairwise(reach)) <= -(-999 // pixels)
    assert len(reach) <= pixels + 3
