"""The explorers of the notebooks as they stand on a page: what a hand does to them, and what their kernel says."""

import base64
import hashlib
import io
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import lab
import nbformat
import notebooks
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Locator, Page

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import places as places_of
from transformer_parts.explore.shots import Shot, Shots

PROJECT = Path(__file__).resolve().parents[2]
SCREENSHOTS = PROJECT / "screenshots"
#: Width of the handle of a slider, in pixels.
THUMB = 16

# Notes each frame that the page paints with the numbers beside it, each pointer event, and the heights of the picture.
RECORD = """
(whole) => {
    const {explorer} = whole, log = window.tpRecord = {paints: [], pointer: [], heights: [], running: true};
    whole.addEventListener("tp-paint", ({detail}) => {
        const numbers = Array.from(explorer.body.querySelectorAll("td"), cell => cell.dataset.full);
        log.paints.push({...detail, numbers, drawn: JSON.stringify(explorer.drawn)});
    });
    document.addEventListener("pointermove", event => log.pointer.push(event.timeStamp), {capture: true});
    const look = () => {
        log.heights.push(explorer.canvas.getBoundingClientRect().height);
        if (log.running) requestAnimationFrame(look);
    };
    look();
}
"""

STOP = "() => { tpRecord.running = false; return tpRecord; }"


def digest(drawn: object) -> str:
    """Return the digest of what a frame draws, with everything that it refers to."""
    return hashlib.sha256(json.dumps(_plain(drawn)).encode()).hexdigest()


def _plain(thing: object) -> object:
    """Return a thing as a page gives it: lists for tuples, and no fractions of whole numbers."""
    if isinstance(thing, list | tuple):
        return [_plain(part) for part in thing]
    return int(thing) if isinstance(thing, float) and thing == int(thing) else thing


def drawn(shots: Shots, shot: Shot) -> list:
    """Return what a frame of a panel draws, with everything that it refers to."""
    things = shots.things()

    def mark(outline: int, style: object, *places: int) -> list:
        if outline < 0:
            return [things["images"][style], *places]
        *look, clip = things["styles"][style]
        return [things["paths"][outline], [*look, things["paths"][clip] if clip >= 0 else None], *places]

    return [[[mark(*one) for one in things["parts"][part]] for part in parts] for parts in shot.frame]


@dataclass(frozen=True)
class Place:
    """Where an explorer stands: notebook, number of its cell, its name in the kernel, and its class."""

    notebook: str
    cell: int
    name: str
    panel_class: type[Panel]

    def __str__(self):
        return f"{Path(self.notebook).stem}-{self.name}"


@cache
def places(kinds: Sequence[type] = PANELS) -> tuple[Place, ...]:
    """Return the places of all explorers of all notebooks, or of another list of the catalogue, in order."""
    return tuple(
        Place(path.relative_to(PROJECT).as_posix(), number, *found)
        for path in notebooks.notebooks()
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells)
        if (found := notebooks.shown(cell)) and found.kind in kinds
    )


class Log(list):
    """What a page complained about: errors on its console, and exceptions that nobody caught."""

    def __init__(self, page: Page):
        super().__init__()
        page.on("console", lambda message: self.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.append(str(error)))


class ExplorerOnPage:
    """One panel on the page of its notebook.

    Attributes
    ----------
    twin : Panel
        A panel of the same class in this process, in its first state: what the page should show is computed by it.
    """

    def __init__(self, page: Page, place: Place, twin: Panel):
        self.page, self.place, self.twin = page, place, twin
        self.panel = lab.cell(page, place.cell).locator(".tp-panel")
        self.whole = self.panel.locator(".tp-front .tp-body")
        self.picture = self.whole.locator("canvas")
        self.table = self.whole.locator("table.tp-readout")
        self.status = self.panel.locator(".tp-status")
        self.spoken = self.whole.locator(".tp-spoken")

    def tell(self, code: str) -> None:
        """Run code in the kernel; ``{panel}`` in it is the name of this panel."""
        lab.kernel(self.page, code.replace("{panel}", self.place.name))

    def ask(self, expression: str, code: str = "") -> object:
        """Return the value of an expression in the kernel; ``{panel}`` in it is the name of this panel."""
        return lab.kernel(self.page, code, expression.replace("{panel}", self.place.name))

    def slider(self, control: str) -> Locator:
        """Return the input of a control, by its name in Python."""
        self.whole.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        return self.whole.locator(f":is(input, select)[data-control={control}]")

    def values(self, control: str) -> list:
        """Return all values of a slider, from left to right."""
        widget = self.twin.controls[control]
        if hasattr(widget, "options"):
            return [option[1] if isinstance(option, tuple) else option for option in widget.options]
        return list(range(widget.min, widget.max + 1, widget.step))

    def value_at(self, control: str, key: int) -> object:
        """Return the value of a control at the place by which the front end knows it."""
        return places_of(self.twin.controls[control])[key]

    def changed_line(self) -> str:
        """Return a line of the page's table that has another value than in the first state."""
        first, rows = self.wanted_numbers(), self.table.locator("tr").all()
        return next(
            " ".join(row.locator("th, td").all_text_contents())
            for row, before in itertools.zip_longest(rows, first)
            if row.locator("td").inner_text().replace("\xa0", " ") != before
        )

    def other_end(self, control: str) -> float:
        """Return the end of a slider, 0 left or 1 right, at which the numbers are not those of the first state."""
        return float(self.wanted_numbers(**{control: self.values(control)[-1]}) != self.wanted_numbers())

    def value(self, control: str) -> object:
        """Return the value that a slider has in the kernel."""
        widget = f"{{panel}}.controls[{control!r}]"
        if hasattr(self.twin.controls[control], "options"):
            return self.values(control)[self.ask(f"{widget}.index")]
        return self.ask(f"{widget}.value")

    def wanted(self, **changes) -> str:
        """Return the digest of the picture of the first state with some controls changed, as the twin draws it."""
        self.twin.reset()
        self.twin.set(**changes)
        return self.twin_picture()

    def wanted_numbers(self, **changes) -> list[str]:
        """Return the values in the table of the first state with some controls changed."""
        self.twin.reset()
        self.twin.set(**changes)
        return self.twin_numbers()

    def twin_picture(self) -> str:
        """Return the digest of the twin's picture."""
        return digest(drawn(self.twin.shots, self.twin.shots.shot(self.twin.compute(**self.twin.state))))

    def twin_numbers(self) -> list[str]:
        """Return the values in the twin's table, with plain spaces: a token may be another one."""
        return [row.value.replace("\xa0", " ") for row in self.twin.rows(self.twin.compute(**self.twin.state))]

    def moving_control(self) -> str:
        """Return a slider whose ends differ in picture and numbers: the one that plays, or that with most steps."""
        names = [name for name, widget in self.twin.controls.items() if type(widget).__name__.endswith("Slider")]
        names.sort(key=lambda name: (name != self.twin.play, -len(self.values(name))))

        def changes(name: str) -> bool:
            low, *_, high = ({name: value} for value in self.values(name))
            return self.wanted(**low) != self.wanted(**high) and self.wanted_numbers(**low) != self.wanted_numbers(
                **high
            )

        return next(filter(changes, names))

    def shown(self) -> str:
        """Return the digest of the picture on the page."""
        return digest(json.loads(self.whole.evaluate("whole => JSON.stringify(whole.explorer.drawn)")))

    def settle(self, seconds: float = 20) -> None:
        """Wait until the page is at rest, and picture and table are those of the kernel's state."""
        deadline = time.monotonic() + seconds
        while True:
            resting = self.whole.get_attribute("data-state") in ("idle", "near")
            state = self.ask("[control.index if hasattr(control, 'index') else control.value"
                             " for control in {panel}.controls.values()]")  # fmt: skip
            self._bring_twin(state)
            wrong = [name for name, seen, wanted in (
                ("picture", self.shown(), self.twin_picture()), ("table", self.numbers(), self.twin_numbers()),
            ) if seen != wanted]  # fmt: skip
            if resting and not wrong:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"the page is not at rest, or shows another {wrong} than the kernel's state gives")
            self.page.wait_for_timeout(50)

    def _bring_twin(self, places: Sequence[int]) -> None:
        """Bring the twin's controls to the places of the kernel's."""
        values = {
            name: places_of(control)[place] if hasattr(control, "index") else place
            for (name, control), place in zip(self.twin.controls.items(), places, strict=True)
        }
        if self.twin.state != values:
            self.twin.put(values)

    def reach(self, control: str, value: object, seconds: float = 20) -> None:
        """Wait until a control has a value in the kernel, and the page shows what belongs to it."""
        deadline = time.monotonic() + seconds
        while (found := self.value(control)) != value:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{control}: the kernel has {found}, want {value}")
            self.page.wait_for_timeout(50)
        self.settle()

    def numbers(self) -> list[str]:
        """Return the values in the table on the page, with plain spaces."""
        texts = self.table.locator("td").evaluate_all("cells => cells.map(cell => cell.dataset.full)")
        return [text.replace("\xa0", " ") for text in texts]

    def warm_up(self, control: str) -> None:
        """Bring the pointer to a slider and wait until the frames of its range are drawn."""
        self.slider(control).scroll_into_view_if_needed()
        self.slider(control).hover()
        self.page.wait_for_timeout(400)
        deadline = time.monotonic() + 30
        while self.ask("{panel}._frames._thread is not None"):
            if time.monotonic() > deadline:
                raise TimeoutError("the range is not drawn")
            self.page.wait_for_timeout(50)

    def drag(self, control: str, way: Sequence[float], pause: float = 0) -> None:
        """Take the handle of a slider with the mouse, lead it along a way (0 left, 1 right) and let go."""
        with self.grabbed(control) as move:
            move(way, pause)

    @contextmanager
    def grabbed(self, control: str) -> Iterator[Callable[[Sequence[float], float], None]]:
        """Take the handle of a slider with the mouse; yield what leads it along a way; let go at the end."""
        slider = self.slider(control)
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        start = slider.evaluate("input => (input.value - input.min) / (input.max - input.min || 1)")

        def move(way: Sequence[float], pause: float = 0) -> None:
            for part in way:
                self.page.mouse.move(box["x"] + THUMB / 2 + part * (box["width"] - THUMB), box["y"] + box["height"] / 2)
                self.page.wait_for_timeout(pause)

        move([start])
        self.page.mouse.down()
        yield move
        self.page.mouse.up()

    def record(self) -> None:
        """Begin to note pictures, pointer events and the height of the picture."""
        self.whole.evaluate(RECORD)

    def recorded(self) -> dict:
        """End the notes and return them."""
        return self.page.evaluate(STOP)

    @contextmanager
    def film(self) -> Iterator[list[NDArray[np.uint8]]]:
        """Film the picture: the list fills with what the screen shows of it, frame by frame, in grey levels."""
        box, width = self.picture.bounding_box(), self.page.viewport_size["width"]
        session = self.page.context.new_cdp_session(self.page)
        encoded: list[str] = []

        def take(event: dict) -> None:
            encoded.append(event["data"])
            session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

        session.on("Page.screencastFrame", take)
        session.send("Page.startScreencast", {"format": "jpeg", "quality": 80, "maxWidth": width // 2})
        frames: list[NDArray[np.uint8]] = []
        try:
            yield frames
        finally:
            session.send("Page.stopScreencast")
            session.detach()
            for data in encoded:
                image = Image.open(io.BytesIO(base64.b64decode(data))).convert("L")
                scale = image.width / width
                left, top = box["x"] * scale, box["y"] * scale
                edges = (left, top, left + box["width"] * scale, top + box["height"] * scale)
                frames.append(np.asarray(image.crop([round(edge) for edge in edges])))

    def press(self, label: str) -> None:
        """Press a button of the panel by the keyboard."""
        self.whole.get_by_role("button", name=label, exact=True).press("Enter")

    def select_cell(self) -> None:
        """Put the keyboard's focus on the cell, as after a move to it by arrow keys."""
        self.page.evaluate(
            """index => {
                const content = window.jupyterapp.shell.currentWidget.content;
                document.activeElement.blur();
                content.activeCellIndex = index;
                content.mode = "command";
                content.activate();
            }""",
            self.place.cell,
        )

    def screenshot(self, kind: str) -> Path:
        """Keep a screenshot of the panel under screenshots/ and return its path."""
        path = SCREENSHOTS / f"{self.place}-{kind}.png"
        self.panel.screenshot(path=path)
        return path
