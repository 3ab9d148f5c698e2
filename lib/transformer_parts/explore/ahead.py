"""Frames ahead of the hand: the pictures of one control's range, drawn while the hand is near it.

The page asks for a control's range as soon as the hand is over it (see ``front/panel.js``).  A thread then draws the
picture and the table of each value that the hand can reach, the other controls staying as they are: nearest to the hand
first, then coarse to fine, a frame at a time, so that whatever else the panel has to do waits for one frame at most.
The page shows them from its own store as the hand moves, and tells the control's value when the hand rests: the panel
itself is then brought up to date, in full resolution.

Nothing is kept here but the states that were sent and the first picture; the page keeps at most `ranges.MOST_BYTES` of
pictures, of the range that the hand is near or was at last.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from ipywidgets import Widget

from transformer_parts.draw.pixel_runs import difference, packed
from transformer_parts.explore.ranges import Range, bring, place, twin_of

if TYPE_CHECKING:
    from transformer_parts.explore.panel import Panel

logger = logging.getLogger(__name__)

Send = Callable[..., None]


class Ahead:
    """Draws a panel's frames ahead of the hand, in a thread that lives as long as there is something to draw.

    Parameters
    ----------
    panel : Panel; whose frames; everything happens under its lock
    send : callable; takes the content of a message to the page, and its buffers
    """

    def __init__(self, panel: "Panel", send: Send):
        self._panel, self._send = panel, send
        self._thread: Thread | None = None
        self._range: Range | None = None
        self._twin: Panel | None = None
        self._told: str | None = None  # the page's name for the last value that it told

    def message(self, _widget: object, content: dict, _buffers: object) -> None:
        """Take a message of the page: a range is wanted; the hand lingers where no frame is, rests, or has left."""
        with self._panel.lock:
            kind, of = content.get("type"), self._range
            if kind == "want" and content.get("control") in self._panel.controls:
                self._want(content["range"], content["control"], content.get("ratio", 1))
                self._range.grabbed(content.get("at"), content.get("pixels"))
                self._go_on()
            elif kind == "hand" and of is not None and of.id == content.get("range"):
                of.moved(content.get("at"))
                self._go_on()
            elif kind == "rested" and content.get("control") in self._panel.controls:
                self._told = content.get("told")
                self._rest(self._panel.controls[content["control"]], content.get("at"), content.get("presses", 0))
            elif kind == "leave" and of is not None:
                of.wanted = False

    def _want(self, range_id: str, control: str, ratio: int) -> None:
        if self._range is None or self._range.id != range_id:
            if self._panel.couples and self._twin is None:
                self._twin = twin_of(self._panel)
            self._range = Range(range_id, self._panel, control, ratio, self._twin)
        self._range.wanted = True

    def _rest(self, control: Widget, at: int, presses: int) -> None:
        # Messages of several widgets overtake one another: a button that was pressed after this may have been heard
        # before it, and has the last word.  After a way there and back nothing changes; the page waits for an answer.
        if presses < self._panel.presses or place(control) == at:
            self.rested()
        else:
            bring(control, at)

    def moved(self, control: str) -> None:
        """Take note of a control's new value: the frames of another one, or of another state, are of no use then."""
        of = self._range
        if of is None:
            return
        if of.control == control:
            key = place(self._panel.controls[control])
            of.moved(key)
            if key in of.failed or of.state(key) == self._panel.state:
                self._go_on()
                return
        self.forget()

    def forget(self) -> None:
        """Give the range up: other controls have changed."""
        if self._range is not None:
            self._send({"type": "stale", "range": self._range.id})
        self._range = None

    def renew(self) -> None:
        """Give up all that was known of the controls: they have other ranges now."""
        self.forget()
        self._twin = None

    def rested(self) -> None:
        """Tell the page that picture and table are in place, for which values of the controls."""
        self._send(
            {
                "type": "rest",
                "told": self._told,
                "at": {name: place(control) for name, control in self._panel.controls.items()},
                "bytes": len(self._panel.picture.value),
                "numbers": self._panel.readout.value,
            }
        )

    def _go_on(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="transformer_parts frames ahead", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        busy = True
        while busy:
            with self._panel.lock:
                try:
                    busy = self._step()
                except Exception:
                    logger.exception("%s: frames ahead", type(self._panel).__name__)
                    self._range, busy = None, False
                if not busy:
                    self._thread = None
            # Whoever waits for the lock has it now.
            time.sleep(0.001)

    def _step(self) -> bool:
        """Draw one frame, and return whether there may be another."""
        if self._range is None:
            return False
        key = self._range.next()
        if key is not None:
            self._draw(self._range, key)
        return key is not None

    def _draw(self, of: Range, key: int) -> None:
        panel = self._panel
        state = of.state(key)
        pixels = None
        if state is not None:
            # What has no picture is reported when the hand rests there.
            with suppress(Exception):
                data = panel.compute(**state)
                numbers = panel.numbers(data)
                pixels = panel.view.pixels(data, of.ratio)
        if pixels is None:
            of.failed.add(key)
            return
        colours, lengths = difference(pixels, of.first)
        content = {"type": "frame", "range": of.id, "key": key, "numbers": numbers, "along": of.along(key)}
        if of.first is None:
            of.first = pixels
            content["size"] = pixels.shape[::-1]
        of.sent.add(key)
        of.bytes += colours.nbytes + lengths.nbytes
        self._send(content, [packed(colours, lengths)])
