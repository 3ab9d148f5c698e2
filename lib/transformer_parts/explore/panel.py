"""The contract of an explorer: controls, one picture, one table of numbers and one line for what went wrong."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from threading import RLock
from types import MappingProxyType
from typing import Generic, TypeVar

import ipywidgets as widgets
from traitlets import TraitError, Unicode

from transformer_parts.draw import frame
from transformer_parts.draw.view import View
from transformer_parts.explore.ahead import Ahead
from transformer_parts.explore.front_end import FrontEnd
from transformer_parts.explore.page import mimebundle, style_sheet
from transformer_parts.explore.readout import Row, table
from transformer_parts.maths import require

logger = logging.getLogger(__name__)

Data = TypeVar("Data")
State = Mapping[str, object]


class Picture(widgets.Image):
    """An image whose tooltip is its accessible name.

    The front end of ipywidgets 8 sets an image's ``title`` only if the widget also has an (empty) description, which
    ``ipywidgets.Image`` lacks: with a tooltip alone it fails to draw.
    """

    description = Unicode("").tag(sync=True)


class Panel(ABC, Generic[Data]):
    """Controls over one view.

    A concept's panel names its `presets`, makes its controls and its view, and turns the state of the controls into
    the data that both the picture and the table show.  The state alone decides them: `frame` is a pure function of it.

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        The controls by name; the names are the keywords of `set` and of `compute`.  A control that a hand moves has
        its new value here when the hand rests.
    view : View
        The picture.
    picture : ipywidgets.Image
        The picture, as it was when the hand last rested.
    readout, status : ipywidgets.HTML
        The table of numbers, and the line that says what went wrong (empty when nothing did).
    error : Exception or None
        What the last refresh raised.
    widget : ipywidgets.VBox
        All of it, to be placed in other layouts.
    lock : threading.RLock
        Held while controls and picture change.
    """

    #: Accessible name of the picture: what it shows, in words.
    alt: str = ""
    #: Path of the still (below the project) that this panel takes the place of on a live page.
    still: str = ""
    #: Button label → values of controls.
    presets: Mapping[str, State] = MappingProxyType({})
    #: Name of the whole-number control that the play button moves, and its milliseconds per step.
    play: str | None = None
    play_interval: int = 120

    def __init__(self):
        self.controls = self.make_controls()
        self.view = self.make_view()
        self.error: Exception | None = None
        self._initial = self.state
        # JupyterLab runs the callbacks of sliders in another thread than the cells.
        self.lock = RLock()
        self._held = False
        self.picture = Picture(format=frame.LIVE_FORMAT, width=str(self.view.size[0]), tooltip=self.alt)
        self.readout = widgets.HTML()
        self.status = widgets.HTML()
        self._player = None if self.play is None else self._make_player(self.controls[self.play])
        self._front_end = self._make_front_end()
        self._ahead = Ahead(self, self._front_end.send)
        self._front_end.on_msg(self._ahead.message)
        self.widget = self._assemble()
        self._show(self.state)
        for name, control in self.controls.items():
            control.observe(lambda change, name=name: self._changed(name), names="value")

    @abstractmethod
    def make_controls(self) -> dict[str, widgets.ValueWidget]:
        """Return the controls by name, in the order of the page."""

    @abstractmethod
    def make_view(self) -> View[Data]:
        """Return the view."""

    @abstractmethod
    def compute(self, **state) -> Data:
        """Return the data of the picture and the table for a state, by calling the maths room."""

    @abstractmethod
    def rows(self, data: Data) -> list[Row]:
        """Return the lines of the table."""

    def couple(self, name: str) -> None:
        """Bring other controls into line after control `name` has changed; no refresh happens meanwhile."""

    @property
    def couples(self) -> bool:
        """Whether some control moves others."""
        return type(self).couple is not Panel.couple

    @property
    def presses(self) -> int:
        """How often a button was pressed."""
        return self._front_end.presses

    @property
    def state(self) -> dict[str, object]:
        """The value of each control."""
        return {name: control.value for name, control in self.controls.items()}

    def frame(self, state: State | None = None) -> bytes:
        """Return the picture of a state (the present one by default), leaving the page as it is."""
        return self.view.frame(self.compute(**(self.state if state is None else state)))

    def set(self, **values) -> None:
        """Set several controls and refresh once.

        Raises
        ------
        ValueError
            If a name is unknown or a value is out of its control's range; nothing has changed then.
        """
        unknown = set(values) - set(self.controls)
        if unknown:
            raise require.refusal(min(unknown), "a control of that name", f"one of {', '.join(self.controls)}")
        with self.lock:
            before = self.state
            self._ahead.forget()
            try:
                self.put(values)
                self._show(self.state)
            except Exception:
                self.put(before)
                raise
            finally:
                self._ahead.rested()

    def reset(self) -> None:
        """Put every control back to where it began."""
        self.set(**self._initial)

    def refresh(self) -> None:
        """Bring picture and table to the present state; on an error keep both and say what went wrong."""
        with self.lock:
            try:
                self._show(self.state)
            except Exception as error:
                self._report(error)
            finally:
                self._ahead.rested()

    def _report(self, error: Exception) -> None:
        self.error = error
        logger.error("%s could not show %s", type(self).__name__, self.state, exc_info=error)
        self.status.value = (
            f'<p class="tp-status" role="alert">{escape(str(error) or type(error).__name__)}<br>'
            "The picture and the numbers are those of the last good setting.</p>"
        )

    def _show(self, state: State) -> None:
        data = self.compute(**state)
        picture, numbers = self.view.frame(data), table(self.rows(data))
        self.picture.value, self.readout.value = picture, numbers
        self.error, self.status.value, self._shown = None, "", data

    def put(self, values: State) -> None:
        """Set several controls, and those that move along, without a refresh; `set` is the one to use."""
        with self._hold():
            # Twice, because a coupled control may have its range only after another has its value.
            for _ in range(2):
                for name, value in values.items():
                    control = self.controls[name]
                    before = control.value
                    with suppress(TraitError):
                        control.value = value
                    if control.value != before:
                        self.couple(name)
        for name, value in values.items():
            if self.controls[name].value != value:
                raise require.refusal(name, repr(value), _range_of(self.controls[name]))

    def _changed(self, name: str) -> None:
        with self.lock:
            if self._held:
                return
            try:
                with self._hold():
                    self.couple(name)
            except Exception as error:
                self._ahead.forget()
                self._report(error)
                self._ahead.rested()
            else:
                self._ahead.moved(name)
                self.refresh()

    def _press(self, values: State) -> None:
        try:
            with self.lock:
                try:
                    self.set(**values)
                finally:
                    # Last, so that what the page makes of the new values is told with the count from before.
                    self._front_end.presses += 1
        except Exception as error:
            self._report(error)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _assemble(self) -> widgets.VBox:
        buttons = [self._button(label, values) for label, values in self.presets.items()]
        buttons.append(self._button("Reset", self._initial))
        bar = [widgets.HBox(buttons).add_class("tp-bar")]
        if self._player is not None:
            bar.append(self._player)
        controls = widgets.VBox([*bar, *self.controls.values(), self.status]).add_class("tp-controls")
        framed = widgets.Box([self.picture, widgets.Box([self._front_end]).add_class("tp-front")]).add_class("tp-frame")
        picture = widgets.VBox([framed, self.readout]).add_class("tp-picture")
        body = widgets.HBox([controls, picture]).add_class("tp-body")
        return widgets.VBox([style_sheet("style.css", self.still), body]).add_class("tp-panel")

    def _make_front_end(self) -> FrontEnd:
        return FrontEnd(
            controls={name: control.model_id for name, control in self.controls.items()},
            picture=self.picture.model_id,
            readout=self.readout.model_id,
            play="" if self._player is None else self._player.model_id,
            plays=self.play or "",
        )

    def _button(self, label: str, values: State) -> widgets.Button:
        button = widgets.Button(description=label)
        button.on_click(lambda _: self._press(values))
        return button

    def _make_player(self, slider: widgets.IntSlider) -> widgets.Play:
        play = widgets.Play(
            value=slider.value, min=slider.min, max=slider.max, step=slider.step, interval=self.play_interval
        )
        # Linked in the browser: while it plays, steps that the kernel has no time for are passed over there.
        self._links = [
            widgets.jslink((play, "value"), (slider, "value")),
            *(widgets.jslink((slider, name), (play, name)) for name in ("min", "max")),
        ]
        return play

    def _repr_mimebundle_(self, include=None, exclude=None):
        return mimebundle(self.widget, self.alt, self.view.still(self._shown), self.view.size[0])


def _range_of(control: widgets.Widget) -> str:
    if isinstance(control, widgets.Checkbox):
        return "True or False"
    if hasattr(control, "options"):
        names = [option[0] if isinstance(option, tuple) else str(option) for option in control.options]
        return f"one of {', '.join(names)}" if len(names) <= 12 else f"one of {names[0]}, {names[1]} … {names[-1]}"
    return f"{control.min:g} to {control.max:g}"
