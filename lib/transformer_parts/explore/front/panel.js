// A panel's page in a notebook: the kernel is the source of its session.  Joined behind the modules that it needs to the
// one module of an anywidget.  Messages: ../frames.py.

import { Explorer } from "./explorer.js";
import { Session } from "./session.js";

class Kernel {
  constructor(model) {
    this.model = model;
    this.arrival = Promise.resolve(); // messages are taken in the order in which they came
    model.on("msg:custom", (content, buffers) => {
      const news = buffers.length ? unpacked(buffers[0], content.type) : null;
      this.arrival = this.arrival.then(async () => this.take(content, await news)).catch(console.error);
    });
    model.on("change:controls", () => this.session.describe(model.get("controls")));
  }

  take({ type, ...content }, news) {
    if (news && type !== "track") this.session.news(news);
    if (type === "begin") this.session.begin();
    else if (type === "frames") this.session.frames(content.range, content.frames, content.asked, content.took);
    else if (type === "track") this.session.track(content.range, content.handle, news);
    else if (type === "stale") this.session.stale(content.range);
    else if (type === "rest") this.session.rest(content);
    else if (type === "closed") this.session.reopen();
  }

  send(type, content = {}) {
    this.model.send({ type, ...content });
  }

  open() {
    this.send("open");
  }

  close() {
    this.send("close");
  }

  near(range, control, at, pixels) {
    this.send("near", { range, control, at, pixels });
  }

  leave() {
    this.send("leave");
  }

  ask(range, at) {
    this.send("ask", { range, at });
  }

  got() {
    this.send("got");
  }

  move(control, at, id) {
    this.send("move", { control, at, id });
  }

  press(number, id) {
    this.send("press", { number, id });
  }
}

async function unpacked(bytes, type) {
  const response = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
  return type === "track" ? new Int16Array(await response.arrayBuffer()) : response.json();
}

function part(model) {
  const names = ["controls", "presets", "play", "interval", "size", "handles", "guide", "shows", "primary", "alt", "words"];
  return Object.fromEntries(names.map((name) => [name, model.get(name)]));
}

/** Show the explorer in place of the panel's widgets, as long as the view is there. */
async function show(el, session, signal) {
  while (!signal.aborted && !el.closest(".tp-panel")) await new Promise((resolve) => setTimeout(resolve, 20));
  if (signal.aborted) return;
  const root = el.closest(".tp-panel");
  session.open(new Explorer(el, session, signal), signal);
  root.classList.add("tp-alive");
  // JupyterLab marks what belongs to a kernel that is gone.
  const look = () => root.matches(".jupyter-widgets-disconnected") && session.gone();
  const observer = new MutationObserver(look);
  observer.observe(root, { attributeFilter: ["class"] });
  document.addEventListener("tp-range", ({ detail }) => detail !== session && session.giveWay(), { signal });
  signal.addEventListener("abort", () => {
    observer.disconnect();
    root.classList.remove("tp-alive");
  });
}

export default () => {
  let session;
  return {
    initialize({ model }) {
      session = new Session(part(model), new Kernel(model));
    },
    render({ el, signal }) {
      show(el, session, signal);
    },
  };
};
