"""Colours, line widths and the look of axes, set on each object and nowhere globally.

The three colours are a blue, a red and a dark gold.  Where hues cannot be distinguished, lightness does it
(29, 45 and 60 of 100); each also has a marker of its own, and each contrasts with the paper at least as 3 to 1 (WCAG),
with the pages' dark filter too.  Figures carry symbols and numbers alone; words are the page's.
"""

from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes

INK = "#222222"
FAINT = "#949494"
GRID = "#e3e3e3"
PAPER = "#ffffff"

QUERY = FIRST = "#004488"
KEY = SECOND = "#b04a5b"
VALUE = THIRD = "#bb8800"

MARKERS = MappingProxyType({FIRST: "o", SECOND: "s", THIRD: "^"})

LINE = 2.0
THIN = 1.0

# Points at the 100 dots per inch of a CSS pixel; still legible when a page shows the figure at two thirds.
TEXT = 10.5
SYMBOL = 13.0

#: Diverging (around zero) and sequential colour maps, both even in lightness for colour-blind readers.
DIVERGING = "RdBu_r"
SEQUENTIAL = "cividis"


#: Colours of lines that are too light for words, and those that words have instead: 4.5 to 1 on paper (WCAG).
_OF_WORDS = MappingProxyType({THIRD: "#8a6400", FAINT: "#6b6b6b"})


def of_words(colour: str) -> str:
    """Return the colour of words about what has a colour in a picture.

    Examples
    --------
    >>> of_words(FIRST), of_words(THIRD)
    ('#004488', '#8a6400')
    """
    return _OF_WORDS.get(colour, colour)


def style(axes: Axes, *, x: str = "", y: str = "", grid: bool = True) -> Axes:
    """Give axes the common look and label them with symbols (mathtext, no words)."""
    axes.set_facecolor(PAPER)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
        spine.set_linewidth(THIN)
    axes.tick_params(colors=INK, labelsize=TEXT, length=3, width=THIN)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(color=GRID, linewidth=THIN)
    axes.set_xlabel(x, fontsize=SYMBOL, color=INK)
    axes.set_ylabel(y, fontsize=SYMBOL, color=INK)
    return axes


def step_above(value: float) -> float:
    """Return the smallest of … 0.5, 1, 2, 3, 5, 10, 20 … that is not below `value`; 1 for 0.

    Limits in such steps keep a scale still while a slider is dragged.

    Examples
    --------
    >>> step_above(3.1), step_above(0.05), step_above(0.0)
    (5.0, 0.05, 1.0)
    """
    if value <= 0:
        return 1.0
    decade = int(np.floor(np.log10(value)))
    steps = (float(f"{digit}e{decade + i}") for i in (0, 1) for digit in (1, 2, 3, 5))
    return next(step for step in steps if step >= value * (1 - 1e-9))


def tick_label(value: float, _: int = 0) -> str:
    """Return the label of a tick.

    Examples
    --------
    >>> tick_label(-0.001), tick_label(2.0)
    ('−0.001', '2')
    """
    return f"{value + 0.0:g}".replace("-", "−")
