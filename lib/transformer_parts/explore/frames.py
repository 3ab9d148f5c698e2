"""Frames of a panel for its page: the one that is asked for at once, and those of the range that the pointer is near.

A frame is a picture and a table, as numbers of things that the page keeps (see ``shots``).  The page asks for the frame
of each value that it does not have (see ``front/session.js``), two or three at a time, and shows what comes.  As soon
as the pointer is near a control, a thread draws the frames of its range ahead, the other controls staying as they are:
nearest to the pointer first, then coarse to fine.  Whatever else the panel has to do waits for one frame at most.  A
few frames go in one message, and few messages are under way, so that a slow line is never filled.

When the pointer pauses, the page brings the control itself to its value.
"""

import logging
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from transformer_parts.explore import handles, page_part
from transformer_parts.explore.ranges import Framed, Joint, Range, bring, place, twin_of
from transformer_parts.explore.shots import as_text

logger = logging.getLogger(__name__)

Send = Callable[..., None]

#: Frames ahead of one message at most, and seconds that one waits for others; messages and bytes of them after which
#: the page must have got some.
BATCH, LONGEST, MESSAGES, BYTES = 8, 0.03, 2, 6_000
#: Seconds after the page asked for a frame in which nothing is drawn ahead: more questions are on their way.
PAUSE = 0.15
#: Bytes of one page's things after which it begins anew.
MOST_KEPT = 48_000_000


class Frames:
    """Draws a panel's frames, those ahead in a thread that lives as long as there is something to draw.

    Parameters
    ----------
    panel : Framed; whose frames; everything happens under its lock
    send : callable; takes the content of a message to the page, and its buffers

    Attributes
    ----------
    attached : bool; whether a page with a front end shows the panel
    """

    def __init__(self, panel: Framed, send: Send):
        self._panel, self._send = panel, send
        self.attached = False
        self._thread: Thread | None = None
        self._range: Range | None = None
        self._twin: Framed | None = None
        self._waiting: list[dict | None] = []  # frames ahead that are not sent yet
        self._sent = 0.0
        self._under_way: list[int] = []  # bytes of the messages with frames ahead that the page has not got yet
        self._kept = 0
        self._asked = 0.0
        self._move: str | None = None  # the page's name for the last move of a control

    def message(self, _widget: object, content: dict, _buffers: object) -> None:
        """Take a message of the page."""
        actions = {
            "open": self._open, "close": self._close, "near": self._near, "leave": self._leave, "ask": self._ask,
            "got": self._got, "move": self._moved, "press": self._press,
        }  # fmt: skip
        kind = content.get("type")
        if kind in actions:
            with self._panel.lock:
                actions[kind](**{name: value for name, value in content.items() if name != "type"})

    def _open(self) -> None:
        """A page has come, which has nothing yet."""
        self.attached = True
        self.begin()
        self.rest()

    def begin(self) -> None:
        """Have the page forget all that it has, because numbers begin anew."""
        self.forget()
        self._kept, self._under_way = 0, []
        if self.attached:
            self._panel.shots.begin()
            self._send({"type": "begin"})

    def _close(self) -> None:
        """A page shows the panel no more: what was kept is let go; another page that shows it opens it again."""
        self.attached = False
        self.renew()
        self._panel.let_go()
        self._send({"type": "closed"})

    def _near(self, range: str, control: str, at: int | None = None, pixels: int | None = None) -> None:
        names = self._names(control)
        if names is None:
            return
        if self._range is None or self._range.id != range:
            if self._kept > MOST_KEPT:
                self.begin()
                self.rest()
            if self._panel.couples and self._twin is None:
                self._twin = twin_of(self._panel)
            self._range, self._waiting = Range(range, self._panel, names, self._twin), []
            self._send_tracks(control)
        self._range.wanted = True
        self._range.near(at, pixels)
        self._go_on()

    def _names(self, control: str) -> tuple[str, ...] | None:
        """Return the controls that the page means: one by its name, or those of a handle that moves two."""
        if control in self._panel.controls:
            return (control,)
        handle = self._panel.handles.get(control)
        return handle and handle.controls

    def _send_tracks(self, control: str) -> None:
        """Send the places of a control's handles, where the panel has them for all values at once.

        A handle that moves two controls counts as a control of its own.
        """
        for name, handle in self._panel.handles.items():
            if control == (name if len(handle.controls) > 1 else handle.controls[0]):
                track = None
                with suppress(Exception):
                    track = self._panel.track(name)
                if track is not None:
                    content = {"type": "track", "range": self._range.id, "handle": name}
                    self._send(content, [zlib.compress(handles.packed(track), 1)])

    def _leave(self) -> None:
        if self._range is not None:
            self._range.wanted = False

    def _ask(self, range: str, at: int) -> None:
        """Answer at once, also where there is no frame: the page counts the answers that are under way."""
        self._asked = time.monotonic()
        of = self._range
        if of is None or of.id != range:
            self._send({"type": "frames", "range": range, "frames": [], "asked": at})
            return
        of.moved(at)
        frame = self._frame(of, at)
        self._send_frames(of, [frame], asked=at, took=round(1000 * (time.monotonic() - self._asked), 1))
        self._go_on()

    def _got(self) -> None:
        """A message with frames ahead has come to the page."""
        del self._under_way[:1]
        self._go_on()

    def _moved(self, control: str, at: int, id: str) -> None:
        self._move = id
        names, controls = self._names(control), self._panel.controls
        joint = names and Joint(controls, names)
        values = joint and joint.values(at)
        if values is None or joint.key(self._at()) == at:
            # There is no such place any more, or it is where the control is; the page waits for an answer.
            self.rest()
        elif len(values) > 1:
            self._panel.move(values)
        else:
            bring(controls[control], at)
            if place(controls[control]) != at:
                self.rest()

    def _at(self) -> dict[str, int | None]:
        """Return the places of all controls."""
        return {name: place(control) for name, control in self._panel.controls.items()}

    def _press(self, number: int, id: str) -> None:
        self._move = id
        self._panel.press(number)

    def changed(self, *controls: str) -> None:
        """Take note of new values of controls: the frames of others, or of another state, are of no use then."""
        of = self._range
        if of is not None and of.joint.names == controls:
            key = of.joint.key(self._at())
            of.moved(key)
            if key in of.failed or of.state(key) == self._panel.state:
                return
        self.forget()

    def forget(self) -> None:
        """Give the range up: other controls have changed."""
        if self._range is not None:
            self._send({"type": "stale", "range": self._range.id})
        self._range, self._waiting = None, []

    def renew(self) -> None:
        """Give up all that was known of the controls: they have other ranges now."""
        self.forget()
        self._twin = None

    def rest(self) -> None:
        """Tell the page where the controls are, and what is shown."""
        if not self.attached:
            return
        shot = self._panel.shots.shot(self._panel.shown)
        content = {
            "type": "rest",
            "id": self._move,
            "at": self._at(),
            "code": page_part.code(self._panel),
        }
        self._send(content | shot._asdict(), self._news())
        self._go_on()

    def _go_on(self) -> None:
        if self._thread is None and self._range is not None and not self._is_full():
            self._thread = Thread(target=self._work, name="transformer_parts frames ahead", daemon=True)
            self._thread.start()

    def _is_full(self) -> bool:
        return len(self._under_way) >= MESSAGES or sum(self._under_way) >= BYTES

    def _work(self) -> None:
        busy = True
        while busy:
            # Whoever waits for the lock has it now.
            time.sleep(max(0.001, self._asked + PAUSE - time.monotonic()))
            with self._panel.lock:
                try:
                    busy = self._step()
                except Exception:
                    logger.exception("%s: frames ahead", type(self._panel).__name__)
                    self._range, busy = None, False
                if not busy:
                    self._thread = None

    def _step(self) -> bool:
        """Draw one frame, send those that wait if they are enough, and return whether there may be more."""
        of = self._range
        if of is None or self._is_full():
            return False
        if time.monotonic() < self._asked + PAUSE:
            return True
        key = of.next()
        if key is not None:
            self._waiting.append(self._frame(of, key))
        since_sent = time.monotonic() - self._sent
        if self._waiting and (key is None or len(self._waiting) >= BATCH or since_sent > LONGEST):
            self._under_way.append(self._send_frames(of, self._waiting))
            of.bytes += self._under_way[-1]
            self._waiting, self._sent = [], time.monotonic()
        return key is not None

    def _frame(self, of: Range, key: int) -> dict[str, object] | None:
        """Return a frame of a range, None where there is none."""
        state, shot = of.state(key), None
        if state is not None:
            # What has no picture is reported when the control is there.
            with suppress(Exception):
                shot = self._panel.shots.shot(self._panel.compute(**state))
        if shot is None:
            of.failed.add(key)
            return None
        of.sent.add(key)
        return {"key": key, "along": of.along(key), **shot._asdict()}

    def _send_frames(self, of: Range, frames: list[dict | None], **asked: float) -> int:
        """Send frames and what is new in them; return about how many bytes that are."""
        news = self._news()
        there = [frame for frame in frames if frame is not None]
        self._send({"type": "frames", "range": of.id, "frames": there, **asked}, news)
        return sum(map(len, news)) + 100 * len(frames)

    def _news(self) -> list[bytes]:
        news = self._panel.shots.news()
        packed = [zlib.compress(as_text(news), 1)] if news else []
        self._kept += sum(map(len, packed))
        return packed
