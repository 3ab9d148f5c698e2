"""The cells of the forms that `bench_browser` compares, and what its page runs: the notes of a drag, and the drag."""

SETUP = """
from ipympl.backend_nbagg import Canvas, FigureManager
import matplotlib.pyplot as plt
from ipywidgets import interact
from matplotlib_inline.config import InlineBackend
from transformer_parts.explore import catalogue
%matplotlib inline
%config InlineBackend.figure_formats = ["retina"]

def make(name):
    return next(found for found in catalogue.PANELS if found.__name__ == name)()
"""

AHEAD = """
{name}_ahead = make("{name}")
{name}_ahead
"""

# Without its controls the front end has nothing to do.
IMAGE = """
panel = make("{name}")
panel._front_end.controls = {}
panel
"""

# The panel's picture as one makes it under `interact`: a new figure of pyplot's at each call, then `plt.show()`.
INTERACT = """
def show(panel=make("{name}"), **state):
    view = type(panel.view)(scale=1)
    view.update(panel.compute(**state))
    for artist in view.fig.findobj():
        artist.set_animated(False)
    plt.figure(view.fig)
    plt.show()

interact(lambda **state: show(**state), **make("{name}").make_controls());
"""

IPYMPL = """
from ipywidgets import VBox
panel = make("{name}")
view = type(panel.view)(scale=1)
for artist in view.fig.findobj():
    artist.set_animated(False)
canvas = Canvas(view.fig)
FigureManager(canvas, 0)

def redraw(_change, panel=panel, view=view, canvas=canvas):
    view.update(panel.compute(**panel.state))
    canvas.draw_idle()

redraw(None)
for control in panel.controls.values():
    control.unobserve_all("value")
    control.observe(redraw, "value")
VBox([*panel.controls.values(), canvas])
"""

# No explorer at all: what the screen itself takes.  A handle that follows the mouse, and a square of another colour.
BARE = """
from IPython.display import HTML

HTML('''
<div class="widget-slider">
<span>bare</span> <canvas width="680" height="400" style="display: block"></canvas>
<div class="noUi-base" style="width: 300px; height: 20px; background: silver">
<div class="noUi-handle" style="width: 20px; height: 20px; background: black; touch-action: none"></div></div>
</div>
<script>
for (const slider of document.querySelectorAll(".widget-slider:has(> canvas)")) {
    const [canvas, base] = [slider.querySelector("canvas"), slider.querySelector(".noUi-base")];
    const handle = base.firstElementChild;
    const follow = ({clientX}) => {
        const key = Math.round((clientX - base.getBoundingClientRect().left) / 300 * 40);
        if (handle.ariaValueNow === String(key)) return;
        handle.setAttribute("aria-valuenow", key);
        handle.style.transform = `translateX(${7 * key}px)`;
        const context = canvas.getContext("2d");
        context.fillStyle = `hsl(${9 * key} 50% 50%)`;
        context.fillRect(0, 0, 680, 400);
        canvas.dispatchEvent(new CustomEvent("tp-paint", {bubbles: true, detail: {key, wanted: key}}));
    };
    handle.addEventListener("mousedown", () => document.addEventListener("mousemove", follow));
    document.addEventListener("mouseup", () => document.removeEventListener("mousemove", follow));
}
</script>
''')
"""

CELLS = {"bare": BARE, "ahead": AHEAD, "image": IMAGE, "interact": INTERACT, "ipympl": IPYMPL}

# Notes the inputs, the slider's changes, and when each picture below `root` was on the screen.  The browser says so of
# images; for a canvas a letter is put on the page with each painting, and the browser says when that was presented.
WATCH = """
([root, slider]) => {
    if (!window.tpLog) {
        window.tpLog = {};
        for (const kind of ["keydown", "mousemove"])
            document.addEventListener(kind, event => tpLog.inputs.push(event.timeStamp), {capture: true});
        new PerformanceObserver(list => {
            for (const {element, url, identifier, renderTime} of list.getEntries()) {
                if (identifier.startsWith("painting")) {
                    const painting = tpLog.paintings[identifier.split(" ")[1]];
                    if (painting) tpLog.shown.push({...painting, time: renderTime});
                } else if (tpLog.root.contains(element) && tpLog.before.get(element) !== url) {
                    tpLog.shown.push({time: renderTime, image: true});
                }
            }
        }).observe({type: "element"});
        const corner = document.body.appendChild(document.createElement("div"));
        corner.style = "position: fixed; left: 0; bottom: 0; font-size: 8px; z-index: 9999";
        tpLog.count = 0;
        const painted = what => {
            tpLog.paintings[++tpLog.count] = {...what, painted: performance.now()};
            const letter = document.createElement("p");
            letter.setAttribute("elementtiming", "painting " + tpLog.count);
            letter.textContent = "·";
            corner.append(letter);
            // One that has gone before it was presented is not reported.
            if (corner.children.length > 12) corner.firstChild.remove();
        };
        document.addEventListener("tp-paint", ({detail}) => painted(detail));
        const draw = CanvasRenderingContext2D.prototype.drawImage;
        CanvasRenderingContext2D.prototype.drawImage = function (...args) {
            if (this.canvas.closest("[class*=jupyter-matplotlib]") && tpLog.root.contains(this.canvas)) painted({});
            return draw.apply(this, args);
        };
    }
    const mark = node => node.querySelectorAll("img").forEach(image => (image.elementTiming = "picture"));
    tpLog.observer?.disconnect();
    tpLog.observer = new MutationObserver(() => mark(root));
    tpLog.observer.observe(root, {subtree: true, childList: true});
    mark(root);
    const handle = slider.querySelector(".noUi-handle");
    tpLog.steps?.disconnect();
    tpLog.steps = new MutationObserver(() => tpLog.changes.push(tpLog.inputs.at(-1)));
    tpLog.steps.observe(handle, {attributeFilter: ["aria-valuenow"]});
    const before = new Map(Array.from(root.querySelectorAll("img"), image => [image, image.src]));
    Object.assign(tpLog, {root, before, inputs: [], changes: [], shown: [], paintings: {}});
}
"""


# The way of a hand: at each frame of the screen a mouse event, as the browser itself hands them on.  Those that
# Playwright sends take two frames each.  Returns the events a second.
DRAG = """
([left, right, y, steps, seconds]) => new Promise(resolve => {
    const start = performance.now();
    let count = 0;
    const move = () => {
        const elapsed = performance.now() - start;
        if (elapsed > 1000 * seconds) return resolve(1000 * count / elapsed);
        const turn = count++ % (2 * steps);
        const clientX = Math.round(left + (right - left) * (turn <= steps ? turn : 2 * steps - turn) / steps);
        const about = {clientX, clientY: y, buttons: 1, bubbles: true, cancelable: true, view: window};
        (document.elementFromPoint(clientX, y) ?? document.body).dispatchEvent(new MouseEvent("mousemove", about));
        requestAnimationFrame(move);
    };
    requestAnimationFrame(move);
})
"""
