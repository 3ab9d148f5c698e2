// A panel's part in the browser.  Joined behind frames.js, hold.js and names.js to the one module of an anywidget.
//
// The sliders, the image and the table are widgets of the panel, reached through the widget manager.  When the hand
// comes near a control, its range is wanted from the kernel (messages: ../ahead.py, keys: ../ranges.py); as the control
// moves, the frame of its value is shown at once on a canvas over the image, with its own table, and the kernel hears of
// the value when the hand rests.  When it says that image and table are those of the controls as they stand, the canvas
// goes.

import { FrameStore, Screen } from "./frames.js";
import { Hold } from "./hold.js";
import { namePlayer, nameSlider, Speaker } from "./names.js";

const HOVER = 60; // milliseconds over a control before its range is wanted
const QUIET = 500; // milliseconds of rest before the numbers are read out
const NEW_RANGE = "tp-range"; // said on the page when a panel wants another range
const ASKING = 25; // milliseconds that the hand is where no frame is before the kernel hears of it: it may have gone on

/** The place of a control's value on it, by which the kernel and the page name its frames. */
function place(control) {
  return Number(control.get("index") ?? control.get("value"));
}

/** Bring a control to a place, on the page alone. */
function put(control, at) {
  if (control.has("index")) control.set("index", at);
  else control.set("value", typeof control.get("value") === "boolean" ? Boolean(at) : at);
}

/** What a panel shows: the widgets of one panel, and one view of them on the page. */
class Panel {
  static async open(model, el, signal) {
    const widget = (id) => (id ? model.widget_manager.get_model(id) : null);
    const panel = new Panel();
    Object.assign(panel, { model, el, signal, root: el, range: null, hold: null, near: null });
    // How often something has moved, the name of the value that was told and not answered, and the controls that may
    // be elsewhere in the kernel: frames have moved them along, or their value was told.
    Object.assign(panel, { moves: 0, told: null, carried: new Set() });
    panel.controls = {};
    for (const [name, id] of Object.entries(model.get("controls"))) panel.controls[name] = await widget(id);
    panel.picture = await widget(model.get("picture"));
    panel.readout = await widget(model.get("readout"));
    panel.play = await widget(model.get("play"));
    await panel.attached();
    if (!signal.aborted) panel.begin();
  }

  /** Wait until the panel stands on the page, which its parts are placed on one by one. */
  async attached() {
    while (!this.signal.aborted && !this.el.closest(".tp-panel")) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    this.root = this.el.closest(".tp-panel");
    // Of each widget the view that stands in this panel.
    const here = async (widget) => {
      const views = await Promise.all(Object.values(widget.views ?? {}));
      return views.map((view) => view.el).find((el) => this.root?.contains(el));
    };
    this.elements = [];
    for (const [name, control] of Object.entries(this.controls)) this.elements.push([name, await here(control)]);
    if (this.play) this.elements.push([this.model.get("plays"), await here(this.play)]);
    this.elements = this.elements.filter(([, element]) => element);
  }

  begin() {
    const canvas = document.createElement("canvas");
    canvas.setAttribute("aria-hidden", "true");
    const region = document.createElement("div");
    this.el.append(canvas, region);
    this.el.classList.add("tp-ready");
    this.store = new FrameStore();
    this.screen = new Screen(canvas, this.store, (key) => {
      const { numbers, along } = this.store.about(key);
      this.readout.set("value", numbers);
      for (const [name, at] of Object.entries(along)) this.carry(name, at);
      canvas.dispatchEvent(new CustomEvent("tp-paint", { bubbles: true, detail: { key, wanted: this.screen.wanted } }));
    });
    this.speaker = new Speaker(region, this.readout.get("value"));
    this.image = this.root.querySelector("img.widget-image");
    this.listen();
    for (const [name, element] of this.elements) {
      if (element.matches(".widget-play")) namePlayer(element, this.model.get("play_names"));
      else nameSlider(element, this.controls[name].get("description"), this.signal);
    }
    this.quietTable();
  }

  /** Move another control along, on the page alone. */
  carry(name, at) {
    if (!Number.isFinite(at) || at === place(this.controls[name])) return;
    this.carried.add(name);
    put(this.controls[name], at);
  }

  listen() {
    const { root, signal } = this;
    for (const [name, control] of Object.entries(this.controls)) {
      this.follow(control, "change:value change:index", () => this.moved(name));
    }
    this.follow(this.model, "msg:custom", (content, buffers) => this.message(content, buffers));
    if (this.play) this.follow(this.play, "change:playing", () => this.playing());
    const on = (type, listener) => root.addEventListener(type, listener, { capture: true, signal });
    on("pointerover", (event) => this.hover(this.nameAt(event.target)));
    // A slider that is pressed beside its handle has its new value a moment later.
    on("pointerdown", (event) => setTimeout(() => this.want(this.nameAt(event.target))));
    on("focusin", (event) => this.want(this.nameAt(event.target)));
    root.addEventListener("pointerleave", () => this.leave(), { signal });
    root.addEventListener("focusout", () => this.leave(), { signal });
    // Whatever else is done finds the kernel knowing all values.
    for (const type of ["pointerdown", "keydown"]) {
      document.addEventListener(type, (event) => this.elsewhere(event), { capture: true, signal });
    }
    // A page keeps the frames of one range, whichever panel's.
    document.addEventListener(NEW_RANGE, ({ detail }) => detail !== this.range?.id && this.giveWay(), { signal });
    signal.addEventListener("abort", () => this.letGo());
  }

  elsewhere({ target }) {
    if (this.controls[this.nameAt(target)] !== this.hold?.control) this.hold?.pay();
  }

  follow(widget, events, listener) {
    widget.on(events, listener);
    this.signal.addEventListener("abort", () => widget.off(events, listener));
  }

  nameAt(target) {
    return this.elements.find(([, element]) => element.contains(target))?.[0];
  }

  hover(name) {
    clearTimeout(this.hovering);
    // A hand that holds or has focused another control keeps it.
    if (name && (name === this.near || !this.held())) this.hovering = setTimeout(() => this.want(name), HOVER);
  }

  held() {
    return this.root.contains(document.activeElement) && this.range?.control === this.nameAt(document.activeElement);
  }

  /** Ask for the frames of a control. */
  want(name) {
    const control = this.controls[name];
    if (!control || this.signal.aborted || !globalThis.DecompressionStream || !Number.isFinite(place(control))) return;
    clearTimeout(this.hovering);
    this.near = name;
    if (this.hold?.control !== control) {
      this.hold?.end();
      this.hold = new Hold(control, {
        stamp: () => this.model.get("presses"),
        tell: (presses) => this.tell(name, presses),
        isLate: () => this.told !== null,
      });
    }
    if (this.range?.control !== name) {
      this.forget();
      this.range = { id: `${Math.random()}`, control: name };
      this.screen.begin(place(control));
      document.dispatchEvent(new CustomEvent(NEW_RANGE, { detail: this.range.id }));
    }
    const [at, pixels, ratio] = [place(control), this.track(name), window.devicePixelRatio > 1 ? 2 : 1];
    this.say({ type: "want", range: this.range.id, control: name, at, pixels, ratio });
  }

  /** Tell the kernel on which value of a control the hand rests, and how many presses of buttons it knew of. */
  tell(name, presses) {
    this.told = `${Math.random()}`;
    this.carried.add(name);
    this.say({ type: "rested", control: name, at: place(this.controls[name]), told: this.told, presses });
  }

  say(message) {
    // A kernel that has gone hears nothing.
    if (this.picture.comm_live) this.model.send(message);
  }

  /** The length of a slider's track: how many values a pointer can tell apart. */
  track(name) {
    const element = this.elements.find(([other]) => other === name)?.[1];
    return Math.ceil(element?.querySelector(".noUi-base")?.clientWidth ?? 0);
  }

  /** The pointer or the focus has gone: nothing more is drawn, but for a control that still has the focus. */
  leave() {
    clearTimeout(this.hovering);
    setTimeout(() => {
      if (this.signal.aborted || this.root.matches(":hover, :focus-within") || this.play?.get("playing")) return;
      this.near = null;
      this.letGo();
      this.say({ type: "leave" });
    }, 50);
  }

  moved(name) {
    this.moves += 1;
    if (this.range?.control !== name) return;
    const at = place(this.controls[name]);
    this.screen.show(at);
    clearTimeout(this.asking);
    if (!this.store.has(at)) this.asking = setTimeout(() => this.ask(at), ASKING);
  }

  ask(at) {
    if (this.range && !this.signal.aborted) this.say({ type: "hand", range: this.range.id, at });
  }

  message(content, buffers) {
    if (content.type === "frame") {
      if (content.range === this.range?.id) this.store.put(content.key, buffers[0], content);
    } else if (content.type === "stale") {
      if (content.range === this.range?.id) this.forget();
    } else if (content.type === "rest") {
      this.rest(content);
    }
  }

  /** Another panel on the page has the frames now. */
  giveWay() {
    if (!this.range) return;
    this.letGo();
    this.forget();
    this.say({ type: "leave" });
  }

  letGo() {
    this.hold?.end();
    this.hold = null;
  }

  /** Other controls have changed: the frames are of no use, the last one stays until the kernel's picture has come. */
  forget() {
    this.range = null;
    this.store.clear();
  }

  /** The kernel says that image and table are those of these places of the controls. */
  async rest({ at, bytes, numbers, told }) {
    if (told === this.told) this.told = null;
    if (this.told !== null || this.hold?.waits) return;
    // What has moved along on the page may stay in the kernel, and a value that was told may be refused there.
    for (const name of this.carried) this.carry(name, at[name]);
    this.carried.clear();
    const here = Object.entries(at).every(([name, key]) => key === null || key === place(this.controls[name]));
    if (!here) return;
    const { moves } = this;
    await this.pictureOf(bytes);
    if (moves !== this.moves || this.signal.aborted) return;
    this.readout.set("value", numbers);
    this.screen.hide();
    // From here the hand comes to other values than from where it was grabbed.
    this.want(this.near);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => moves === this.moves && this.speaker.say(numbers), QUIET);
  }

  /** Wait for the kernel's picture, which comes by another way than its messages, and until it can be shown. */
  async pictureOf(bytes) {
    if (this.picture.get("value").byteLength !== bytes) {
      await new Promise((resolve) => this.picture.once("change:value", resolve));
    }
    await this.image.decode().catch(() => {});
  }

  /** Where less motion is wished for, the play button takes one step, as the player does when it is started. */
  playing() {
    if (!this.play.get("playing")) return;
    this.want(this.model.get("plays"));
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this.play.set("playing", false);
    this.play.save_changes();
  }

  /** The table changes with each frame; what is read out is said by the speaker, at rest. */
  quietTable() {
    const quiet = () => {
      for (const table of this.root.querySelectorAll(".tp-readout[aria-live=polite]")) {
        table.setAttribute("aria-live", "off");
      }
    };
    quiet();
    const observer = new MutationObserver(quiet);
    observer.observe(this.root.querySelector(".tp-picture"), { childList: true, subtree: true });
    this.signal.addEventListener("abort", () => observer.disconnect());
  }
}

export default {
  render({ model, el, signal }) {
    Panel.open(model, el, signal);
  },
};
