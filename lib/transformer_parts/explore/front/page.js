// The explorers of a page that has no kernel: every setting of one control at a time was drawn when the page was made.
//
// An explorer's drawings lie in the page as text, <script id="pack-NAME"> or a template: JSON, deflated, in base64 (what is in it is
// written by tools/publish/ranges.py). They are unpacked when the explorer comes near or is touched.

import { Painter } from "./drawing.js";

const REST = 400; // milliseconds without a change after which the numbers are announced

class Explorer {
  constructor(node) {
    this.node = node;
    this.canvas = node.querySelector("canvas");
    this.body = node.querySelector(".readout tbody");
    this.said = node.querySelector(".said");
    this.controls = [...node.querySelectorAll("[data-control]")];
    this.presets = [...node.querySelectorAll("[data-start]")];
    this.player = null;
    this.waiting = 0; // the timer that announces
    this.asked = 0; // the animation frame that shows
  }

  async open() {
    this.opening ??= unpacked(document.getElementById(`pack-${this.node.dataset.explorer}`)).then((pack) => {
      this.pack = pack;
      this.painter = new Painter(this.canvas, pack.drawings, pack.size);
      this.start(0);
      this.show();
      this.canvas.hidden = false;
      this.node.querySelector(".picture img").hidden = true;
      this.listen();
      this.node.dataset.ready = "";
    });
    return this.opening;
  }

  listen() {
    for (const control of this.controls) control.addEventListener("input", () => this.move(control));
    for (const button of this.presets) button.addEventListener("click", () => this.press(button));
    const play = this.node.querySelector("[data-play]");
    play?.addEventListener("click", () => (this.player ? this.pause() : this.play(play)));
  }

  /** Take a setting: every control has its value there and its range from there. */
  start(number) {
    this.at = this.pack.starts[number];
    this.shot = this.at.shot;
    for (const control of this.controls) {
      const range = this.at.ranges[control.dataset.control];
      control.disabled = !range;
      fill(control, range, this.at.labels[control.dataset.control]);
    }
    for (const button of this.presets) {
      button.disabled = false;
      button.setAttribute("aria-pressed", String(Number(button.dataset.start) === number));
    }
    const play = this.node.querySelector("[data-play]");
    if (play) play.disabled = !this.at.ranges[play.dataset.play];
  }

  press(button) {
    this.pause();
    this.start(Number(button.dataset.start));
    this.ask();
  }

  /** A control has been moved: the others go back to the setting, or where this one takes them. */
  move(control) {
    const name = control.dataset.control;
    if (this.player && this.player.name !== name) this.pause();
    const range = this.at.ranges[name];
    const place = placeOf(control);
    if (place < 0) return;
    this.shot = range.shots[place];
    for (const other of this.controls) {
      const key = other.dataset.control;
      if (key === name) label(other, range.labels[place], place !== range.at);
      else put(other, this.at.ranges[key], range.moved[place][key] ?? this.at.labels[key], key in range.moved[place]);
    }
    this.ask();
  }

  /** Show the present picture and table before the next repaint of the screen. */
  ask() {
    cancelAnimationFrame(this.asked);
    this.asked = requestAnimationFrame(() => this.show());
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.announce(), REST);
  }

  show() {
    const [frame, rows] = this.pack.shots[this.shot];
    this.painter.paint(frame);
    this.body.innerHTML = rows.map((row) => this.pack.rows[row]).join("");
    // A server may forbid styles in what is put into the page, but not those that a script sets.
    for (const node of this.body.querySelectorAll("[data-style]")) node.style.cssText = node.dataset.style;
  }

  announce() {
    if (this.player) return;
    const rows = [...this.body.rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(" "));
    this.said.textContent = rows.join("; ");
  }

  play(button) {
    const name = button.dataset.play;
    const control = this.controls.find((other) => other.dataset.control === name);
    if (placeOf(control) >= Number(control.max)) control.value = 0;
    const step = () => {
      control.value = placeOf(control) + 1;
      this.move(control);
      if (placeOf(control) >= Number(control.max)) this.pause();
    };
    // Whoever wants less motion gets single pictures.
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? 8 : 1;
    this.player = { name, button, timer: setInterval(step, calm * Number(this.node.dataset.interval)) };
    button.textContent = "⏸";
    button.setAttribute("aria-pressed", "true");
  }

  pause() {
    if (!this.player) return;
    const { button, timer } = this.player;
    clearInterval(timer);
    this.player = null;
    button.textContent = "▶";
    button.setAttribute("aria-pressed", "false");
    this.waiting = setTimeout(() => this.announce(), REST);
  }
}

/** The place of a control's value in its range. */
function placeOf(control) {
  return control.type === "checkbox" ? Number(control.checked) : Number(control.value);
}

/** Give a control its range and its value. */
function fill(control, range, text) {
  if (control.type === "range") control.max = range ? range.labels.length - 1 : 0;
  if (control.tagName === "SELECT") {
    const names = range ? range.labels : [text];
    control.replaceChildren(...names.map((name, number) => new Option(name, number)));
  }
  put(control, range, text, false);
}

/** Set a control to the value of a label; a value that its range lacks is shown all the same. */
function put(control, range, text, away) {
  const place = range ? range.labels.indexOf(text) : 0;
  control.querySelector("option[value='-1']")?.remove();
  if (place < 0 && control.tagName === "SELECT") control.add(new Option(text, -1));
  if (control.type === "checkbox") control.checked = text === "on";
  else control.value = place;
  label(control, text, away);
}

/** Say the value of a control, and whether it is away from the setting. */
function label(control, text, away) {
  const line = control.closest(".control");
  line.classList.toggle("away", away);
  const value = line.querySelector(".value");
  if (value) value.textContent = text;
  if (control.type === "range") control.setAttribute("aria-valuetext", text);
}

async function unpacked(script) {
  const bytes = Uint8Array.from(atob((script.content ?? script).textContent), (letter) => letter.charCodeAt(0));
  script.remove();
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

const explorers = new Map();
const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) explorers.get(target).open();
  },
  { rootMargin: "800px" },
);
for (const node of document.querySelectorAll(".explorer")) {
  explorers.set(node, new Explorer(node));
  near.observe(node);
}
