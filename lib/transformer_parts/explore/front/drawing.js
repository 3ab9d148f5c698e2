// Draws recorded frames (see draw/recording.py) on a canvas.
//
//     const painter = new Painter(canvas, drawings, {width, height, pixelRatio});
//     painter.paint(frame);                            // now, in about a millisecond
//
// `drawings` holds what frames share: paths, styles, images and parts. A frame is the list of the parts to draw, the
// background first; the background is drawn once and copied as long as it stays.

// Steps of a recorded coordinate in one recorded pixel, and the code of an image's first colour.
const STEPS = 8;
const FIRST = 35;

/** A canvas and the drawings of one view, recorded at `pixelRatio` pixels for each pixel of the page. */
export class Painter {
  constructor(canvas, drawings, { width, height, pixelRatio }) {
    Object.assign(this, { canvas, drawings, pixelRatio });
    // At least as many pixels as were recorded: lines then lie on whole pixels, as in the original.
    const ratio = Math.max(pixelRatio, window.devicePixelRatio || 1);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    this.scale = ratio / pixelRatio;
    this.background = { number: null, canvas: new OffscreenCanvas(canvas.width, canvas.height) };
    this.outlines = new Map(); // number of a path → Path2D
    this.pictures = new Map(); // number of an image → canvas
  }

  /** Draw a frame. */
  paint([background, ...parts]) {
    if (this.background.number !== background) {
      const context = this.background.canvas.getContext("2d");
      context.fillStyle = "#ffffff";
      context.fillRect(0, 0, this.canvas.width, this.canvas.height);
      this.draw(context, background);
      this.background.number = background;
    }
    const context = this.canvas.getContext("2d");
    context.drawImage(this.background.canvas, 0, 0);
    for (const part of parts) this.draw(context, part);
  }

  draw(context, part) {
    for (const [outline, ...rest] of this.drawings.parts[part]) {
      if (outline < 0) this.drawImage(context, ...rest);
      else this.drawPath(context, outline, ...rest);
    }
  }

  drawPath(context, outline, style, ...places) {
    const [fill, stroke, width, dashes, dashOffset, cap, join, clip] = this.drawings.styles[style];
    const path = this.outline(outline);
    context.save();
    context.scale(this.scale / STEPS, this.scale / STEPS);
    if (clip >= 0) context.clip(this.outline(clip));
    if (fill) context.fillStyle = fill;
    if (stroke) {
      Object.assign(context, { strokeStyle: stroke, lineWidth: width, lineCap: cap, lineJoin: join, miterLimit: 4 });
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
    if (!this.outlines.has(number)) this.outlines.set(number, new Path2D(this.drawings.paths[number]));
    return this.outlines.get(number);
  }

  picture(number) {
    if (!this.pictures.has(number)) {
      // Images are large; a few are enough for the way there and back.
      if (this.pictures.size >= 8) this.pictures.delete(this.pictures.keys().next().value);
      this.pictures.set(number, enlarged(this.drawings.images[number]));
    }
    return this.pictures.get(number);
  }
}

/** An image of cells as a canvas in which each column and row has its width and height. */
function enlarged([cells, widths, heights, colours]) {
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const [width, height] = [sum(widths), sum(heights)];
  const values = colours.map((colour) => parseInt(colour.slice(1), 16));
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
  const canvas = new OffscreenCanvas(width, height);
  canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), 0, 0);
  return canvas;
}
