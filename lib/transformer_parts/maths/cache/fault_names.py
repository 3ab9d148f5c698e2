"""What can go wrong when a decoder is cached, each fault by its name; `faults` runs them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.context_extension import dynamic_ntk

__all__ = ["FAULTS", "LONGER", "Chunk", "Fault"]

LONGER = 8
"""How many trained lengths the earlier input had, after which "base not restored" forgets to go back."""


class Chunk(NamedTuple):
    """What code that places new tokens can see.

    Attributes
    ----------
    start : int; tokens in the cache before, padding included
    length : int; new tokens
    pad : int; padding at the left
    layer : int; index of the layer
    n_kv_heads : int; G
    """

    start: int
    length: int
    pad: int
    layer: int
    n_kv_heads: int

    @property
    def slots(self) -> NDArray[np.int64]:
        """Where the tokens stand in the cache."""
        return np.arange(self.start, self.start + self.length)

    @property
    def right(self) -> NDArray[np.int64]:
        """Their positions: slots, counted from the first real token."""
        return np.maximum(self.slots - self.pad, 0)


def _decoded(wrong: Callable[[Chunk], NDArray]) -> Callable[[Chunk], NDArray]:
    """Place the prompt rightly, and what is decoded after it by `wrong`."""
    return lambda chunk: wrong(chunk) if chunk.start else chunk.right


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What a cached decoder does; the defaults are the right way.

    Attributes
    ----------
    place : callable; ``place(chunk)`` returns the positions by which the new queries and keys are turned
    again : bool; turns the cached keys once more at every later step, and keeps the result
    sees_padding : bool; lets everyone attend to the padding
    scaling : {"none", "rotated", "unrotated", "left over"}; whether the base follows the length (dynamic scaling),
        with the keys cached after or before the rotation; "left over": it is that of a longer input before this one

    Examples
    --------
    >>> FAULTS["off by one"].place(Chunk(start=4, length=1, pad=0, layer=0, n_kv_heads=2)).tolist()
    [5]
    """

    place: Callable[[Chunk], NDArray] = lambda chunk: chunk.right
    again: bool = False
    sees_padding: bool = False
    scaling: str = "none"

    @property
    def dynamic(self) -> bool:
        """Whether the base follows the length, in the right answer too."""
        return self.scaling in ("rotated", "unrotated")

    @require.door
    def turn(self, length: int, trained_length: int, head_dim: int, settings: Mapping[str, object]) -> dict:
        """Return the keywords of `rope.rotate` at a length.

        Parameters
        ----------
        length : int; real tokens so far
        trained_length : int; L of dynamic scaling
        head_dim : int; K
        settings : mapping; the keywords without scaling

        Returns
        -------
        dict; the same with the frequencies of that length as ``inv_freq``
        """
        length, trained_length = require.integer("length", length), require.integer("trained_length", trained_length)
        head_dim = require.integer("head_dim", head_dim, minimum=2, maximum=rope.MAX_HEAD_DIM)
        for name in settings:
            require.one_of("settings", name, ("rope_base", "inv_freq", "layout", "rotary_dim"))
        base, turned = settings.get("rope_base", 10000.0), settings.get("rotary_dim") or head_dim
        if self.scaling == "none":
            return {**settings, "inv_freq": rope.frequencies_for(turned, base, settings.get("inv_freq"), None)}
        length = length if self.dynamic else LONGER * trained_length
        return {**settings, "inv_freq": dynamic_ntk(turned, length, trained_length, rope_base=base).inv_freq}


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "none": Fault(),
        "restart": Fault(place=_decoded(lambda chunk: np.arange(chunk.length))),
        "off by one": Fault(place=_decoded(lambda chunk: chunk.right + 1)),
        "head axis": Fault(place=_decoded(lambda chunk: chunk.n_kv_heads + np.arange(chunk.length))),
        "per layer": Fault(place=lambda chunk: chunk.right + (chunk.length if chunk.layer else 0)),
        "rotated again": Fault(again=True),
        "padding seen": Fault(sees_padding=True),
        "padding counted": Fault(place=lambda chunk: chunk.slots),
        "padding counted once decoding": Fault(place=_decoded(lambda chunk: chunk.slots)),
        "base changed, rotated keys": Fault(scaling="rotated"),
        "base changed, unrotated keys": Fault(scaling="unrotated"),
        "base not restored": Fault(scaling="left over"),
    }
)
"""The faults by name:

- none: the right way
- restart: every decoded token stands at position 0
- off by one: decoded tokens stand one place too far
- head axis: the cache's length is read from the axis of the kv heads
- per layer: from the second layer on, the length is read after the first layer has grown its cache
- rotated again: cached keys are turned anew at every step
- padding seen: the prompt's left padding is not masked
- padding counted: positions are slots in the padded row, everywhere
- padding counted once decoding: the prompt's positions leave the padding out, those of new tokens count it
- base changed, rotated keys: the base follows the length, cached keys keep the old one
- base changed, unrotated keys: the base follows the length, keys are turned when read
- base not restored: the base is still that of a longer input
"""
