"""A run the reader starts: steps in a thread, stop and start at any moment, errors in the status line, nothing left."""

import gc
import re
import subprocess
import sys
import weakref
from threading import Event, active_count
from types import MappingProxyType

import ipywidgets as widgets
import pytest

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.explore import controls, live_run
from transformer_parts.explore.component import Picture
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.readout import Row

KINDS = MappingProxyType(
    {
        "plain": "plain",
        "fails at 3": "fails",
        "cannot be drawn": "undrawn",
        "no run": "no run",
        "ends at 2": "short",
    }
)
PATIENCE = 20


class LineView(View[list]):
    """A line of what has come so far."""

    size = (80, 60)

    def build(self):
        self.axes = theme.style(self.fig.add_axes((0.1, 0.1, 0.8, 0.8)), grid=False)
        self.limits(self.axes, x=(0, 10), y=(0, 100))
        (line,) = self.axes.plot([], [], marker="o")
        self.line = self.moving(line)

    def update(self, data):
        records, _ = data
        self.line.set_data(range(len(records)), records)
        return self


class Squares(LiveRun[int, tuple]):
    """Squares of whole numbers; a step waits until the test lets it go."""

    alt = "A line <of> squares"
    still = "figures/squares.png"
    interval = 0.0

    def __init__(self):
        self.free, self.begun, self.closed = Event(), Event(), []
        super().__init__()

    def make_controls(self):
        return {
            "count": controls.integer("count", 5, 1, 9),
            "kind": controls.choice("kind", KINDS, "plain"),
        }

    def make_view(self):
        return LineView()

    def steps(self, *, count, kind):
        if kind == "no run":
            raise ValueError("kind: got <no run>, want another")
        return count

    def run(self, *, count, kind):
        try:
            for i in range(count):
                self.begun.set()
                assert self.free.wait(PATIENCE)
                if kind == "short" and i == 2:
                    return
                if kind == "fails" and i == 3:
                    raise ValueError("loss: got <NaN>, want a number")
                yield i * i
        finally:
            self.closed.append(count)

    def data(self, records, earlier, *, count, kind):
        if kind == "undrawn" and len(records) == 2:
            raise RuntimeError("no paint")
        return records, earlier

    def rows(self, data):
        return [Row("last <square>", str(data[0][-1:]))]


@pytest.fixture
def live():
    panel = Squares()
    yield panel
    panel.free.set()
    panel.close()


def finished(panel) -> Squares:
    panel.free.set()
    assert panel.wait(PATIENCE)
    return panel


def inside(panel, kind):
    def walk(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from walk(child)

    return [widget for widget in walk(panel.widget) if isinstance(widget, kind)]


def button(panel, name) -> widgets.Button:
    (found,) = [b for b in inside(panel, widgets.Button) if b.description == name]
    return found


def words(panel) -> str:
    return re.sub("<[^>]*>", "", panel.status.value)


# ---------------------------------------------------------------- one run


def test_nothing_runs_until_it_is_started(live):
    assert (live.records, live.running, live.begun.is_set()) == ((), False, False)
    assert "Press Start" in words(live)
    assert 'max="5" value="0"' in live.progress.value
    assert (button(live, "Start").disabled, button(live, "Stop").disabled) == (False, True)


def test_a_run_goes_to_its_end(live):
    (picture,) = inside(live, Picture)
    before = picture.value
    button(live, "Start").click()
    assert live.running
    assert words(live) == "Running."
    assert (button(live, "Start").disabled, button(live, "Stop").disabled) == (True, False)
    assert all(control.disabled for control in live.controls.values())
    finished(live)
    assert live.records == (0, 1, 4, 9, 16)
    assert re.fullmatch(r"Finished: 5 steps in \d+\.\d s\.", words(live))
    assert 'max="5" value="5"' in live.progress.value
    assert picture.value == live.view.frame(((0, 1, 4, 9, 16), ())) != before
    assert "(16,)" in live.readout.value
    assert (button(live, "Start").disabled, button(live, "Stop").disabled) == (False, True)
    assert not any(control.disabled for control in live.controls.values())


def test_the_picture_grows_while_it_runs(live):
    (picture,) = inside(live, Picture)
    seen, bars, said = [], [], []
    picture.observe(lambda change: seen.append(change.new), names="value")
    live.progress.observe(lambda change: bars.append(change.new), names="value")
    live.readout.observe(lambda change: said.append("aria-live" in change.new), names="value")
    live.start()
    finished(live)
    assert len(set(seen)) == 5
    assert [re.search('value="(.)"', bar).group(1) for bar in bars if "left" in bar] == list("12345")
    # A screen reader is not to read every step aloud, but the end.
    assert said == [False] * 5 + [True]


def test_pictures_come_no_faster_than_the_interval(live):
    live.interval = 1000.0
    pictures = []
    inside(live, Picture)[0].observe(lambda change: pictures.append(change), names="value")
    live.start()
    finished(live)
    assert len(pictures) == 1


def test_stop_is_heard_after_the_present_step_and_the_generator_is_closed(live):
    live.start()
    assert live.begun.wait(PATIENCE)
    button(live, "Stop").click()
    assert live.running, "stop does not wait"
    finished(live)
    assert live.records == (0,)
    assert words(live) == "Stopped after 1 of 5 steps."
    assert live.closed == [5]
    assert live.error is None
    live.start()
    assert len(finished(live).records) == 5


def test_a_run_that_ends_early_is_not_called_stopped(live):
    live.controls["kind"].value = "short"
    live.start()
    assert words(finished(live)) == "The run ended by itself after 2 of 5 steps."
    live.why_early = ", out of squares,"
    live.start()
    assert words(finished(live)) == "The run ended by itself, out of squares, after 2 of 5 steps."


def test_started_twice_it_runs_once(live):
    threads = active_count()
    live.start()
    worker = live._worker
    live.start()
    button(live, "Start").click()
    assert live._worker is worker
    assert active_count() == threads + 1
    assert len(finished(live).records) == 5
    assert live.closed == [5]


def test_another_live_run_is_stopped(live):
    other = Squares()
    live.start()
    assert live.begun.wait(PATIENCE)
    other.start()
    finished(live)
    assert words(live) == "Stopped after 1 of 5 steps."
    assert len(finished(other).records) == 5


def test_a_cell_that_is_run_again_stops_the_run_of_before(live):
    live.start()
    assert live.begun.wait(PATIENCE)
    again = type("Squares", (Squares,), {"__qualname__": "Squares"})()  # the class, too, may have been made again
    finished(live)
    assert words(live) == "Stopped after 1 of 5 steps."
    again.start()
    assert len(finished(again).records) == 5


def test_a_live_run_of_another_name_stops_nothing_before_it_is_started(live):
    live.start()
    assert live.begun.wait(PATIENCE)
    type("Cubes", (Squares,), {})()
    assert len(finished(live).records) == 5


def test_a_system_without_threads_is_reported_and_the_buttons_are_free(live, logged, monkeypatch):
    monkeypatch.setattr(live_run._Worker, "start", lambda worker: 1 / 0)
    button(live, "Start").click()
    assert not live.running
    assert isinstance(live.error, ZeroDivisionError)
    assert not button(live, "Start").disabled
    logged.clear()


def test_the_run_before_is_kept_to_compare_with(live):
    live.start()
    finished(live)
    live.controls["count"].value = 2
    assert "Press Start" in words(live)
    assert 'max="2" value="0"' in live.progress.value
    assert len(live.records) == 5
    live.start()
    finished(live)
    assert (live.records, live.earlier) == ((0, 1), (0, 1, 4, 9, 16))


def test_controls_that_change_while_it_runs_do_not_change_the_run(live):
    live.start()
    live.controls["kind"].value = "fails"
    live.controls["count"].value = 2
    assert words(live) == "Running."
    assert len(finished(live).records) == 5


# ---------------------------------------------------------------- what goes wrong


def test_an_error_stands_in_the_status_line_and_the_next_run_is_free(live, logged):
    live.controls["kind"].value = "fails"
    live.start()
    finished(live)
    assert live.status.value.startswith(
        '<p class="tp-status" role="alert"><code>loss: got &lt;NaN&gt;, want a number</code>'
    )
    assert str(live.error) == "loss: got <NaN>, want a number"
    assert live.records == (0, 1, 4)
    assert "(4,)" in live.readout.value
    (message,) = logged.messages
    assert "Squares failed" in message
    logged.clear()
    live.controls["kind"].value = "plain"
    live.start()
    assert live.error is None
    assert len(finished(live).records) == 5


def test_an_error_of_the_picture_ends_the_run(live, logged):
    live.controls["kind"].value = "undrawn"
    live.start()
    finished(live)
    assert "no paint" in live.status.value
    assert not button(live, "Start").disabled
    assert logged.messages
    logged.clear()


def test_a_state_without_a_run_is_told_at_once(live, logged):
    live.controls["kind"].value = "no run"
    live.start()
    assert not live.running
    assert "kind: got &lt;no run&gt;" in live.status.value
    assert logged.messages
    logged.clear()


# ---------------------------------------------------------------- leaving


def test_closing_ends_the_run_and_takes_every_widget_away(live):
    live.start()
    assert live.begun.wait(PATIENCE)
    live.free.set()
    live.close()
    assert not live.running
    assert all(widget.comm is None for widget in inside(live, widgets.Widget))
    live.start()
    assert not live.running


def test_a_run_whose_widgets_were_closed_by_others_ends(live):
    live.start()
    assert live.begun.wait(PATIENCE)
    widgets.Widget.close_all()
    finished(live)
    assert len(live.records) == 1


def test_an_ended_run_is_let_go():
    panel = Squares()
    panel.start()
    finished(panel)
    panel.close()
    widgets.Widget.close_all()
    gone = weakref.ref(panel)
    del panel
    gc.collect()
    assert gone() is None


def test_a_process_with_a_run_under_way_ends_at_once_and_in_silence():
    code = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('live', {__file__!r})\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "panel = module.Squares(); panel.free.set(); panel.controls['count'].max = 10**9\n"
        "panel.controls['count'].value = 10**9; panel.start()\n"
        "while len(panel.records) < 3: pass\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


# ---------------------------------------------------------------- the page


def test_everything_has_a_name(live):
    (picture,) = inside(live, Picture)
    assert picture.tooltip == live.alt
    assert 'aria-label="steps done"' in live.progress.value
    assert 'role="status"' in live.status.value
    assert all(b.description for b in inside(live, widgets.Button))


def test_it_is_shown_with_its_picture_and_words(live):
    data, metadata = live._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == live.widget.model_id
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["text/plain"] == live.alt == metadata["image/png"]["alt"]


def test_no_output_widget_and_the_still_is_hidden(live):
    assert not inside(live, widgets.Output)
    (sheet,) = [html for html in inside(live, widgets.HTML) if html.value.startswith("<style>")]
    assert 'img[src*="figures/squares.png"]' in sheet.value
