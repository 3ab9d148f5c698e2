"""Frames for a page: which are sent, in what order, when they are given up, and what is shown at rest."""

import gc
import json
import time
import weakref
import zlib
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from types import MappingProxyType

import pytest
from explorer_page import drawn

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.explore import controls, frames, ranges
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import place
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
    """A bar of a height; 12 has no picture."""

    alt = "A bar"
    presets = MappingProxyType({"High": {"height": 16}, "Broken": {"height": 12}})

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
        return [Row("height", str(data[0]), theme.KEY), Row("unit", "m")]


class Coupled(Bar):
    """The switch follows the height."""

    def couple(self, name):
        if name == "height":
            self.controls["red"].value = self.controls["height"].value > 8


class Long(Bar):
    """As a bar of ten thousand heights."""

    def make_controls(self):
        return super().make_controls() | {"height": controls.integer("height", 5000, 0, 10_000)}


class Page:
    """In place of a browser: asks for frames, and keeps what it is sent as the page's own modules do."""

    def __init__(self, panel, *, answers=True):
        self.panel, self.answers, self.messages = panel, answers, []
        self.things, self.found = {}, {}
        panel._frames._send = self.take

    def take(self, content, buffers=()):
        content = json.loads(json.dumps(content))
        news = [json.loads(zlib.decompress(buffer)) for buffer in buffers]
        self.messages.append(content | {"news": news, "size": sum(map(len, buffers))})
        if content["type"] == "begin":
            self.things = {}
        for part in news:
            for kind, things in part.items():
                self.things.setdefault(kind, []).extend(things)
        for shot in [content] if content["type"] == "rest" else content.get("frames", ()):
            self.found[content.get("range"), shot.get("key")] = self.seen(shot)
        if content["type"] == "frames" and "asked" not in content and self.answers:
            self.say(type="got")

    def seen(self, shot):
        """Return picture and table as the page makes them of the numbers, with everything that they refer to."""
        things = self.things

        def mark(outline, style, *places):
            if outline < 0:
                return [things["images"][style], *places]
            *look, clip = things["styles"][style]
            return [things["paths"][outline], [*look, things["paths"][clip] if clip >= 0 else None], *places]

        picture = [[[mark(*one) for one in things["parts"][part]] for part in parts] for parts in shot["frame"]]
        return picture, "".join(things["rows"][row] for row in shot["rows"])

    def say(self, **content):
        self.panel._frames.message(None, content, [])

    def open(self):
        self.say(type="open")
        self.messages.clear()

    def near(self, control, name="1", **about):
        about = {"at": place(self.panel.controls[control])} | about
        self.say(type="near", range=name, control=control, **about)

    def frames(self, name="1"):
        """Return picture and table of each key of a range, in the order in which they came."""
        return {key: shot for (of, key), shot in self.found.items() if of == name}

    def rest(self):
        """Return the last message that says what is at rest, and its picture and table."""
        return next(message for message in reversed(self.messages) if message["type"] == "rest"), self.found[None, None]

    def kinds(self):
        return [content["type"] for content in self.messages]

    def idle(self):
        """Wait until nothing is left to do."""
        deadline = time.monotonic() + 20
        while self.panel._frames._thread is not None:
            assert time.monotonic() < deadline
            time.sleep(0.005)


@pytest.fixture
def panel():
    return Bar()


@pytest.fixture
def page(panel):
    page = Page(panel)
    page.open()
    return page


def wanted(panel, **changes):
    """Return picture and table of a state, as a panel that has just been made draws them."""
    fresh = type(panel)()
    shot = fresh.shots.shot(data := fresh.compute(**panel.state | changes))
    rows = table(fresh.rows(data)).split("<table", 1)[1].split(">", 1)[1].removesuffix("</table>")
    return json.loads(json.dumps(drawn(fresh.shots, shot))), rows.replace(" style=", " data-style=")


# ---------------------------------------------------------------- opening and closing


def test_a_page_that_comes_gets_what_is_at_rest(panel):
    page = Page(panel)
    assert not page.messages
    page.say(type="open")
    assert page.kinds() == ["begin", "rest"]
    message, shot = page.rest()
    assert message["id"] is None
    assert message["at"] == {"height": 4, "extra": 1, "red": 0}
    assert shot == wanted(panel)


def test_without_a_page_pictures_are_pixels_and_nothing_is_sent(panel):
    page = Page(panel)
    before = panel.picture.value
    panel.set(height=8)
    assert page.messages == []
    assert panel.picture.value == panel.frame() != before


def test_with_a_page_no_pixels_are_encoded(panel, page, monkeypatch):
    monkeypatch.setattr(panel.view, "frame", lambda _data: pytest.fail("pixels were drawn"))
    panel.set(height=8)
    panel.controls["red"].value = True
    assert page.rest()[1] == wanted(panel)


def test_a_second_page_gets_everything_and_the_first_begins_anew_with_it(panel, page):
    """All pages of a panel are sent the same: they keep the same things by the same numbers."""
    page.near("height")
    page.idle()
    page.say(type="open")
    assert page.kinds()[-3:] == ["stale", "begin", "rest"]
    assert page.rest()[1] == wanted(panel)
    page.near("height", "2")
    page.idle()
    assert page.frames("2")[8] == wanted(panel, height=8)


def test_closing_lets_the_view_go_and_the_panel_works_on_at_once(panel, page):
    page.near("height")
    page.idle()
    view, figure = weakref.ref(panel.view), weakref.ref(panel.view.fig)
    page.say(type="close")
    gc.collect()
    assert (view(), figure()) == (None, None)
    panel.set(height=8)
    other = Bar()
    other.set(height=8)
    assert panel.picture.value == panel.frame() == other.picture.value
    page.messages.clear()
    page.say(type="open")
    assert page.kinds() == ["begin", "rest"]
    assert page.rest()[1] == wanted(panel)
    page.near("height", "2")
    page.idle()
    assert page.frames("2")[16] == wanted(panel, height=16)


def test_of_several_pages_one_may_close(panel, page):
    """A page that is still there asks for everything again: what was kept is let go."""
    page.say(type="close")
    assert page.kinds()[-1] == "closed"
    page.say(type="open")
    panel.set(height=8)
    assert page.rest()[1] == wanted(panel)


def test_closing_ends_the_drawing(panel, page):
    panel.may_draw.clear()
    with panel.lock:
        page.near("height")
        page.say(type="close")
        panel.may_draw.set()
    page.idle()
    assert page.frames() == {}


# ---------------------------------------------------------------- frames ahead


def test_a_range_is_sent_with_its_tables_nearest_first(panel, page):
    page.near("height")
    page.idle()
    frames = page.frames()
    assert set(frames) == set(range(0, 21, 2)) - {12}
    assert list(frames)[:3] == [4, 6, 2]
    for key, shot in frames.items():
        assert shot == wanted(panel, height=key)


def test_things_are_sent_once(panel, page):
    page.near("height")
    page.idle()
    for things in page.things.values():
        assert len(things) == len({json.dumps(thing) for thing in things})
    sizes = [message["size"] for message in page.messages]
    page.messages.clear()
    page.near("height", "2")
    page.idle()
    assert page.frames("2") == page.frames("1")
    assert sum(sizes) > 0 == sum(message["size"] for message in page.messages)


def test_frames_know_nothing_that_was_not_sent_before_them(panel, page):
    page.near("height")
    page.near("red", "2")
    page.near("extra", "3")
    page.idle()
    # `Page.take` looks everything up at once, and fails where it is not there.
    assert len(page.frames("3")) == 5


def test_a_list_slider_and_a_switch_have_ranges(panel, page):
    page.near("extra")
    page.idle()
    page.near("red", "2")
    page.idle()
    assert page.frames() == {at: wanted(panel, extra=at / 2) for at in page.frames()}
    assert set(page.frames()) == {0, 1, 2, 3, 4}
    assert page.frames("2") == {0: wanted(panel, red=False), 1: wanted(panel, red=True)}


def test_few_messages_are_under_way(panel):
    page = Page(panel := Long(), answers=False)
    page.open()
    page.near("height", at=5000, pixels=200)
    page.idle()
    assert 1 <= len(page.messages) <= frames.MESSAGES
    assert all(len(message["frames"]) <= frames.BATCH for message in page.messages)
    before = len(page.messages)
    page.say(type="got")
    page.idle()
    assert len(page.messages) == before + 1
    panel.set(red=True)


def test_few_bytes_are_under_way(panel, monkeypatch):
    page = Page(panel, answers=False)
    page.open()
    monkeypatch.setattr(frames, "BATCH", 1)
    monkeypatch.setattr(frames, "BYTES", 90)  # a frame counts a hundred, and what is new in it
    page.near("height")
    page.idle()
    assert len(page.messages) == 1
    monkeypatch.setattr(frames, "BYTES", 10**6)
    page.say(type="got")
    page.idle()
    assert len(page.messages) == 1 + frames.MESSAGES


def test_a_new_page_has_nothing_under_way(panel):
    page = Page(panel, answers=False)
    page.open()
    page.near("height")
    page.idle()
    page.say(type="open")
    page.near("extra", "2")
    page.idle()
    assert page.frames("2")


def test_the_bytes_of_a_range_are_bounded(panel, page, monkeypatch):
    monkeypatch.setattr(frames, "BATCH", 1)
    page.near("height")
    page.idle()
    of = panel._frames._range
    assert of.bytes == sum(message["size"] + 100 for message in page.messages)
    monkeypatch.setattr(ranges, "MOST_BYTES", of.bytes // 3)
    page.near("height", "2")
    page.idle()
    assert 2 <= len(page.frames("2")) < len(page.frames())
    # What is asked for is still drawn.
    page.say(type="ask", range="2", at=20)
    assert page.frames("2")[20] == wanted(panel, height=20)


def test_a_page_that_has_much_begins_anew(panel, page, monkeypatch):
    page.near("height")
    page.idle()
    kept = panel._frames._kept
    assert kept > 0
    monkeypatch.setattr(frames, "MOST_KEPT", kept - 1)
    page.messages.clear()
    page.near("height", "1")
    assert "begin" not in page.kinds()  # not while the range lasts
    page.near("red", "2")
    page.idle()
    assert page.kinds()[:3] == ["stale", "begin", "rest"]
    assert page.frames("2") == {0: wanted(panel, red=False), 1: wanted(panel, red=True)}
    assert panel._frames._kept < kept


def test_a_pointer_that_leaves_stops_the_drawing_and_comes_back_to_it(panel, page):
    with panel.lock:
        page.near("height")
        page.say(type="leave")
    page.idle()
    assert page.frames() == {}
    page.near("height")
    page.idle()
    assert len(page.frames()) == 10


def test_a_range_under_way_is_cancelled(panel, page):
    panel.may_draw.clear()
    with panel.lock:
        page.near("height")
        panel.may_draw.set()
        panel.set(red=True)
    page.idle()
    sent_after = page.kinds()[page.kinds().index("stale") :]
    assert "frames" not in sent_after


def test_the_lock_is_free_between_frames():
    """A cell that sets the panel waits for one frame at most."""
    panel = Long()
    page = Page(panel)
    page.open()
    compute, begun, may_end = panel.compute, Event(), Event()

    def slow(**state):
        data = compute(**state)
        if not begun.is_set():
            begun.set()
            may_end.wait(10)
        return data

    panel.compute = slow
    page.near("height", at=5000)
    assert begun.wait(10)
    with ThreadPoolExecutor(1) as pool:
        cell = pool.submit(panel.set, red=True)
        wait([cell], timeout=0.1)
        assert not cell.done()
        may_end.set()
        cell.result(10)
    assert len(page.frames()) <= frames.BATCH
    assert page.rest()[1] == wanted(panel)


def test_a_fault_in_the_thread_is_logged_and_the_panel_goes_on(panel, page, monkeypatch, logged):
    monkeypatch.setattr(panel._frames, "_frame", lambda *_: 1 / 0)
    page.near("height")
    page.idle()
    assert "frames ahead" in logged.messages[0]
    logged.clear()
    monkeypatch.undo()
    panel.controls["height"].value = 8
    assert page.rest()[1] == wanted(panel)
    page.near("height")
    page.idle()
    assert len(page.frames()) == 10


# ---------------------------------------------------------------- frames that are asked for


def test_what_is_asked_for_is_sent_at_once_and_before_what_is_ahead(panel, page):
    with panel.lock:
        page.near("height")
        page.say(type="ask", range="1", at=20)
    (message,) = page.messages[:1]
    assert (message["type"], message["asked"], [frame["key"] for frame in message["frames"]]) == ("frames", 20, [20])
    page.idle()
    # Then what is near the place that was asked for.
    assert list(page.frames())[:3] == [20, 18, 16]
    assert page.frames()[20] == wanted(panel, height=20)


def test_while_frames_are_asked_for_none_are_drawn_ahead(panel, page, monkeypatch):
    monkeypatch.setattr(frames, "PAUSE", 0.4)
    with panel.lock:
        page.near("height")
        page.say(type="ask", range="1", at=20)
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        assert list(page.frames()) == [20]
        time.sleep(0.02)
    page.idle()
    assert len(page.frames()) == 10


def test_questions_are_answered_though_much_is_under_way(panel):
    page = Page(panel := Long(), answers=False)
    page.open()
    page.near("height", at=5000, pixels=100)
    page.idle()
    page.say(type="ask", range="1", at=1234)
    assert page.messages[-1]["asked"] == 1234
    assert page.frames()[1234] == wanted(panel, height=1234)


def test_every_question_is_answered(panel, page):
    """The page counts its questions: also where there is no picture, no such place, and no such range."""
    page.near("height")
    page.idle()
    page.messages.clear()
    for name, at in (("1", 12), ("1", 3), ("another", 4)):
        page.say(type="ask", range=name, at=at)
    assert [(m["range"], m["asked"], m["frames"]) for m in page.messages] == [
        ("1", 12, []),
        ("1", 3, []),
        ("another", 4, []),
    ]
    panel.set(red=True)
    page.say(type="ask", range="1", at=4)
    assert (page.messages[-1]["asked"], page.messages[-1]["frames"]) == (4, [])


def test_a_place_without_a_picture_is_tried_once(panel, page):
    page.near("height")
    page.idle()
    tried = panel.computed.count(12)
    page.near("height", at=14)
    page.idle()
    assert panel.computed.count(12) == tried == 1
    assert panel.error is None


# ---------------------------------------------------------------- controls that move


@pytest.mark.parametrize(("control", "at", "value"), [("height", 8, 8), ("extra", 3, 1.5), ("red", 1, True)])
def test_where_a_control_was_moved_it_and_the_panel_are_brought(panel, page, control, at, value):
    page.near(control)
    page.idle()
    page.messages.clear()
    page.say(type="move", control=control, at=at, id="a")
    page.idle()
    assert panel.state[control] is value or panel.state[control] == value
    assert page.kinds() == ["rest"]
    message, shot = page.rest()
    assert (message["id"], message["at"][control]) == ("a", at)
    assert shot == wanted(panel)


def test_a_move_costs_one_computation_and_the_range_stays(panel, page):
    page.near("height")
    page.idle()
    before = len(panel.computed)
    page.say(type="move", control="height", at=10, id="a")
    page.idle()
    assert len(panel.computed) == before + 1
    assert "stale" not in page.kinds()


def test_a_control_that_is_moved_to_where_it_is_gets_its_answer(panel, page):
    before = len(panel.computed)
    page.say(type="move", control="height", at=4, id="a")
    assert page.kinds() == ["rest"]
    message, _ = page.rest()
    assert (message["id"], message["at"]) == ("a", {"height": 4, "extra": 1, "red": 0})
    assert len(panel.computed) == before


@pytest.mark.parametrize(
    ("control", "at"), [("height", 12), ("height", 99), ("extra", 99), ("width", 3), ("height", 3)]
)
def test_the_answer_comes_also_where_the_panel_cannot_follow(panel, page, logged, control, at):
    page.say(type="move", control=control, at=at, id="a")
    assert page.kinds() == ["rest"]
    assert page.rest()[0]["id"] == "a"
    assert page.rest()[1] == wanted(panel, height=4)
    assert ("want another" in panel.status.value) == (at == 12)
    logged.clear()


def test_a_way_that_a_panel_does_not_take_back_gets_another_range():
    """What moved along stays moved when its control comes back: the frames of the way there are not those of now."""
    panel = Coupled()
    page = Page(panel)
    page.open()
    panel.set(red=True)
    page.near("height")
    page.idle()
    page.say(type="move", control="height", at=2, id="a")
    assert panel.state["red"] is False
    page.messages.clear()
    page.say(type="move", control="height", at=4, id="b")
    assert page.kinds() == ["stale", "rest"]
    assert page.rest()[0]["at"] == {"height": 4, "extra": 1, "red": 0}
    assert page.rest()[1] == wanted(panel)


def test_another_control_gives_the_range_up_at_once(panel, page):
    page.near("height")
    page.idle()
    panel.controls["red"].value = True
    assert page.kinds()[-2:] == ["stale", "rest"]
    assert page.rest()[1] == wanted(panel)
    page.near("height", "2")
    page.idle()
    assert page.frames("2")[8] == wanted(panel, height=8, red=True)


def test_set_ends_a_range(panel, page):
    page.near("height")
    page.idle()
    panel.set(height=10)
    assert page.kinds()[-2:] == ["stale", "rest"]
    assert page.rest()[1] == wanted(panel)


def test_ranges_that_change_are_said(panel, page):
    panel.controls["height"].max = 30
    panel.controls["red"].value = True
    assert panel._front_end.controls[0]["high"] == 30
    assert page.kinds()[-1] == "rest"


def test_buttons_are_those_of_the_presets_and_the_first_state(panel, page):
    page.near("height")
    page.idle()
    page.say(type="press", number=0, id="a")
    assert panel.state["height"] == 16
    assert page.kinds()[-2:] == ["stale", "rest"]
    message, shot = page.rest()
    assert (message["id"], message["at"]["height"], shot) == ("a", 16, wanted(panel))
    page.say(type="press", number=2, id="b")
    assert panel.state["height"] == 4
    assert page.rest()[0]["id"] == "b"


def test_a_button_that_fails_is_answered_and_changes_nothing(panel, page, logged):
    page.say(type="press", number=1, id="a")
    message, shot = page.rest()
    assert (message["id"], message["at"]["height"], shot) == ("a", 4, wanted(panel))
    assert "want another" in panel.status.value
    logged.clear()


def test_a_value_without_a_picture_is_reported_when_the_control_is_there(panel, page, logged):
    page.near("height")
    page.idle()
    assert panel.error is None
    panel.controls["height"].value = 10
    panel.controls["height"].value = 12
    assert "want another" in panel.status.value
    assert page.rest()[1] == wanted(panel, height=10)
    assert page.rest()[0]["at"]["height"] == 12
    assert "10.5" in panel.readout.value
    logged.clear()
    panel.controls["height"].value = 14
    page.idle()
    assert panel.status.value == ""
    assert page.rest()[1] == wanted(panel)
    assert "stale" not in page.kinds()


# ---------------------------------------------------------------- controls that move along


def test_coupled_controls_move_along_in_the_frames():
    panel = Coupled()
    page = Page(panel)
    page.open()
    page.near("height")
    page.idle()
    frames = page.frames()
    assert frames[10] == wanted(panel, height=10, red=True)
    assert frames[8] == wanted(panel, height=8, red=False)
    along = {frame["key"]: frame["along"] for message in page.messages for frame in message["frames"]}
    assert (along[10], along[8]) == ({"extra": 1, "red": 1}, {"extra": 1, "red": 0})
    assert panel.state == {"height": 4, "extra": 0.5, "red": False}
    panel.controls["height"].value = 10
    page.idle()
    assert page.rest()[1] == wanted(panel)
    assert panel.state["red"] is True
    assert "stale" not in page.kinds()


def test_frames_of_a_state_that_is_not_reached_are_given_up():
    panel = Coupled()
    page = Page(panel)
    page.open()
    page.near("height")
    page.idle()
    panel._frames._range._states[10] = panel.state | {"height": 10, "red": False}
    panel.controls["height"].value = 10
    assert page.kinds()[-2:] == ["stale", "rest"]
    assert page.rest()[1] == wanted(panel)


def test_what_the_page_does_not_mean_is_passed_over(panel, page):
    for content in (
        {},
        {"type": "want"},
        {"type": "near", "control": "width", "range": "1"},
        {"type": "leave"},
        {"type": "got"},
    ):
        page.say(**content)
    assert page.messages == []
    page.near("height", at=3)
    page.idle()
    assert len(page.frames()) == 10
