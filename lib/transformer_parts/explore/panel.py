"""The contract of an explorer: controls, one picture, one table of numbers and one line for what went wrong."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from types import MappingProxyType
from typing import TypeVar

import ipywidgets as widgets
from numpy.typing import NDArray

from transformer_parts.draw.view import View
from transformer_parts.explore import controls, page_part
from transformer_parts.explore.component import ViewComponent
from transformer_parts.explore.frames import Frames
from transformer_parts.explore.front_end import FrontEnd
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.ranges import bring, places
from transformer_parts.explore.readout import Term, formula
from transformer_parts.explore.shots import Shots
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
    #: What a hand can take hold of in the picture, by the names that `View.grips` has for them.
    handles: Mapping[str, Handle] = MappingProxyType({})
    #: Why there is nothing in the picture to take hold of, where there is nothing.
    untouchable: str = ""
    #: What to look for at a preset, by its label.
    guide: Mapping[str, str] = MappingProxyType({})
    #: Names of the controls that are always seen; the others are under "More".
    primary: tuple[str, ...] = ()
    after_error = _("Showing the last valid setting.")

    def __init__(self, *, language: str | None = None):
        super().__init__(language=language)
        self.initial = self.state
        # JupyterLab runs the callbacks of sliders in another thread than the cells.
        self.lock = RLock()
        self._refreshes = True
        self._shots: Shots[Data] | None = None
        self._front_end = FrontEnd(**page_part.of(self))
        self._frames = Frames(self, self._front_end.send)
        self._front_end.on_msg(self._frames.message)
        fallback = self.beside(self._make_side()).add_class("tp-fallback")
        front = widgets.Box([self._front_end]).add_class("tp-front")
        self.widget = self.on_page(*self.make_above(), self.status, front, fallback)
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
    def shots(self) -> Shots[Data]:
        """Pictures and tables for a page that has a front end."""
        if self._shots is None:
            self._shots = self.make_shots(self.view)
        return self._shots

    def make_shots(self, view: View[Data]) -> Shots[Data]:
        """Return the pictures and tables of a view, none yet, for one page that knows none."""
        return Shots(view, self.numbers, self._formula, tuple(self.handles), self.translate)

    def formula(self, data: Data) -> Sequence[Term]:
        """Return the formula above the picture with the numbers of some data, as terms from left to right."""
        return ()

    def _formula(self, data: Data) -> str:
        return formula(term._replace(text=self.translate(term.text)) for term in self.formula(data))

    def idle(self, state: State) -> Mapping[str, str]:
        """Return the controls that change nothing in a state, with the reason; they are greyed."""
        return {}

    def track(self, handle: str) -> NDArray | None:
        """Return where a handle's grip stands at each value of its controls, the others as they are at present.

        The places have the shape (values, 2), or (values of the first control, values of the second, 2), in CSS pixels
        of the picture.  A handle of one control needs no track: the page learns its places from the frames.
        """
        return None

    def let_go(self) -> None:
        """Let go of what is made again when it is needed: no page shows the panel."""
        with self.lock:
            self._shots = self._view = None

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
                self._frames.forget()
                self.put(values)
                self._show()
            except Exception:
                self._put_back(state, page)
                raise
            except BaseException:
                self._interrupted(state, page)
                raise
            finally:
                self._rest()

    def reset(self) -> None:
        """Put every control back to where it began."""
        self.set(**self.initial)

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
                self._rest()

    def _rest(self) -> None:
        """Tell the page where the controls are, which ranges they have now, and what is shown."""
        self._front_end.controls = page_part.controls(self)
        self._frames.rest()

    def _show(self) -> None:
        self.draw(self.compute(**self.state))
        self.say("")

    def draw(self, data: Data, *, announced: bool = True) -> None:
        """Show picture and table of some data; on an error neither changes.  A front end draws its picture itself."""
        if not self._frames.attached:
            super().draw(data, announced=announced)
            return
        self.shots.shot(data)
        self.readout.value, self.shown = self.numbers(data, announced=announced), data

    def move(self, values: State) -> None:
        """Bring several controls to values at once, as a hand does that holds a handle; an error is reported."""
        with self.lock:
            state, page = self.state, self._page()
            try:
                self.put(values)
                self._frames.changed(*values)
                self.refresh()
            except Exception as error:
                self._put_back(state, page)
                self.report(error)
                self._rest()
            except BaseException:
                self._interrupted(state, page)
                self._rest()
                raise

    def put(self, values: State) -> None:
        """Set several controls, and those coupled to them, without a refresh; users call `set`."""
        with self._without_refresh():
            # Twice, because a coupled control may have its range only after another has its value.
            for _round in range(2):
                for name, value in values.items():
                    control = self.controls[name]
                    if controls.same(control.value, value):
                        continue
                    before = control.value
                    for offered in controls.offered(control, value):
                        control.value = offered
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
        self.let_go()
        self._frames.begin()
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
                self._rest()
                raise

    def _follow(self, name: str) -> None:
        """Bring the rest of the panel up to date with a control that has changed."""
        try:
            with self._without_refresh():
                self.couple(name)
        except Exception as error:
            self._frames.forget()
            self.report(error)
            self._rest()
        else:
            self._frames.changed(name)
            self.refresh()

    def press(self, number: int) -> None:
        """Do what a button does: those of the presets have the numbers from 0, the last one brings the first state."""
        self.act(lambda: self.set(**[*self.presets.values(), self.initial][number]))

    @contextmanager
    def _without_refresh(self) -> Iterator[None]:
        try:
            self._refreshes = False
            yield
        finally:
            self._refreshes = True

    def make_above(self) -> list[widgets.Widget]:
        """Return what is above controls and picture."""
        return []

    def _make_side(self) -> list[widgets.Widget]:
        """Return what is beside the picture where there is no front end, from top to bottom."""
        labels = [*self.presets, _("Reset")]
        buttons = [self.button(label, lambda at=number: self.press(at)) for number, label in enumerate(labels)]
        player = [] if self.play is None else [self._make_player(self.controls[self.play])]
        return [widgets.HBox(buttons).add_class("tp-bar"), *player, *self.controls.values()]

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
