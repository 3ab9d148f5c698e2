"""What lies over a picture as parts of the page: grips for a hand, and words, which pictures themselves do not hold."""

from collections.abc import Hashable, Iterable, Mapping
from math import inf
from typing import NamedTuple, TypeVar

from transformer_parts.draw import theme

Name = TypeVar("Name", bound=Hashable)


class Grip(NamedTuple):
    """A place in the picture that a hand can take hold of, in CSS pixels from the upper left corner.

    `box` (left, top, width, height) is the part of the picture in which a hand may come down at any place; without one
    it has to meet the grip itself.
    """

    x: float
    y: float
    box: tuple[int, ...] = ()


class Word(NamedTuple):
    """Text at a place of the picture.

    `side` says on which side of the place the text lies: "right", "left", "above", "below" or "on" it.
    """

    text: str
    x: float
    y: float
    colour: str = theme.INK
    side: str = "right"


def spread_out(heights: Mapping[Name, float], gap: float) -> dict[Name, float]:
    """Return the heights of words, each at least `gap` below the one before and near to where it was.

    Examples
    --------
    >>> spread_out({"low": 50.0, "high": 40.0, "far": 90.0}, 14)
    {'high': 40.0, 'low': 54.0, 'far': 90.0}
    """
    names = sorted(heights, key=heights.get)
    places = [heights[name] for name in names]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    # What was pushed down goes up again by half, as far as the words above leave room.
    for i in range(len(places)):
        up = (places[i] - heights[names[i]]) / 2
        places[i] = max(places[i] - up, places[i - 1] + gap if i else -inf)
    return dict(zip(names, places, strict=True))


def apart(words: Iterable[Word], gap: float = 14) -> list[Word]:
    """Return words that stand below one another, moved up or down so that none covers another."""
    words = list(words)
    heights = spread_out({i: float(word.y) for i, word in enumerate(words)}, gap)
    return [words[i]._replace(y=y) for i, y in heights.items()]
