"""What lies over a picture as parts of the page: grips for a hand, and words, which pictures themselves do not hold."""

from typing import NamedTuple

from transformer_parts.draw import theme


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
