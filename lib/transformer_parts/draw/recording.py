"""Frames as drawings: what matplotlib draws is kept as paths and colours, which a page paints itself.

A `Recorder` takes the place of the renderer that fills pixels.  A frame of a moving curve then takes hundreds of bytes
instead of tens of thousands, is painted in a millisecond, and is sharp at any size.

What frames share is kept once: a path, a style, an image and everything that one artist drew have a number each, and
a frame is a list of numbers.
"""

from collections.abc import Hashable, Iterable, Iterator

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from transformer_parts.draw.appearance import appearance
from transformer_parts.draw.recorder import Drawings, Recorder
from transformer_parts.draw.settings import drawing
from transformer_parts.draw.view import View

#: How many looks of an artist are remembered with their drawings.
KEPT = 8


class Recording:
    """Records the frames of a view into `drawings`.

    Parameters
    ----------
    view : View; whose frames are recorded; it may draw pixels as well
    """

    def __init__(self, view: View):
        self.view, self.drawings = view, Drawings()
        width, height = view.fig.canvas.get_width_height(physical=True)
        self._recorder = Recorder(width, height, view.fig.dpi, self.drawings)
        # What each part of the background looks like at its limits, until the view asks for new ones.
        self._backgrounds: dict[tuple, int] = {}
        self._version = view.background_version
        # For each moving artist, what it looked like lately and the number of its drawing.
        self._lately: dict[Artist, dict[Hashable, int]] = {}

    @drawing
    def frame(self, data: object) -> tuple[tuple[int, ...], ...]:
        """Return a frame: the numbers of the parts of the background, then those of the moving artists, back to front.

        An artist that looks as it did lately is not drawn again.
        """
        self.view.update(data)
        if self._version != self.view.background_version:
            self._version = self.view.background_version
            self._backgrounds.clear()
        limits = tuple((*axes.get_xlim(), *axes.get_ylim()) for axes in self.view.fig.axes)
        moving = (self._moved(artist, limits) for artist in self.view.moving_artists)
        return tuple(self._background()), tuple(moving)

    def _background(self) -> Iterator[int]:
        """Yield the numbers of the parts of the background, from back to front; each is drawn once for its limits."""
        fig = self.view.fig
        yield self._still(fig.patch)
        for artist in _ordered(fig.get_children(), fig.patch):
            if not isinstance(artist, Axes):
                yield self._still(artist)
                continue
            artist.apply_aspect()
            x, y = artist.get_xlim(), artist.get_ylim()
            limits = {artist.xaxis: x, artist.yaxis: y}
            if artist.axison and artist.get_frame_on():
                yield self._still(artist.patch)
            hidden = {*(() if artist.axison else limits)}
            if not (artist.axison and artist.get_frame_on()):
                hidden.update(artist.spines.values())
            for part in _ordered(artist.get_children(), artist.patch):
                if part not in hidden:
                    yield self._still(part, *limits.get(part, (*x, *y)))

    def _still(self, artist: Artist, *limits: float) -> int:
        key = (artist, *limits)
        if key not in self._backgrounds:
            self._backgrounds[key] = self._draw(artist)
        return self._backgrounds[key]

    def _moved(self, artist: Artist, limits: tuple) -> int:
        lately, look = self._lately.setdefault(artist, {}), (limits, appearance(artist))
        if look not in lately:
            if len(lately) >= KEPT:
                del lately[next(iter(lately))]
            lately[look] = self._draw(artist)
        return lately[look]

    def _draw(self, artist: Artist) -> int:
        try:
            artist.draw(self._recorder)
        finally:
            # What was drawn before an error is not the next artist's.
            number = self._recorder.take()
        return number


def _ordered(artists: Iterable[Artist], patch: Artist) -> list[Artist]:
    """Return those of some artists that do not move, without the patch behind them, from back to front."""
    return sorted((a for a in artists if a is not patch and not a.get_animated()), key=Artist.get_zorder)
