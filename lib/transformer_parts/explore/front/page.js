// The explorers of a page that has no kernel: every setting of one control at a time was drawn when the page was made.
//
// An explorer's pack lies in the page as text, <script id="pack-NAME"> or a template: JSON, deflated, in base64 (what is
// in it is written by tools/publish/recorded_panel.py).  It is unpacked when the explorer comes near.

import { Explorer } from "./explorer.js";
import { Session } from "./session.js";

/** A pack as the source of a session: it answers at once. */
class Pack {
  startsFromSettings = true;

  constructor({ drawings, shots, starts }, name = "") {
    Object.assign(this, { drawings, shots, start: starts[0], starts, name });
  }

  open() {
    this.session.news(this.drawings);
    this.rest(null, this.start.at, this.start.shot);
  }

  near(range, control) {
    const { shots, moved } = this.start.ranges[control] ?? { shots: [], moved: [] };
    const along = (key) => this.along(control, key, moved[key]);
    const frames = shots.map((shot, key) => ({ key, along: along(key), ...this.shot(shot) }));
    this.session.frames(range, frames, null);
  }

  /** Where the other controls are: at the setting, or where this one takes them. */
  along(control, at, moved) {
    return { ...this.start.at, ...moved, [control]: at };
  }

  ask(range, at) {
    this.session.frames(range, [], at);
  }

  move(control, at, id) {
    const { shots, moved } = this.start.ranges[control];
    this.moved = [control, at];
    this.rest(id, this.along(control, at, moved[at]), shots[at]);
  }

  press(number, id) {
    // The first state has the last button.
    this.start = this.starts[(number + 1) % this.starts.length];
    this.moved = null;
    this.session.describe(this.start.controls);
    this.rest(id, this.start.at, this.start.shot);
  }

  rest(id, at, shot) {
    const [name, key] = this.moved ?? ["", 0];
    const code = `${location.href.split("#")[0]}#${this.name}=${this.starts.indexOf(this.start)},${name},${key}`;
    this.session.rest({ id, at, code, ...this.shot(shot) });
  }

  /** Go to the state that an address names: a setting, and a control that was moved from there. */
  visit(start, name, key) {
    if (!this.starts[start]) return;
    this.press(start - 1, null);
    if (this.start.ranges[name]?.shots[key] !== undefined) this.move(name, key, null);
  }

  shot(number) {
    const [frame, rows, grips, words, formula] = this.shots[number];
    return { frame, rows, grips, words, formula };
  }

  got() {}

  leave() {}

  close() {}
}

async function unpacked(script) {
  const bytes = Uint8Array.from(atob((script.content ?? script).textContent), (letter) => letter.charCodeAt(0));
  script.remove();
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

async function wake(node) {
  const { part, ...pack } = await unpacked(document.getElementById(`pack-${node.dataset.explorer}`));
  // Two controls at once would take frames of all their joint values: here a handle moves the first of them.
  for (const handle of part.handles) handle.controls.length = 1;
  const source = new Pack(pack, node.id);
  const session = new Session(part, source);
  const { signal } = new AbortController();
  node.replaceChildren();
  session.open(new Explorer(node, session, signal), signal);
  document.addEventListener("tp-range", ({ detail }) => detail !== session && session.giveWay());
  node.dataset.ready = "";
  const [, name, start, control, key] = ADDRESS.exec(location.hash) ?? [];
  if (name === node.id) source.visit(Number(start), control, Number(key));
}

// The address of a state: explorer, number of the setting, control that was moved from there, and its place.
const ADDRESS = /^#([\w-]+)=(\d+),(\w*),(\d+)$/;
document.getElementById(ADDRESS.exec(location.hash)?.[1] ?? "")?.scrollIntoView();

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      wake(target);
    }
  },
  { rootMargin: "800px" },
);
for (const node of document.querySelectorAll(".explorer")) near.observe(node);
