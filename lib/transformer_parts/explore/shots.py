"""Pictures with their tables, grips and words, as numbers of things that the page keeps: nothing is sent twice."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.recorder import Numbered
from transformer_parts.draw.recording import Recording
from transformer_parts.draw.view import View

Data = TypeVar("Data")


class Shot(NamedTuple):
    """A picture (see `Recording.frame`), the rows of its table, and what lies over it, by their numbers.

    A grip is (x, y, number of its box), or () where its handle has none; a word is (number, x, y); the formula is a
    row, -1 where there is none.
    """

    frame: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]
    grips: tuple[tuple[float, ...], ...] = ()
    words: tuple[tuple[float, ...], ...] = ()
    formula: int = -1


class Shots(Generic[Data]):
    """The pictures and tables of one view, in which everything that comes again has the number it had.

    Parameters
    ----------
    view : View
    numbers : callable; returns the table of some data as HTML
    formula : callable; returns the formula of some data as HTML, "" if there is none
    handles : sequence of str; names of the handles, in the order of the page
    translate : callable; turns a message into the text that the reader sees
    """

    def __init__(
        self,
        view: View[Data],
        numbers: Callable[[Data], str],
        formula: Callable[[Data], str] = lambda _data: "",
        handles: Sequence[str] = (),
        translate: Callable[[str], str] = str,
    ):
        self._view, self._numbers, self._formula = view, numbers, formula
        self._handles, self._translate = handles, translate
        self.begin()

    def begin(self) -> None:
        """Forget all numbers, for a page that knows none."""
        self._recording, self._rows = Recording(self._view), Numbered()
        self._boxes, self._texts = Numbered(), Numbered()
        self._given: dict[str, int] = {}

    def shot(self, data: Data) -> Shot:
        """Return picture and table of some data."""
        rows = re.findall("<tr.*?</tr>", self._numbers(data))
        numbers, formula = tuple(map(self._row, rows)), self._formula(data)
        # The view is brought to the data first; then it says what lies over the picture.
        frame = self._recording.frame(data)
        grips, words = tuple(self._grips(data)), tuple(self._words(data))
        return Shot(frame, numbers, grips, words, self._row(formula) if formula else -1)

    def _row(self, html: str) -> int:
        # A server may forbid styles in what is put into the page, but not those that a script sets.
        return self._rows.number(html.replace(" style=", " data-style="))

    def _grips(self, data: Data) -> Iterator[tuple[float, ...]]:
        there = self._view.grips(data)
        for name in self._handles:
            grip = there.get(name)
            if grip is None or not np.isfinite([grip.x, grip.y]).all():
                yield ()
            else:
                yield _tenth(grip.x), _tenth(grip.y), self._boxes.number(grip.box) if grip.box else -1

    def _words(self, data: Data) -> Iterator[tuple[float, ...]]:
        for text, x, y, colour, side in self._view.words(data):
            if np.isfinite([x, y]).all():
                number = self._texts.number((self._translate(text), theme.of_words(colour), side))
                yield number, _tenth(x), _tenth(y)

    def news(self) -> dict[str, list]:
        """Return the things that have got a number since the last call, by kind and in order."""
        news = {kind: table.after(self._given.get(kind, 0)) for kind, table in self._tables().items()}
        self._given = {kind: len(table) for kind, table in self._tables().items()}
        return {kind: things for kind, things in news.items() if things}

    def things(self) -> dict[str, list]:
        """Return all things that have a number."""
        return {kind: list(table) for kind, table in self._tables().items()}

    def _tables(self) -> dict[str, Numbered]:
        return {**vars(self._recording.drawings), "rows": self._rows, "boxes": self._boxes, "words": self._texts}


def _tenth(place: float) -> float:
    return round(float(place), 1)


def as_text(content: object) -> bytes:
    """Return content as the text that a page reads."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
