"""Training runs with and without a measure: the loss, and one more quantity that is watched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word, apart
from transformer_parts.draw.view import View
from transformer_parts.language import _

TAKEN, LEFT = theme.FIRST, theme.SECOND


@dataclass(frozen=True)
class Curve:
    """One quantity of one run."""

    steps: NDArray  # (N,): where its points are
    loss: NDArray  # loss, watched (N,): the loss, and the other quantity
    watched: NDArray
    band: tuple[NDArray, NDArray] | None = None  # where the quantity has a spread: its lower and upper quantile


@dataclass(frozen=True)
class Runs:
    """Runs with a measure and without it."""

    taken: tuple[Curve, ...]  # taken, left: the chosen run first; others (other seeds, or the run before) after it
    left: tuple[Curve, ...]
    guess: float  # the loss of equal logits, ln V
    last: int  # the last step of a whole run
    symbol: str  # the quantity's, in mathtext
    logarithmic: bool  # scale of the quantity
    limits: tuple[float, float]  # of the quantity
    highest_loss: float  # of the loss's axis
    place: int | None = None  # the step whose numbers are in the table
    line: float | None = None  # a level of the quantity to compare with (the norm that gradients are clipped to)
    words: str = ""  # the quantity's name, for the table


class RunsView(View[Runs]):
    """Above the loss, dotted that of a guess; below the quantity; blue with the measure, red without.

    The chosen run is thick and has a marker at the place; others are thin.
    """

    size = (680, 460)
    most = 5
    width = 0.885

    def build(self) -> None:
        self.loss_axes = self._axes(0.575, r"$\mathcal{L}$")
        self.watched_axes = self._axes(0.115, "")
        self.loss_axes.tick_params(labelbottom=False)
        self.watched_axes.set_xlabel("$t$", fontsize=theme.SYMBOL, labelpad=-1)
        self.symbol = self.watched_axes.texts[0]
        self.guess = self._line(self.loss_axes, theme.INK, linestyle=":")
        self.line = self._line(self.watched_axes, theme.INK, linestyle=(0, (4, 2)), linewidth=theme.THIN)
        self.places = [self._line(axes, theme.INK, linewidth=theme.THIN) for axes in self._both]
        self.bands = {
            colour: self.moving(
                self.watched_axes.fill_between([0.0], [0.0], [0.0], color=colour, alpha=0.2, linewidth=0)
            )
            for colour in (LEFT, TAKEN)
        }
        self.curves = {
            (axes, colour): [
                self._line(axes, colour, linewidth=theme.LINE if i == 0 else theme.THIN, alpha=1 if i == 0 else 0.55)
                for i in range(self.most)
            ]
            for axes in self._both
            for colour in (LEFT, TAKEN)
        }
        self.marks = {
            (axes, colour): self._line(axes, colour, marker=theme.MARKERS[colour], markersize=8)
            for axes in self._both
            for colour in (LEFT, TAKEN)
        }
        self._logarithmic: bool | None = None
        self.shows = {
            name: tuple(
                line for axes in self._both for line in (self.curves[axes, colour][0], self.marks[axes, colour])
            )
            for name, colour in (("taken", TAKEN), ("left", LEFT))
        }

    @property
    def _both(self) -> tuple[Axes, Axes]:
        return self.loss_axes, self.watched_axes

    def _axes(self, bottom: float, symbol: str) -> Axes:
        axes = theme.style(self.fig.add_axes((0.095, bottom, self.width, 0.355)))
        axes.text(0.0, 1.03, symbol, fontsize=theme.SYMBOL, color=theme.INK, transform=axes.transAxes)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        return axes

    def _line(self, axes: Axes, colour: str, **look) -> Line2D:
        (line,) = axes.plot([], [], color=colour, **{"linewidth": theme.LINE} | look)
        return self.moving(line)

    def update(self, data: Runs) -> Self:
        self._scale(data.logarithmic)
        if self.symbol.get_text() != data.symbol:
            self.symbol.set_text(data.symbol)
            self.redraw_background()
        ends = (-0.01 * data.last, 1.01 * data.last)
        self.limits(self.loss_axes, x=ends, y=(0, data.highest_loss))
        self.limits(self.watched_axes, x=ends, y=data.limits)
        self.guess.set_data(ends, [data.guess] * 2)
        self.line.set_data(ends, [np.nan if data.line is None else data.line] * 2)
        for place, axes in zip(self.places, self._both, strict=True):
            place.set_data(
                [] if data.place is None else [data.place] * 2, [] if data.place is None else axes.get_ylim()
            )
        for colour, runs in ((LEFT, data.left), (TAKEN, data.taken)):
            self._band(colour, runs)
            for axes, name in ((self.loss_axes, "loss"), (self.watched_axes, "watched")):
                for i, line in enumerate(self.curves[axes, colour]):
                    line.set_data(*((runs[i].steps, getattr(runs[i], name)) if i < len(runs) else ([], [])))
                self._mark(self.marks[axes, colour], runs, name, data.place)
        return self

    def _scale(self, logarithmic: bool) -> None:
        if logarithmic == self._logarithmic:
            return
        self._logarithmic = logarithmic
        self.watched_axes.set_autoscaley_on(False)
        self.watched_axes.set_ylim(0.1, 10)  # whatever it was may not do for a logarithm
        self.watched_axes.set_yscale("log" if logarithmic else "linear")
        if logarithmic:
            self.watched_axes.yaxis.set_major_locator(LogLocator(10, numticks=12))
            self.watched_axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            self.watched_axes.yaxis.set_major_locator(MaxNLocator(5))
        self.redraw_background()

    def _band(self, colour: str, runs: tuple[Curve, ...]) -> None:
        if runs and runs[0].band is not None and len(runs[0].steps):
            self.bands[colour].set_data(runs[0].steps, *runs[0].band)
        else:
            self.bands[colour].set_data([0.0], [np.nan], [np.nan])

    def _mark(self, mark: Line2D, runs: tuple[Curve, ...], name: str, place: int | None) -> None:
        if not runs or not len(runs[0].steps):
            mark.set_data([], [])
            return
        at = -1 if place is None else int(np.searchsorted(runs[0].steps, place))
        if at >= len(runs[0].steps):  # the run ended before
            mark.set_data([], [])
        else:
            mark.set_data([runs[0].steps[at]], [getattr(runs[0], name)[at]])


class NamedRunsView(RunsView):
    """The same with the names of the lines on the right."""

    width = 0.745

    def grips(self, data):
        return {"step": self.grip(self.loss_axes, data.place, 0.9 * data.highest_loss, anywhere=True)}

    def words(self, data):
        yield from self._names(data, self.loss_axes, "loss", {_("a guess"): data.guess})
        levels = {} if data.line is None else {_("clipped to here"): data.line}
        yield from self._names(data, self.watched_axes, "watched", levels)

    def _names(self, data: Runs, axes: Axes, name: str, levels: Mapping[str, float]) -> Iterator[Word]:
        """Name the chosen runs at their ends and the levels at the right edge."""
        colours = {_("with"): TAKEN, _("without"): LEFT}
        ends = dict(levels)
        for text, runs in zip(colours, (data.taken, data.left), strict=True):
            values = getattr(runs[0], name)
            values = values[np.isfinite(values)]
            if len(values):
                ends[text] = values[-1]
        low, high = axes.get_ylim()
        x = self.at(axes, data.last, low)[0] + 10
        heights = {text: self.at(axes, 0, np.clip(end, low, high))[1] for text, end in ends.items()}
        yield from apart(Word(text, x, y, colours.get(text, theme.INK)) for text, y in heights.items())
