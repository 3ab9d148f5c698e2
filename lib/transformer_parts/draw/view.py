"""The contract of a picture: built once, laid out once, then only the data of its artists changes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Self, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from transformer_parts.draw import frame, theme
from transformer_parts.draw.background import Backgrounds
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.settings import drawing

Data = TypeVar("Data")

CSS_DPI = 100
#: Device pixels per CSS pixel: serves ordinary and high-resolution screens alike.
SCALE = 2.0


class View(ABC, Generic[Data]):
    """One figure whose moving artists are redrawn over a cached background.

    A concept's view builds its axes and artists in `build` and sets their data in `update`.  Artists that `update`
    changes are made by ``self.moving(...)``; everything else is drawn once and kept as the background.  `update` sets
    every moving artist from the data alone, so that a frame is a function of the data, whatever was drawn before.

    `scale` is the number of device pixels per CSS pixel.
    `background_version` counts the changes of what does not move.
    """

    size = (680, 420)  # width and height in CSS pixels

    def __init__(self, scale: float = SCALE):
        self._moving: list[Artist] = []
        #: Moving artists by the name of what they show; rows and terms of that name light up with them.
        self.shows: dict[str, tuple[Artist, ...]] = {}
        self._backgrounds = Backgrounds()
        self.background_version = 0
        self._make(CSS_DPI * scale)

    @drawing
    def _make(self, dpi: float) -> None:
        width, height = self.size
        self.fig = Figure(figsize=(width / CSS_DPI, height / CSS_DPI), dpi=dpi, facecolor=theme.PAPER)
        self._canvas = FigureCanvasAgg(self.fig)
        self.build()

    @abstractmethod
    def build(self) -> None:
        """Make the axes and the artists, once."""

    @abstractmethod
    def update(self, data: Data) -> Self:
        """Set the data of every moving artist and return the view."""

    def moving(self, artist: Artist) -> Artist:
        """Take an artist out of the background, to be redrawn in every frame, and return it."""
        artist.set_animated(True)
        self._moving.append(artist)
        return artist

    @property
    def moving_artists(self) -> list[Artist]:
        """The artists that move, from back to front."""
        return sorted(self._moving, key=Artist.get_zorder)

    def limits(self, axes: Axes, *, x: tuple[float, float] | None = None, y: tuple[float, float] | None = None) -> None:
        """Set the limits of axes; a background is kept for each of the last settings of them all."""
        for wanted, present, change in ((x, axes.get_xlim(), axes.set_xlim), (y, axes.get_ylim(), axes.set_ylim)):
            if wanted is not None and tuple(wanted) != tuple(present):
                change(wanted)

    def grips(self, data: Data) -> Mapping[str, Grip]:
        """Return where a hand can take hold of the picture, by the name of the handle (see `explore.handles`).

        Called after `update`.  A handle that has no place at present is left out.
        """
        return {}

    def words(self, data: Data) -> Sequence[Word]:
        """Return the words that lie over the picture, after `update`."""
        return ()

    def at(self, axes: Axes, x: ArrayLike, y: ArrayLike) -> NDArray:
        """Return where points of axes stand in the picture, (…, 2): CSS pixels from its upper left corner."""
        axes.apply_aspect()
        points = np.stack(np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float)), axis=-1)
        # matplotlib counts from the lower left corner, in device pixels.
        places = axes.transData.transform(points.reshape(-1, 2)) * (CSS_DPI / self.fig.dpi)
        return (places * [1, -1] + [0, self.size[1]]).reshape(points.shape)

    def grip(self, axes: Axes, x: float, y: float, *, anywhere: bool = False, down_to: Axes | None = None) -> Grip:
        """Return a grip at a point of axes; a hand that comes down `anywhere` in the axes takes it, too.

        With `down_to`, what lies from these axes down to the end of others takes it as well.
        """
        if not anywhere:
            return Grip(*self.at(axes, x, y))
        corners = self.at(axes, axes.get_xlim(), axes.get_ylim()[::-1])
        if down_to is not None:
            corners[1, 1] = self.at(down_to, down_to.get_xlim()[0], down_to.get_ylim()[0])[1]
        return Grip(*self.at(axes, x, y), _box(corners))

    def box(self, axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> tuple[int, ...]:
        """Return the part of the picture between two corners in axes, as a grip has it."""
        return _box(self.at(axes, x, y))

    def word(
        self, text: str, axes: Axes, x: float, y: float, colour: str = theme.INK, side: str = "right", up: float = 0
    ) -> Word:
        """Return a word at a point of axes, moved `up` by CSS pixels."""
        across, down = self.at(axes, x, y)
        return Word(text, across, down - up, colour, side)

    def redraw_background(self) -> None:
        """Have the next frame redraw its background, after a change to anything that does not move."""
        self._backgrounds.clear()
        self.background_version += 1

    @drawing
    def frame(self, data: Data) -> bytes:
        """Return the picture of the data, encoded for the page (see `frame.LIVE_FORMAT`)."""
        self._draw(data)
        return frame.live(self._canvas)

    @drawing
    def still(self, data: Data) -> bytes:
        """Return the picture of the data as a lossless PNG."""
        self._draw(data)
        return frame.still(self._canvas)

    def _draw(self, data: Data) -> None:
        self.update(data)
        look = tuple((*axes.get_xlim(), *axes.get_ylim()) for axes in self.fig.axes)
        if not self._backgrounds.restore(look, self._canvas):
            self._canvas.draw()
            self._backgrounds.keep(look, self._canvas)
        renderer = self._canvas.get_renderer()
        for artist in self.moving_artists:
            artist.draw(renderer)


def _box(corners: NDArray) -> tuple[int, ...]:
    """Return left, top, width and height of what lies between two corners of the picture."""
    return tuple(map(round, map(float, (*corners.min(axis=0), *np.ptp(corners, axis=0)))))
