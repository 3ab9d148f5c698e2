// The frames of one slider, in the page before the hand moves, and the canvas that shows them.
//
//     const store = new FrameStore();
//     await store.put(key, packed, about);             // a picture and what goes with it: {numbers, along, size}
//     const screen = new Screen(canvas, store, key => …);   // called after each painting
//     screen.begin(key);                               // what the page shows as the hand arrives
//     screen.show(key);                                // as the hand moves
//     screen.hide();                                   // what lies under the canvas is right
//
// A key is the whole number of a value's place on the slider: neighbours on the slider have near keys.
//
// A picture comes as runs of one colour (see ../../draw/pixel_runs.py), the first one whole, the others as what differs
// from it, and is painted from them in about a millisecond: nothing is decoded while the hand moves, and nothing but the
// runs is kept.  With it go `numbers`, the HTML of its table, `along`, the places of other controls that move along, and
// with the first one its `size` in pixels.

const SAME = 0; // in place of a colour: as in the first picture

/** The runs of a picture as they were packed: four bytes of each colour, then two of each length. */
async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const count = buffer.byteLength / 6;
  return { colours: new Uint32Array(buffer, 0, count), lengths: new Uint16Array(buffer, 4 * count, count) };
}

/** Pictures and their tables by key. */
export class FrameStore {
  constructor() {
    this.onput = () => {}; // called when a picture has come
    this.clear();
  }

  /** Keep a picture. Those that come one after the other are kept one after the other. */
  put(key, bytes, { size, ...about }) {
    const { frames } = this;
    const picture = unpacked(bytes);
    this.arrival = this.arrival.then(async () => {
      const runs = await picture;
      // The store may have been cleared meanwhile.
      if (frames !== this.frames) return;
      frames.set(key, { ...runs, ...about });
      if (size) this.begin(runs, size);
      this.onput();
    });
    return this.arrival;
  }

  begin(runs, [width, height]) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    fill(this.pixels, runs);
    this.first = this.pixels.slice();
  }

  has(key) {
    return this.frames.has(key);
  }

  /** What goes with a picture. */
  about(key) {
    return this.frames.get(key);
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

  /** The picture of a key, until the next one is asked for. */
  picture(key) {
    this.pixels.set(this.first);
    fill(this.pixels, this.frames.get(key));
    return this.image;
  }

  /** Forget everything. */
  clear() {
    this.frames = new Map(); // key → {colours, lengths, numbers, along}
    this.image = this.pixels = this.first = null;
    this.arrival = Promise.resolve();
  }
}

/** Paint runs over pixels. */
function fill(pixels, { colours, lengths }) {
  let start = 0;
  for (let i = 0; i < colours.length; i += 1) {
    const end = start + lengths[i];
    if (colours[i] !== SAME) {
      if (lengths[i] < 8) for (let at = start; at < end; at += 1) pixels[at] = colours[i];
      else pixels.fill(colours[i], start, end);
    }
    start = end;
  }
}

/** A canvas that shows, while it is in use, the stored picture nearest to the one that is wanted. */
export class Screen {
  constructor(canvas, store, onpaint = () => {}) {
    Object.assign(this, { canvas, store, onpaint });
    this.shown = null; // the key whose picture the page shows
    this.wanted = null;
    canvas.hidden = true;
    store.onput = () => this.paint();
  }

  /** The hand has come: the page shows the picture of this key. */
  begin(key) {
    this.shown = this.wanted = key;
  }

  /** Show a key's picture, or the nearest on the way to it until that one is here. */
  show(key) {
    this.wanted = key;
    this.shown ??= key;
    this.paint();
  }

  /** Uncover what is under the canvas. */
  hide() {
    this.canvas.hidden = true;
    this.shown = this.wanted;
  }

  paint() {
    if (this.wanted === null) return;
    const key = this.store.onTheWay(this.shown, this.wanted);
    if (key === undefined || key === this.shown) return;
    const { canvas } = this;
    const picture = this.store.picture(key);
    if (canvas.width !== picture.width || canvas.height !== picture.height) {
      canvas.width = picture.width;
      canvas.height = picture.height;
    }
    canvas.getContext("2d", { alpha: false }).putImageData(picture, 0, 0);
    canvas.hidden = false;
    this.shown = key;
    this.onpaint(key);
  }
}
