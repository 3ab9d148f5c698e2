// Draws recorded frames (see draw/recording.py) on a canvas, at the resolution of the screen and in the page's colours.
//
//     const painter = new Painter(canvas, drawings, {width, height, pixelRatio});
//     painter.fit(width);                              // in pixels of the page; at once and when it changes
//     painter.paint(frame);                            // now, in about a millisecond
//
// `drawings` holds what frames share: paths, styles, images and parts; it may grow. A frame is two lists of parts to
// draw: those of the background, which is drawn once and copied as long as it stays, and those that move.

// Steps of a recorded coordinate in one recorded pixel, and the code of an image's first colour.
const STEPS = 8;
const FIRST = 35;
const MOST_OUTLINES = 20_000;
const DIM = 0.22; // how much is left of what is not meant
const GHOST = 0.16; // and of what was there before
const MARGIN = 6; // pixels of the page beside a line that still meet it

/** A canvas and the drawings of one view, recorded at `pixelRatio` pixels for each pixel of the page. */
export class Painter {
  constructor(canvas, drawings, { width, height, pixelRatio }) {
    Object.assign(this, { canvas, drawings, size: [width, height], pixelRatio, dark: false });
    this.background = { parts: null, canvas: document.createElement("canvas") };
    this.outlines = new Map(); // number of a path → Path2D
    this.pictures = new Map(); // number of an image → canvas
    this.fit(width);
  }

  /** Take as many pixels as the screen has for a picture so wide; return whether that changes anything. */
  fit(shown, ratio = globalThis.devicePixelRatio || 1) {
    const [width, height] = this.size;
    const scale = ((shown || width) * ratio) / width;
    const pixels = [Math.round(width * scale), Math.round(height * scale)];
    if (this.scale && this.canvas.width === pixels[0] && this.canvas.height === pixels[1]) return false;
    for (const canvas of [this.canvas, this.background.canvas]) [canvas.width, canvas.height] = pixels;
    this.scale = pixels[0] / (width * this.pixelRatio);
    this.background.parts = null;
    return true;
  }

  /** Turn lightness over, or not; return whether that changes anything. */
  setDark(dark) {
    if (dark === this.dark) return false;
    this.dark = dark;
    this.background.parts = null;
    this.pictures.clear();
    return true;
  }

  /** Forget what was drawn with other drawings. */
  begin(drawings) {
    this.drawings = drawings;
    this.background.parts = null;
    this.outlines.clear();
    this.pictures.clear();
  }

  /** Draw a frame: over the parts of a `ghost`, faintly; of what moves only the parts with `lit` places in full. */
  paint([background, moving], { lit = null, ghost = [] } = {}) {
    if (this.background.parts !== background.join()) {
      const context = this.background.canvas.getContext("2d");
      context.fillStyle = this.colour("#ffffff");
      context.fillRect(0, 0, this.canvas.width, this.canvas.height);
      for (const part of background) this.draw(context, part);
      this.background.parts = background.join();
    }
    const context = this.canvas.getContext("2d");
    context.drawImage(this.background.canvas, 0, 0);
    for (const [place, part] of ghost.entries()) if (part !== moving[place]) this.draw(context, part, GHOST);
    for (const [place, part] of moving.entries()) this.draw(context, part, !lit || lit.includes(place) ? 1 : DIM);
  }

  /** The last of some places of a frame's moving parts whose marks are at a point, in pixels of the picture. */
  meets([, moving], places, [x, y]) {
    const context = this.canvas.getContext("2d");
    const at = [x * this.pixelRatio * this.scale, y * this.pixelRatio * this.scale];
    return places.findLast((place) => this.drawings.parts[moving[place]].some((mark) => this.isAt(context, mark, at)));
  }

  isAt(context, [outline, style, ...places], at) {
    if (outline < 0) return false;
    const [fill, , width] = this.drawings.styles[style];
    const path = this.outline(outline);
    let isAt = false;
    for (let i = 0; i < places.length && !isAt; i += 2) {
      context.save();
      context.scale(this.scale / STEPS, this.scale / STEPS);
      context.translate(places[i], places[i + 1]);
      context.lineWidth = width + 2 * MARGIN * STEPS * this.pixelRatio;
      isAt = context.isPointInStroke(path, ...at) || (fill && context.isPointInPath(path, ...at));
      context.restore();
    }
    return isAt;
  }

  draw(context, part, alpha = 1) {
    context.globalAlpha = alpha;
    for (const [outline, ...rest] of this.drawings.parts[part]) {
      if (outline < 0) this.drawImage(context, ...rest);
      else this.drawPath(context, outline, ...rest);
    }
    context.globalAlpha = 1;
  }

  drawPath(context, outline, style, ...places) {
    const [fill, stroke, width, dashes, dashOffset, cap, join, clip] = this.drawings.styles[style];
    const path = this.outline(outline);
    context.save();
    context.scale(this.scale / STEPS, this.scale / STEPS);
    if (clip >= 0) context.clip(this.outline(clip));
    if (fill) context.fillStyle = this.colour(fill);
    if (stroke) {
      context.strokeStyle = this.colour(stroke);
      Object.assign(context, { lineWidth: width, lineCap: cap, lineJoin: join, miterLimit: 4 });
      context.setLineDash(dashes);
      context.lineDashOffset = dashOffset;
    }
    let [x, y] = [0, 0];
    for (let i = 0; i < places.length; i += 2) {
      context.translate(places[i] - x, places[i + 1] - y);
      [x, y] = [places[i], places[i + 1]];
      if (fill) context.fill(path);
      if (stroke) context.stroke(path);
    }
    context.restore();
  }

  drawImage(context, image, x, y, width, height) {
    context.save();
    context.imageSmoothingEnabled = false;
    const { scale } = this;
    context.drawImage(this.picture(image), x * scale, y * scale, width * scale, height * scale);
    context.restore();
  }

  outline(number) {
    let path = this.outlines.get(number);
    if (!path) {
      if (this.outlines.size >= MOST_OUTLINES) this.outlines.clear();
      path = new Path2D(this.drawings.paths[number]);
      this.outlines.set(number, path);
    }
    return path;
  }

  picture(number) {
    if (!this.pictures.has(number)) {
      // Images are large; a few are enough for the way there and back.
      if (this.pictures.size >= 8) this.pictures.delete(this.pictures.keys().next().value);
      const [cells, widths, heights, colours] = this.drawings.images[number];
      this.pictures.set(number, enlarged(cells, widths, heights, colours.map((colour) => this.colour(colour))));
    }
    return this.pictures.get(number);
  }

  colour(name) {
    return this.dark ? inDark(name) : name;
  }
}

const dark = new Map();

/** A colour for a dark page: lightness turned over and the hue kept, as `invert(.933) hue-rotate(180deg)` in CSS. */
export function inDark(name) {
  if (!dark.has(name)) {
    const [red, green, blue] = [1, 3, 5].map((at) => 0.933 - (0.866 * parseInt(name.slice(at, at + 2), 16)) / 255);
    const turned = [
      -0.574 * red + 1.43 * green + 0.144 * blue,
      0.426 * red + 0.43 * green + 0.144 * blue,
      0.426 * red + 1.43 * green - 0.856 * blue,
    ].map((part) => Math.round(255 * Math.min(1, Math.max(0, part))));
    dark.set(name, `#${turned.map((part) => part.toString(16).padStart(2, "0")).join("")}${name.slice(7)}`);
  }
  return dark.get(name);
}

/** An image of cells as a canvas in which each column and row has its width and height. */
function enlarged(cells, widths, heights, colours) {
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const [width, height] = [sum(widths), sum(heights)];
  const values = colours.map((colour) => parseInt(colour.slice(1).padEnd(8, "f"), 16));
  const pixels = new DataView(new ArrayBuffer(4 * width * height));
  let [cell, offset] = [0, 0];
  for (const rows of heights) {
    const start = offset;
    for (const columns of widths) {
      const value = values[cells.charCodeAt(cell) - FIRST];
      for (let i = 0; i < columns; i += 1, offset += 4) pixels.setUint32(offset, value);
      cell += 1;
    }
    const row = new Uint8Array(pixels.buffer, start, offset - start);
    for (let i = 1; i < rows; i += 1, offset += row.length) new Uint8Array(pixels.buffer).set(row, offset);
  }
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), 0, 0);
  return canvas;
}
