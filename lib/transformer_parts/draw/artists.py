"""A heat map that fills its axes, coloured and enlarged to device pixels by table look-ups.

Matplotlib's own image resamples whatever it draws: for 64 x 600 cells that took 10 ms a frame, look-ups take 2.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import EllipseCollection, LineCollection, PathCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, IdentityTransform, Transform
from numpy.typing import ArrayLike, NDArray

from transformer_parts.draw import theme


class HeatMap(Artist):
    """Cells around zero, in the diverging colours of the theme, the first row on top.

    The cells fill the axes, whatever their limits are.
    """

    def __init__(self, axes: Axes):
        super().__init__()
        colours = colormaps[theme.DIVERGING](np.linspace(0, 1, 255), bytes=True)
        self._table = np.ascontiguousarray(colours).view(np.uint32).ravel()
        self._cells = np.zeros((1, 1), np.uint8)
        axes.add_artist(self)

    def set_cells(self, cells: NDArray, largest: float) -> None:
        """Show `cells`, shape (rows, columns), on a scale from -`largest` to `largest`.

        The colour goes with the square root of the size, so that a small cell beside a large one is still seen.
        """
        size = np.minimum(np.abs(cells) / (largest or 1.0), 1.0)
        scaled = np.copysign(100 * np.sqrt(size), cells) + 127.5
        self._cells = scaled.astype(np.uint8)
        self.stale = True

    @property
    def colours(self) -> NDArray[np.uint32]:
        """The colour of each cell, red, green, blue and alpha as the bytes of one number."""
        return self._table[self._cells]

    def draw(self, renderer: RendererBase) -> None:
        """Draw every cell as a rectangle of whole device pixels."""
        box = self.axes.bbox
        left, bottom, right, top = (round(edge) for edge in box.extents)
        size = top - bottom, right - left
        self.stale = False
        if hasattr(renderer, "draw_cells"):
            renderer.draw_cells(left, bottom, right - left, top - bottom, self._cells, self._table)
            return
        # The renderer counts rows from the bottom.
        rows, columns = (np.arange(n) * have // n for n, have in zip(size, self._cells.shape, strict=True))
        pixels = self.colours[np.ix_(rows[::-1], columns)].view(np.uint8).reshape(*size, 4)
        context = renderer.new_gc()
        renderer.draw_image(context, left, bottom, pixels)
        context.restore()


class NumberMarks(PathCollection):
    """Numbers from 0 to below `count`, each centred on its place.

    Places may lie outside the axes.  They are given in `coordinates`, by default as fractions of its width and height.
    """

    def __init__(self, axes: Axes, count: int, coordinates: Transform | None = None):
        super().__init__(
            [],
            offsets=np.empty((0, 2)),
            offset_transform=coordinates or axes.transAxes,
            facecolor=theme.INK,
            linewidth=0,
        )
        self._shapes = tuple(_centred(str(number)) for number in range(count))
        self.set_transform(Affine2D().scale(axes.figure.dpi / 72))
        self.set_clip_on(False)
        axes.add_collection(self, autolim=False)

    def set_numbers(self, numbers: ArrayLike, places: ArrayLike) -> None:
        """Show `numbers`, shape (N,), at `places`, shape (N, 2); there are marks for 0 … count − 1."""
        if any(not 0 <= number < len(self._shapes) for number in numbers):
            raise ValueError(f"numbers: got {list(numbers)}, want 0 to {len(self._shapes) - 1}")
        self.set_paths([self._shapes[number] for number in numbers])
        self.set_offsets(places)


def _centred(text: str) -> Path:
    path = TextPath((0, 0), text, size=theme.TEXT)
    return path.transformed(Affine2D().translate(*-path.get_extents().get_points().mean(axis=0)))


_CHARACTERS = "0123456789.−"
_WIDTHS = MappingProxyType({".": 0.5, "−": 1.25})  # of a digit's
_ON_LIGHT, _ON_DARK = to_rgba(theme.INK), to_rgba(theme.PAPER)
#: The widest number that is written out; beyond it, digits would leave their cell.
WIDEST = 5


class CellNumbers(PathCollection):
    """Numbers centred on places, each white or dark as the cell beneath it asks for.

    Places are fractions of the width and height of `axes`.
    """

    def __init__(self, axes: Axes):
        super().__init__([], offsets=np.empty((0, 2)), offset_transform=IdentityTransform(), linewidth=0)
        shapes = [TextPath((0, 0), character, size=theme.TEXT - 1) for character in _CHARACTERS]
        self._pixels = axes.figure.dpi / 72
        self._advance = TextPath((0, 0), "00", size=theme.TEXT - 1).get_extents().width / 2 * 1.04 * self._pixels
        down = Affine2D().translate(0, -shapes[0].get_extents().height / 2).scale(self._pixels)
        self._shapes = {c: down.transform_path(shape) for c, shape in zip(_CHARACTERS, shapes, strict=True)}
        self.set_transform(IdentityTransform())
        axes.add_collection(self, autolim=False)

    def set_values(self, values: NDArray, places: NDArray, light: NDArray) -> None:
        """Show `values` (N,) at `places` (N, 2), in white where `light` (N,) is true."""
        paths, offsets, colours = [], [], []
        for value, (x, y), on_dark in zip(
            values.tolist(), self.axes.transAxes.transform(places).tolist(), light.tolist(), strict=True
        ):
            text = written(value)
            widths = [self._advance * _WIDTHS.get(character, 1.0) for character in text]
            x -= sum(widths) / 2
            for character, width in zip(text, widths, strict=True):
                paths.append(self._shapes[character])
                offsets.append((x, y))
                colours.append(_ON_DARK if on_dark else _ON_LIGHT)
                x += width
        self.set_paths(paths or [Path(np.empty((0, 2)))])
        self.set_offsets(np.reshape(offsets, (-1, 2)))
        self.set_facecolor(colours or "none")


def written(value: float) -> str:
    """Return the text of a number in a cell: two decimals, fewer where it is long.

    Examples
    --------
    >>> written(-0.456), written(-0.001), written(-12.34), written(1234.5)
    ('−0.46', '0.00', '−12.3', '1234')
    """
    for decimals in (2, 1, 0):
        text = f"{round(value, decimals) + 0.0:.{decimals}f}"
        if len(text) <= WIDEST:
            break
    return text.replace("-", "−")


TINTS = LinearSegmentedColormap.from_list("clock faces", ["#cfcfcf", theme.PAPER, "#f3dc9c"])
QUERY_LENGTH, KEY_LENGTH = 0.42, 0.3


class ClockFaces:
    """Clocks of width 0.9 at given places, tinted from grey (−1) over white to gold (1).

    Places are in the data units of `axes`; `moving` is `View.moving` of the view.
    """

    def __init__(self, axes: Axes, moving: Callable[[Artist], Artist]):
        faces = EllipseCollection(
            [], [], [], units="xy", offsets=np.empty((0, 2)), offset_transform=axes.transData,
            edgecolor=theme.FAINT, linewidth=theme.THIN, cmap=TINTS, clim=(-1, 1), zorder=1,
        )  # fmt: skip
        axes.add_collection(faces, autolim=False)
        self.faces = moving(faces)
        self.key_hands, self.query_hands = (
            moving(
                axes.add_collection(
                    LineCollection([], colors=colour, linewidths=width, capstyle="round", zorder=3), autolim=False
                )
            )
            for colour, width in ((theme.KEY, 4.5), (theme.QUERY, 2.0))
        )

    def set_clocks(
        self,
        centres: NDArray,
        query_angles: NDArray,
        key_angles: NDArray,
        tints: NDArray,
        *,
        query_lengths: ArrayLike = 1.0,
        key_lengths: ArrayLike = 1.0,
    ) -> None:
        """Show clocks at `centres`, shape (P, 2); angles in radians, lengths of the hands from 0 to 1."""
        count = len(centres)
        self.faces.set(widths=np.full(count, 0.9), heights=np.full(count, 0.9), angles=np.zeros(count))
        self.faces.set_offsets(centres)
        self.faces.set_array(tints)
        for hands, angles, lengths in (
            (self.query_hands, query_angles, QUERY_LENGTH * np.asarray(query_lengths)),
            (self.key_hands, key_angles, KEY_LENGTH * np.asarray(key_lengths)),
        ):
            tips = centres + np.atleast_1d(lengths)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
            hands.set_segments(np.stack([centres, tips], axis=1))


class Envelope(NamedTuple):
    """A curve over columns of equal width, no point left out."""

    middles: NDArray  # (N,): the middle of each column
    lowest: NDArray  # lowest, mean, highest (N,): of the values in each column
    mean: NDArray
    highest: NDArray


def window_of(count: int, columns: int) -> int:
    """Return the width, in points, with which `count` points fill at most `columns` columns.

    Examples
    --------
    >>> window_of(129, 600), window_of(8193, 600)
    (1, 14)
    """
    return -(-count // columns)


def envelope(first: float, values: ArrayLike, window: int) -> Envelope:
    """Return the envelope of values at `first`, `first` + 1, …, over columns of `window` values.

    The last column may hold fewer values; it is as wide as the others.

    Examples
    --------
    >>> envelope(-1, [1.0, 5.0, 2.0], 2)
    Envelope(middles=array([-0.5,  1.5]), lowest=array([1., 2.]), mean=array([3., 2.]), highest=array([5., 2.]))
    """
    values = np.asarray(values)
    starts = np.arange(0, len(values), window)
    return Envelope(
        middles=first + starts + (window - 1) / 2,
        lowest=np.minimum.reduceat(values, starts),
        mean=np.add.reduceat(values, starts) / np.diff(starts, append=len(values)),
        highest=np.maximum.reduceat(values, starts),
    )
