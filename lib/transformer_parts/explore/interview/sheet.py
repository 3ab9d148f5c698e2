"""What the sheets of the interview page share: style, a status line, buttons whose errors are seen, and a timer."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from html import escape
from time import monotonic

import ipywidgets as widgets

from transformer_parts.explore.interview.prose import html
from transformer_parts.explore.page import mimebundle, style_sheet

logger = logging.getLogger(__name__)


class Sheet(ABC):
    """A part of the interview page: made of core widgets once, changed by its buttons alone.

    A button that is pressed keeps the keyboard's focus, or hands it to the control that comes next; nothing that has
    the focus is ever hidden without that.

    Attributes
    ----------
    widget : ipywidgets.VBox
        All of it.
    status : ipywidgets.HTML
        One line, read out when it changes.
    error : Exception or None
        What the last button raised.
    """

    #: What it is, in words: shown where no widget can be.
    alt: str = ""

    def __init__(self):
        self.status = widgets.HTML().add_class("tp-say")
        self.error: Exception | None = None
        parts = self.make()
        if self.status not in parts:
            parts = [*parts, self.status]
        self.widget = widgets.VBox([style_sheet("interview.css"), *parts]).add_class("tp-interview")

    @abstractmethod
    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom; the status line comes last unless it is among them."""

    def say(self, text: str, *, kind: str = "") -> None:
        """Put a text into the status line; `kind` "right" or "wrong" marks it."""
        mark = {"right": "✓ ", "wrong": "✗ "}.get(kind, "")
        self.status.value = f'<div class="tp-{kind or "plain"}" role="status">{html(mark + text)}</div>' if text else ""

    def button(self, label: str, action: Callable[[], None], **options) -> widgets.Button:
        """Return a button; what its action raises is shown in the status line."""
        made = widgets.Button(description=label, **options)
        made.on_click(lambda _: self.act(action))
        return made

    def act(self, action: Callable[[], None]) -> None:
        """Do what a control asks for; show what goes wrong, and go on."""
        try:
            action()
            self.error = None
        except Exception as error:
            self.error = error
            logger.error("%s failed", type(self).__name__, exc_info=error)
            self.status.value = f'<p class="tp-wrong" role="alert">{escape(str(error) or type(error).__name__)}</p>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        return mimebundle(self.widget, self.alt)


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
        # Another name of the same animation makes the browser begin it anew.
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
