"""What panels, live runs and interview sheets share: style, status line, errors, layout, and the texts on the page."""

import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Generic, TypeVar

import ipywidgets as widgets
from IPython.display import display
from traitlets import Unicode

from transformer_parts import language as languages
from transformer_parts.draw import frame
from transformer_parts.draw.view import View
from transformer_parts.explore import controls
from transformer_parts.explore.prose import html
from transformer_parts.explore.readout import Row, table
from transformer_parts.language import Language, Message, _

logger = logging.getLogger(__name__)

Data = TypeVar("Data")


class Component:
    """Something on a page: its widgets, and a status line that also reports errors.

    A subclass makes its widgets in `__init__` and puts them on the page with `on_page`.  Every text that a reader sees
    passes `translate`.

    Parameters
    ----------
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    status : ipywidgets.HTML; the status line
    error : Exception or None; the error that the status line reports
    widget : ipywidgets.VBox; all of it, to be placed in other layouts
    """

    #: What it shows, in words: the accessible name of its picture, and all there is where no widget can be shown.
    alt: str = ""
    #: Path of the still (below the project) that this replaces on a live page; a view's is named after the class.
    still: str = ""
    #: File of its style sheet, and the class on the page that all rules of that sheet are confined to.
    style: str = "style.css"
    css_class: str = "tp-panel"
    #: Sentence that follows the message of an error.
    after_error: str = ""

    def __init__(self, *, language: str | Language | None = None):
        self.language = languages.language(language)
        self.status = widgets.HTML()
        self.error: Exception | None = None

    def translate(self, message: str) -> str:
        """Return a message of the library as the reader sees it: the one place where `language` takes effect.

        Text that is already in the reader's language is returned as it is, so that a text may pass more than once.
        """
        return self.language.text(message)

    def say(self, message: str, *, kind: str = "") -> None:
        """Put a message, which may contain Markdown, into the status line; `kind` "right" or "wrong" marks it."""
        mark = {"right": "✓ ", "wrong": "✗ "}.get(kind, "")
        text = html(mark + self.translate(message)) if message else ""
        self.status.value = text and f'<div class="tp-{kind or "plain"}" role="status">{text}</div>'
        self.error = None

    def report(self, error: Exception, *, state: object = None) -> None:
        """Log an error with the state that it happened in, and put its message into the status line."""
        logger.error("%s failed; state: %s", type(self).__name__, state, exc_info=error)
        # An error raised with a message is for the reader; the text of any other is the library's own, in English.
        message = error.args[0] if error.args and isinstance(error.args[0], Message) else None
        shown = (
            escape(self.translate(message)) if message else f"<code>{escape(str(error) or type(error).__name__)}</code>"
        )
        text = "<br>".join(filter(None, [shown, escape(self.translate(self.after_error))]))
        self.status.value = f'<p class="tp-status" role="alert">{text}</p>'
        self.error = error

    @property
    def asleep(self) -> str:
        """The class of the line that a page shows where no kernel has the component: by the file of its still."""
        return f"tp-asleep-{Path(self.still).stem}"

    def act(self, action: Callable[[], None]) -> None:
        """Do what a control asks for; report what goes wrong, and go on."""
        try:
            action()
        except Exception as error:
            self.report(error)

    def button(self, label: str, action: Callable[[], None], **options) -> widgets.Button:
        """Return a button; what its action raises is reported in the status line."""
        made = widgets.Button(description=self.translate(label), **options)
        made.on_click(lambda _button: self.act(action))
        return made

    def on_page(self, *parts: widgets.Widget) -> widgets.VBox:
        """Return the parts, from top to bottom, with the style sheet; a live page hides the still."""
        style = files(__package__).joinpath(self.style).read_text("utf-8")
        if self.still:
            style += f'\nimg[src*="{self.still}"], .{self.asleep} {{ display: none; }}'
        gone = _("The kernel that this belongs to is gone: run the notebook again (Run > Run All Cells).")
        style += f"\n.{self.css_class} {{ --tp-gone: {json.dumps(self.translate(gone), ensure_ascii=False)}; }}"
        sheet = widgets.HTML(f"<style>{style}</style>", layout={"display": "none"})
        return widgets.VBox([sheet, *parts]).add_class(self.css_class)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        return self.widget._repr_mimebundle_() | {"text/plain": self.translate(self.alt)}, {}


class Picture(widgets.Image):
    """An image whose tooltip is its accessible name.

    The front end of ipywidgets 8 sets an image's ``title`` only if the widget also has an (empty) description, which
    ``ipywidgets.Image`` lacks: with a tooltip alone it fails to draw.
    """

    description = Unicode("").tag(sync=True)


class ViewComponent(Component, ABC, Generic[Data]):
    """A component with controls beside one view and a table of numbers; picture and table show the same data.

    `controls` has the controls by name, `shown` the data that picture and `readout`, the table, show.
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "still" not in vars(cls):
            words = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
            cls.still = f"figures/{words}.png"

    def __init__(self, *, language: str | Language | None = None):
        super().__init__(language=language)
        self.controls = self.make_controls()
        for control in self.controls.values():
            controls.translate(control, self.language)
        self._view: View[Data] | None = None
        width = str(self.view.size[0])
        self.picture = Picture(format=frame.LIVE_FORMAT, width=width, tooltip=self.translate(self.alt))
        self.readout = widgets.HTML()

    @abstractmethod
    def make_controls(self) -> dict[str, widgets.ValueWidget]:
        """Return the controls by name, in the order of the page."""

    @abstractmethod
    def make_view(self) -> View[Data]:
        """Return the view."""

    @abstractmethod
    def rows(self, data: Data) -> list[Row]:
        """Return the lines of the table."""

    @property
    def view(self) -> View[Data]:
        """The view, which is made when it is first needed."""
        if self._view is None:
            self._view = self.make_view()
        return self._view

    @property
    def state(self) -> dict[str, object]:
        """The value of each control."""
        return {name: control.value for name, control in self.controls.items()}

    def numbers(self, data: Data, *, announced: bool = True) -> str:
        """Return the table of some data as HTML, which screen readers announce if it is to be `announced`."""
        rows = (
            row._replace(label=self.translate(row.label), value=self.translate(row.value)) for row in self.rows(data)
        )
        return table(rows, announced=announced)

    def draw(self, data: Data, *, announced: bool = True) -> None:
        """Show picture and table of some data; on an error neither changes."""
        picture, numbers = self.view.frame(data), self.numbers(data, announced=announced)
        self.picture.value, self.readout.value, self.shown = picture, numbers, data

    def report(self, error: Exception, *, state: object = None) -> None:
        """Report an error with the state that it happened in, the current one by default."""
        super().report(error, state=state or self.state)

    def beside(self, controls: Sequence[widgets.Widget]) -> widgets.HBox:
        """Return the column of controls beside the picture, with the table below the picture."""
        left = widgets.VBox(controls).add_class("tp-controls")
        right = widgets.VBox([self.picture, self.readout]).add_class("tp-picture")
        return widgets.HBox([left, right]).add_class("tp-body")

    def _ipython_display_(self) -> None:
        """Show a line that says what to do where no kernel has the component any more, and the component.

        A notebook that was saved and is opened again keeps that line, and so does a page made of it; the component's
        style sheet hides it.
        """
        line = _("Not running: click this cell and press Shift+Enter; in a new session choose Run > Run All Cells.")
        html = f'<p class="{self.asleep}">{escape(self.translate(line))}</p>'
        display({"text/html": html, "text/plain": self.translate(line)}, raw=True)
        data, metadata = self._repr_mimebundle_()
        display(data, metadata=metadata, raw=True)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, _metadata = super()._repr_mimebundle_(include, exclude)
        png = {"width": self.view.size[0], "alt": data["text/plain"]}
        return data | {"image/png": self.view.still(self.shown)}, {"image/png": png}
