"""The values of one control, or of two, as a range of frames: their numbers on the page, and the order of drawing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from math import floor
from typing import Protocol

import ipywidgets as widgets
import numpy as np
from numpy.typing import NDArray

from transformer_parts.explore.handles import Handle
from transformer_parts.explore.shots import Shots

#: Bytes of one range's frames that are drawn ahead; what comes after is drawn when the pointer is there.
MOST_BYTES = 16_000_000
#: Steps from the pointer that come before the rest of the range: single ones, and a page, which is five on a slider.
NEAR = (0, 1, -1, 2, -2, 3, -3, 5, -5)


class Framed(Protocol):
    """What frames need of a panel."""

    controls: Mapping[str, widgets.ValueWidget]
    handles: Mapping[str, Handle]
    lock: AbstractContextManager
    shots: Shots
    shown: object

    @property
    def state(self) -> dict[str, object]: ...

    @property
    def couples(self) -> bool: ...

    def make_controls(self) -> dict[str, widgets.ValueWidget]: ...

    def compute(self, **state) -> object: ...

    def put(self, values: Mapping[str, object]) -> None: ...

    def move(self, values: Mapping[str, object]) -> None: ...

    def track(self, handle: str) -> NDArray | None: ...

    def press(self, number: int) -> None: ...


def places(control: widgets.Widget) -> dict[int, object]:
    """Return the values that a control offers by their place on it, which is what the page knows them by."""
    if isinstance(control, widgets.IntSlider):
        return {value: value for value in range(control.min, control.max + 1, control.step)}
    if isinstance(control, widgets.Checkbox):
        return {0: False, 1: True}
    if hasattr(control, "index"):
        return dict(enumerate(value for _label, value in options(control)))
    return {}


def values_of(control: widgets.Widget) -> NDArray:
    """Return the values that a control offers, in order."""
    return np.array(list(places(control).values()))


def options(control: widgets.Widget) -> list[tuple[str, object]]:
    """Return the labels and values of a menu, or of a slider over a list, in order."""
    # Private in ipywidgets 8, which has no public name for the values in order, whatever form the options were
    # given in: one of the reasons for the bound <9 in pyproject.toml.
    return list(control._options_full)


def place(control: widgets.Widget) -> int | None:
    """Return the place of a control's present value, None where a control has none."""
    index = getattr(control, "index", None)
    if index is not None:
        return index
    return int(control.value) if isinstance(control, widgets.IntSlider | widgets.Checkbox) else None


def bring(control: widgets.Widget, at: int) -> None:
    """Bring a control to a place."""
    if hasattr(control, "index"):
        control.index = at
    else:
        control.value = type(control.value)(at)


def described(name: str, control: widgets.Widget) -> dict[str, object]:
    """Return what a page must know of a control to show it, its value excepted."""
    shown = {"name": name, "label": control.description, "hidden": control.layout.display == "none"}
    if isinstance(control, widgets.Checkbox):
        return shown | {"kind": "switch"}
    if isinstance(control, widgets.IntSlider):
        return shown | {"kind": "slider", "low": control.min, "high": control.max, "step": control.step}
    kind = "slider" if isinstance(control, widgets.SelectionSlider) else "menu"
    return shown | {"kind": kind, "labels": [label for label, _value in options(control)]}


class Joint:
    """The joint values of one control or of several, each known to the page by one whole number, its key.

    The key of one control is the place of its value.  That of two is ``(a - low_a) * count_b + b - low_b``.
    """

    def __init__(self, controls: Mapping[str, widgets.ValueWidget], names: tuple[str, ...]):
        self.names = names
        self._places = [places(controls[name]) for name in names]
        self._lows = [min(of, default=0) if len(names) > 1 else 0 for of in self._places]
        self._counts = [max(of, default=0) - low + 1 for of, low in zip(self._places, self._lows, strict=True)]

    @property
    def keys(self) -> list[int]:
        """The keys of one control in the order of its values; those of several are too many to go through."""
        return list(self._places[0]) if len(self.names) == 1 else []

    def values(self, key: int) -> dict[str, object] | None:
        """Return the value of each control, None where there is no such key."""
        found = []
        for of, low, count in zip(reversed(self._places), reversed(self._lows), reversed(self._counts), strict=True):
            at = key if len(found) == len(self.names) - 1 else key % count
            if at + low not in of:
                return None
            found.append(of[at + low])
            key //= count
        return dict(zip(self.names, reversed(found), strict=True))

    def key(self, at: Mapping[str, int | None]) -> int | None:
        """Return the key of controls at these places."""
        key = 0
        for name, low, count in zip(self.names, self._lows, self._counts, strict=True):
            if at[name] is None:
                return None
            key = at[name] if len(self.names) == 1 else key * count + at[name] - low
        return key


def coarse_to_fine(keys: Sequence[int]) -> Iterator[int]:
    """Yield all keys: every 2ⁿ-th, then the halves between, down to each.

    Examples
    --------
    >>> list(coarse_to_fine(range(9)))
    [0, 8, 4, 2, 6, 1, 3, 5, 7]
    """
    stride = 1 << max(len(keys) - 1, 0).bit_length() >> 1 or 1
    yield from keys[::stride]
    while stride > 1:
        stride //= 2
        yield from keys[stride :: 2 * stride]


def in_reach(count: int, start: int, pixels: int | None) -> list[int]:
    """Return which of 0 … count - 1 a pointer can move a handle to, from `start` on a track of so many pixels.

    A pointer goes by whole pixels, so that of a long range few values are in its reach.  Without a track all are.

    Examples
    --------
    >>> in_reach(1001, 500, 4), in_reach(3, 1, 100)
    ([0, 250, 500, 750, 1000], [0, 1, 2])
    """
    if not pixels or count <= pixels:
        return list(range(count))
    length = (count - 1) / pixels
    reached = {floor(start + k * length + 0.5) for k in range(-pixels, pixels + 1)}
    return sorted({0, count - 1, *(i for i in reached if 0 <= i < count)})


class Range:
    """The values of one control, or of two, beside the present state of the others, and which of them were sent.

    Attributes
    ----------
    id : str; the page's name for it
    joint : Joint; the controls and their values
    wanted : bool; whether the pointer is near, so that drawing goes on
    bytes : int; what was sent of it ahead
    """

    def __init__(self, range_id: str, panel: Framed, names: tuple[str, ...], twin: Framed | None):
        self.id, self.wanted, self.bytes = range_id, True, 0
        self.joint = Joint(panel.controls, names)
        self.sent: set[int] = set()
        self.failed: set[int] = set()
        self._context = panel.state
        self._others = {name: places(other) for name, other in panel.controls.items() if twin and name not in names}
        self._order = self.joint.keys
        self._rank = {key: i for i, key in enumerate(self._order)}
        self._states: dict[int, dict] = {}
        self._twin = twin
        self._pointer, self._left = 0, []  # until it is near

    def state(self, key: int) -> dict[str, object] | None:
        """Return the state of all controls once these are at a key; None where the panel cannot get there."""
        if key not in self._states:
            values = self.joint.values(key)
            self._states[key] = None if values is None else self._reached(values)
        return self._states[key]

    def _reached(self, values: dict[str, object]) -> dict[str, object] | None:
        if self._twin is None:
            return self._context | values
        try:
            self._twin.put(self._context)
            self._twin.put(values)
        except Exception:
            return None
        return self._twin.state

    def along(self, key: int) -> dict[str, int]:
        """Return the places of the controls that move along with this one, as far as the page has such places."""
        state = self.state(key)
        if self._twin is None or state is None:
            return {}
        at = {name: _place_of(state[name], values) for name, values in self._others.items()}
        return {name: there for name, there in at.items() if there is not None}

    def near(self, at: int | None, pixels: int | None) -> None:
        """Take note of a pointer that has come to a place, to move from there over a track of so many pixels."""
        self._pointer = self._rank.get(at, 0)
        count = len(self._order)
        # From another start a pointer comes to other values; those a quarter of a pixel from one sent can wait.
        close = count // (4 * pixels) if pixels else 0
        known = {self._rank[key] + step for key in self.sent for step in range(-close, close + 1)}
        reach = (i for i in in_reach(count, self._pointer, pixels) if i not in known)
        self._left = [self._order[i] for i in coarse_to_fine([*reach])]

    def moved(self, at: int | None) -> None:
        """Take note of the pointer's new place."""
        self._pointer = self._rank.get(at, self._pointer)

    def next(self) -> int | None:
        """Return the place to draw next, None when there is nothing left to do."""
        if not self.wanted or self.bytes >= MOST_BYTES:
            return None
        for i in (self._pointer + step for step in NEAR):
            if 0 <= i < len(self._order) and self._is_left(self._order[i]):
                return self._order[i]
        while self._left and not self._is_left(self._left[0]):
            del self._left[0]
        return self._left[0] if self._left else None

    def _is_left(self, key: int) -> bool:
        return key not in self.sent and key not in self.failed


def _place_of(value: object, values: dict[int, object]) -> int | None:
    return next((at for at, other in values.items() if other == value), None)


def twin_of(panel: Framed) -> Framed:
    """Return a copy of the panel with controls of its own, on no page, to see what moves along with a control."""
    twin = copy(panel)
    twin.controls = twin.make_controls()
    for control in twin.controls.values():
        for widget in (control.layout, getattr(control, "style", None), control):
            if widget is not None:
                widget.close()
    return twin
