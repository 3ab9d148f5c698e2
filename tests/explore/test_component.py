"""What panels, live runs and sheets share, held by a small one of each."""

import inspect
import re
import threading
import zlib
from types import MappingProxyType

import ipywidgets as widgets
import pytest
from visible_words import escaped

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.explore import controls, page_part
from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.component import Picture
from transformer_parts.explore.frames import Frames
from transformer_parts.explore.interview import SHEETS
from transformer_parts.explore.interview.sheet import Sheet
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row
from transformer_parts.language import _

PATIENCE = 20
#: Control's value → what a component with this value raises: for the reader, by the library, without words.
ERRORS = MappingProxyType(
    {
        7: ValueError(_("too high: <7> & *more*")),
        8: ValueError("height: got <8> & *more*, want $luck$"),
        9: RuntimeError(),
    }
)
ALT = _("A dot <of> some height")


class DotView(View[int]):
    """A dot."""

    size = (40, 30)

    def build(self):
        self.axes = theme.style(self.fig.add_axes((0, 0, 1, 1)), grid=False)
        self.limits(self.axes, x=(0, 10), y=(0, 10))
        (dot,) = self.axes.plot([5], [0], marker="o")
        self.dot = self.moving(dot)

    def update(self, data):
        self.dot.set_ydata([data])
        return self


class Dot:
    """A dot as high as the control says, unless an error is to be raised there."""

    alt = ALT

    def make_controls(self):
        return {"height": controls.integer(_("height"), 4, 0, 10)}

    def make_view(self):
        return DotView()

    def rows(self, data):
        return [Row(_("the height"), _("{data} cm", data=data), theme.KEY)]

    def break_down(self, value):
        self.controls["height"].value = value


class DotPanel(Dot, Panel[int]):
    presets = MappingProxyType({_("Low"): {"height": 1}})

    def compute(self, *, height):
        if height in ERRORS:
            raise ERRORS[height]
        return height


class DotRun(Dot, LiveRun[int, int]):
    def steps(self, *, height):
        return 2

    def run(self, *, height):
        yield 1
        if height in ERRORS:
            raise ERRORS[height]
        yield 2

    def data(self, records, earlier, *, height):
        return len(records)

    def break_down(self, value):
        super().break_down(value)
        self.start()
        assert self.wait(PATIENCE)


class DotSheet(Sheet):
    alt = ALT
    height = 4

    def make(self):
        self.go = self.button(_("Go"), self._go)
        return [self.go]

    def _go(self):
        if self.height in ERRORS:
            raise ERRORS[self.height]
        self.say(_("It *went*."), kind="right")

    def break_down(self, value):
        self.height = value
        self.go.click()


KINDS = (DotPanel, DotRun, DotSheet)


def inside(widget, kind):
    found = [widget] if isinstance(widget, kind) else []
    return found + [inner for child in getattr(widget, "children", ()) for inner in inside(child, kind)]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_logged_escaped_and_announced(kind, logged):
    component = kind(language="pseudo")
    assert component.error is None
    component.break_down(8)
    assert component.error is ERRORS[8]
    line = component.status.value
    shown = "<code>height: got &lt;8&gt; &amp; *more*, want $luck$</code>"
    assert line.startswith(f'<p class="tp-status" role="alert">{shown}')
    (record,) = logged.records
    assert record.name == "transformer_parts.explore.component"
    assert record.exc_info[1] is ERRORS[8]
    assert record.getMessage().startswith(f"{kind.__name__} failed")
    assert ("'height': 8" in record.getMessage()) == hasattr(component, "controls")
    logged.clear()


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_for_the_reader_is_escaped_and_in_the_readers_language(kind, logged):
    component = kind(language="pseudo")
    component.break_down(7)
    assert component.error is ERRORS[7]
    shown = "⟦too high: &lt;7&gt; &amp; *more*⟧"
    assert component.status.value.startswith(f'<p class="tp-status" role="alert">{shown}')
    assert "code" not in component.status.value
    logged.clear()


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_without_a_message_is_named(kind, logged):
    component = kind(language="pseudo")
    component.break_down(9)
    assert "<code>RuntimeError</code>" in component.status.value
    logged.clear()


@pytest.mark.parametrize("kind", KINDS)
def test_what_succeeds_after_an_error_takes_the_error_away(kind, logged):
    component = kind()
    component.break_down(8)
    logged.clear()
    component.break_down(5)
    assert component.error is None
    assert "alert" not in component.status.value


def test_only_a_panel_says_that_it_shows_an_earlier_setting(logged):
    said = []
    for kind in KINDS:
        component = kind(language="pseudo")
        component.break_down(8)
        said.append(component.status.value.endswith("</code><br>⟦Showing the last valid setting.⟧</p>"))
    logged.clear()
    assert said == [True, False, False]


@pytest.mark.parametrize("kind", [DotPanel, DotRun])
def test_an_error_of_the_table_leaves_the_picture(kind, logged, monkeypatch):
    component = kind()
    before = component.picture.value, component.readout.value, component.shown
    monkeypatch.setattr(kind, "rows", lambda self, data: [Row("height", 1 / 0)])
    component.break_down(5)
    assert isinstance(component.error, ZeroDivisionError)
    assert (component.picture.value, component.readout.value, component.shown) == before
    logged.clear()


# ---------------------------------------------------------------- the status line


def test_the_status_line_marks_a_verdict_and_reads_markdown():
    sheet = DotSheet(language="pseudo")
    sheet.break_down(5)
    assert sheet.status.value == '<div class="tp-right" role="status"><p>✓ ⟦It <em>went</em>.⟧</p></div>'
    sheet.say(_("this < b"), kind="wrong")
    assert sheet.status.value == '<div class="tp-wrong" role="status"><p>✗ ⟦this &lt; b⟧</p></div>'
    sheet.say(_("plain"))
    assert sheet.status.value == '<div class="tp-plain" role="status"><p>⟦plain⟧</p></div>'
    sheet.say("")
    assert sheet.status.value == ""


# ---------------------------------------------------------------- every text passes `translate`


def texts(component):
    """Yield what a reader sees or hears of a component: labels, names of pictures, tables, lines, the mimebundle."""
    for widget in inside(component.widget, widgets.DOMWidget):
        if isinstance(widget, Picture):
            yield widget.tooltip
        elif isinstance(widget, widgets.HTML):
            if "<style>" not in widget.value:
                yield from re.findall(r'(?<=>)[^<>]+|(?<=aria-label=")[^"]+', widget.value)
        elif getattr(widget, "description", ""):
            yield widget.description
    data, metadata = component._repr_mimebundle_()
    yield data["text/plain"]
    yield from (each["alt"] for each in metadata.values())


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        (DotPanel, {"⟦Low⟧", "⟦Reset⟧", "⟦height⟧", "⟦the height⟧", "5 ⟦cm⟧", "⟦A dot <of> some height⟧"}),
        (
            DotRun,
            {"⟦Start⟧", "⟦Stop⟧", "⟦height⟧", "⟦steps done⟧", "2 ⟦of⟧ 2 ⟦steps⟧", "⟦the height⟧", f"⟦{ALT}⟧"},
        ),
        (DotSheet, {"⟦Go⟧", "⟦A dot <of> some height⟧"}),
    ],
)
def test_every_text_passes_translate(kind, some):
    component = kind(language="pseudo")
    component.break_down(5)
    found = list(texts(component))
    assert some <= set(found)
    pieces = [text for text in found if text not in ("✓ ⟦It ", "went", ".⟧")]  # one line, in which a word is italic
    assert [word for text in pieces for word in escaped(text, allowed=frozenset(), html=False)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_style_sheet_says_of_a_kernel_that_is_gone_passes_translate(kind):
    (style,) = (
        widget.value for widget in inside(kind(language="pseudo").widget, widgets.HTML) if "<style>" in widget.value
    )
    said = re.search(r'--tp-gone: "(.*)"; }', style)[1]
    assert said.startswith("⟦The kernel")
    assert said.endswith("⟧")
    assert "content: var(--tp-gone)" in style


def test_tables_drawn_ahead_pass_translate():
    sent, panel = [], DotPanel(language="pseudo")
    frames = Frames(panel, lambda content, buffers=(): sent.append((content, buffers)))
    frames.message(None, {"type": "near", "range": "1", "control": "height", "at": 4}, [])
    for thread in threading.enumerate():
        if thread.name == "transformer_parts frames ahead":
            thread.join(PATIENCE)
    rows = panel.shots.things()["rows"]
    assert rows
    assert all("⟦the height⟧" in row for row in rows)
    assert any("⟦the height⟧".encode() in zlib.decompress(buffer) for _, buffers in sent for buffer in buffers)


def test_what_the_page_is_given_passes_translate():
    part = page_part.of(DotPanel(language="pseudo"))
    assert part["alt"] == f"⟦{ALT}⟧"
    assert part["presets"] == ["⟦Low⟧", "⟦Reset⟧"]
    assert part["controls"][0]["label"] == "⟦height⟧"
    assert all(text.startswith("⟦") for text in part["words"].values())


# ---------------------------------------------------------------- the language


@pytest.mark.parametrize("kind", KINDS)
def test_the_language_is_kept(kind):
    assert kind().language.name == "en"
    assert kind(language="pseudo").language.name == "pseudo"


@pytest.mark.parametrize("kind", [*PANELS, *LIVE_RUNS, *SHEETS])
def test_every_component_takes_a_language(kind):
    parameter = inspect.signature(kind).parameters["language"]
    assert (parameter.kind, parameter.default) == (parameter.KEYWORD_ONLY, None)


def own_constructors():
    shared = {kind.__init__ for kind in (Panel, LiveRun, Sheet)}
    return {kind.__init__: kind for kind in (*PANELS, *LIVE_RUNS, *SHEETS) if kind.__init__ not in shared}.values()


@pytest.mark.parametrize("kind", own_constructors())
def test_a_constructor_of_its_own_hands_the_language_on(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_PARTS_RATINGS", str(tmp_path / "ratings.json"))
    assert kind(language="pseudo").language.name == "pseudo"
