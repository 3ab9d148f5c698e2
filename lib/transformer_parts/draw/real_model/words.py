"""The tokens of a passage as words over a picture."""

import numpy as np
from numpy.typing import NDArray

#: Width of a letter of a word over a picture, about, and height of a line of words, in CSS pixels.
LETTER, LINE = 7.6, 17
#: Fewest tokens in a line of a passage, and its most lines.
A_LINE, MOST_LINES = 7, 3


def passage_places(count: int, width: float) -> NDArray:
    """Return where the tokens of a passage stand that is written over a picture, (count, 2)."""
    columns = max(A_LINE, -(-count // MOST_LINES))
    index = np.arange(count)
    return np.stack([(index % columns + 0.5) * width / columns, 10 + LINE * (index // columns)], axis=-1)


def written(token: str, width: float = np.inf) -> str:
    """Return the text of a token as a word, cut to a width."""
    most = len(token) if width == np.inf else int(width / LETTER)
    return token.strip()[:most] or "·"
