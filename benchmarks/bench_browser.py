"""From the hand to the pixels: every explorer while its slider is dragged, in a real JupyterLab in Chromium.

    python benchmarks/bench_browser.py        (make bench-browser)

The explorers of a notebook stand on a page of their own, each form of a picture in a cell:

- bare: no explorer, but a square that changes its colour with a handle: what page and screen take by themselves;
- ahead: the panel with its front end, which shows frames drawn ahead of the hand;
- image: the same panel where the front end is absent, a round trip to the kernel for each picture;
- interact: a function under `interact` that builds the figure and calls ``plt.show()`` (chosen pictures only);
- ipympl: the same figure on an ipympl canvas, its artists updated and drawn in full (chosen pictures only).

Each is measured twice, on the machine as it is and with a process that spins for each core.

- at once: frames/s of a drag that begins when the pointer has been over the slider for a third of a second (idle).
- drawn: seconds that the pointer was over the slider at first, until all frames in its reach were drawn, at most 10.
- frames/s: the pointer leads the handle to and fro over its whole bar, on to another value at each frame of the screen;
  counted are pictures presented that differ from the one before, without the first 300 ms of the grab.
- input/s: how many the page took, at most what its screen shows.
- painted: 95 of 100 events had their picture on the canvas in so many milliseconds.
- p50, p95: milliseconds from an input event's own time stamp until the browser has presented its picture (element
  timing).  For "bare" and "ahead" these are all events of the drag whose very picture was shown; for the others, whose
  pictures do not say which event they belong to, arrow keys one at a time.
- exact: share of the pictures in the drag that are those of the value under the hand; the others are of a value that
  the hand had just passed, or, of thousands of values, of one a fraction of a pixel away.
- rest: milliseconds from the last event until the kernel's picture in full resolution is in place (none where it is
  the one that was there before).

"ahead" is grabbed three times, and each other number is the median of the three: a browser shows a picture at the next
frame of its screen or at the one after that, and stays with it as long as the page is in motion.
"""

import argparse
import hashlib
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat
import numpy as np
from ipywidgets import Widget
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as NotInTime

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT / folder) for folder in ("tools", "tests/support")]

import lab
import notebooks
from browser_forms import CELLS, DRAG, SETUP, WATCH
from explorer_page import places as explorers

from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import places
from transformer_parts.explore.rope import RopePlane

DRAWN = ("bare", "ahead")  # forms that say which value they have painted
MOST_MS, LEAST_RATE, WARM_UP, GRABS = 25, 45, 300, 3
RESULTS = PROJECT / "bench-results" / "browser.txt"


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Keep that many cores busy."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


@dataclass
class Measured:
    """What was measured on one form at one load."""

    cold: float = float("nan")
    drawn: float = 0.0
    inputs: float = 0.0
    rate: float = 0.0
    painted: float = 0.0
    p50: float = float("inf")
    p95: float = float("inf")
    exact: float = 1.0
    rest: float = 0.0

    @classmethod
    def median(cls, several: Sequence["Measured"]) -> "Measured":
        return cls(**{name: float(np.nanmedian([vars(one)[name] for one in several])) for name in vars(several[0])})

    def wait(self, waits: Sequence[float]) -> None:
        if len(waits):
            self.p50, self.p95 = np.percentile(waits, [50, 95])

    @property
    def good(self) -> bool:
        return self.rate >= LEAST_RATE and self.p95 <= MOST_MS


@dataclass
class Form:
    """One picture in one of its forms on the page."""

    name: str
    kind: str
    label: str
    pictures: dict[int, str]
    measured: dict[str, Measured] = field(default_factory=dict)

    def look(self, page: Page, cell: int) -> None:
        """Scroll to the form, bring the pointer to the middle of its slider, and let it be noticed."""
        self.page = page
        outputs = lab.cell(page, cell).locator(".jp-Cell-outputArea").first
        self.slider = outputs.locator(".widget-slider").filter(has=self.page.get_by_text(self.label, exact=True)).first
        self.slider.scroll_into_view_if_needed()
        self.page.wait_for_timeout(150)
        box, grip = self.slider.locator(".noUi-base").bounding_box(), self.slider.locator(".noUi-handle").bounding_box()
        self.left, self.right = box["x"], box["x"] + box["width"]
        self.y = grip["y"] + grip["height"] / 2
        self.page.evaluate("() => performance.clearResourceTimings()")
        self.page.mouse.move(grip["x"] + grip["width"] / 2, self.y)
        self.page.wait_for_timeout(200)
        outputs.evaluate(f"(root, slider) => ({WATCH})([root, slider])", self.slider.element_handle())

    def press(self, times: int) -> list[float]:
        """Press arrow keys one at a time; return the milliseconds until each picture was on the screen."""
        waits = []
        handle = self.slider.locator(".noUi-handle")
        handle.focus()
        at_end = handle.evaluate("handle => handle.ariaValueNow === handle.ariaValueMax")
        keys = ("ArrowLeft", "ArrowRight") if at_end else ("ArrowRight", "ArrowLeft")
        for i in range(times + 1):
            self.page.evaluate("() => { tpLog.inputs = []; tpLog.shown = []; }")
            self.page.keyboard.press(keys[i % 2])
            try:
                self.page.wait_for_function("() => tpLog.shown.length > 0", timeout=3000)
            except NotInTime:
                continue
            waits.append(self.page.evaluate("() => tpLog.shown[0].time - tpLog.inputs[0]"))
            self.page.wait_for_timeout(60)
        return waits[1:]

    def warm_up(self, most: float = 10.0) -> float:
        """Wait until the frames of the slider's range are drawn; return the seconds that it took."""
        start = time.perf_counter()
        # A busy page is late in asking for them.
        self.page.wait_for_timeout(300)
        while (seconds := time.perf_counter() - start) < most:
            if lab.kernel(self.page, value=f"{self.name}_ahead._ahead._thread is None"):
                break
            self.page.wait_for_timeout(20)
        return seconds + 0.2

    def drag(self, seconds: float) -> dict:
        """Drag the handle to and fro and stop; return the notes of the page."""
        steps = min(len(self.pictures) - 1, 40)
        self.page.mouse.down()
        inputs = self.page.evaluate(DRAG, [self.left, self.right, self.y, steps, seconds])
        self.page.wait_for_timeout(700)
        notes = self.page.evaluate("() => ({inputs: tpLog.inputs, changes: tpLog.changes, shown: tpLog.shown})")
        self.page.mouse.up()
        return notes | {"rate": inputs}

    def measure(self, page: Page, cell: int, load: str, seconds: float, presses: int) -> None:
        """Drag the slider of the form, which is in that cell of the page, under a load."""
        cold = self.grab_at_once(page, cell, seconds) if self.kind == "ahead" and load == "idle" else np.nan
        grabs = [self.grab(page, cell, seconds, presses) for _ in range(GRABS if self.kind == "ahead" else 1)]
        self.measured[load] = replace(Measured.median(grabs), drawn=grabs[0].drawn, cold=cold)

    def grab_at_once(self, page: Page, cell: int, seconds: float) -> float:
        """Return the frames a second of a drag for which nothing was drawn, and have everything forgotten again."""

        def forget() -> None:
            page.mouse.move(2, 2)
            page.evaluate("() => document.activeElement.blur()")
            page.wait_for_timeout(200)
            lab.kernel(page, f"{self.name}_ahead.reset()")

        forget()
        rate = self.grab(page, cell, seconds, presses=0, warm=False).rate
        forget()
        return rate

    def grab(self, page: Page, cell: int, seconds: float, presses: int, *, warm: bool = True) -> Measured:
        """Drag the slider once."""
        self.look(page, cell)
        result = Measured()
        if self.kind == "ahead":
            result.drawn = self.warm_up() if warm else 0
        elif self.kind != "bare":
            result.wait(self.press(presses))
            self.look(page, cell)
        notes = self.drag(seconds)
        start, stop = notes["inputs"][0] + WARM_UP, notes["inputs"][-1]
        moving = [shown for shown in notes["shown"] if start <= shown["time"] <= stop + 100]
        if self.kind in DRAWN:
            moving = [shown for shown in moving if not shown.get("image")]
            exact = [shown for shown in moving if shown["key"] == shown["wanted"]]
            result.exact = len(exact) / len(moving) if moving else 0.0
            changes = np.array(notes["changes"])
            causes = [changes[changes <= shown["painted"]].max(initial=-np.inf) for shown in exact]
            result.wait([shown["time"] - cause for shown, cause in zip(exact, causes, strict=True)])
            painted = [shown["painted"] - cause for shown, cause in zip(exact, causes, strict=True)]
            result.painted = float(np.percentile(painted, 95)) if painted else float("inf")
            seen = [self.pictures.get(shown["key"]) for shown in moving]
            different = 1 + sum(one != other for one, other in itertools.pairwise(seen)) if seen else 0
        else:
            different = len({shown["time"] for shown in moving})
        result.inputs = notes["rate"]
        result.rate = 1000 * different / (stop - start)
        still = [shown["time"] for shown in notes["shown"] if shown.get("image") or self.kind == "ipympl"]
        result.rest = max(still, default=float("nan")) - stop
        return result


def most_moving(panel: Panel) -> tuple[str, dict[int, str]]:
    """Return the label of the slider with most pictures, and its pictures' digests by their place."""
    sliders = [name for name, control in panel.controls.items() if type(control).__name__.endswith("Slider")]
    sliders.sort(key=lambda name: -len(places(panel.controls[name])))
    best, best_pictures = "", {}
    for name in sliders[:3]:
        values = places(panel.controls[name])
        some = list(values)[:: max(1, len(values) // 80)]
        pictures = {}
        for key in some:
            try:
                panel.put({name: values[key]})
                pictures[key] = hashlib.sha1(panel.view.pixels(panel.compute(**panel.state), 1).tobytes()).hexdigest()
            except Exception:
                continue
            finally:
                panel.put(panel._initial)
        if len(set(pictures.values())) > len(set(best_pictures.values())):
            # Places between those that were drawn are taken to differ.
            best, best_pictures = name, {key: pictures.get(key, str(key)) for key in values}
    return panel.controls[best].description, best_pictures


def write_notebook(path: Path, forms: list[Form]) -> None:
    """Write a notebook with a cell of preparations and one for each form."""
    sources = [SETUP, *(CELLS[form.kind].replace("{name}", form.name) for form in forms)]
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA), path)


COLUMNS = ["at once", "drawn s", "input/s", "frames/s", "painted", "p50 ms", "p95 ms", "exact", "rest ms"]
HEAD = "{:<22}{:<26}{:<9}" + "{:>8}{:>8}{:>8}{:>9}{:>8}{:>7}{:>7}{:>6}{:>8}" * 2


def line(form: Form) -> str:
    cells = []
    for result in form.measured.values():
        cells += [f"{result.cold:.1f}" if np.isfinite(result.cold) else ""]
        cells += [f"{result.drawn:.1f}" if form.kind == "ahead" else ""]
        cells += [f"{result.inputs:.0f}", f"{result.rate:.1f}"]
        cells += [f"{result.painted:.1f}" if form.kind in DRAWN else "", f"{result.p50:.1f}", f"{result.p95:.1f}"]
        cells += [f"{result.exact:.0%}" if form.kind in DRAWN else ""]
        cells += [f"{result.rest:.0f}" if np.isfinite(result.rest) else ""]
    cells += [""] * (2 * len(COLUMNS) - len(cells))
    slider = f"{form.label[:18]} ({len(form.pictures)})"
    return HEAD.format(form.name, slider, form.kind, *cells)


def verdict(forms: Sequence[Form]) -> str:
    lines = [f"target, ahead: at least {LEAST_RATE} frames/s and p95 at most {MOST_MS} ms"]
    for load in forms[0].measured:
        results = {form.name: form.measured[load] for form in forms if form.kind == "ahead"}
        missed = [name for name, result in results.items() if not result.good]
        lines.append(
            f"{load}: met by {len(results) - len(missed)} of {len(results)}; missed by: {', '.join(missed) or '-'}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presses", type=int, default=4, help="arrow keys for each form that goes through the kernel")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a drag")
    parser.add_argument("--panels", nargs="*", help="panels by class name; all by default")
    parser.add_argument("--forms", nargs="*", choices=[*CELLS][1:], default=[*CELLS][1:])
    parser.add_argument(
        "--beside", nargs="*", default=[RopePlane.__name__], help="panels shown as interact and ipympl, too"
    )
    parser.add_argument("--loads", nargs="*", choices=("idle", "busy"), default=["idle", "busy"])
    options = parser.parse_args()
    pages: dict[str, list[Form]] = {}
    for place in explorers():
        name = place.panel_class.__name__
        if options.panels and name not in options.panels:
            continue
        forms = pages.setdefault(place.notebook, [Form("", "bare", "bare", {key: str(key) for key in range(41)})])
        moved = most_moving(place.panel_class())
        Widget.close_all()
        kinds = [kind for kind in options.forms if kind in ("ahead", "image") or name in options.beside]
        forms += [Form(name, kind, *moved) for kind in kinds]
    first, second, *_ = [*options.loads, "", ""]
    blank = [""] * (len(COLUMNS) - 1)
    print(HEAD.format("", "", "", first, *blank, second, *blank))
    print(HEAD.format("picture", "slider (values)", "form", *COLUMNS * 2))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        with lab.server(root, Path(folder) / "server.log") as address, lab.browser() as browser:
            for number, forms in enumerate(pages.values()):
                write_notebook(root / f"{number}.ipynb", forms)
                page = browser.new_page(viewport={"width": 1280, "height": 1000})
                lab.open_notebook(page, address, f"{number}.ipynb")
                lab.run_all(page)
                for cell, form in enumerate(forms, start=1):
                    for load in options.loads:
                        with busy(os.cpu_count() if load == "busy" else 0):
                            form.measure(page, cell, load, options.seconds, options.presses)
                    print(line(form), flush=True)
                lab.shut_down_kernel(page)
                page.close()
    every = [form for forms in pages.values() for form in forms]
    print(verdict(every))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([*map(line, every), verdict(every)]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
