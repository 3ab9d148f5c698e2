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

PANEL = """
{name}_panel = make("{name}")
{name}_panel
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

# No explorer at all: what the screen itself takes.  A slider, and a square of another colour at each value.
BARE = """
from IPython.display import HTML

HTML('''
<div class="bare"><input type="range" data-control="bare" min="0" max="40" value="20">
<canvas width="680" height="400" style="display: block"></canvas></div>
<script>
for (const bare of document.querySelectorAll(".bare")) {
    const [input, canvas] = [bare.querySelector("input"), bare.querySelector("canvas")];
    input.addEventListener("input", () => {
        const key = Number(input.value), context = canvas.getContext("2d");
        context.fillStyle = `hsl(${9 * key} 50% 50%)`;
        context.fillRect(0, 0, 680, 400);
        canvas.dispatchEvent(new CustomEvent("tp-paint", {bubbles: true, detail: {key}}));
    });
}
</script>
''')
"""

CELLS = {"bare": BARE, "panel": PANEL, "interact": INTERACT, "ipympl": IPYMPL}

# Notes each value of the slider with its time, and when each picture below `root` was on the screen.  The browser says
# so of images; for a canvas a letter is put on the page with each painting, and the browser says when that was
# presented.
WATCH = """
([root, slider]) => {
    if (!window.tpLog) {
        window.tpLog = {};
        new PerformanceObserver(list => {
            for (const {element, url, identifier, renderTime} of list.getEntries()) {
                if (identifier.startsWith("painting")) {
                    const painting = tpLog.paintings[identifier.split(" ")[1]];
                    if (painting) tpLog.shown.push({...painting, time: renderTime});
                } else if (tpLog.root.contains(element) && tpLog.before.get(element) !== url) {
                    tpLog.shown.push({time: renderTime});
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
    const before = new Map(Array.from(root.querySelectorAll("img"), image => [image, image.src]));
    Object.assign(tpLog, {root, before, inputs: [], shown: [], paintings: {}});
}
"""

# The way of a hand, from where the slider is to and fro over the whole of it: at each frame of the screen another
# value, as the browser itself hands them on (events that Playwright sends take two frames each).  Of the browser's own
# sliders the value is set, as no page can move a pointer; those of ipywidgets follow the events of a mouse.  Returns
# the values a second.
DRAG = """
([slider, steps, seconds]) => new Promise(resolve => {
    const own = slider.matches("input"), handle = slider.querySelector(".noUi-handle");
    const box = (slider.querySelector(".noUi-base") ?? slider).getBoundingClientRect();
    const y = box.top + box.height / 2;
    const mouse = (type, clientX, target) => target.dispatchEvent(new MouseEvent(
        type, {clientX, clientY: y, buttons: 1, bubbles: true, cancelable: true, view: window}));
    const low = Number(slider.min ?? 0), high = Number(slider.max ?? 0);
    const first = Math.round(own ? steps * (slider.value - low) / (high - low || 1) : steps / 2);
    let count = 0;
    if (own) slider.dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}));
    const start = performance.now();
    const move = () => {
        const now = performance.now();
        if (now - start > 1000 * seconds) {
            if (!own) document.dispatchEvent(new MouseEvent("mouseup", {bubbles: true}));
            return resolve({rate: 1000 * count / (now - start), start, stop: now});
        }
        const turn = (first + count++) % (2 * steps), part = (turn <= steps ? turn : 2 * steps - turn) / steps;
        if (own) {
            slider.value = low + part * (high - low);
            tpLog.inputs.push([now, Number(slider.value)]);
            slider.dispatchEvent(new Event("input", {bubbles: true}));
        } else {
            const x = Math.round(box.left + part * box.width);
            tpLog.inputs.push([now, null]);
            mouse("mousemove", x, document.elementFromPoint(x, y) ?? document.body);
        }
        requestAnimationFrame(move);
    };
    requestAnimationFrame(move);
})
"""
