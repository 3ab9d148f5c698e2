"""The contract of an explorer: controls, one picture, one table of numbers and one line for what went wrong."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import RLock
from types import MappingProxyType
from typing import TypeVar

import ipywidgets as widgets

from transformer_parts.explore import controls
from transformer_parts.explore.ahead import Ahead
from transformer_parts.explore.component import ViewComponent
from transformer_parts.explore.front_end import FrontEnd
from transformer_parts.explore.ranges import bring, places
from transformer_parts.language import _

Data = TypeVar("Data")
State = Mapping[str, object]


class Panel(ViewComponent[Data]):
    """Controls over one view.

    A concept's panel names its `presets`, makes its controls and its view, and turns the state of the controls into
    the data that both the picture and the table show.  The state alone decides them: `frame` is a pure function of it.

    Parameters
    ----------
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    controls : dict of str to ipywidgets.Widget
        The controls by name; the names are the keywords of `set` and of `compute`.  During a drag a control keeps its
        value here until the pointer pauses.
    view : View; what draws the picture
    picture : ipywidgets.Image; the picture, as of the last pause of a drag
    readout, status : ipywidgets.HTML
        The table of numbers, and the line that reports an error (empty when there is none).
    error : Exception or None; the error that the status line reports
    widget : ipywidgets.VBox; all of it, to be placed in other layouts
    lock : threading.RLock; held while controls and picture change
    """

    #: Button label → values of controls.
    presets: Mapping[str, State] = MappingProxyType({})
    #: Name of the whole-number control that the play button moves, and its milliseconds per step.
    play: str | None = None
    play_interval: int = 120
    after_error = _("Showing the last valid setting.")

    def __init__(self, *, language: str | None = None):
        super().__init__(language=language)
        self._initial = self.state
        # JupyterLab runs the callbacks of sliders in another thread than the cells.
        self.lock = RLock()
        self._refreshes = True
        self._player = None if self.play is None else self._make_player(self.controls[self.play])
        self._front_end = self._make_front_end()
        self._ahead = Ahead(self, self._front_end.send)
        self._front_end.on_msg(self._ahead.message)
        overlay = widgets.Box([self._front_end]).add_class("tp-front")
        framed = widgets.Box([self.picture, overlay]).add_class("tp-frame")
        self.widget = self.beside(self.make_side(), framed)
        self._show()
        for name, control in self.controls.items():
            control.observe(lambda change, name=name: self._changed(name, change.old), names="value")

    @abstractmethod
    def compute(self, **state) -> Data:
        """Return the data of the picture and the table for a state, by calling the maths room."""

    def couple(self, name: str) -> None:
        """Adjust the other controls after control `name` has changed; no refresh happens meanwhile."""

    @property
    def couples(self) -> bool:
        """Whether some control adjusts others."""
        return type(self).couple is not Panel.couple

    @property
    def presses(self) -> int:
        """How often a button was pressed."""
        return self._front_end.presses

    def frame(self, state: State | None = None) -> bytes:
        """Return the picture of a state (the current one by default), leaving the page as it is."""
        return self.view.frame(self.compute(**(self.state if state is None else state)))

    def set(self, /, **values) -> None:
        """Set several controls and refresh once.

        Raises
        ------
        ValueError
            If a name is unknown or a value is none of its control's; nothing has changed then.  After any other error
            and after an interrupt nothing has changed either.
        """
        unknown = set(values) - set(self.controls)
        if unknown:
            raise ValueError(
                _(
                    "{name}: got a control of that name, want one of {names}",
                    name=min(unknown),
                    names=", ".join(self.controls),
                )
            )
        with self.lock:
            state, page = self.state, self._page()
            try:
                self._ahead.forget()
                self.put(values)
                self._show()
            except Exception:
                self._put_back(state, page)
                raise
            except BaseException:
                self._interrupted(state, page)
                raise
            finally:
                self._ahead.rested()

    def reset(self) -> None:
        """Put every control back to where it began."""
        self.set(**self._initial)

    def refresh(self) -> None:
        """Show picture and table of the current state; on an error or an interrupt keep both and report it."""
        with self.lock:
            page = self._page()
            try:
                self.act(self._show)
            except BaseException:
                self._interrupted(self.state, page)
                raise
            finally:
                self._ahead.rested()

    def _show(self) -> None:
        self.draw(self.compute(**self.state))
        self.say("")

    def put(self, values: State) -> None:
        """Set several controls, and those coupled to them, without a refresh; users call `set`."""
        with self._without_refresh():
            # Twice, because a coupled control may have its range only after another has its value.
            for _round in range(2):
                for name, value in values.items():
                    control = self.controls[name]
                    before, offered = control.value, controls.offered(control, value)
                    if offered:
                        (control.value,) = offered
                    if control.value != before:
                        self.couple(name)
        for name, value in values.items():
            if not controls.same(self.controls[name].value, value):
                raise ValueError(
                    _(
                        "{name}: got {value}, want {range}",
                        name=name,
                        value=controls.described(value),
                        range=controls.range_of(self.controls[name]),
                    )
                )

    def _page(self) -> tuple:
        return self.picture.value, self.readout.value, self.shown, self.status.value, self.error

    def _put_back(self, state: State, page: tuple) -> None:
        """Have the controls and the page as they were."""
        try:
            self.put(state)
            for name, control in self.controls.items():
                # An interrupt may have come between the place of a control, which the page knows, and its value.
                if hasattr(control, "index"):
                    bring(control, next(at for at, own in places(control).items() if controls.same(own, state[name])))
        finally:
            self._refreshes = True
            self.picture.value, self.readout.value, self.shown, self.status.value, self.error = page

    def _interrupted(self, state: State, page: tuple) -> None:
        """Have everything as it was before an interrupt, and say that there was one."""
        # What a control offered before may be gone; then the message alone says that picture and control differ.
        with suppress(ValueError):
            self._put_back(state, page)
        # A figure that was being drawn may be in no state to be drawn again.
        self.view = self.make_view()
        self.report(InterruptedError(_("Interrupted.")))

    def _changed(self, name: str, old: object) -> None:
        with self.lock:
            if not self._refreshes:
                return
            state, page = {**self.state, name: old}, self._page()
            try:
                self._follow(name)
            except BaseException:
                self._interrupted(state, page)
                self._ahead.rested()
                raise

    def _follow(self, name: str) -> None:
        """Bring the rest of the panel up to date with a control that has changed."""
        try:
            with self._without_refresh():
                self.couple(name)
        except Exception as error:
            self._ahead.forget()
            self.report(error)
            self._ahead.rested()
        else:
            self._ahead.moved(name)
            self.refresh()

    def _press(self, values: State) -> None:
        with self.lock:
            try:
                self.set(**values)
            finally:
                # Last, so that the page's messages about the new values still carry the count from before.
                self._front_end.presses += 1

    @contextmanager
    def _without_refresh(self) -> Iterator[None]:
        try:
            self._refreshes = False
            yield
        finally:
            self._refreshes = True

    def make_side(self) -> list[widgets.Widget]:
        """Return what is beside the picture, from top to bottom."""
        presets = {**self.presets, _("Reset"): self._initial}
        buttons = [self.button(label, lambda at=values: self._press(at)) for label, values in presets.items()]
        player = [] if self._player is None else [self._player]
        return [widgets.HBox(buttons).add_class("tp-bar"), *player, *self.controls.values(), self.status]

    def _make_front_end(self) -> FrontEnd:
        return FrontEnd(
            controls={name: control.model_id for name, control in self.controls.items()},
            picture=self.picture.model_id,
            readout=self.readout.model_id,
            play="" if self._player is None else self._player.model_id,
            plays=self.play or "",
            play_names=self._play_names(),
        )

    def _play_names(self) -> list[str]:
        if self._player is None:
            return []
        control = self.controls[self.play].description
        names = (
            _("Play or pause: {control}", control=control),
            _("Stop: {control}", control=control),
            _("Repeat: {control}", control=control),
        )
        return [self.translate(name) for name in names]

    def _make_player(self, slider: widgets.IntSlider) -> widgets.Play:
        if not isinstance(slider, widgets.IntSlider):
            raise ValueError(f"play: got {self.play}, want the name of a slider over whole numbers")
        play = widgets.Play(
            value=slider.value, min=slider.min, max=slider.max, step=slider.step, interval=self.play_interval
        )
        # Linked in the browser: while it plays, steps that the kernel has no time for are skipped there.
        self._links = [
            widgets.jslink((play, "value"), (slider, "value")),
            *(widgets.jslink((slider, name), (play, name)) for name in ("min", "max")),
        ]
        return play
