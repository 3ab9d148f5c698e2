"""The text field in which the reader types a passage, and the passage that its panels show.

The committed passage needs no weights.  With the weights, and the packages that read them, the model reads any other;
it is loaded on first use.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import TypeVar

import ipywidgets as widgets

from transformer_parts.explore.component import Component
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.prose import line
from transformer_parts.language import Language, _
from transformer_parts.models import weights
from transformer_parts.models.passage import Passage, load_passage

logger = logging.getLogger(__name__)

Data = TypeVar("Data")

_ABSENT = _(
    "This is the passage that comes with the library: the model's weights are not here, so it cannot read another. "
    "`make model` fetches them (93 MB, once)."
)
_PRESENT = _(
    "Type a passage of 2 to 64 tokens and press Enter: the model reads it once, in a few seconds. "
    "The buttons below belong to the library's passage and bring it back."
)


class Reading(Component):
    """A passage, and the means to have the model read another one.

    Parameters
    ----------
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    passage : Passage; what is shown
    text, progress, tokens, status
        The widgets; ``widget`` holds all of them, and several panels may show it.
    """

    def __init__(self, *, language: str | Language | None = None):
        super().__init__(language=language)
        self._committed = self.passage = load_passage()
        self._followers: list[Callable[[], None]] = []
        self._model = None
        self.text = widgets.Text(
            self.passage.text,
            description=self.translate(_("passage")),
            continuous_update=False,
            style={"description_width": "8.5em"},
            layout={"width": "auto", "min_width": "0"},
        )
        # Not a FloatProgress, which is made of nameless boxes: screen readers pass over it.
        self.progress = widgets.HTML()
        self.tokens = widgets.HTML(_numbered(self.passage))
        self.text.observe(lambda change: self._typed(change["new"]), names="value")
        self.widget = widgets.VBox([self.text, self.progress, self.tokens, self.status])
        self.text.disabled = not (weights.default_folder() / weights.FILE_NAME).is_file()
        self._explain()

    def say(self, message: str, *, kind: str = "") -> None:
        """Put a message into the status line, as a note; it has no kinds."""
        self._note(line(self.translate(message)))
        self.error = None

    def report(self, error: Exception, *, state: object = None) -> None:
        """Log an error with the text that could not be read, and put its message into the status line."""
        logger.error("could not read %r", state, exc_info=error)
        what = str(error).removeprefix("text: ") or type(error).__name__
        words = _(
            "{what}. The explorers go on with the passage whose tokens stand above.", what=what[0].upper() + what[1:]
        )
        self._note(f'<span role="alert">{escape(self.translate(words))}</span>')
        self.error = error

    def _note(self, html: str) -> None:
        self.status.value = f'<p class="tp-note" role="status">{html}</p>'

    def follow(self, follower: Callable[[], None]) -> None:
        """Have `follower` called whenever another passage is shown."""
        self._followers.append(follower)

    def read(self, text: str) -> None:
        """Have the model read `text`; on an error keep the passage and report it."""
        self._advance(0.0)
        try:
            for result in self._steps(text):
                if isinstance(result, Passage):
                    self._show(result)
                else:
                    self._advance(result)
        except Exception as error:
            self.report(error, state=text)
        else:
            self._explain()
        finally:
            self.progress.value = ""

    def restore(self) -> None:
        """Show the library's passage, also in the text field, which may hold a refused text."""
        if self.passage is not self._committed:
            self._show(self._committed)
        self.text.value = self.passage.text

    def _typed(self, text: str) -> None:
        if text != self.passage.text:
            self.read(text)
        else:
            # What was wrong with a text before is no longer of interest.
            self._explain()

    def _steps(self, text: str) -> Iterator[Passage | float]:
        # Reading needs packages beyond those of the panels (the extra "model"), so they are imported here.
        from transformer_parts.models.passage import read_passage
        from transformer_parts.models.smollm2 import load_model
        from transformer_parts.models.tokenizer import load_tokenizer
        from transformer_parts.models.weights import GGUFFile

        if self._model is None:
            self.say(_("Loading the model …"))
            file = GGUFFile(weights.find())
            self._model = load_model(file), load_tokenizer(file)
        self.say(_("The model reads …"))
        return read_passage(*self._model, text)

    def _show(self, passage: Passage) -> None:
        self.passage, self.text.value, self.tokens.value = passage, passage.text, _numbered(passage)
        for follower in self._followers:
            follower()

    def _advance(self, done: float) -> None:
        label = escape(self.translate(_("part that is read")))
        self.progress.value = (
            f'<progress style="width: 100%; height: 1.2em" aria-label="{label}" value="{done:.3f}"></progress>'
        )

    def _explain(self) -> None:
        self.say(_ABSENT if self.text.disabled else _PRESENT)


class PassagePanel(Panel[Data]):
    """A panel over the passage of a `Reading`, its own or one that several panels share.

    `tokens` names the controls that choose a token, each with the least number it may have.
    """

    tokens: Mapping[str, int]

    def __init__(self, reading: Reading | None = None, *, language: str | None = None):
        self.reading = Reading(language=language) if reading is None else reading
        super().__init__(language=language)
        self.reading.follow(self._new_passage)

    @property
    def passage(self) -> Passage:
        """What is shown."""
        return self.reading.passage

    def token(self, index: int) -> str:
        """Return number and text of a token."""
        return f"{index} {quoted(self.passage.token_texts[index])}"

    def press(self, number: int) -> None:
        # Presets and the first state are for the library's passage.
        self.reading.restore()
        super().press(number)

    def _new_passage(self) -> None:
        with self.lock:
            self._frames.renew()
            with self._without_refresh():
                for name in self.tokens:
                    self.controls[name].max = len(self.passage) - 1
            self.refresh()

    def make_above(self) -> list[widgets.Widget]:
        return [self.reading.widget]


def _numbered(passage: Passage) -> str:
    """Return the tokens, each with its number, as a paragraph that no language translates."""
    tokens = "<wbr>".join(f"{escape(text)}<sub>{i}</sub>" for i, text in enumerate(passage.token_texts))
    return f'<p class="tp-note" translate="no">{tokens}</p>'


def quoted(text: str) -> str:
    r"""Return the text of a token in quotation marks, line breaks as backslash and letter.

    Examples
    --------
    >>> print(quoted(" old"), quoted(chr(10)))
    “ old” “\n”
    """
    return f"“{text.replace(chr(10), chr(92) + 'n')}”"
