"""The contract of a run that the reader starts: buttons, a progress bar, a curve that grows, and a status line."""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from html import escape
from threading import Event, RLock, Thread
from threading import enumerate as living_threads
from time import perf_counter
from typing import Generic, TypeVar

import ipywidgets as widgets

from transformer_parts.explore.component import ViewComponent
from transformer_parts.language import _

Record = TypeVar("Record")
Data = TypeVar("Data")


class LiveRun(ViewComponent[Data], Generic[Record, Data]):
    """A generator that is run step by step in a thread of its own, and drawn while it runs.

    Nothing runs until `start` is called or its button pressed.  The thread alone advances the generator and draws, so
    the notebook stays free: other cells run meanwhile, and `stop` takes effect after the current step.  Of all live
    runs of a kernel one runs at a time: starting one stops another.  Making one stops an earlier one of the same name,
    whose cell has been run again.

    Parameters
    ----------
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        The settings of the run, by the names of the keywords of `steps` and `run`; they are disabled while it runs.
    view : View; what draws the picture
    records, earlier : tuple; what the generator has yielded so far, and what the run before yielded
    shown : Data; what picture and table show
    readout, progress, status : ipywidgets.HTML
        The table of numbers, the progress bar, and the line that says what happens or reports an error.
    error : Exception or None; the error that the status line reports
    widget : ipywidgets.VBox; all of it
    """

    #: Seconds between two pictures while it runs.
    interval: float = 0.15
    #: Why a run may end before its last step without being stopped, to follow "ended by itself".
    why_early: str = ""

    def __init__(self, *, language: str | None = None):
        super().__init__(language=language)
        _stop_all(type(self).__qualname__)
        self._records: list[Record] = []
        self.earlier: tuple[Record, ...] = ()
        self._worker: _Worker | None = None
        # Start and stop come from the threads in which the page's messages are handled, pictures from the worker.
        self._lock = RLock()
        self._start, self._stop = self.button(_("Start"), self.start), self.button(_("Stop"), self.stop, disabled=True)
        self.progress = widgets.HTML()
        buttons = widgets.HBox([self._start, self._stop]).add_class("tp-bar")
        column = [buttons, *self.controls.values(), self.progress, self.status]
        self.widget = self.on_page(self.beside(column)).add_class("tp-live")
        self._ran = self.state
        self._show()
        self._bar(0, self.steps(**self.state))
        for control in self.controls.values():
            control.observe(lambda _change: self._changed(), names="value")
        self.say(_("Press Start."))

    @abstractmethod
    def steps(self, **state) -> int:
        """Return how many records a run from this state yields, unless it is stopped."""

    @abstractmethod
    def run(self, **state) -> Generator[Record]:
        """Yield one record a step."""

    @abstractmethod
    def data(self, records: Sequence[Record], earlier: Sequence[Record], **state) -> Data:
        """Return what picture and table show after these records of a run from this state.

        There may be none yet.  `earlier` is what the run before yielded, for comparison.
        """

    @property
    def records(self) -> tuple[Record, ...]:
        """What the generator has yielded so far."""
        return tuple(self._records)

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._worker is not None

    def start(self) -> None:
        """Begin a run from the state of the controls; while one is under way nothing happens."""
        with self._lock:
            if self.running or self._closed:
                return
            _stop_all()
            state = self.state
            try:
                steps, run = self.steps(**state), self.run(**state)
            except Exception as error:
                self.report(error)
                return
            self.earlier, self._records, self._ran = self.records, [], state
            self._enable(False)
            self.say(_("Running."))
            self._worker = _Worker(type(self).__qualname__, lambda worker: self._work(worker, run, steps))
            try:
                self._worker.start()
            except BaseException:
                # Interrupted, or the system gives no thread.
                self._worker = None
                self._enable(True)
                raise

    def stop(self) -> None:
        """Ask the run to end after its current step, and return at once."""
        with self._lock:
            if self._worker is not None:
                self._worker.stopping.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no run is under way, at most so many seconds, and return whether that is so."""
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
                    self.report(error, state=self._ran)
                elif done >= steps:
                    self.say(_("Finished: {done} steps in {seconds:.1f} s.", done=done, seconds=seconds))
                elif worker.stopping.is_set():
                    self.say(_("Stopped after {done} of {steps} steps.", done=done, steps=steps))
                else:
                    words = _(
                        "The run ended by itself{why} after {done} of {steps} steps.",
                        why=self.why_early,
                        done=done,
                        steps=steps,
                    )
                    self.say(words)
                self._enable(True)

    def _show(self, *, announced: bool = False) -> None:
        self.draw(self.data(self.records, self.earlier, **self._ran), announced=announced)

    def _bar(self, done: int, steps: int, seconds: float = 0.0) -> None:
        count = _("{done} of {steps} steps", done=done, steps=steps)
        if done and seconds:
            rest = seconds * (steps - done) / done
            count = _("{done} of {steps} steps, about {rest:.0f} s left", done=done, steps=steps, rest=rest)
        label, words = self.translate(_("steps done")), self.translate(count)
        # Not an IntProgress, which is made of nameless boxes: screen readers pass over it.
        self.progress.value = (
            f'<progress style="width: 100%; height: 1.2em" aria-label="{escape(label)}" max="{steps}" value="{done}">'
            f"</progress><br>{escape(words)}"
        )

    def _changed(self) -> None:
        with self._lock:
            if self.running:
                return
            try:
                self._bar(0, self.steps(**self.state))
            except Exception as error:
                self.report(error)
            else:
                self.say(_("Press Start to run with these settings."))

    def _enable(self, free: bool) -> None:
        for control in (self._start, *self.controls.values()):
            control.disabled = not free
        self._stop.disabled = free


class _Worker(Thread):
    """The thread of one run; it does not keep the kernel from ending."""

    def __init__(self, of: str, work):
        super().__init__(name="transformer_parts live run", daemon=True)
        self.of, self.stopping = of, Event()
        self._work = work

    def run(self) -> None:
        self._work(self)


def _stop_all(of: str | None = None) -> None:
    """Stop the runs of the kernel, or those of the classes of one name: a cell that is run again may make the class."""
    for thread in living_threads():
        if isinstance(thread, _Worker) and of in (None, thread.of):
            thread.stopping.set()


def _inside(widget: widgets.Widget) -> list[widgets.Widget]:
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in _inside(child))]
