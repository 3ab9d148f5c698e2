"""A renderer that notes what it is told to draw, in place of the one that fills pixels.

It is given the same paths, snapped to the same device pixels, and the same glyphs, and keeps them as SVG path data in
whole eighths of a device pixel.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby, islice
from types import MappingProxyType

import numpy as np
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_agg import RendererAgg, get_hinting_flag
from matplotlib.ft2font import FT2Font
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox, Transform
from numpy.typing import NDArray

from transformer_parts.draw import recorded_image
from transformer_parts.draw.svg_path import STEPS, path_data

_CAPS = MappingProxyType({"butt": "butt", "round": "round", "projecting": "square"})


class Numbered(dict):
    """Things and the numbers they got, in the order in which they came."""

    def number(self, thing: Hashable) -> int:
        """Return the number of a thing; a new thing gets the next."""
        return self.setdefault(thing, len(self))

    def after(self, count: int) -> list:
        """Return the things without the first `count`."""
        return list(islice(self, count, None))


class Drawings:
    """What the frames of one view have in common.

    Attributes
    ----------
    paths : Numbered; SVG path data, in eighths of a device pixel, downwards from the upper left
    styles : Numbered; (fill, stroke, width, dashes, dash offset, cap, join, clip): colours as in CSS or "", lengths
        in the paths' unit, the clip as the number of a path or -1
    images : Numbered; images as `recorded_image.encode` returns them
    parts : Numbered
        What one artist drew: a tuple of marks.  A mark is (path, style, x, y, …), the path drawn at each of the places,
        or (-1, image, x, y, width, height).
    """

    def __init__(self):
        self.paths, self.styles, self.images, self.parts = Numbered(), Numbered(), Numbered(), Numbered()


class Recorder(RendererAgg):
    """A renderer that notes what it is told to draw; texts are laid out as in pixels."""

    # Two of the methods below are matplotlib's private ones, as they are in 3.11: `_update_methods` and
    # `_draw_text_glyphs_and_boxes`, which 3.10 does not have.  With a later version,
    # compare their signatures and callers in backend_agg.py and backend_bases.py first; tests/draw/test_recording.py
    # compares what is recorded with the pixels.

    def __init__(self, width: int, height: int, dpi: float, drawings: Drawings):
        # Of pixels there are none: the renderer of pixels is asked about texts alone.
        super().__init__(1, 1, dpi)
        self.width, self.height, self.bbox = width, height, Bbox.from_bounds(0, 0, width, height)
        self._drawings = drawings
        self._marks: list[tuple] = []
        self._glyphs: dict[tuple, str] = {}
        self._boxes: dict[tuple[int, ...], int] = {}  # clip boxes, with the numbers of their paths
        # The page counts from the top.
        self._down = Affine2D().scale(1, -1).translate(0, height)

    def _update_methods(self) -> None:
        """Leave the drawing methods to this class; RendererAgg would put those of its pixels over them."""

    def take(self) -> int:
        """Return the number of what was drawn since the last call."""
        number = self._drawings.parts.number(tuple(self._marks))
        self._marks = []
        return number

    def draw_path(self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace=None) -> None:
        outline = self._outline(path, transform + self._down, gc, clip=rgbFace is None)
        if not outline:
            return
        if gc.get_hatch():
            self._draw_hatched(gc, outline, rgbFace)
        else:
            self._mark(outline, self._style(gc, rgbFace))

    def draw_markers(self, gc, marker_path, marker_trans, path, trans, rgbFace=None) -> None:
        down = marker_trans + Affine2D().scale(1, -1)
        outline = self._outline(marker_path, down, gc)
        places = (trans + self._down).transform(path.vertices)
        # The renderer of pixels sets every marker on the centre of a pixel: by the marker's own outline if it snaps.
        places = np.floor(places[np.isfinite(places).all(axis=1)] + 0.5)
        centre = (
            0 if gc.get_snap() is not False and outline != self._outline(marker_path, down, gc, snap=False) else 0.5
        )
        self._mark(outline, self._style(gc, rgbFace), STEPS * (places + centre))

    def draw_path_collection(
        self, gc, master_transform, paths, all_transforms, offsets, offset_trans, facecolors, edgecolors,
        linewidths, linestyles, antialiaseds, urls, offset_position, *, hatchcolors=None,
    ) -> None:  # fmt: skip
        if not len(paths):
            return
        places = offset_trans.transform(offsets) if len(offsets) else np.zeros((1, 2))
        count = max(len(paths), len(all_transforms), len(places))
        styles: dict[tuple, int] = {}
        marks = []
        for i in range(count):
            x, y = places[i % len(places)]
            look = tuple(i % len(of) if len(of) else -1 for of in (facecolors, edgecolors, linewidths, linestyles))
            if look not in styles:
                styles[look] = self._collection_style(gc, look, facecolors, edgecolors, linewidths, linestyles)
            if not (math.isfinite(x) and math.isfinite(y)) or styles[look] is None:
                continue
            transform = master_transform
            if len(all_transforms):
                transform = Affine2D(all_transforms[i % len(all_transforms)]) + transform
            marks.append((styles[look], paths[i % len(paths)], transform, x, y))
        self._mark_all(gc, marks)

    def _collection_style(self, gc, look, facecolors, edgecolors, linewidths, linestyles) -> int | None:
        """Return the number of the style of one item of a collection, None where it would not be seen."""
        face, edge, width, dashes = look
        context = self.new_gc()
        context.copy_properties(gc)
        fill = None if face < 0 or facecolors[face][3] == 0 else facecolors[face]
        if edge < 0 or edgecolors[edge][3] == 0:
            context.set_linewidth(0)
        else:
            context.set_foreground(tuple(edgecolors[edge]), isRGBA=True)
            context.set_linewidth(linewidths[width] if width >= 0 else gc.get_linewidth())
        if dashes >= 0:
            context.set_dashes(*linestyles[dashes])
        return self._style(context, fill) if fill is not None or context.get_linewidth() else None

    def _mark_all(self, gc: GraphicsContextBase, marks: list[tuple]) -> None:
        """Draw the items of a collection; those of one style that follow one another share what they can."""
        outlines: dict[tuple, str] = {}
        for style, group in groupby(marks, key=lambda mark: mark[0]):
            shapes: list[tuple[str, float, float]] = []
            for _style, path, transform, x, y in group:
                if path.codes is not None and ((path.codes == Path.CURVE3) | (path.codes == Path.CURVE4)).any():
                    # A path with curves is not set on whole pixels: it is the same wherever it is.
                    key = (id(path), transform.get_matrix().tobytes())
                    if key not in outlines:
                        down = Affine2D(transform.get_matrix()) + Affine2D().scale(1, -1)
                        outlines[key] = self._outline(path, down, gc, snap=False)
                    shapes.append((outlines[key], x, self.height - y))
                else:
                    there = Affine2D(transform.get_matrix()).translate(x, y) + self._down
                    shapes.append((self._outline(path, there, gc), 0, 0))
            for outline, places in groupby(shapes, key=lambda shape: shape[0]):
                if outline:
                    self._mark(outline, style, [[round(STEPS * x), round(STEPS * y)] for _outline, x, y in places])

    def draw_image(self, gc: GraphicsContextBase, x: float, y: float, im: NDArray, transform=None) -> None:
        height, width = im.shape[:2]
        # Rows are counted from the bottom.
        number = self._drawings.images.number(recorded_image.encode(im[::-1]))
        self._marks.append((-1, number, round(x), round(self.height - y - height), width, height))

    def draw_cells(self, x: int, y: int, width: int, height: int, cells: NDArray[np.uint8], colours: NDArray) -> None:
        """Draw a heat map, whose cells have numbers of colours, in a box of whole pixels."""
        number = self._drawings.images.number(recorded_image.encode_cells(cells, colours, width, height))
        self._marks.append((-1, number, x, self.height - y - height, width, height))

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None) -> None:
        if hasattr(RendererAgg, "_draw_text_glyphs_and_boxes"):
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
        else:
            # matplotlib 3.10 gives no glyphs away: each text is one outline, without hinting.
            self._draw_text_as_path(gc, x, y, s, prop, angle, ismath)

    def _draw_text_glyphs_and_boxes(self, gc, x, y, angle, glyphs, boxes) -> None:
        turn = math.radians(angle)
        cos, sin = math.cos(turn), math.sin(turn)
        style = self._drawings.styles.number((_colour(gc.get_rgb(), gc), "", *_NO_LINE, self._clip(gc)))
        for font, size, index, slant, extend, dx, dy in glyphs:
            key = (font.fname, size, index, slant, extend, angle)
            if key not in self._glyphs:
                self._glyphs[key] = self._glyph(font, size, index, np.array([[extend, extend * slant], [0, 1]]), turn)
            if self._glyphs[key]:
                place = (x + dx * cos - dy * sin, y - dx * sin - dy * cos)
                self._mark(self._glyphs[key], style, [[round(STEPS * value) for value in place]])
        for dx, dy, width, height in boxes:
            width, height = max(width, 1), max(height, 1)
            corners = Path(
                [(dx, dy), (dx + width, dy), (dx + width, dy + height), (dx, dy + height), (dx, dy)], closed=True
            )
            context = self.new_gc()
            context.copy_properties(gc)
            context.set_linewidth(0)
            self.draw_path(context, corners, Affine2D().rotate(turn).translate(x, self.height - y), gc.get_rgb())

    def _glyph(self, font: FT2Font, size: float, index: int, matrix: NDArray, turn: float) -> str:
        font.set_size(size, self.dpi)
        font.load_glyph(index, flags=get_hinting_flag())
        vertices, codes = font.get_path()
        outline = Path(vertices @ matrix.T, codes).transformed(Affine2D().rotate(turn).scale(1, -1))
        return path_data(outline.vertices, outline.codes) if len(vertices) else ""

    def _draw_hatched(self, gc: GraphicsContextBase, outline: str, face) -> None:
        number = self._drawings.paths.number(outline)
        fill, _, *line = self._drawn_style(gc, face)
        edge = self._drawn_style(gc, None)
        self._mark(outline, self._drawings.styles.number((fill, "", *line)))
        # A tile of the hatching has the size of an inch; all tiles together are clipped by the outline.
        tile = gc.get_hatch_path()
        across, down = (range(math.ceil(size / self.dpi)) for size in (self.width, self.height))
        shape = path_data(tile.vertices * [self.dpi, -self.dpi], tile.codes)
        places = [(STEPS * self.dpi * i, STEPS * self.dpi * (j + 1)) for j in down for i in across]
        width = STEPS * self.points_to_pixels(gc.get_hatch_linewidth())
        colour = _colour(gc.get_hatch_color(), gc)
        style = (colour, colour, round(width, 2), (), 0, "butt", "miter", number)
        self._mark(shape, self._drawings.styles.number(style), np.round(places))
        self._mark(outline, self._drawings.styles.number(edge))

    def _mark(self, outline: str, style: int, places: NDArray | Iterable = ((0, 0),)) -> None:
        flat = (int(value) for place in places for value in place)
        self._marks.append((self._drawings.paths.number(outline), style, *flat))

    def _style(self, gc: GraphicsContextBase, face) -> int:
        return self._drawings.styles.number(self._drawn_style(gc, face))

    def _drawn_style(self, gc: GraphicsContextBase, face) -> tuple:
        fill = "" if face is None else _colour(face, gc)
        width = STEPS * self.points_to_pixels(gc.get_linewidth())
        if not width:
            return (fill, "", *_NO_LINE, self._clip(gc))
        offset, dashes = gc.get_dashes()
        pixels = STEPS * self.points_to_pixels(1)
        line = (
            round(width, 2),
            tuple(round(float(dash) * pixels, 2) for dash in (() if dashes is None else dashes)),
            round(float(offset or 0) * pixels, 2),
            _CAPS[gc.get_capstyle()],
            gc.get_joinstyle(),
        )
        return (fill, _colour(gc.get_rgb(), gc), *line, self._clip(gc))

    def _clip(self, gc: GraphicsContextBase) -> int:
        path, transform = gc.get_clip_path()
        box = gc.get_clip_rectangle()
        if path is not None:
            clip = path.cleaned(transform + self._down, curves=True)
            outline = path_data(clip.vertices, clip.codes)
        elif box is not None:
            # To whole pixels, as the renderer of pixels clips.
            left, bottom, right, top = edges = tuple(math.floor(edge + 0.5) for edge in box.extents)
            if edges not in self._boxes:
                corners = np.array([(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)], float)
                outline = path_data(corners * [1, -1] + [0, self.height], Path(corners, closed=True).codes)
                self._boxes[edges] = self._drawings.paths.number(outline)
            return self._boxes[edges]
        else:
            return -1
        return self._drawings.paths.number(outline)

    def _outline(
        self, path: Path, transform: Transform, gc: GraphicsContextBase, *, clip: bool = False, snap: bool = True
    ) -> str:
        cleaned = path.cleaned(
            transform,
            remove_nans=True,
            clip=(0, 0, self.width, self.height) if clip else None,
            stroke_width=self.points_to_pixels(gc.get_linewidth()),
            snap=gc.get_snap() if snap else False,
            curves=True,
        )
        return path_data(cleaned.vertices, cleaned.codes)


_NO_LINE = (0, (), 0, "butt", "miter")


def _colour(colour: Sequence[float], gc: GraphicsContextBase) -> str:
    red, green, blue = (round(255 * part) for part in colour[:3])
    alpha = gc.get_alpha() if len(colour) == 3 or gc.get_forced_alpha() else colour[3]
    return f"#{red:02x}{green:02x}{blue:02x}" + (f"{round(255 * alpha):02x}" if alpha < 1 else "")
