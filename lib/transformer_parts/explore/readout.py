"""The table of numbers beside a picture: HTML that can be read aloud, copied and translated."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np

from transformer_parts.draw import theme


class Row(NamedTuple):
    """One line of the table: what it is, its value, and the colour it has in the picture.

    A page shows a `minor` line only to those who ask for all numbers.  `mark` names what the line tells of in the
    picture (see `View.shows`): the two light up together.
    """

    label: str
    value: str
    colour: str | None = None
    minor: bool = False
    mark: str = ""


class Term(NamedTuple):
    """A piece of the formula above a picture, with the colour and the mark of what it tells of."""

    text: str
    colour: str | None = None
    mark: str = ""


def number(value: float, digits: int = 6) -> str:
    """Return a number with a fixed count of decimals, in scientific form where those would hide it.

    Examples
    --------
    >>> number(2.1213203435596424), number(-0.0), number(1.5e-9), number(123456789.0, 2)
    ('2.121320', '0.000000', '1.500000e-09', '123456789.00')
    """
    value = float(value)
    if value != 0 and np.isfinite(value) and (abs(value) < 0.5 * 10.0**-digits or abs(value) >= 1e12):
        return f"{value:.{digits}e}"
    return f"{value + 0.0:.{digits}f}"


def vector(values: Iterable[float], digits: int = 6, most: int = 8) -> str:
    """Return a vector in parentheses, cut after `most` entries.

    Examples
    --------
    >>> vector([1, 2.5], 2)
    '(1.00, 2.50)'
    """
    values = list(values)
    shown = [number(value, digits) for value in values[:most]]
    return "(" + ", ".join(shown + ["…"] * (len(values) > most)) + ")"


def table(rows: Iterable[Row], *, announced: bool = True) -> str:
    """Return the rows as an HTML table that screen readers announce when it has changed, if it is to be `announced`.

    A % stays on the line of its number.
    """
    body = "".join(
        f'<tr{_MINOR * row.minor}{_mark(row.mark)}><th scope="row">{_swatch(row.colour)}{escape(row.label)}</th>'
        f"<td>{_unbroken(escape(row.value))}</td></tr>"
        for row in rows
    )
    live = ' role="status" aria-live="polite"' if announced else ""
    return f'<table class="tp-readout"{live}>{body}</table>'


def formula(terms: Iterable[Term]) -> str:
    """Return terms as the line of a formula; each term keeps its colour and its mark."""
    return "".join(f"<span{_mark(term.mark)}{_colour(term.colour)}>{escape(term.text)}</span>" for term in terms)


_MINOR = ' class="tp-minor"'


def _mark(mark: str) -> str:
    return f' data-mark="{mark}"' if mark else ""


def _colour(colour: str | None) -> str:
    return f' style="color:{theme.of_words(colour)}"' if colour else ""


def _unbroken(value: str) -> str:
    return value.replace(" %", "\N{NO-BREAK SPACE}%")


def _swatch(colour: str | None) -> str:
    return "" if colour is None else f'<span class="tp-swatch" aria-hidden="true" style="background:{colour}"></span>'
