"""From the pointer to the pixels: every explorer while its slider is dragged, in a real JupyterLab in Chromium.

    python benchmarks/bench_browser.py        (make bench-browser)

Each explorer stands in a cell of its own; its heaviest slider (that with the most kernel time a frame) is led to and
fro over its whole range, on to another value at each frame of the screen.  The forms:

- panel: the explorer as it is;
- bare: a slider and a square that changes its colour: what page and screen take by themselves;
- interact: a function under `interact` that builds the figure and calls ``plt.show()`` (chosen pictures only);
- ipympl: the same figure on an ipympl canvas, its artists updated and drawn in full (chosen pictures only).

The ways:

- at once: the pointer goes down and moves at once; nothing was drawn before;
- warm: the pointer was near the slider until its range was drawn;
- far: at once and warm over a line of 50 ms each way and 2 Mbit/s (chosen pictures);
- busy: warm, with a process that spins for each core (chosen pictures).

Of each: different frames a second in the first second and after, and milliseconds from a value's own event until the
browser has presented its picture, of 50 and 95 of 100 events whose very picture was shown.  `kernel` is the CPU time
that a frame of that slider takes in the kernel, compute and drawing, in milliseconds; `bytes` are those of its new
data; `kB/s` is what comes over the far line during the first second and after.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import nbformat
import numpy as np
from ipywidgets import Widget
from playwright.sync_api import Page

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT / folder) for folder in ("tools", "tests/support")]

import lab
import notebooks
from browser_forms import CELLS, DRAG, SETUP, WATCH
from explorer_page import places as explorers
from far import Line, line

from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import places
from transformer_parts.explore.shots import as_text

BESIDE = ("RopePlane",)  # shown as interact and ipympl, too
SIX = ("RopePlane", "RopeScores", "NormSphere", "RopeClocks", "BudgetTally", "RopeHeads")  # far and busy as well
DELAY, RATE = 0.05, 2e6 / 8
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
class Drag:
    """What was measured in one drag: frames a second in its first second and after, milliseconds, bytes a second."""

    first: float = float("nan")
    after: float = float("nan")
    waits: tuple[float, float, float, float] = (float("nan"),) * 4  # p50 and p95 of the first second, and after
    rate: tuple[float, float] = (float("nan"),) * 2

    @classmethod
    def of(cls, notes: dict, down: tuple[float, float]) -> "Drag":
        """Return the measures of the notes that a page has taken."""
        start, stop = notes["start"], notes["stop"]
        middle = start + 1000
        times = np.array([time for time, _key in notes["inputs"]])
        keys = np.array([np.nan if key is None else key for _time, key in notes["inputs"]])
        shown = [one for one in notes["shown"] if start <= one["time"] <= stop + 100]
        rates, waits = [], []
        for since, until in ((start, middle), (middle, stop)):
            frames = [one for one in shown if since <= one["time"] < until]
            rates.append(_different(frames) / max(until - since, 1) * 1000)
            late = []
            for one in frames:
                causes = times[times <= one["time"]] if "key" not in one else times[
                    (keys == one["key"]) & (times <= one.get("painted", one["time"]))]  # fmt: skip
                if len(causes):
                    late.append(one["time"] - causes[-1])
            waits += list(np.percentile(late, [50, 95])) if late else [float("nan")] * 2
        seconds = max((stop - middle) / 1000, 0.1)
        return cls(*rates, tuple(waits), (down[0], down[1] / seconds))


def _different(frames: Sequence[dict]) -> int:
    keys = [one.get("key", one["time"]) for one in frames]
    return sum(1 for _key, _same in groupby(keys))


@dataclass
class Form:
    """One picture in one of its forms on the page; drags by the name of their way."""

    name: str
    kind: str
    control: str = "bare"
    label: str = ""
    count: int = 41
    kernel: float = float("nan")
    bytes: float = float("nan")
    drags: dict[str, Drag] = field(default_factory=dict)

    def drag(self, page: Page, cell: int, way: str, seconds: float, far: Line) -> None:
        """Drag the slider of the form, which is in that cell of the page."""
        outputs = lab.cell(page, cell).locator(".jp-Cell-outputArea").first
        if self.kind in ("panel", "bare"):
            outputs.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
            slider = outputs.locator(f"input[data-control={self.control}]").first
        else:
            slider = outputs.locator(".widget-slider").filter(has=page.get_by_text(self.label, exact=True)).first
        slider.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        if way in ("warm", "far warm", "busy") and self.kind == "panel":
            slider.hover()
            self._wait(page)
        page.evaluate("() => performance.clearResourceTimings()")
        outputs.evaluate(f"(root, slider) => ({WATCH})([root, slider])", slider.element_handle())
        if self.kind not in ("panel", "bare"):
            slider.locator(".noUi-handle").hover()
            page.mouse.down()
        before = far.down
        # Begun, not waited for: the line is read in between.
        given = [slider.element_handle(), min(self.count - 1, 60), seconds]
        page.evaluate(f"(given) => {{ window.tpDrag = ({DRAG})(given); }}", given)
        page.wait_for_timeout(1000)
        middle = far.down
        ran = page.evaluate("() => window.tpDrag")
        after = far.down
        page.wait_for_timeout(600)
        page.mouse.up()
        notes = page.evaluate("() => ({inputs: tpLog.inputs, shown: tpLog.shown})") | ran
        self.drags[way] = Drag.of(notes, (middle - before, after - middle))
        page.mouse.move(2, 2)
        page.evaluate("() => document.activeElement.blur()")
        page.wait_for_timeout(200)
        if self.kind == "panel":
            lab.kernel(page, f"{self.name}_panel.reset()")
            page.wait_for_timeout(300)

    def _wait(self, page: Page, most: float = 12.0) -> None:
        """Wait until the frames of the slider's range are drawn."""
        until = time.perf_counter() + most
        page.wait_for_timeout(500)
        while time.perf_counter() < until:
            if lab.kernel(page, value=f"{self.name}_panel._frames._thread is None"):
                break
            page.wait_for_timeout(50)
        page.wait_for_timeout(300)


def heaviest(panel: Panel) -> tuple[str, str, int, float, float]:
    """Return the slider with most kernel time a frame: name, label, count of values, milliseconds, bytes a frame."""
    found = []
    panel.shots.shot(panel.shown)
    panel.shots.news()
    for name, control in panel.controls.items():
        if not type(control).__name__.endswith("Slider") or len(places(control)) < 3:
            continue
        values = list(places(control).values())
        times, sizes = [], []
        for value in values[:: max(1, len(values) // 12)]:
            try:
                panel.put({name: value})
                start = time.process_time()
                panel.shots.shot(panel.compute(**panel.state))
                times.append(time.process_time() - start)
                sizes.append(len(zlib.compress(as_text(panel.shots.news()), 1)))
            except ValueError:
                continue
            finally:
                panel.put(panel.initial)
        found.append((float(np.median(times)), name, control.description, len(values), float(np.median(sizes))))
    milliseconds, name, label, count, size = max(found)
    return name, label, count, 1000 * milliseconds, size


def write_notebook(path: Path, forms: list[Form]) -> None:
    """Write a notebook with a cell of preparations and one for each form."""
    sources = [SETUP, *(CELLS[form.kind].replace("{name}", form.name) for form in forms)]
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA), path)


HEAD = "{:<22}{:<18}{:<9}{:<9}{:>7}{:>7}{:>8}{:>8}{:>7}{:>7}{:>7}{:>7}{:>7}{:>7}"
COLUMNS = ("kernel", "bytes", "first/s", "after/s", "p50", "p95", "p50", "p95", "kB 1st", "kB/s")


def lines(form: Form) -> Iterator[str]:
    """Yield a line for each way."""

    def text(value: float, form: str = ".1f") -> str:
        return format(value, form) if np.isfinite(value) else ""

    for way, drag in form.drags.items():
        far = [text(value / 1000) if way.startswith("far") else "" for value in drag.rate]
        cells = [text(form.kernel), text(form.bytes, ".0f"), text(drag.first), text(drag.after)]
        yield HEAD.format(form.name, form.label[:17], form.kind, way, *cells, *map(text, drag.waits), *far)


def verdict(forms: Sequence[Form]) -> str:
    """Return which targets are met by how many panels."""
    panels = [form for form in forms if form.kind == "panel"]
    at_once = {form.name: form.drags["at once"] for form in panels if "at once" in form.drags}
    warm = {form.name: form.drags["warm"] for form in panels if "warm" in form.drags}
    slow = [name for name, d in at_once.items() if not (d.first >= 30 and d.after >= 45 and d.waits[1] <= 40)]
    cold = [name for name, d in warm.items() if not (d.after >= 45 and d.waits[3] <= 25)]
    heavy = sorted(((form.kernel, form.name) for form in panels), reverse=True)
    median = float(np.median([form.kernel for form in panels])) if panels else float("nan")
    return "\n".join(
        (
            f"at once, 30 and 45 frames/s, p95 40 ms: {len(at_once) - len(slow)} of {len(at_once)}; not {slow}",
            f"warm, 45 frames/s, p95 25 ms: {len(warm) - len(cold)} of {len(warm)}; not {cold}",
            f"kernel, ms a frame: median {median:.1f}; most {[(name, round(ms, 1)) for ms, name in heavy[:5]]}",
        )
    )


def main() -> None:
    """Measure, print and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.5, help="length of a drag")
    parser.add_argument("--panels", nargs="*", help="panels by class name; all by default")
    options = parser.parse_args()
    pages: dict[str, list[Form]] = {}
    for place in explorers():
        name = place.panel_class.__name__
        if options.panels and name not in options.panels:
            continue
        forms = pages.setdefault(place.notebook, [Form("", "bare")])
        moved = heaviest(place.panel_class())
        Widget.close_all()
        kinds = ("panel", "interact", "ipympl") if name in BESIDE else ("panel",)
        forms += [Form(name, kind, *moved) for kind in kinds]
    print(HEAD.format("picture", "slider", "form", "way", *COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        with lab.server(root, Path(folder) / "server.log") as address, lab.browser() as browser:
            port = int(address.split(":")[2].partition("/")[0])
            with line(port) as far:
                for number, forms in enumerate(pages.values()):
                    write_notebook(root / f"{number}.ipynb", forms)
                    page = browser.new_page(viewport={"width": 1280, "height": 1000})
                    lab.open_notebook(page, address.replace(str(port), str(far.address[1]), 1), f"{number}.ipynb")
                    lab.run_all(page)
                    for cell, form in enumerate(forms, start=1):
                        form.drag(page, cell, "at once", options.seconds, far)
                        if form.kind == "panel":
                            form.drag(page, cell, "warm", options.seconds, far)
                        if form.kind == "panel" and form.name in SIX:
                            far.be(DELAY, RATE)
                            form.drag(page, cell, "far", options.seconds, far)
                            form.drag(page, cell, "far warm", options.seconds, far)
                            far.be(0, float("inf"))
                            with busy(os.cpu_count()):
                                form.drag(page, cell, "busy", options.seconds, far)
                        print(*lines(form), sep="\n", flush=True)
                    lab.shut_down_kernel(page)
                    page.close()
    every = [form for forms in pages.values() for form in forms]
    print(verdict(every))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([*(text for form in every for text in lines(form)), verdict(every)]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
