"""The values of one control as a range of frames: by what numbers the page knows them, and in which order they come."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

import ipywidgets as widgets

if TYPE_CHECKING:
    from transformer_parts.explore.panel import Panel

#: Bytes of pictures sent for one range; a longer range stays coarse where the hand is not.
MOST_BYTES = 24_000_000
#: Steps to either side of the hand that come before the rest of the range.
NEAR = 3


def places(control: widgets.Widget) -> dict[int, object]:
    """Return the values that a control offers by their place on it, which is what the page knows them by."""
    if isinstance(control, widgets.IntSlider):
        return {value: value for value in range(control.min, control.max + 1, control.step)}
    if isinstance(control, widgets.Checkbox):
        return {0: False, 1: True}
    if hasattr(control, "index"):
        return {place: value for place, (_, value) in enumerate(control._options_full)}
    return {}


def place(control: widgets.Widget) -> int | None:
    """Return the place of a control's present value, None where a control has none."""
    index = getattr(control, "index", None)
    if index is not None:
        return index
    return int(control.value) if isinstance(control, widgets.IntSlider | widgets.Checkbox) else None


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


class Range:
    """The values of one control beside the present state of the others, and which of them were sent.

    Attributes
    ----------
    id : str
        The page's name for it.
    control : str
        Name of the control.
    wanted : bool
        Whether the hand is near, so that drawing goes on.
    """

    def __init__(self, range_id: str, panel: "Panel", control: str, twin: "Panel | None"):
        self.id, self.control, self.wanted = range_id, control, True
        self.values = places(panel.controls[control])
        self.sent: set[int] = set()
        self.failed: set[int] = set()
        self.bytes = 0
        self._context = panel.state
        self._order = list(self.values)
        self._rank = {key: i for i, key in enumerate(self._order)}
        self._left = list(coarse_to_fine(self._order))
        self._states: dict[int, dict] = {}
        self._hand, self._step = self._rank.get(place(panel.controls[control]), 0), 0
        self._twin = twin

    def state(self, key: int) -> dict[str, object] | None:
        """Return the state of all controls once this one is at a place; None where the panel cannot get there."""
        if key not in self._states:
            self._states[key] = self._reached(self.values[key]) if key in self.values else None
        return self._states[key]

    def _reached(self, value: object) -> dict[str, object] | None:
        if self._twin is None:
            return self._context | {self.control: value}
        try:
            self._twin.put(self._context)
            self._twin.put({self.control: value})
        except Exception:
            return None
        return self._twin.state

    def moved(self, hand: int) -> None:
        """Take note of the hand's new place."""
        at = self._rank.get(hand, 0)
        self._step, self._hand = abs(at - self._hand), at

    def next(self, *, moving: bool) -> int | None:
        """Return the place to draw next, None when there is nothing left to do.

        A hand that moves in large steps has gone on when its picture comes, and is served by an even choice.
        """
        if not self.wanted or self.bytes >= MOST_BYTES:
            return None
        at = self._hand
        near = range(max(at - NEAR, 0), min(at + NEAR + 1, len(self._order)))
        for i in sorted(near, key=lambda i: abs(i - at)):
            if self._is_left(self._order[i]) and not (moving and self._step > NEAR):
                return self._order[i]
        while self._left and not self._is_left(self._left[0]):
            del self._left[0]
        return self._left[0] if self._left else None

    def _is_left(self, key: int) -> bool:
        return key not in self.sent and key not in self.failed


def twin_of(panel: "Panel") -> "Panel":
    """Return a copy of the panel with controls of its own, on no page, to see what moves along with a control."""
    twin = copy(panel)
    twin.controls = twin.make_controls()
    for control in twin.controls.values():
        for widget in (control.layout, getattr(control, "style", None), control):
            if widget is not None:
                widget.close()
    return twin
