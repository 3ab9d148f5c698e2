// The frames of one slider, in the page before the hand moves, and the canvas that shows them.
//
// Two classes, used by panel.js (a live notebook) and by the pages that have no kernel:
//
//     const store = new FrameStore();                  // or {type, maxBytes, maxDecoded}
//     store.put(key, bytes, numbers);                  // an encoded picture and the HTML of its table
//     const screen = new Screen(canvas, store, key => …);   // called after each painting
//     screen.begin(key);                               // what the page shows as the hand arrives
//     screen.show(key);                                // as the hand moves: now if it is decoded, else very soon
//     screen.end();                                    // the hand is gone: the canvas hides, bitmaps are let go
//
// A key is the whole number of a value's place on the slider: neighbours on the slider have near keys.
//
// Memory: at most `maxBytes` of encoded pictures (then `put` refuses) and `maxDecoded` bitmaps, those nearest to the
// hand; a bitmap takes 4 bytes a pixel.

/** Encoded pictures by key, a bounded number of them decoded around the hand. */
export class FrameStore {
  constructor({ type = "image/jpeg", maxBytes = 32e6, maxDecoded = 72 } = {}) {
    Object.assign(this, { type, maxBytes, maxDecoded });
    this.frames = new Map(); // key → {blob, numbers, bitmap, decoding}
    this.bytes = 0;
    this.hand = null; // the key under the hand
    this.busy = 0; // decodings under way
    this.onready = () => {}; // called with a key whose bitmap has come
  }

  /** Keep a picture; false if there is no room for it. A picture that is there already is replaced. */
  put(key, bytes, numbers = "") {
    const blob = new Blob([bytes], { type: this.type });
    const old = this.frames.get(key);
    const total = this.bytes + blob.size - (old?.blob.size ?? 0);
    if (total > this.maxBytes) return false;
    old?.bitmap?.close();
    this.bytes = total;
    this.frames.set(key, { blob, numbers, bitmap: null, decoding: false });
    this.decodeSome();
    return true;
  }

  has(key) {
    return this.frames.has(key);
  }

  /** The table that belongs to a picture. */
  numbers(key) {
    return this.frames.get(key)?.numbers;
  }

  /** The decoded picture of a key, or null. */
  bitmap(key) {
    return this.frames.get(key)?.bitmap ?? null;
  }

  /** The stored key nearest to another one; undefined in an empty store. */
  nearest(key) {
    return this.byDistance(key)[0];
  }

  /** The decoded key nearest to `wanted` on the way there from `shown`, so that no picture overshoots or goes back. */
  onTheWay(shown, wanted) {
    const [low, high] = shown < wanted ? [shown, wanted] : [wanted, shown];
    let best;
    for (const [key, { bitmap }] of this.frames) {
      const closer = best === undefined || Math.abs(key - wanted) < Math.abs(best - wanted);
      if (bitmap && low <= key && key <= high && closer) best = key;
    }
    return best;
  }

  /** Tell where the hand is: pictures are decoded from there outwards, and bitmaps far from it are let go. */
  aim(key) {
    this.hand = key;
    const far = this.byDistance(key).slice(this.maxDecoded);
    for (const other of far) this.letGo(other);
    this.decodeSome();
  }

  /** Let all bitmaps go; the encoded pictures stay. */
  rest() {
    this.hand = null;
    for (const key of this.frames.keys()) this.letGo(key);
  }

  /** Forget everything. */
  clear() {
    this.rest();
    this.frames.clear();
    this.bytes = 0;
  }

  byDistance(key) {
    return [...this.frames.keys()].sort((a, b) => Math.abs(a - key) - Math.abs(b - key));
  }

  letGo(key) {
    const frame = this.frames.get(key);
    frame.bitmap?.close();
    frame.bitmap = null;
  }

  // Two at a time: the browser decodes beside the page's own thread, and the one under the hand never waits long.
  decodeSome() {
    if (this.hand === null || this.busy >= 2) return;
    for (const key of this.byDistance(this.hand).slice(0, this.maxDecoded)) {
      const frame = this.frames.get(key);
      if (frame.bitmap || frame.decoding) continue;
      this.decode(key, frame);
      if (this.busy >= 2) return;
    }
  }

  async decode(key, frame) {
    this.busy += 1;
    frame.decoding = true;
    const bitmap = await createImageBitmap(frame.blob).catch(() => null);
    this.busy -= 1;
    const current = this.frames.get(key) === frame;
    if (!bitmap) {
      // A broken picture is as good as none.
      if (current) this.drop(key);
    } else if (current && this.hand !== null) {
      frame.decoding = false;
      frame.bitmap = bitmap;
      this.onready(key);
    } else {
      frame.decoding = false;
      bitmap.close();
    }
    this.decodeSome();
  }

  drop(key) {
    this.bytes -= this.frames.get(key).blob.size;
    this.frames.delete(key);
  }
}

/** A canvas that shows, while it is in use, the stored picture nearest to the one that is wanted. */
export class Screen {
  constructor(canvas, store, onpaint = () => {}) {
    Object.assign(this, { canvas, store, onpaint });
    this.shown = null; // the key whose picture the page shows
    this.wanted = null;
    canvas.hidden = true;
    store.onready = () => this.paint();
  }

  /** The hand has come: the page shows the picture of this key. */
  begin(key) {
    this.shown = this.wanted = key;
    this.store.aim(key);
  }

  /** Show a key's picture, or the nearest on the way to it until that one is decoded. */
  show(key) {
    this.wanted = key;
    this.shown ??= key;
    this.store.aim(key);
    this.paint();
  }

  /** Where the hand is, without a change of the picture. */
  aim(key) {
    this.shown ??= key;
    this.wanted = key;
    this.store.aim(key);
  }

  /** Uncover what is under the canvas. */
  hide() {
    this.canvas.hidden = true;
    this.shown = this.wanted;
  }

  /** The hand has gone. */
  end() {
    this.hide();
    this.store.rest();
  }

  paint() {
    if (this.wanted === null) return;
    const key = this.store.onTheWay(this.shown, this.wanted);
    if (key === undefined || key === this.shown) return;
    const bitmap = this.store.bitmap(key);
    const { canvas } = this;
    if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
      canvas.width = bitmap.width;
      canvas.height = bitmap.height;
    }
    canvas.getContext("2d", { alpha: false }).drawImage(bitmap, 0, 0);
    canvas.hidden = false;
    this.shown = key;
    this.onpaint(key);
  }
}
