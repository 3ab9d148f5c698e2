// What lies over the picture of an explorer: grips that a hand can take hold of, and words.
//
// A grip stands where the frame says.  While it is held, its control goes to the value whose grip is nearest to the
// pointer.  The places of other values are known from a track, which has all of them, or from the frames that are here;
// between two of those the way is taken to be straight, until the frame of the value itself says more.

import { inDark } from "./drawing.js";

const REACH = 22; // pixels of the page about a grip within which a pointer takes hold of it; a finger has more
const FINGER = 34;
const PER_PIXEL = 16; // steps of a track's places
const PAGE = 5; // steps of the page keys

/** The place of a fraction along the straight way from one point to another that is nearest to a third one. */
function project([ax, ay], [bx, by], [x, y]) {
  const [dx, dy] = [bx - ax, by - ay];
  const length = dx * dx + dy * dy;
  const part = length ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
  return { part, distance: Math.hypot(x - ax - part * dx, y - ay - part * dy) };
}

/** The key nearest to a point on the way through known places, [[key, place], …] by their keys; `from` decides a tie. */
export function nearestOnWay(known, point, from) {
  let best = { key: known[0][0], distance: Infinity };
  for (const [i, [key, place]] of known.entries()) {
    const [next, there] = known[i + 1] ?? [key, place];
    const { part, distance } = project(place, there, point);
    const found = { key: key + part * (next - key), distance };
    const isCloser = distance < best.distance - 1e-6;
    const isTie = distance < best.distance + 1e-6 && Math.abs(found.key - from) < Math.abs(best.key - from);
    if (isCloser || isTie) best = found;
  }
  return best.key;
}

/** The number of the place of a track that is nearest to a point; `weights` has 0 for a direction that does not count. */
export function nearestInTrack(track, [x, y], [across, down]) {
  let [best, least] = [0, Infinity];
  for (let i = 0; i < track.length; i += 2) {
    const distance = across * (track[i] / PER_PIXEL - x) ** 2 + down * (track[i + 1] / PER_PIXEL - y) ** 2;
    if (distance < least) [best, least] = [i / 2, distance];
  }
  return best;
}

class Grip {
  constructor(over, number, { name, label, controls, along }) {
    Object.assign(this, { over, number, handle: name, controls, place: null, box: null });
    this.name = controls.length > 1 ? name : controls[0]; // what the session knows its values by
    this.weights = [Number(along !== "y"), Number(along !== "x")];
    this.element = document.createElement("div");
    Object.assign(this.element, { className: "tp-grip", tabIndex: 0, hidden: true });
    this.element.dataset.control = this.name;
    Object.assign(this.element.dataset, { along, handle: name });
    this.element.setAttribute("role", "slider");
    this.element.setAttribute("aria-label", label);
    this.element.title = label;
    this.element.setAttribute("data-lm-suppress-shortcuts", "true");
    this.element.addEventListener("keydown", (event) => this.press(event));
    this.element.addEventListener("focus", () => over.session.near(this.name, over.pixels));
  }

  /** Stand where a frame says. */
  stand([x, y, box], boxes) {
    this.element.hidden = x === undefined;
    this.place = x === undefined ? null : [x, y];
    this.box = box >= 0 ? boxes[box] : null;
    if (!this.place) return;
    const { width, height } = this.over.size;
    Object.assign(this.element.style, { left: `${(100 * x) / width}%`, top: `${(100 * y) / height}%` });
    const moved = this.controls.map((name) => this.over.controls[name]);
    this.element.setAttribute("aria-valuemin", moved[0].low);
    this.element.setAttribute("aria-valuemax", moved[0].high);
    this.element.setAttribute("aria-valuenow", moved[0].at);
    this.element.setAttribute("aria-valuetext", moved.map((one) => `${one.heading} ${one.text(one.at)}`).join(", "));
  }

  distance([x, y]) {
    const [across, down] = this.weights;
    return Math.hypot(across * (x - this.place[0]), down * (y - this.place[1]));
  }

  isIn([x, y]) {
    if (!this.box) return false;
    const [left, top, width, height] = this.box;
    return left <= x && x <= left + width && top <= y && y <= top + height;
  }

  /** The key of the value whose grip is nearest to a point; that of the present one as long as no other is known. */
  nearest(point) {
    const { session } = this.over;
    const track = session.tracks.get(this.handle);
    const [{ low, high, step }] = this.controls.map((name) => this.over.controls[name]);
    const present = session.key(this.name);
    if (track) {
      const number = nearestInTrack(track, point, this.weights);
      return this.controls.length > 1 ? number : low + number * step;
    }
    if (this.controls.length > 1) return present;
    const [across, down] = this.weights;
    const known = new Map([[present, this.place]]);
    if (session.range?.control === this.name) {
      for (const [key, { grips }] of session.store.frames) if (grips?.[this.number]?.length) known.set(key, grips[this.number]);
    }
    const way = [...known].toSorted(([a], [b]) => a - b).map(([key, [x, y]]) => [key, [across * x, down * y]]);
    const key = nearestOnWay(way, [across * point[0], down * point[1]], present);
    return Math.min(high, low + Math.round((key - low) / step) * step);
  }

  /** Keys move the first control, and up and down the second one where there is one. */
  press(event) {
    const [steps, isUpOrDown] = {
      ArrowRight: [1], ArrowLeft: [-1], ArrowUp: [1, true], ArrowDown: [-1, true], PageUp: [PAGE], PageDown: [-PAGE],
      Home: [-Infinity], End: [Infinity],
    }[event.key] ?? [];
    if (!steps) return;
    event.preventDefault();
    const control = this.over.controls[this.controls[isUpOrDown ? this.controls.length - 1 : 0]];
    const to = Math.min(control.high, Math.max(control.low, control.at + steps * control.step));
    if (to === control.at) return;
    const { session } = this.over;
    session.move(this.name, session.key(this.name, { ...session.at, [control.name]: to }));
  }
}

export class Over {
  constructor(stage, canvas, { session, controls, signal }) {
    Object.assign(this, { stage, canvas, session, controls, size: session.part.size, held: null, dark: false });
    this.element = document.createElement("div");
    this.element.className = "tp-over";
    this.words = [];
    this.grips = session.part.handles.map((handle, number) => new Grip(this, number, handle));
    this.element.append(...this.grips.map((grip) => grip.element));
    const on = (type, listener, options) => stage.addEventListener(type, listener, { signal, ...options });
    on("pointerdown", (event) => this.take(event));
    on("pointermove", (event) => this.pass(event));
    for (const type of ["pointerup", "pointercancel"]) on(type, () => this.letGo());
    // A finger that takes hold of a grip does not scroll the page.
    on("touchstart", (event) => this.find(this.point(event.touches[0]), FINGER) && event.preventDefault(), { passive: false });
  }

  /** How many values a pointer can tell apart on the picture. */
  get pixels() {
    return Math.ceil(Math.hypot(this.canvas.clientWidth, this.canvas.clientHeight));
  }

  /** Where a pointer is in the picture. */
  point({ clientX, clientY }) {
    const { left, top, width } = this.canvas.getBoundingClientRect();
    const scale = this.size.width / width;
    return [(clientX - left) * scale, (clientY - top) * scale];
  }

  /** The grip that a pointer would take: one that it meets, else the nearest of those whose part of the picture it is in. */
  find(point, reach) {
    const near = (grip) => Math.hypot(point[0] - grip.place[0], point[1] - grip.place[1]);
    const here = this.grips.filter((grip) => grip.place);
    const within = (reach * this.size.width) / (this.canvas.clientWidth || this.size.width);
    const [met] = here.filter((grip) => near(grip) <= within).toSorted((a, b) => near(a) - near(b));
    const [inside] = here.filter((grip) => grip.isIn(point)).toSorted((a, b) => a.distance(point) - b.distance(point));
    return met ?? inside;
  }

  take(event) {
    const point = this.point(event);
    const grip = event.button === 0 && this.session.state !== "gone" && this.find(point, event.pointerType === "touch" ? FINGER : REACH);
    if (!grip) return;
    event.preventDefault();
    this.stage.setPointerCapture(event.pointerId);
    grip.element.focus({ preventScroll: true });
    this.session.near(grip.name, this.pixels);
    // A grip that was met is not pulled to the pointer's own place; where it may be taken anywhere, it comes there.
    const offset = grip.isIn(point) ? [0, 0] : [grip.place[0] - point[0], grip.place[1] - point[1]];
    this.held = { grip, offset, point };
    this.stage.dataset.held = grip.handle;
    this.follow();
  }

  pass(event) {
    const point = this.point(event);
    if (this.held) {
      this.held.point = point;
      this.follow();
      return;
    }
    const grip = this.session.state === "gone" ? null : this.find(point, REACH);
    this.stage.style.cursor = grip ? "grab" : "";
    if (grip !== this.hovered) this.hover(grip);
  }

  hover(grip) {
    this.hovered?.element.classList.remove("tp-over-it");
    grip?.element.classList.add("tp-over-it");
    this.hovered = grip;
    clearTimeout(this.hovering);
    if (grip) this.hovering = setTimeout(() => this.held || this.session.near(grip.name, this.pixels), 60);
  }

  /** Bring the held grip's control to the pointer, as far as places are known. */
  follow() {
    if (!this.held) return;
    const { grip, offset, point } = this.held;
    if (!grip.place) return;
    const key = grip.nearest([point[0] + offset[0], point[1] + offset[1]]);
    if (key !== this.session.key(grip.name)) this.session.move(grip.name, key);
  }

  letGo() {
    this.held = null;
    delete this.stage.dataset.held;
  }

  /** Show what lies over a frame. */
  show({ grips = [], words = [] }, { boxes, words: texts }) {
    for (const grip of this.grips) grip.stand(grips[grip.number] ?? [], boxes);
    while (this.words.length < words.length) {
      const made = document.createElement("span");
      this.words.push(made);
      this.element.append(made);
    }
    this.words.forEach((made, i) => this.put(made, words[i], texts));
  }

  put(made, word, texts) {
    made.hidden = !word;
    if (!word) return;
    const [number, x, y] = word;
    if (made.number !== number) {
      const [text, colour, side] = texts[number];
      made.textContent = text;
      Object.assign(made, { number, colour, className: `tp-word tp-${side}` });
      this.paint(made);
    }
    const { width, height } = this.size;
    made.style.left = `${(100 * x) / width}%`;
    made.style.top = `${(100 * y) / height}%`;
  }

  paint(made) {
    made.style.color = this.dark ? inDark(made.colour) : made.colour;
  }

  setDark(dark) {
    this.dark = dark;
    this.element.dataset.dark = dark;
    for (const made of this.words) if (made.colour) this.paint(made);
  }

  /** All numbers begin anew. */
  begin() {
    for (const made of this.words) made.number = null;
  }
}
