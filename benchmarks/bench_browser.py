"""From the slider to the pixels: our panels beside the same pictures by `interact` and inline figures, in one run.

    python benchmarks/bench_browser.py        (make bench-browser)

One JupyterLab, one headless Chromium, one kernel.  Each picture stands in the page three times: as a panel, and as the
usual `interact` over a function that builds the figure and calls ``plt.show()``, at the same resolution (``retina``).
The inline backend by default crops a figure's margins, for which it draws it twice ("interact"); "uncropped" has that
turned off, so that the pictures have exactly as many pixels as the panel's.  The panel also fills its table of numbers.

- Event to pixels: an arrow key on the focused slider, from the event's own time stamp until the browser has presented
  the new picture (element timing).  The forms take turns.
- Kernel: the time of the callback within that, from the same presses.
- Drag: the pointer moves the handle to and fro for three seconds and stops.
"""

import argparse
import math
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import numpy as np
from playwright.sync_api import Page

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT / "tools"))

import lab
import notebooks

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.rope import RopePlane

TARGET = 6
RESULTS = PROJECT / "bench-results" / "browser.txt"

SETUP = """
import time
import matplotlib.pyplot as plt
from ipywidgets import interact
from matplotlib_inline.config import InlineBackend
from transformer_parts.explore import catalogue
%matplotlib inline
%config InlineBackend.figure_formats = ["retina"]
kernel_times = {}

def timed(function, key):
    times = kernel_times[key] = []
    def call(**values):
        start = time.perf_counter()
        function(**values)
        times.append(time.perf_counter() - start)
    return call
"""

PANEL = """
panel = next(found for found in catalogue.PANELS if found.__name__ == "{name}")()
panel.refresh = timed(panel.refresh, "{name} {kind}")
panel
"""

# The panel's picture as one makes it under `interact`: a new figure of pyplot's at each call, then `plt.show()`.
INTERACT = """
def show(panel=panel, **state):
    InlineBackend.instance().print_figure_kwargs = {"bbox_inches": {crop}}
    view = type(panel.view)(scale=1)
    view.update(panel.compute(**state))
    for artist in view.fig.findobj():
        artist.set_animated(False)
    plt.figure(view.fig)
    plt.show()

interact(timed(show, "{name} {kind}"), **panel.make_controls());
"""

CELLS = {
    "panel": PANEL,
    "interact": INTERACT.replace("{crop}", "'tight'"),
    "uncropped": INTERACT.replace("{crop}", "None"),
}

# Notes when each input event came, and when each picture below `root` was on the screen: the element timing of the
# browser, which is the time of presentation and costs no decoding of its own.
WATCH = """
root => {
    if (!window.tpLog) {
        window.tpLog = {};
        for (const kind of ["keydown", "pointermove"])
            document.addEventListener(kind, event => tpLog.input.push(event.timeStamp), {capture: true});
        new PerformanceObserver(list => {
            for (const {element, url, renderTime} of list.getEntries())
                if (tpLog.root.contains(element) && tpLog.before.get(element) !== url) tpLog.shown.push(renderTime);
        }).observe({type: "element"});
    }
    const mark = node => node.querySelectorAll("img").forEach(image => (image.elementTiming = "picture"));
    tpLog.observer?.disconnect();
    tpLog.observer = new MutationObserver(() => mark(root));
    tpLog.observer.observe(root, {subtree: true, childList: true});
    mark(root);
    const before = new Map(Array.from(root.querySelectorAll("img"), image => [image, image.src]));
    Object.assign(tpLog, {root, before, input: [], shown: []});
}
"""


@dataclass
class Form:
    """One picture in one of its forms, and what was measured on it."""

    page: Page
    panel_class: type[Panel]
    kind: str
    cell: int
    label: str
    keys: tuple[str, str]
    presses: int = 0
    waits: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    late: int = 0
    settled: float = 0.0

    def look(self) -> None:
        """Scroll to the form, put the focus on its slider and watch its pictures."""
        outputs = lab.cell(self.page, self.cell).locator(".jp-Cell-outputArea").first
        slider = outputs.locator(".widget-slider").filter(has=self.page.get_by_text(self.label, exact=True))
        self.handle = slider.locator(".noUi-handle")
        self.track = slider.locator(".noUi-base")
        self.handle.focus()
        self.page.wait_for_timeout(150)
        outputs.evaluate(WATCH)

    def press(self) -> None:
        """Press an arrow key and note the milliseconds until the new picture was on the screen."""
        self.look()
        self.page.keyboard.press(self.keys[self.presses % 2])
        self.presses += 1
        self.page.wait_for_function("() => tpLog.shown.length > 0")
        self.waits.append(self.page.evaluate("() => tpLog.shown[0] - tpLog.input[0]"))
        self.page.wait_for_timeout(100)

    def drag(self, seconds: float) -> None:
        """Drag the handle to and fro, stop, and note the gaps between pictures and what still came after the stop."""
        self.look()
        box, grip = self.track.bounding_box(), self.handle.bounding_box()
        x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            self.page.mouse.move(box["x"] + box["width"] * (0.5 - 0.45 * math.cos(2 * elapsed)), y)
        stop = self.page.evaluate("() => tpLog.input.at(-1)")
        self.page.wait_for_timeout(1500)
        self.page.mouse.up()
        shown = np.array(self.page.evaluate("() => tpLog.shown"))
        self.gaps.extend(np.diff(shown[shown <= stop]))
        self.late = max(self.late, int((shown > stop).sum()))
        self.settled = max(self.settled, float(shown[-1] - stop))

    @property
    def kernel(self) -> float:
        """Median milliseconds of the callback in the kernel, the first call (which draws a background) left out."""
        key = f"{self.panel_class.__name__} {self.kind}"
        times = lab.kernel(self.page, value=f"kernel_times['{key}'][1:{self.presses}]")
        return 1000 * float(np.median(times))


def moved_slider(panel: Panel) -> tuple[str, tuple[str, str]]:
    """Return the label of the slider to move and the keys for a step and the step back.

    It is the first slider whose step changes the picture.
    """
    before = panel.frame()
    for name, control in panel.controls.items():
        if not type(control).__name__.endswith("Slider"):
            continue
        values = [option[1] for option in control.options] if hasattr(control, "options") else None
        values = values or range(control.min, control.max + 1, control.step)
        at_end = control.value == values[-1]
        panel.set(**{name: values[values.index(control.value) + (-1 if at_end else 1)]})
        seen = panel.frame() != before
        panel.reset()
        if seen:
            keys = ("ArrowRight", "ArrowLeft")
            return control.description, keys[::-1] if at_end else keys
    raise ValueError(f"{type(panel).__name__}: got no slider that changes the picture, want one")


def heaviest(rounds: int = 5) -> type[Panel]:
    """Return the panel whose frame takes longest at its initial state."""

    def cost(panel_class: type[Panel]) -> float:
        panel, times = panel_class(), []
        for _ in range(rounds):
            start = time.perf_counter()
            panel.frame()
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    return max(PANELS, key=cost)


def write_notebook(path: Path, panel_classes: list[type[Panel]]) -> None:
    """Write a notebook with each picture in each form, in the order of `CELLS`, after one cell of preparations."""
    sources = [SETUP]
    for panel_class in panel_classes:
        name = panel_class.__name__
        sources += [cell.replace("{name}", name).replace("{kind}", kind) for kind, cell in CELLS.items()]
    cells = [nbformat.v4.new_code_cell(source.strip()) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA), path)


def measure(page: Page, panel_classes: list[type[Panel]], presses: int, seconds: float) -> list[Form]:
    """Measure each picture in each form, in turns."""
    forms = []
    for panel_class in panel_classes:
        moved = moved_slider(panel_class())
        group = [Form(page, panel_class, kind, len(forms) + 1 + i, *moved) for i, kind in enumerate(CELLS)]
        for form in group:
            form.press()
            form.waits.clear()
        for _ in range(presses):
            for form in group:
                form.press()
        for form in group:
            form.drag(seconds)
        forms += group
    return forms


def table(forms: list[Form]) -> str:
    """Return the measurements, a line for each form and one with the ratio for each picture."""
    head = ("picture", "form", "p50 ms", "p95 ms", "kernel ms", "frames/s in drag", "after the stop", "settled ms")
    layout = "{:<16}{:<10}{:>8}{:>8}{:>11}{:>18}{:>16}{:>12}"
    lines = [layout.format(*head)]
    for form in forms:
        p50, p95 = np.percentile(form.waits, (50, 95))
        rate = 1000 / np.mean(form.gaps) if form.gaps else 0.0
        name = form.panel_class.__name__
        numbers = (f"{p50:.1f}", f"{p95:.1f}", f"{form.kernel:.1f}", f"{rate:.1f}", form.late, f"{form.settled:.0f}")
        lines.append(layout.format(name, form.kind, *numbers))
    panel = forms[0]
    for form in forms:
        if form.kind == "panel":
            panel = form
        else:
            ratio = np.median(form.waits) / np.median(panel.waits)
            verdict = "met" if ratio >= TARGET else "NOT met"
            name = f"{form.panel_class.__name__}, {form.kind} / panel"
            lines.append(f"{name:<34}{ratio:6.1f}   target at least {TARGET}: {verdict}")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presses", type=int, default=40, help="arrow keys for each form")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of a drag")
    parser.add_argument("--panels", nargs="*", help="panels by class name; by default RopePlane and the heaviest")
    options = parser.parse_args()
    if options.panels:
        chosen = [panel for panel in PANELS if panel.__name__ in options.panels]
    else:
        chosen = list(dict.fromkeys([RopePlane, heaviest()]))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        write_notebook(root / "bench.ipynb", chosen)
        with lab.server(root, Path(folder) / "server.log") as address, lab.browser() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 1400})
            lab.open_notebook(page, address, "bench.ipynb")
            lab.run_all(page)
            text = table(measure(page, chosen, options.presses, options.seconds))
    print(text)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
