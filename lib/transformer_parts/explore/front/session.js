// What all views of one explorer share: where its controls are, the frames that are here, and what happens at the moment.
//
// A session is in one of six states:
//
//     idle      no pointer or focus is near a control
//     near      one is: its source may send frames ahead
//     dragging  a value has changed a moment ago
//     settling  the value rests, and the source was told; what stands at the end comes from there
//     busy      an answer is late: the newest value is shown when it comes
//     gone      there is no source any more
//
// A source is the kernel (panel.js) or the pack of frames of a page without one (page.js). It has the methods
// near(range, control, at, pixels), leave(), ask(range, at), got(), move(control, at, id), press(number, id), open() and
// close(), and gives its answers to begin(), frames(), track(), stale() and rest() of the session.
//
// A handle that moves two controls counts as a control of its own: its key is that of ../ranges.py, Joint.

const REST = 100; // milliseconds without a change after which a value rests
const LATE = 800; // milliseconds without an answer after which the source is busy
const UNDER_WAY = [3, 6]; // questions whose answers have not come: at most so many on a short line and on a long one
const LONG = 30; // milliseconds of the line that make it one question more
const CLOSE = 1000; // milliseconds without a view after which the source is let go
const NEW_RANGE = "tp-range"; // said on the page when a session wants another range

/** What came from a source: the things that frames are made of, and the frames of one range. */
export class Store {
  constructor() {
    this.begin();
  }

  begin() {
    this.drawings = { paths: [], styles: [], images: [], parts: [], rows: [], boxes: [], words: [] };
    this.clear();
  }

  add(news) {
    for (const [kind, things] of Object.entries(news)) for (const thing of things) this.drawings[kind].push(thing);
  }

  clear() {
    this.frames = new Map();
  }

  /** The newest frame, or that of `wanted` if it is here. */
  newest(wanted) {
    return this.frames.has(wanted) ? wanted : [...this.frames.keys()].at(-1);
  }

  /** The key nearest to `wanted` on the way there from `shown`, so that no picture overshoots or goes back. */
  onTheWay(shown, wanted) {
    if (this.frames.has(wanted)) return wanted;
    const [low, high] = shown < wanted ? [shown, wanted] : [wanted, shown];
    let best;
    for (const key of this.frames.keys()) {
      const closer = best === undefined || Math.abs(key - wanted) < Math.abs(best - wanted);
      if (low <= key && key <= high && closer) best = key;
    }
    return best;
  }
}

export class Session {
  constructor(part, source) {
    Object.assign(this, { part, source, store: new Store(), views: new Set(), at: {} });
    this.pairs = Object.fromEntries(part.handles.filter((one) => one.controls.length > 1).map((one) => [one.name, one.controls]));
    this.tracks = new Map(); // name of a handle → its places at all values
    this.state = "idle";
    this.range = null; // {id, control}: whose frames are in the store
    this.nearest = null; // the control that the pointer or the focus is near
    this.wanted = this.shown = null; // keys of the range: the newest value's, and that of the picture
    this.asked = new Map(); // keys whose answers have not come, with the time of the question
    this.line = 0; // milliseconds that question and answer are on their way
    this.pressed = -1; // number of the button whose setting this is
    this.moved = null; // {name, at}: what the source was not told yet
    this.pending = null; // name of the last move or press that was not answered
    this.playing = false;
    source.session = this;
  }

  /** Show the explorer in a part of the page until the signal says that the part is gone. */
  open(view, signal) {
    clearTimeout(this.closing);
    if (!this.views.size) this.source.open();
    this.views.add(view);
    view.describe(this.part.controls);
    this.tell();
    if (this.last) {
      view.place(this.at);
      view.show(this.last);
      view.announce();
    }
    signal.addEventListener("abort", () => {
      this.views.delete(view);
      if (this.views.size) return;
      this.stop();
      this.leave();
      this.closing = setTimeout(() => this.source.close(), CLOSE);
    });
  }

  /** The source was closed by another page, which showed the explorer as well. */
  reopen() {
    if (this.views.size) this.source.open();
  }

  /** Change the state, unless there is no source any more; tell the views. */
  become(state) {
    if (state === this.state || this.state === "gone") return;
    this.state = state;
    this.tell();
  }

  /** The state of rest. */
  get calm() {
    return this.nearest === null ? "idle" : "near";
  }

  tell() {
    const { state, playing, pressed } = this;
    for (const view of this.views) view.status({ state, playing, pressed });
  }

  /** The key of where a control is, or of where the two are that a handle moves; null where there is no such place. */
  key(name, at = this.at) {
    if (!this.pairs[name]) return at[name] ?? null;
    const [first, second] = this.pairs[name];
    if (!Number.isInteger(at[first]) || !Number.isInteger(at[second])) return null;
    const { low, count } = this.span(second);
    return (at[first] - this.span(first).low) * count + at[second] - low;
  }

  /** Where the controls are at a key. */
  places(name, key) {
    if (!this.pairs[name]) return { [name]: key };
    const [first, second] = this.pairs[name];
    const { low, count } = this.span(second);
    return { [first]: Math.floor(key / count) + this.span(first).low, [second]: (key % count) + low };
  }

  span(name) {
    const { low = 0, high, labels } = this.part.controls.find((control) => control.name === name);
    return { low, count: (high ?? labels.length - 1) - low + 1 };
  }

  /** The pointer or the focus has come near a control. */
  near(name, pixels = 0) {
    if (this.state === "gone" || this.key(name) === null) return;
    if (this.nearest !== name) this.settle();
    this.nearest = name;
    if (this.range?.control !== name) {
      this.forget();
      this.range = { id: `${Math.random()}`, control: name };
      this.wanted = this.shown = Number(this.key(name)) || 0;
      document.dispatchEvent(new CustomEvent(NEW_RANGE, { detail: this }));
    }
    this.pixels = pixels;
    this.source.near(this.range.id, name, this.key(name), pixels);
    if (this.state === "idle") this.become("near");
  }

  /** Nothing is near any more. */
  leave() {
    if (this.playing || this.nearest === null) return;
    this.settle();
    this.nearest = null;
    this.source.leave();
    if (this.state === "near") this.become("idle");
  }

  /** Another explorer of the page has the frames now: a page keeps those of one range. */
  giveWay() {
    if (!this.range) return;
    this.stop();
    this.leave();
    this.forget();
  }

  forget() {
    this.range = null;
    this.store.clear();
    this.tracks.clear();
    this.asked.clear();
  }

  /** A control was moved, or the two of a handle. */
  move(name, at) {
    if (this.state === "gone") return;
    if (this.playing && name !== this.part.play) this.stop();
    if (this.range?.control !== name) this.near(name, this.pixels);
    // What was there before stays to be seen faintly, until another control is near.
    if (this.calm === this.state) this.before = this.last;
    this.wanted = at;
    Object.assign(this.at, this.places(name, at));
    this.moved = { name, at };
    for (const view of this.views) view.place(this.at);
    if (this.state !== "busy") this.become("dragging");
    this.expect();
    this.show(true);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.settle(), REST);
  }

  /** Show the frame of the newest value, or the nearest on the way to it, at once or soon; ask for what is not here. */
  show(atOnce) {
    if (!this.range || this.wanted === null || this.state === "gone") return;
    const { store, wanted } = this;
    const key = this.pairs[this.range.control] ? store.newest(wanted) : store.onTheWay(this.shown, wanted);
    if (key !== undefined && key !== this.shown) {
      this.shown = key;
      const frame = store.frames.get(key);
      Object.assign(this.at, frame.along);
      for (const view of this.views) view.place(frame.along);
      this.draw({ ...frame, key }, atOnce);
    }
    const [least, most] = UNDER_WAY;
    const room = Math.min(most, least + Math.floor(this.line / LONG));
    if (wanted !== this.shown && !this.asked.has(wanted) && this.asked.size < room) {
      this.asked.set(wanted, performance.now());
      this.source.ask(this.range.id, wanted);
    }
  }

  draw(shot, atOnce) {
    this.last = shot;
    for (const view of this.views) view.show(shot, atOnce);
  }

  /** The value rests: tell the source at once. */
  settle() {
    clearTimeout(this.resting);
    if (!this.moved || this.state === "gone") return;
    const { name, at } = this.moved;
    this.moved = null;
    this.become("settling");
    this.send((id) => this.source.move(name, at, id));
  }

  press(number) {
    if (this.state === "gone") return;
    this.stop();
    // What was moved before comes before.
    this.settle();
    this.forget();
    this.wanted = null;
    this.pressed = number;
    this.pressedAt = null; // where that brings the controls
    this.become("settling");
    this.tell();
    this.send((id) => this.source.press(number, id));
  }

  send(give) {
    this.pending = `${Math.random()}`;
    this.expect();
    give(this.pending);
  }

  /** An answer is to come; the source is busy if it does not. */
  expect() {
    clearTimeout(this.late);
    this.late = setTimeout(() => {
      if (this.pending !== null || this.asked.size) this.become("busy");
    }, LATE);
  }

  // What a source gives.

  /** All numbers begin anew. */
  begin() {
    this.store.begin();
    this.forget();
    this.last = this.before = null;
    for (const view of this.views) view.begin();
  }

  /** Things that frames are made of have come. */
  news(news) {
    this.store.add(news);
  }

  frames(range, frames, asked, took = 0) {
    if (asked === undefined) this.source.got();
    if (range !== this.range?.id) return;
    if (this.asked.has(asked)) {
      // Questions that wait for one another are not the line's.
      const line = performance.now() - this.asked.get(asked) - took * this.asked.size;
      this.line += (Math.max(0, line) - this.line) / 4;
      this.asked.delete(asked);
    }
    for (const { key, ...frame } of frames) this.store.frames.set(key, frame);
    if (this.state === "busy" && this.pending === null && !this.asked.size) this.become(this.moved ? "dragging" : this.calm);
    this.expect();
    // A value for which there is no frame waits for what stands at rest.
    if (frames.length || asked !== this.wanted) this.show();
    for (const view of this.views) view.learn();
  }

  /** The places of a handle at all values. */
  track(range, handle, places) {
    if (range !== this.range?.id) return;
    this.tracks.set(handle, places);
    for (const view of this.views) view.learn();
  }

  stale(range) {
    if (range === this.range?.id) this.forget();
  }

  /** What stands at rest: where the controls are, and what is shown. */
  rest({ id, at, code, ...shot }) {
    if (id === this.pending) this.pending = null;
    this.code = code;
    // A move that came after is on its way to the source, or will be.
    if (this.pending !== null || this.moved || this.state === "gone") return;
    clearTimeout(this.late);
    Object.assign(this.at, at);
    this.pressedAt ??= JSON.stringify(at);
    // On a page without a kernel a button's setting is where each control starts from.
    if (this.pressedAt !== JSON.stringify(at) && !this.source.startsFromSettings) this.pressed = -1;
    this.tell();
    for (const view of this.views) view.place(at);
    this.wanted = this.shown = this.range ? this.key(this.range.control) : null;
    this.draw({ ...shot, key: this.wanted });
    this.before = null;
    this.become(this.calm);
    for (const view of this.views) view.announce();
    // From here the pointer comes to other values than from where it was before.
    if (this.nearest !== null) this.near(this.nearest, this.pixels);
  }

  /** The controls have other ranges. */
  describe(descriptions) {
    this.part.controls = descriptions;
    for (const view of this.views) view.describe(descriptions);
  }

  gone() {
    this.stop();
    clearTimeout(this.late);
    this.become("gone");
  }

  // Playing: a step when the picture of the last one was seen.

  togglePlay() {
    if (this.playing) {
      this.stop();
      return;
    }
    const { play } = this.part;
    this.near(play, this.pixels);
    this.playing = true;
    this.tell();
    const { low, high } = this.ends();
    if (this.at[play] >= high) this.step(low);
    else this.step();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.stop();
    else this.player = setInterval(() => this.step(), this.part.interval);
  }

  ends() {
    const { low = 0, high, step = 1, labels } = this.part.controls.find(({ name }) => name === this.part.play);
    return { low, high: high ?? labels.length - 1, step };
  }

  step(to) {
    const { high, step } = this.ends();
    const { play } = this.part;
    if (this.waiting) return;
    if (to === undefined && this.at[play] >= high) {
      this.stop();
      return;
    }
    this.waiting = true;
    this.move(play, Math.min(to ?? this.at[play] + step, high));
  }

  painted({ key }) {
    if (key === this.wanted) this.waiting = false;
  }

  stop() {
    if (!this.playing) return;
    clearInterval(this.player);
    this.playing = this.waiting = false;
    this.tell();
  }
}
