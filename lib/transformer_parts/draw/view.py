"""The contract of a picture: built once, laid out once, then only the data of its artists changes."""

from abc import ABC, abstractmethod
from typing import Generic, Self, TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from transformer_parts.draw import frame, theme
from transformer_parts.draw.background import Backgrounds
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
