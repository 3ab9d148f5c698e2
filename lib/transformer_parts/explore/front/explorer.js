// One view of an explorer on a page: buttons, controls, picture and table. What they show is its session's.

import { Control } from "./controls.js";
import { Painter } from "./drawing.js";
import { Over } from "./over.js";

const QUIET = 500; // milliseconds of rest before the numbers are read out
const HOVER = 60; // milliseconds over a control before the pointer counts as near
const COPIED = 1500; // milliseconds for which a button says that it has copied

let explorers = 0;

function element(name, className, ...children) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children);
  return made;
}

function button(text, press) {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  made.addEventListener("click", press);
  return made;
}

const NUMBER = /(?<![\w.])\d[\d,]*\.\d+(?=(?:e[+-]?\d+)?(?![\w.]))/g;
const DIGITS = 4;

/** A text whose numbers with a point have at most four significant digits. */
export function short(text) {
  return text.replace(NUMBER, (found) => {
    const value = Number(found.replaceAll(",", ""));
    const leading = value ? Math.floor(Math.log10(value)) : 0;
    const places = Math.max(0, DIGITS - 1 - leading);
    if (found.length - found.indexOf(".") - 1 <= places) return found;
    return value.toLocaleString("en-US", {
      minimumFractionDigits: places,
      maximumFractionDigits: places,
      useGrouping: found.includes(","),
    });
  });
}

/** Whether the page is dark: by JupyterLab's theme, VS Code's, the attribute of other pages, or the reader's wish. */
function isDark() {
  const [{ jpThemeLight, vscodeThemeKind }, { theme }] = [document.body.dataset, document.documentElement.dataset];
  if (jpThemeLight) return jpThemeLight === "false";
  if (vscodeThemeKind) return vscodeThemeKind.includes("dark");
  if (theme) return theme === "dark";
  return getComputedStyle(document.documentElement).colorScheme.includes("dark") && prefersDark.matches;
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

export class Explorer {
  constructor(root, session, signal) {
    Object.assign(this, { root, session, signal, part: session.part });
    explorers += 1;
    this.id = `tp-${explorers}`;
    this.build();
    this.listen();
  }

  build() {
    const { part, session } = this;
    this.buttons = part.presets.map((label, number) => button(label, () => session.press(number)));
    const bar = element("div", "tp-bar", ...this.buttons);
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", part.words.settings);
    this.play = part.play ? button("▶", () => session.togglePlay()) : null;
    this.play?.classList.add("tp-play");
    this.controls = {};
    for (const description of part.controls) {
      const { name } = description;
      const play = name === part.play ? this.play : null;
      this.controls[name] = new Control(description, `${this.id}-${name}`, { play });
    }
    this.notice = element("p", "tp-notice");
    this.step = element("p", "tp-step");
    this.formula = element("p", "tp-formula");
    this.formula.hidden = true;
    this.tip = element("div", "tp-tip");
    this.tip.hidden = true;
    const longest = Math.max(0, ...this.inOrder().map((control) => control.longest));
    const isPrimary = ({ name }) => part.primary.includes(name);
    const [primary, others] = [this.inOrder().filter(isPrimary), this.inOrder().filter((one) => !isPrimary(one))];
    const more = element("details", "tp-more", element("summary", "", part.words.more), ...others.map((one) => one.element));
    const left = element("div", "tp-controls", bar, this.step, ...primary.map((control) => control.element));
    if (others.length) left.append(more);
    left.append(this.notice);
    left.style.setProperty("--tp-longest", `${Math.min(longest, 9)}ch`);
    this.canvas = element("canvas", "");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", part.alt);
    this.canvas.style.aspectRatio = `${part.size.width} / ${part.size.height}`;
    this.canvas.style.maxWidth = `${part.size.width}px`;
    this.stage = element("div", "tp-stage", this.canvas);
    this.stage.style.maxWidth = `${part.size.width}px`;
    this.stage.style.setProperty("--tp-aspect", part.size.width / part.size.height);
    this.body = document.createElement("tbody");
    const table = element("table", "tp-readout", this.body);
    this.all = button(part.words.rows, () => this.fold(!this.isFolded));
    this.all.classList.add("tp-all", "tp-asks");
    this.copy = button(part.words.copy, () => this.copyState());
    this.copy.classList.add("tp-asks");
    const numbers = element("div", "tp-numbers", table, element("div", "tp-bar", this.all, this.copy));
    this.spoken = element("p", "tp-spoken");
    this.spoken.setAttribute("role", "status");
    this.spoken.setAttribute("aria-live", "polite");
    const right = element("div", "tp-picture", this.formula, this.stage);
    left.append(numbers, this.spoken);
    this.whole = element("div", "tp-body", right, left);
    // Keys are for the controls here, not for the notebook around them: JupyterLab looks for this from what has the focus.
    for (const made of [...this.buttons, this.all, this.copy, this.play, ...this.inOrder().map((control) => control.input)]) {
      made?.setAttribute("data-lm-suppress-shortcuts", "true");
    }
    this.whole.explorer = this;
    this.painter = new Painter(this.canvas, session.store.drawings, part.size);
    this.over = new Over(this.stage, this.canvas, this);
    this.stage.append(this.over.element, this.tip);
    this.fold(true);
    this.root.append(this.whole);
  }

  /** Show the rows of the table that matter, or all. */
  fold(folded) {
    this.isFolded = folded;
    this.whole.dataset.folded = folded;
    this.digits();
    this.all.setAttribute("aria-expanded", String(!folded));
  }

  /** Show all digits of the numbers where they are asked for and at a worked example, else the first four. */
  digits() {
    const isFull = !this.isFolded || this.isExample;
    for (const cell of this.body.querySelectorAll("td")) {
      const full = (cell.dataset.full ??= cell.textContent);
      cell.textContent = isFull ? full : short(full);
      cell.title = full;
    }
  }

  async copyState() {
    await navigator.clipboard?.writeText(this.session.code);
    this.copy.textContent = this.part.words.copied;
    setTimeout(() => { this.copy.textContent = this.part.words.copy; }, COPIED);
  }

  /** Light up what shows `mark`: in the picture, in the table and in the formula; nothing for "". */
  light(mark, point) {
    const row = mark && this.body.querySelector(`[data-mark="${mark}"]`);
    this.tip.hidden = !row || !point;
    if (row && point) {
      const { width, height } = this.part.size;
      this.tip.textContent = [...row.cells].map((cell) => cell.textContent.trim()).join(": ");
      this.tip.style.left = `${(100 * point[0]) / width}%`;
      this.tip.style.top = `${(100 * point[1]) / height}%`;
      this.tip.dataset.side = point[0] > width / 2 ? "left" : "right";
    }
    if (mark === this.lit) return;
    this.lit = mark;
    for (const node of this.whole.querySelectorAll("[data-mark]")) node.classList.toggle("tp-lit", node.dataset.mark === mark);
    this.paint();
  }

  /** Light up what is under the pointer. */
  point(event) {
    const marks = Object.entries(this.part.shows);
    if (!marks.length || !this.painted || this.over.held) return;
    const point = this.over.point(event);
    const place = this.painter.meets(this.painted.frame, marks.flatMap(([, places]) => places), point);
    this.light(marks.find(([, places]) => places.includes(place))?.[0] ?? "", point);
  }

  inOrder() {
    return Object.values(this.controls);
  }

  listen() {
    const { session, signal, whole } = this;
    const on = (target, type, listener) => target.addEventListener(type, listener, { signal });
    for (const control of this.inOrder()) {
      on(control.input, "input", () => {
        control.say();
        session.move(control.name, control.at);
      });
      on(control.element, "pointerenter", () => {
        clearTimeout(this.hovering);
        this.hovering = setTimeout(() => this.isHeld() || this.near(control), HOVER);
      });
      on(control.element, "pointerdown", () => this.near(control));
      on(control.input, "focus", () => this.near(control));
    }
    on(this.stage, "pointermove", (event) => this.point(event));
    on(this.stage, "pointerleave", () => this.light(""));
    on(this.stage, "pointerdown", () => this.light(""));
    const marked = ({ target }) => target.closest?.("[data-mark]")?.dataset.mark ?? "";
    for (const part of [this.body, this.formula]) {
      on(part, "pointerover", (event) => this.light(marked(event)));
      on(part, "pointerleave", () => this.light(""));
    }
    on(whole, "pointerleave", () => this.leave());
    on(whole, "focusout", () => this.leave());
    const fit = () => {
      // What is scrolled to stands below the picture, not behind it.
      whole.style.setProperty("--tp-tall", `${this.stage.parentElement.clientHeight + 8}px`);
      if (this.painter.fit(this.canvas.clientWidth)) this.paint();
    };
    const observer = new ResizeObserver(fit);
    observer.observe(this.canvas);
    const theme = () => {
      const dark = isDark();
      if (!this.painter.setDark(dark)) return;
      this.over.setDark(dark);
      this.paint();
    };
    const themes = new MutationObserver(theme);
    for (const target of [document.body, document.documentElement]) themes.observe(target, { attributes: true });
    on(prefersDark, "change", theme);
    // Zooming changes how many pixels there are, not how wide the picture is.
    on(globalThis, "resize", fit);
    theme();
    signal.addEventListener("abort", () => {
      observer.disconnect();
      themes.disconnect();
      cancelAnimationFrame(this.asked);
      clearTimeout(this.hovering);
      clearTimeout(this.speaking);
      whole.remove();
    });
  }

  near(control) {
    clearTimeout(this.hovering);
    this.session.near(control.name, control.pixels);
  }

  /** Whether a control is held or has the focus: another one under the pointer does not take its place. */
  isHeld() {
    return this.whole.contains(document.activeElement) && document.activeElement.dataset.control === this.session.nearest;
  }

  leave() {
    clearTimeout(this.hovering);
    setTimeout(() => this.whole.matches(":hover, :focus-within") || this.session.leave(), 50);
  }

  /** Take the controls' ranges. */
  describe(descriptions) {
    for (const description of descriptions) this.controls[description.name]?.describe(description);
  }

  /** Show where the controls are. */
  place(at) {
    for (const [name, place] of Object.entries(at)) {
      if (place !== null && this.controls[name]?.at !== place) this.controls[name]?.put(place);
    }
  }

  /** All numbers begin anew: what was painted stays until the next picture comes. */
  begin() {
    this.shot = this.painted = this.rows = null;
    this.painter.begin(this.session.store.drawings);
    this.over.begin();
  }

  /** More places of grips are known. */
  learn() {
    this.over.follow();
  }

  /** Show a picture and its table: at once, or before the next repaint of the screen. */
  show(shot, atOnce) {
    this.shot = shot;
    if (atOnce) this.paint();
    else this.asked ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.asked);
    this.asked = null;
    if (!this.shot) return;
    const { frame, rows, key, formula } = this.shot;
    const { store, before } = this.session;
    this.painter.paint(frame, { lit: this.part.shows[this.lit], ghost: before?.frame[1] });
    this.painted = this.shot;
    if (this.rows !== `${rows} ${formula}`) {
      this.rows = `${rows} ${formula}`;
      this.body.innerHTML = rows.map((row) => store.drawings.rows[row]).join("");
      this.formula.innerHTML = store.drawings.rows[formula] ?? "";
      this.formula.hidden = !this.formula.textContent;
      for (const term of this.formula.children) term.textContent = short(term.textContent);
      // A server may forbid styles in what is put into the page, but not those that a script sets.
      for (const node of this.whole.querySelectorAll("[data-style]")) node.style.cssText = node.dataset.style;
      this.digits();
      this.all.hidden = !this.body.querySelector(".tp-minor");
    }
    this.over.show(this.shot, store.drawings);
    this.canvas.dispatchEvent(new CustomEvent("tp-paint", { bubbles: true, detail: { key } }));
    this.session.painted(this.shot);
  }

  /** What is painted, with everything that it refers to. */
  get drawn() {
    if (!this.painted) return null;
    const { parts, paths, styles, images } = this.painter.drawings;
    const style = (number) => {
      const [clip, ...others] = styles[number].toReversed();
      return [...others.toReversed(), paths[clip] ?? null];
    };
    return this.painted.frame.map((list) =>
      list.map((part) =>
        parts[part].map(([outline, number, ...places]) =>
          outline < 0 ? [images[number], ...places] : [paths[outline], style(number), ...places],
        ),
      ),
    );
  }

  /** Show in which state the session is; the playing control's button; whose button's setting this is. */
  status({ state, playing, pressed }) {
    this.whole.dataset.state = state;
    const isBusy = state === "busy";
    this.notice.textContent = isBusy ? this.part.words.busy : "";
    for (const control of this.inOrder()) control.disable(state === "gone");
    const isExample = pressed >= 0 && pressed < this.buttons.length - 1;
    if (isExample !== this.isExample) {
      this.isExample = isExample;
      this.digits();
    }
    this.step.textContent = this.part.guide[pressed] ?? "";
    this.buttons.forEach((made, number) => {
      made.disabled = state === "gone";
      made.setAttribute("aria-pressed", String(number === pressed));
    });
    if (!this.play) return;
    this.play.disabled = state === "gone";
    this.play.textContent = playing ? "⏸" : "▶";
    this.play.setAttribute("aria-label", playing ? this.part.words.pause : this.part.words.play);
  }

  /** Say, in a region that screen readers listen to, which lines of the table have changed since it last spoke. */
  announce() {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      const now = [...this.body.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join(" "));
      const changed = now.filter((line) => !this.said?.includes(line));
      if (this.said && changed.length) this.spoken.textContent = changed.join("; ");
      this.said = now;
    }, QUIET);
  }
}
