"""Frames ahead of the hand: the pictures of one control's range, drawn while the hand is near it.

The page asks for a control's range as soon as the hand is over it (see ``front/panel.js``).  A thread then draws the
picture and the table of each of its values, the other controls staying as they are: nearest to the hand first, then
coarse to fine over the whole range, a frame at a time, so that whatever else the panel has to do waits for one frame at
most.  The page shows them from its own store as the hand moves.  When the hand has rested for `REST` seconds the panel
itself is brought up to date, in full resolution.

Nothing is kept here but the states that were sent; the page keeps at most `ranges.MOST_BYTES` of pictures for a panel.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from typing import TYPE_CHECKING

from transformer_parts.explore.ranges import Range, place, twin_of
from transformer_parts.explore.readout import table

if TYPE_CHECKING:
    from transformer_parts.explore.panel import Panel

logger = logging.getLogger(__name__)

#: Seconds without a change after which a hand rests.
REST = 0.1
Send = Callable[..., None]


class Ahead:
    """Draws a panel's frames ahead of the hand, in a thread that lives as long as there is something to draw.

    Parameters
    ----------
    panel : Panel
        Whose frames; everything happens under its lock.
    send : callable
        Takes the content of a message to the page, and its buffers.
    """

    def __init__(self, panel: "Panel", send: Send):
        self._panel, self._send = panel, send
        self._news = Condition(panel.lock)
        self._thread: Thread | None = None
        self._range: Range | None = None
        self._moved: float | None = None  # when the hand moved last, if the panel has not been refreshed since
        self._twin: Panel | None = None
        self._passed: dict[str, object] | None = None  # the last state under the hand that the page was sent

    def message(self, _widget: object, content: dict, _buffers: object) -> None:
        """Take a message of the page."""
        with self._panel.lock:
            if content.get("type") == "leave" and self._range is not None:
                self._range.wanted = False
            elif content.get("type") == "want" and content.get("control") in self._panel.controls:
                self._want(content["range"], content["control"])

    def _want(self, range_id: str, control: str) -> None:
        if self._range is None or self._range.id != range_id:
            if self._panel.couples and self._twin is None:
                self._twin = twin_of(self._panel)
            self._range = Range(range_id, self._panel, control, self._twin)
        self._range.wanted = True
        self._go_on()

    def moved(self, control: str) -> bool:
        """Take note of a control's new value; True if the page shows its picture without a refresh."""
        if self._range is None:
            return False
        if self._range.control == control:
            key = place(self._panel.controls[control])
            self._range.moved(key)
            if key not in self._range.failed and self._range.state(key) == self._panel.state:
                self._moved = time.monotonic()
                if key in self._range.sent:
                    self._passed = self._panel.state
                self._go_on()
                return True
        self.forget()
        return False

    def forget(self) -> None:
        """Give the range up: other controls have changed."""
        if self._range is not None:
            self._send({"type": "stale", "range": self._range.id})
        self._range = None

    def renew(self) -> None:
        """Give up all that was known of the controls: they have other ranges now."""
        self.forget()
        self._twin = None

    def last_good(self) -> dict[str, object] | None:
        """Return the last state whose picture only the page has shown, None if it was the panel's."""
        return self._passed

    def rested(self) -> None:
        """Tell the page that picture and table are in place, for which values of the controls."""
        self._moved = self._passed = None
        self._send(
            {
                "type": "rest",
                "at": {name: place(control) for name, control in self._panel.controls.items()},
                "bytes": len(self._panel.picture.value),
                "numbers": self._panel.readout.value,
            }
        )

    def _go_on(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="transformer_parts frames ahead", daemon=True)
            self._thread.start()
        self._news.notify_all()

    def _work(self) -> None:
        busy = True
        while busy:
            with self._news:
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
        """Do one thing, and return whether there may be another."""
        if self._moved is not None and time.monotonic() >= self._moved + REST:
            self._panel.refresh()
            return True
        key = None
        if self._range is not None:
            # A hand that has not moved for two frames of the screen may well rest.
            moving = self._moved is not None and time.monotonic() < self._moved + REST / 3
            key = self._range.next(moving=moving)
        if key is not None:
            self._draw(self._range, key)
            return True
        if self._moved is not None:
            self._news.wait(self._moved + REST - time.monotonic())
            return True
        return False

    def _draw(self, of: Range, key: int) -> None:
        panel = self._panel
        under_hand = self._moved is not None and key == place(panel.controls[of.control])
        state = of.state(key)
        picture = None
        if state is not None:
            # What has no picture is reported when the hand comes there.
            with suppress(Exception):
                data = panel.compute(**state)
                picture, numbers = panel.view.preview(data), table(panel.rows(data))
        if picture is None:
            of.failed.add(key)
            if under_hand:
                panel.refresh()
            return
        of.sent.add(key)
        of.bytes += len(picture)
        if under_hand:
            self._passed = state
        self._send({"type": "frame", "range": of.id, "key": key, "numbers": numbers}, [picture])
