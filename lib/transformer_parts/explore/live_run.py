"""The contract of a run that the reader starts: buttons, a progress bar, a curve that grows, and a line of status."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from html import escape
from threading import Event, RLock, Thread
from threading import enumerate as living_threads
from time import perf_counter
from typing import Generic, TypeVar

import ipywidgets as widgets

from transformer_parts.draw import frame
from transformer_parts.draw.view import View
from transformer_parts.explore.page import mimebundle, style_sheet
from transformer_parts.explore.panel import Picture
from transformer_parts.explore.readout import Row, table

logger = logging.getLogger(__name__)

Record = TypeVar("Record")
Data = TypeVar("Data")


class LiveRun(ABC, Generic[Record, Data]):
    """A generator that is run step by step in a thread of its own, and drawn while it runs.

    Nothing runs until `start` is called or its button pressed.  The thread alone advances the generator and draws, so
    the notebook stays free: other cells run meanwhile, and `stop` is heard after the present step.  Of all live runs of
    a kernel one runs at a time: starting one stops another.

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        What decides the run, by the names of the keywords of `steps` and `run`; they rest while it runs.
    view : View
        The picture.
    records, earlier : tuple
        What the generator has given so far, and what the run before gave.
    readout, progress, status : ipywidgets.HTML
        The table of numbers, the bar, and the line that says what happens or what went wrong.
    error : Exception or None
        What the last run raised.
    widget : ipywidgets.VBox
        All of it.
    """

    #: Accessible name of the picture: what it shows, in words.
    alt: str = ""
    #: Path of the still (below the project) that this takes the place of on a live page.
    still: str = ""
    #: Seconds between two pictures while it runs.
    interval: float = 0.15
    #: Why a run may end before its last step without being stopped, to follow "ended by itself".
    why_early: str = ""

    def __init__(self):
        self.controls = self.make_controls()
        self.view = self.make_view()
        self.error: Exception | None = None
        self._records: list[Record] = []
        self.earlier: tuple[Record, ...] = ()
        self._worker: _Worker | None = None
        # Start and stop come from the threads in which the page's messages are handled, pictures from the worker.
        self._lock = RLock()
        self._image = Picture(format=frame.LIVE_FORMAT, width=str(self.view.size[0]), tooltip=self.alt)
        self.readout, self.progress, self.status = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._start, self._stop = widgets.Button(description="Start"), widgets.Button(description="Stop", disabled=True)
        self._start.on_click(lambda _: self.start())
        self._stop.on_click(lambda _: self.stop())
        self.widget = self._assemble()
        self._ran = self.state
        self._show()
        self._bar(0, self.steps(**self.state))
        for control in self.controls.values():
            control.observe(lambda _: self._changed(), names="value")
        self._say("Press Start.")

    @abstractmethod
    def make_controls(self) -> dict[str, widgets.ValueWidget]:
        """Return the controls by name, in the order of the page."""

    @abstractmethod
    def make_view(self) -> View[Data]:
        """Return the view."""

    @abstractmethod
    def steps(self, **state) -> int:
        """Return how many records a run from this state gives, unless it is stopped."""

    @abstractmethod
    def run(self, **state) -> Generator[Record]:
        """Yield one record a step."""

    @abstractmethod
    def data(self, records: Sequence[Record], earlier: Sequence[Record], **state) -> Data:
        """Return what picture and table show after these records of a run from this state.

        There may be none yet.  `earlier` is what the run before gave, to compare with.
        """

    @abstractmethod
    def rows(self, data: Data) -> list[Row]:
        """Return the lines of the table."""

    @property
    def state(self) -> dict[str, object]:
        """The value of each control."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def records(self) -> tuple[Record, ...]:
        """What the generator has given so far."""
        return tuple(self._records)

    @property
    def shown(self) -> Data:
        """What the picture shows."""
        return self._shown

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._worker is not None

    def start(self) -> None:
        """Begin a run from the state of the controls; while one is under way nothing happens."""
        with self._lock:
            if self.running or self._closed:
                return
            for thread in living_threads():
                if isinstance(thread, _Worker):
                    thread.stopping.set()
            state = self.state
            try:
                steps, run = self.steps(**state), self.run(**state)
            except Exception as error:
                self._fail(error)
                return
            self.earlier, self._records, self._ran, self.error = self.records, [], state, None
            self._enable(False)
            self._say("Running.")
            self._worker = _Worker(lambda worker: self._work(worker, run, steps))
            self._worker.start()

    def stop(self) -> None:
        """Ask the run to end after its present step, and return at once."""
        with self._lock:
            if self._worker is not None:
                self._worker.stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no run is under way, at most so many seconds, and tell whether that is so."""
        worker = self._worker
        if worker is not None:
            worker.join(seconds)
        return not self.running

    def close(self) -> None:
        """End the run and take the widgets off the page."""
        self.stop()
        self.wait()
        for widget in _inside(self.widget):
            widget.close()

    @property
    def _closed(self) -> bool:
        return self.widget.comm is None

    def _work(self, worker: "_Worker", run: Generator[Record], steps: int) -> None:
        begun = shown = perf_counter()
        error = None
        try:
            for record in run:
                self._records.append(record)
                if worker.stopping.is_set() or self._closed:
                    break
                if perf_counter() - shown >= self.interval:
                    self._show()
                    self._bar(len(self._records), steps, perf_counter() - begun)
                    shown = perf_counter()
            run.close()
        except Exception as raised:
            error = raised
        done, seconds = len(self._records), perf_counter() - begun
        try:
            self._show(announced=True)
            self._bar(done, steps)
        except Exception as raised:
            error = error or raised
        finally:
            with self._lock:
                self._worker = None
                if error is not None:
                    self._fail(error)
                elif done < steps:
                    ended = "Stopped" if worker.stopping.is_set() else f"The run ended by itself{self.why_early}"
                    self._say(f"{ended} after {done} of {steps} steps.")
                else:
                    self._say(f"Finished: {done} steps in {seconds:.1f} s.")
                self._enable(True)

    def _show(self, *, announced: bool = False) -> None:
        data = self.data(self.records, self.earlier, **self._ran)
        self._image.value = self.view.frame(data)
        self.readout.value = table(self.rows(data), announced=announced)
        self._shown = data

    def _bar(self, done: int, steps: int, seconds: float = 0.0) -> None:
        left = f", about {seconds * (steps - done) / done:.0f} s left" if done and seconds else ""
        # Not an IntProgress, which is made of nameless boxes: screen readers pass over it.
        self.progress.value = (
            f'<progress style="width: 100%; height: 1.2em" aria-label="steps done" max="{steps}" value="{done}">'
            f"</progress><br>{done} of {steps} steps{left}"
        )

    def _changed(self) -> None:
        with self._lock:
            if self.running:
                return
            try:
                self._bar(0, self.steps(**self.state))
            except Exception as error:
                self._fail(error)
            else:
                self._say("Press Start to run with these settings.")

    def _enable(self, free: bool) -> None:
        for control in (self._start, *self.controls.values()):
            control.disabled = not free
        self._stop.disabled = free

    def _say(self, words: str) -> None:
        self.status.value = f'<p role="status">{escape(words)}</p>'

    def _fail(self, error: Exception) -> None:
        self.error = error
        logger.error("%s failed in a run from %s", type(self).__name__, self._ran, exc_info=error)
        words = escape(str(error) or type(error).__name__)
        self.status.value = f'<p class="tp-status" role="alert">{words}</p>'

    def _assemble(self) -> widgets.VBox:
        buttons = widgets.HBox([self._start, self._stop]).add_class("tp-bar")
        left = [buttons, *self.controls.values(), self.progress, self.status]
        controls = widgets.VBox(left).add_class("tp-controls")
        picture = widgets.VBox([self._image, self.readout]).add_class("tp-picture")
        body = widgets.HBox([controls, picture]).add_class("tp-body")
        return widgets.VBox([style_sheet("style.css", self.still), body]).add_class("tp-panel").add_class("tp-live")

    def _repr_mimebundle_(self, include=None, exclude=None):
        return mimebundle(self.widget, self.alt, self.view.still(self._shown), self.view.size[0])


class _Worker(Thread):
    """The thread of one run; it does not keep the kernel from ending."""

    def __init__(self, work):
        super().__init__(name="transformer_parts live run", daemon=True)
        self.stopping = Event()
        self._work = work

    def run(self) -> None:
        self._work(self)


def _inside(widget: widgets.Widget) -> list[widgets.Widget]:
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in _inside(child))]
