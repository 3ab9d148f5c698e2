"""Which values of a control a page without a kernel shows, and the drawings of its explorer over them.

What is drawn is decided by the panel alone: its controls are set as a reader sets them, and the picture and the table
are those of its own view and rows.  Nothing is computed here.
"""

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from ipywidgets import Checkbox, Widget

from transformer_parts.draw.recorder import Numbered
from transformer_parts.explore import page_part
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import described
from transformer_parts.explore.shots import as_text
from transformer_parts.language import _

#: Most values of one control, in rounds: each round adds values between those of the one before.
ROUNDS = (5, 9, 17, 33, 65)


@dataclass(frozen=True)
class Limits:
    """How much of an explorer a page may hold: values of a control, frames, and bytes of its base64 text."""

    values: int = 33
    frames: int = 800
    bytes: int = 2_500_000


@dataclass
class RecordedRange:
    """The values of one control at one setting of the others.

    `labels` as the page shows them, `at` the place of the setting's own value, `shots` the number of picture and table
    at each value, `moved` the labels of other controls that move along, and `full` how many values the control has.
    """

    labels: list[str]
    at: int
    full: int
    shots: list[int] = field(default_factory=list)
    moved: list[dict[str, str]] = field(default_factory=list)


@dataclass
class Start:
    """A setting from which each control can be moved: that of the beginning, or a preset.

    `controls` describes them (see `ranges.described`), `labels` has the text of each one's value.
    """

    label: str
    shot: int
    labels: dict[str, str]
    controls: list[dict[str, object]]
    ranges: dict[str, RecordedRange]

    def content(self) -> dict[str, object]:
        """Return what the page's script reads: values by their places, others by their labels."""
        places = {name: {label: at for at, label in enumerate(found.labels)} for name, found in self.ranges.items()}
        at = {name: places[name][label] if name in places else 0 for name, label in self.labels.items()}
        ranges = {
            name: {
                "shots": found.shots,
                "moved": [
                    {other: places.get(other, {}).get(label, label) for other, label in moved.items()}
                    for moved in found.moved
                ],
            }
            for name, found in self.ranges.items()
        }
        return {"shot": self.shot, "at": at, "controls": self.controls, "ranges": ranges}


def options(control: Widget) -> list[tuple[str, object]]:
    """Return the values of a control, in order, with their labels."""
    if isinstance(control, Checkbox):
        return [("off", False), ("on", True)]
    if hasattr(control, "options"):
        return [option if isinstance(option, tuple) else (str(option), option) for option in control.options]
    return [(f"{value:,}", value) for value in range(control.min, control.max + 1, control.step)]


def thin(count: int, at: int, most: int) -> list[int]:
    """Return about `most` of the places 0 … count - 1: both ends, `at`, and others evenly about it.

    In very long ranges the distances from `at` grow, so that the neighbourhood is kept.

    Examples
    --------
    >>> thin(7, 2, 9), thin(80, 50, 5)
    ([0, 1, 2, 3, 4, 5, 6], [0, 2, 18, 34, 50, 66, 79])
    >>> thin(10001, 5000, 9)
    [0, 4405, 4929, 4992, 4999, 5000, 5001, 5008, 5071, 5595, 10000]
    """
    if count <= most:
        return list(range(count))
    if count <= 16 * most:
        step = -(-count // most)
        even = range(at % step, count, step)
    else:
        sides = (np.geomspace(1, max(side, 1), most // 2 + 1) for side in (at, count - 1 - at))
        below, above = (np.round(side).astype(int) for side in sides)
        even = {*(at - below), *(at + above)} & set(range(count))
    return sorted({0, count - 1, at, *map(int, even)})


class RecordedPanel:
    """The drawings of one panel, over the range of each control from each of its settings.

    Parameters
    ----------
    panel : Panel
        A new panel, in its first state; its controls are moved.
    """

    def __init__(self, panel: Panel, limits: Limits | None = None):
        self.panel, self.limits = panel, limits or Limits()
        self._pictures = panel.make_shots(panel.make_view())
        self._shots = Numbered()
        self._of_state: dict[tuple, int] = {}
        self.settings = {_("Reset"): panel.state} | {label: self._state_of(label) for label in panel.presets}
        self.pack, self.starts = b"", []
        for values in ROUNDS:
            if values > self.limits.values:
                break
            # A round has about twice the frames of the one before.
            if self.starts and 2 * len(self._of_state) > self.limits.frames:
                break
            if self.starts and 1.9 * len(self.pack) > self.limits.bytes:
                break
            self.starts = [self._start(label, state, values) for label, state in self.settings.items()]
            self.pack = self._packed()
            if not self.thinned:
                break

    @property
    def thinned(self) -> list[tuple[str, int, int]]:
        """Controls of which the page has fewer values than the panel: label, how many, of how many; at their worst."""
        found = {}
        for start in self.starts:
            for name, moved in start.ranges.items():
                if len(moved.labels) < moved.full:
                    label = self.panel.controls[name].description
                    found[name] = max(
                        found.get(name, (label, 0, 0)), (label, len(moved.labels), moved.full), key=lambda x: x[2]
                    )
        return list(found.values())

    @property
    def frames(self) -> int:
        """How many different frames with their tables there are."""
        return len(self._shots)

    def _state_of(self, label: str) -> dict[str, object]:
        self.panel.reset()
        self.panel.put(self.panel.presets[label])
        return self.panel.state

    def _start(self, label: str, state: dict[str, object], most: int) -> Start:
        self._set(state)
        shot, labels = self._shot(), self._labels()
        controls = [described(name, control) for name, control in self.panel.controls.items()]
        ranges = {name: found for name in state if (found := self._range(name, state, labels, most))}
        for control in controls:
            name = control["name"]
            for of_numbers in ("low", "high", "step"):
                control.pop(of_numbers, None)
            control["labels"] = ranges[name].labels if name in ranges else [labels[name]]
        return Start(label, shot, labels, controls, ranges)

    def _range(self, name: str, state: dict[str, object], labels: dict[str, str], most: int) -> RecordedRange | None:
        self._set(state)
        there = options(self.panel.controls[name])
        at = [value for _label, value in there].index(state[name])
        if len(there) < 2:
            return None
        found = RecordedRange([], 0, len(there))
        for place in thin(len(there), at, most):
            label, value = there[place]
            self._set(state)
            try:
                self.panel.put({name: value})
                shot = self._shot()
            except ValueError:
                # A value that the others do not allow: the panel, too, goes back or says so.
                continue
            if place == at:
                found.at = len(found.labels)
            moved = {other: now for other, now in self._labels().items() if other != name and now != labels[other]}
            found.labels.append(label)
            found.shots.append(shot)
            found.moved.append(moved)
        return found

    def _set(self, state: dict[str, object]) -> None:
        if self.panel.state != state:
            self.panel.put(state)

    def _labels(self) -> dict[str, str]:
        return {name: dict(_swapped(options(c)))[_key(c.value)] for name, c in self.panel.controls.items()}

    def _shot(self) -> int:
        """Return the number of picture and table of the current state."""
        state = tuple((name, _key(value)) for name, value in self.panel.state.items())
        if state not in self._of_state:
            self._of_state[state] = self._shots.number(self._pictures.shot(self.panel.compute(**self.panel.state)))
        return self._of_state[state]

    def content(self) -> dict:
        """Return what the page's script reads."""
        part = page_part.of(self.panel) | {"controls": self.starts[0].controls}
        starts = [start.content() for start in self.starts]
        return {"part": part, "drawings": self._pictures.things(), "shots": list(self._shots), "starts": starts}

    def _packed(self) -> bytes:
        return base64.b64encode(zlib.compress(as_text(self.content()), 9))


def _key(value: object) -> object:
    return value if value.__hash__ else repr(value)


def _swapped(pairs: list[tuple[str, object]]) -> Iterator[tuple[object, str]]:
    return ((_key(value), label) for label, value in pairs)
