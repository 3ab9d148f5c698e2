"""What the sheets of the interview page share: their parts in one column, rows and sections, and a timer."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from html import escape
from time import monotonic

import ipywidgets as widgets

from transformer_parts.explore.component import Component


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

    def __init__(self, *, now: Callable[[], float] = monotonic):
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
        self.widget.value = (
            f'<div class="tp-timer" role="timer" aria-label="{seconds} seconds"'
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


def section(title: str, text: str) -> str:
    """Return a part of an answer as HTML, with its heading."""
    return f"<section><h4>{escape(title)}</h4>{text}</section>"
