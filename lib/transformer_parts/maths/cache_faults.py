"""Ways of getting a cached decoder wrong, run as they are written, so that the error of each can be measured.

Each fault runs through the same `KVCache` as the right way and differs in the one thing that its name says;
`cache_fault_runs` runs them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import rope
from transformer_parts.maths.cache import KVCache
from transformer_parts.maths.context_extension import dynamic_ntk

LONGER = 8
"""How many trained lengths the earlier input had, after which "base not restored" forgets to go back."""


class Chunk(NamedTuple):
    """What code that places new tokens can see.

    Attributes
    ----------
    start : int
        Tokens in the cache before, padding included.
    length : int
        New tokens.
    pad : int
        Padding at the left.
    layer : int
        Index of the layer.
    n_kv_heads : int
        G.
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
    place : callable
        ``place(chunk)`` returns the positions by which the new queries and keys are turned.
    again : bool
        Turns the cached keys once more at every later step, and keeps the result.
    sees_padding : bool
        Lets everyone attend to the padding.
    scaling : {"none", "rotated", "unrotated", "left over"}
        Whether the base follows the length (dynamic scaling), with the keys cached after or before the rotation;
        "left over": it is that of a longer input before this one.

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

    def turn(self, length: int, trained_length: int, head_dim: int, settings: Mapping[str, object]) -> dict:
        """Return the keywords of `rope.rotate` at a length.

        Parameters
        ----------
        length : int
            Real tokens so far.
        trained_length : int
            L of dynamic scaling.
        head_dim : int
            K.
        settings : mapping
            The keywords without scaling.

        Returns
        -------
        dict
            The same with the frequencies of that length as ``inv_freq``.
        """
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


class FaultyCache:
    """The cache of one layer, used in the way of a fault.

    Parameters
    ----------
    fault : Fault
        The way.
    pad : int
        Padding at the left of the prompt.
    trained_length : int
        L of dynamic scaling.
    layer : int
        Index of the layer.
    settings : mapping
        The keywords of `rope.rotate` in the right way.

    Examples
    --------
    >>> one = np.ones((1, 1, 2))
    >>> cache = FaultyCache(FAULTS["restart"])
    >>> for token in range(3):
    ...     query, keys, values, mask = cache.take(one, one, one)
    >>> cache.kept.positions.tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        fault: Fault,
        *,
        pad: int = 0,
        trained_length: int = 1,
        layer: int = 0,
        settings: Mapping[str, object] = MappingProxyType({}),
    ):
        self.fault, self.pad, self.trained_length, self.layer = fault, pad, trained_length, layer
        self.settings = settings
        self.kept = KVCache(rotated=fault.scaling != "unrotated", ordered=False)

    def take(self, query: NDArray, key: NDArray, value: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Append new tokens and return what attention would be given.

        Parameters
        ----------
        query : (…, H, L, K) ndarray
            Not yet turned, like `key`.
        key, value : (…, G, L, K) ndarrays

        Returns
        -------
        query : (…, H, L, K) ndarray
            Turned.
        keys, values : (…, G, S, K) ndarrays
            All there are, the keys turned.
        mask : (L, S) ndarray of bool
            Who may attend to whom.
        """
        start, length = len(self.kept), key.shape[-2]
        chunk = Chunk(start, length, self.pad, self.layer, key.shape[-3])
        positions = self.fault.place(chunk)
        real = start + length - self.pad
        settings = self.fault.turn(real, self.trained_length, key.shape[-1], self.settings)
        if self.fault.again and start:
            turned = rope.rotate(self.kept.keys, self.kept.positions[..., None, :], **settings)
            others = self.kept.values.copy(), self.kept.positions.copy()
            self.kept.truncate(0)
            self.kept.append(turned, *others)
        self.kept.append(rope.rotate(key, positions, **settings) if self.kept.rotated else key, value, positions)
        keys = self.kept.keys if self.kept.rotated else self.kept.turned_keys(**settings)
        mask = np.tri(length, len(self.kept), start, dtype=bool)
        if not self.fault.sees_padding:
            mask[:, : self.pad] = False
            np.fill_diagonal(mask[:, start:], True)  # padding attends to itself
        return rope.rotate(query, positions, **settings), keys, self.kept.values, mask
