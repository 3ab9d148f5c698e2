"""What the sheets of the interview page share: their parts in one column, rows and sections, and a timer."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from html import escape
from time import monotonic
from types import MappingProxyType
from typing import TypeVar

import ipywidgets as widgets

from transformer_parts import language as languages
from transformer_parts.explore import controls
from transformer_parts.explore.component import Component
from transformer_parts.explore.prose import notebook_link
from transformer_parts.language import Language, _, plural
from transformer_parts.learn.ratings import RATINGS

#: Stands in a template where HTML or the browser's own number goes, after the translation.
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"

Control = TypeVar("Control", bound=widgets.Widget)

#: Rating → label of its button.
RATING_LABELS = MappingProxyType(dict(zip(RATINGS, (_("Again"), _("Hard"), _("Good"), _("Easy")), strict=True)))


class Sheet(Component, ABC):
    """A part of the interview page: made of core widgets once, changed only by its own controls.

    A button that is pressed keeps the keyboard's focus or moves it to the next control; nothing that has the focus is
    hidden before the focus has moved.
    """

    style = "interview.css"
    css_class = "tp-interview"

    def __init__(self, *, language: str | None = None):
        super().__init__(language=language)
        self.status.add_class("tp-say")
        parts = self.make()
        self.widget = self.on_page(*parts, *([] if self.status in parts else [self.status]))

    def control(self, control: Control) -> Control:
        """Return a control with its words, and those of its options, in the reader's language."""
        controls.translate(control, self.language)
        return control

    def section(self, title: str, text: str) -> str:
        """Return a part of an answer as HTML, with its heading."""
        return f"<section><h4>{escape(self.translate(title))}</h4>{text}</section>"

    def shown_in(self, stem: str) -> str:
        """Return a paragraph that names the notebook in which something is shown, as HTML."""
        text = escape(self.translate(_("Shown in {notebook}.", notebook=_MARK)))
        return f"<p>{text.replace(_MARK, notebook_link(stem, language=self.language))}</p>"

    @abstractmethod
    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom; the status line comes last unless it is among them."""


class Timer:
    """A clock that counts down in the browser, by its style sheet alone: no thread, and no message while it runs.

    The kernel only notes when it was started and when it was stopped.

    Attributes
    ----------
    widget : ipywidgets.HTML
    """

    def __init__(self, *, language: str | Language | None = None, now: Callable[[], float] = monotonic):
        self._language = languages.language(language)
        self.widget = widgets.HTML().add_class("tp-clock")
        self._now = now
        self._began: float | None = None
        self._runs = 0

    def start(self, seconds: int) -> None:
        """Begin to count down; 0: show nothing, and note the time all the same."""
        self._began = self._now()
        # Another name of the same animation makes the browser restart it.
        self._runs += 1
        name = "tp-count-a" if self._runs % 2 else "tp-count-b"
        label = self._language.text(plural("{n} second", "{n} seconds", seconds))
        # The browser puts the seconds between these.
        before, after = self._language.text(_("{seconds} s left", seconds=_MARK)).split(_MARK)
        self.widget.value = (
            f'<div class="tp-timer" role="timer" aria-label="{escape(label)}"'
            f' data-before="{escape(before)}" data-after="{escape(after)}"'
            f' style="--tp-seconds: {seconds}; animation-name: {name}"></div>'
            if seconds
            else ""
        )

    def stop(self) -> float | None:
        """Hide the clock and return the seconds since its start; None if it does not run."""
        if self._began is None:
            return None
        seconds, self._began = self._now() - self._began, None
        self.widget.value = ""
        return seconds


def shown(widget: widgets.Widget, visible: bool) -> None:
    """Show or hide a widget, which stays in its place."""
    widget.layout.display = None if visible else "none"


def bar(*children: widgets.Widget) -> widgets.HBox:
    """Return controls in a row that wraps."""
    return widgets.HBox(list(children)).add_class("tp-row")
