"""The table of numbers beside a picture: HTML that can be read aloud, copied and translated."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """One line of the table: what it is, its value, and the colour it has in the picture.

    A page shows a `minor` line only to those who ask for all numbers.
    """

    label: str
    value: str
    colour: str | None = None
    minor: bool = False


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
        f'<tr{_MINOR * minor}><th scope="row">{_swatch(colour)}{escape(label)}</th>'
        f"<td>{_unbroken(escape(value))}</td></tr>"
        for label, value, colour, minor in rows
    )
    live = ' role="status" aria-live="polite"' if announced else ""
    return f'<table class="tp-readout"{live}>{body}</table>'


_MINOR = ' class="tp-minor"'


def _unbroken(value: str) -> str:
    return value.replace(" %", "\N{NO-BREAK SPACE}%")


def _swatch(colour: str | None) -> str:
    return "" if colour is None else f'<span class="tp-swatch" aria-hidden="true" style="background:{colour}"></span>'
