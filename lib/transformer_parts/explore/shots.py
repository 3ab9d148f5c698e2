"""Pictures with their tables, as numbers of things that the page keeps: what came before is never sent again."""

import json
import re
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from transformer_parts.draw.recorder import Numbered
from transformer_parts.draw.recording import Recording
from transformer_parts.draw.view import View

Data = TypeVar("Data")


class Shot(NamedTuple):
    """A picture (see `Recording.frame`) and the rows of its table, by their numbers."""

    frame: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]


class Shots(Generic[Data]):
    """The pictures and tables of one view, in which everything that comes again has the number it had.

    Parameters
    ----------
    view : View
    numbers : callable; returns the table of some data as HTML
    """

    def __init__(self, view: View[Data], numbers: Callable[[Data], str]):
        self._view, self._numbers = view, numbers
        self.begin()

    def begin(self) -> None:
        """Forget all numbers, for a page that knows none."""
        self._recording, self._rows = Recording(self._view), Numbered()
        self._given: dict[str, int] = {}

    def shot(self, data: Data) -> Shot:
        """Return picture and table of some data."""
        rows = re.findall("<tr>.*?</tr>", self._numbers(data))
        # A server may forbid styles in what is put into the page, but not those that a script sets.
        numbers = tuple(self._rows.number(row.replace(" style=", " data-style=")) for row in rows)
        return Shot(self._recording.frame(data), numbers)

    def news(self) -> dict[str, list]:
        """Return the things that have got a number since the last call, by kind and in order."""
        news = {kind: table.after(self._given.get(kind, 0)) for kind, table in self._tables().items()}
        self._given = {kind: len(table) for kind, table in self._tables().items()}
        return {kind: things for kind, things in news.items() if things}

    def things(self) -> dict[str, list]:
        """Return all things that have a number."""
        return {kind: list(table) for kind, table in self._tables().items()}

    def _tables(self) -> dict[str, Numbered]:
        return {**vars(self._recording.drawings), "rows": self._rows}


def as_text(content: object) -> bytes:
    """Return content as the text that a page reads."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
