"""Frames ahead of the hand: which are sent, in what order, when they are given up, and what stands at rest."""

import io
import time
from threading import Event

import pytest
from PIL import Image

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.explore import controls, ranges
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import coarse_to_fine, place, places
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

    def want(self, control, name="1"):
        self.panel._ahead.message(None, {"type": "want", "range": name, "control": control}, [])

    def leave(self):
        self.panel._ahead.message(None, {"type": "leave"}, [])

    def frames(self, name="1"):
        return {
            content["key"]: (buffers[0], content["numbers"])
            for content, buffers in self.messages
            if content["type"] == "frame" and content["range"] == name
        }

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


def preview(panel, **changes):
    return panel.view.preview(panel.compute(**panel.state | changes))


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
    assert list(frames)[:3] == [4, 2, 6]
    for key, (picture, numbers) in frames.items():
        assert picture == preview(panel, height=key)
        assert numbers == table([Row("height", str(key + 0.5))])
    assert Image.open(io.BytesIO(frames[4][0])).size == panel.view.size


def test_a_list_slider_and_a_switch_have_ranges(panel, page):
    page.want("extra")
    page.idle()
    page.want("red", "2")
    page.idle()
    assert set(page.frames()) == {0, 1, 2, 3, 4}
    assert {key: picture for key, (picture, _) in page.frames("2").items()} == {
        0: preview(panel, red=False),
        1: preview(panel, red=True),
    }


def test_the_panel_waits_for_the_hand_to_rest_and_then_shows_the_exact_frame(panel, page):
    page.want("height")
    page.idle()
    before, refreshes = panel.picture.value, len(panel.computed)
    for height in (6, 8, 10):
        panel.controls["height"].value = height
    assert panel.picture.value == before
    assert len(panel.computed) == refreshes
    page.idle()
    assert panel.picture.value == panel.frame() == frame_of_another(height=10)
    content, _ = page.messages[-1]
    assert content == {
        "type": "rest",
        "at": {"height": 10, "extra": 1, "red": 0},
        "bytes": len(panel.picture.value),
        "numbers": panel.readout.value,
    }
    assert "stale" not in page.kinds()
    assert len(panel.computed) == refreshes + 2  # the one refresh, and this test's own frame


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
        page.leave()
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


def test_a_value_without_a_picture_is_reported_when_the_hand_is_there(panel, page, logged):
    page.want("height")
    page.idle()
    assert panel.error is None
    panel.controls["height"].value = 10
    panel.controls["height"].value = 12
    assert "want another" in panel.status.value
    # What the page showed last is what the panel shows now.
    assert panel.picture.value == frame_of_another(height=10)
    assert "10.5" in panel.readout.value
    assert page.messages[-1][0]["at"]["height"] == 12
    logged.clear()
    panel.controls["height"].value = 14
    page.idle()
    assert panel.status.value == ""
    assert panel.picture.value == panel.frame()


def test_a_value_without_a_picture_may_come_before_its_turn(panel, page, logged):
    with panel.lock:
        page.want("height")
        panel.controls["height"].value = 12
    page.idle()
    assert "want another" in panel.status.value
    logged.clear()


def test_the_bytes_of_a_range_are_bounded(panel, page, monkeypatch):
    size = len(preview(panel))
    monkeypatch.setattr(ranges, "MOST_BYTES", int(3.5 * size))
    page.want("height")
    page.idle()
    assert 3 <= len(page.frames()) <= 5


def test_coupled_controls_move_along_in_the_frames():
    panel = Coupled()
    page = Page(panel)
    page.want("height")
    page.idle()
    assert page.frames()[10][0] == preview(panel, height=10, red=True)
    assert page.frames()[8][0] == preview(panel, height=8, red=False)
    assert panel.state == {"height": 4, "extra": 0.5, "red": False}
    before = panel.picture.value
    panel.controls["height"].value = 10
    assert panel.picture.value == before
    page.idle()
    assert panel.picture.value == panel.frame()
    assert panel.state["red"] is True
    assert "stale" not in page.kinds()


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
    for content in ({}, {"type": "want"}, {"type": "want", "control": "width", "range": "1"}, {"type": "leave"}):
        panel._ahead.message(None, content, [])
    page.idle()
    assert page.messages == []


def test_a_fault_in_the_thread_is_logged_and_the_panel_goes_on(panel, page, monkeypatch, logged):
    monkeypatch.setattr(panel._ahead, "_draw", lambda *_: 1 / 0)
    page.want("height")
    page.idle()
    assert "frames ahead" in logged.messages[0]
    logged.clear()
    panel.controls["height"].value = 8
    assert panel.picture.value == panel.frame()


def test_a_fast_hand_is_served_evenly_and_a_slow_one_nearby(panel):
    def order(*hand, moving):
        range_ = ranges.Range("1", panel, "height", None)
        for key in hand:
            range_.moved(key)
        keys = []
        while (key := range_.next(moving=moving)) is not None and len(keys) < 4:
            keys.append(key)
            range_.sent.add(key)
        return keys

    assert order(6, 8, moving=True) == [8, 6, 10, 4]
    assert order(0, 20, moving=True) == [0, 16, 8, 4]
    assert order(0, 20, moving=False) == [20, 18, 16, 14]
