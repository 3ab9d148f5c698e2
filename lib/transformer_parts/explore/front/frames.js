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
// Memory: at most `maxBytes` of encoded pictures (then `put` refuses) and `maxDecoded` bitmaps of 4 bytes a pixel, those
// that the hand was at last and their neighbours; 96 pictures of 680 x 400 pixels are 104 MB while a hand is there.

const NEIGHBOURS = 5; // keys around the hand that are decoded even where older bitmaps must go for them

/** Encoded pictures by key, a bounded number of them decoded around the hand. */
export class FrameStore {
  constructor({ type = "image/jpeg", maxBytes = 32e6, maxDecoded = 96 } = {}) {
    Object.assign(this, { type, maxBytes, maxDecoded });
    this.frames = new Map(); // key → {blob, numbers, decoding}
    this.bitmaps = new Map(); // key → bitmap, the longest unused first
    this.bytes = 0;
    this.hand = null; // the key under the hand
    this.step = 0; // by how many keys it moved last
    this.busy = 0; // decodings under way
    this.onready = () => {}; // called with a key whose bitmap has come
  }

  /** Keep a picture; false if there is no room for it. A picture that is there already is replaced. */
  put(key, bytes, numbers = "") {
    const blob = new Blob([bytes], { type: this.type });
    const old = this.frames.get(key);
    const total = this.bytes + blob.size - (old?.blob.size ?? 0);
    if (total > this.maxBytes) return false;
    this.letGo(key);
    this.bytes = total;
    this.frames.set(key, { blob, numbers, decoding: false });
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
    return this.bitmaps.get(key) ?? null;
  }

  /** The stored key nearest to another one; undefined in an empty store. */
  nearest(key) {
    return this.byDistance(key)[0];
  }

  /** The decoded key nearest to `wanted` on the way there from `shown`, so that no picture overshoots or goes back. */
  onTheWay(shown, wanted) {
    const [low, high] = shown < wanted ? [shown, wanted] : [wanted, shown];
    let best;
    for (const key of this.bitmaps.keys()) {
      const closer = best === undefined || Math.abs(key - wanted) < Math.abs(best - wanted);
      if (low <= key && key <= high && closer) best = key;
    }
    return best;
  }

  /** Tell where the hand is: its picture is decoded first, then those it may come to next, then others while there is room. */
  aim(key) {
    if (this.hand !== null && key !== this.hand) this.step = key - this.hand;
    this.hand = key;
    const bitmap = this.bitmaps.get(key);
    if (bitmap) {
      this.bitmaps.delete(key);
      this.bitmaps.set(key, bitmap);
    }
    this.decodeSome();
  }

  /** Let all bitmaps go; the encoded pictures stay. */
  rest() {
    this.hand = null;
    for (const key of this.bitmaps.keys()) this.letGo(key);
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
    this.bitmaps.get(key)?.close();
    this.bitmaps.delete(key);
  }

  // The browser decodes beside the page's own thread. The picture under the hand never waits for a place; those that a
  // hand of this speed comes to next have two; the others, while there is room, are decoded when nothing else is.
  decodeSome() {
    if (this.hand === null || this.frames.size === 0) return;
    const { hand, step } = this;
    const around = this.byDistance(hand);
    const soon = [this.nearest(hand + step), this.nearest(hand + 2 * step)];
    if (Math.abs(step) < NEIGHBOURS) soon.push(...around.slice(1, NEIGHBOURS));
    this.decodeFirst([around[0]], 3);
    this.decodeFirst(soon, 2);
    if (this.bitmaps.size + this.busy < this.maxDecoded) this.decodeFirst(around, 1);
  }

  /** Decode the first of these keys that are not, as long as fewer than `most` are under way. */
  decodeFirst(keys, most) {
    for (const key of keys) {
      if (this.busy >= most) return;
      const frame = this.frames.get(key);
      if (!frame.decoding && !this.bitmaps.has(key)) this.decode(key, frame);
    }
  }

  async decode(key, frame) {
    this.busy += 1;
    frame.decoding = true;
    const bitmap = await createImageBitmap(frame.blob).catch(() => null);
    this.busy -= 1;
    frame.decoding = false;
    const current = this.frames.get(key) === frame;
    if (!bitmap) {
      // A broken picture is as good as none.
      if (current) this.drop(key);
    } else if (current && this.hand !== null) {
      this.bitmaps.set(key, bitmap);
      for (const old of this.bitmaps.keys()) {
        if (this.bitmaps.size <= this.maxDecoded) break;
        this.letGo(old);
      }
      this.onready(key);
    } else {
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
