"""Losses of small decoders with one part exchanged each: over training, and by position."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MultipleLocator, NullLocator
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Word, apart
from transformer_parts.draw.view import View
from transformer_parts.language import _

USUAL, CHOSEN, SEEN = theme.FIRST, theme.SECOND, theme.THIRD


@dataclass(frozen=True)
class Losses:
    """Recorded losses of one seed, in nats."""

    variant: str  # which one is chosen
    steps: NDArray  # (evaluations,): training steps of the evaluations on held-out sequences
    look: int  # the present evaluation
    training: NDArray  # (evaluations − 1,): what training showed, averaged from each evaluation to the next
    # honest, usual (evaluations,): loss of the true next token over all positions: the chosen decoder, the usual one
    honest: NDArray
    usual: NDArray
    others: NDArray  # (variants, evaluations): the same of all
    names: tuple[str, ...]  # (variants,): what they are
    title: str  # what the chosen one is
    # honest_at, seen_at, usual_at (L,): by position at the present evaluation: of the chosen decoder, the same as
    # training sees it, and of the usual one
    honest_at: NDArray
    seen_at: NDArray
    usual_at: NDArray
    known_from: int  # the first position whose next token can be known
    uniform: float  # ln V, the loss of a uniform guess

    @property
    def least(self) -> float:
        """The least loss over all positions: ln V where nothing can be known, nothing elsewhere."""
        return self.uniform * self.known_from / len(self.honest_at)

    @property
    def differs(self) -> bool:
        """Whether what training sees differs from the loss of the true next token."""
        return bool(np.abs(self.seen_at - self.honest_at).max() > 2e-3)


class DecoderTrainingView(View[Losses]):
    """Above, the loss over the steps of training; below, by position, at the step of the dotted line.

    Blue circles: the usual decoder.  Red squares: the chosen one, on the true next token.  Gold triangles: the chosen
    one as its training sees it.  Dashed: ln V.  The scales are linear up to 4 and logarithmic beyond.
    """

    size = (680, 480)
    highest, linear_up_to = 20.0, 4.0

    def __init__(self, last_step: int, length: int, uniform: float, known_from: int, scale: float = 2.0):
        self._sizes = last_step, length, uniform, known_from
        super().__init__(scale)

    def build(self) -> None:
        last_step, length, uniform, known_from = self._sizes
        self.step_axes = self._axes(0.60, (-0.02 * last_step, 1.02 * last_step), uniform)
        self.position_axes = self._axes(0.10, (-0.8, length - 0.2), uniform)
        for axes, name in ((self.step_axes, "$n$"), (self.position_axes, "$t$")):
            axes.text(1.012, -0.02, name, transform=axes.transAxes, fontsize=theme.SYMBOL, color=theme.INK, va="center")
        self.step_axes.xaxis.set_major_locator(MultipleLocator(last_step / 4))
        self.position_axes.xaxis.set_major_locator(MultipleLocator(known_from + 1))
        least = uniform * known_from / length
        self.step_axes.axhline(least, color=theme.INK, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
        self.step_axes.text(
            1.012, least, rf"$\frac{{{known_from}}}{{{length}}}\ln V$",
            transform=self.step_axes.get_yaxis_transform(), fontsize=theme.SYMBOL, color=theme.INK, va="center",
        )  # fmt: skip
        self.position_axes.axvspan(known_from - 0.5, length, color=theme.GRID, alpha=0.45, zorder=0, linewidth=0)
        others = LineCollection([], colors=theme.FAINT, linewidths=theme.THIN, zorder=2)
        self.step_axes.add_collection(others, autolim=False)
        self.others = self.moving(others)
        (self.now,) = self.step_axes.plot([], [], color=theme.INK, linewidth=1.4, linestyle=(0, (1, 1.5)), zorder=2)
        self.moving(self.now)
        self.lines = {}
        for axes in (self.step_axes, self.position_axes):
            for colour, size, order in ((USUAL, 5, 4), (CHOSEN, 5, 5), (SEEN, 5.5, 3)):
                (line,) = axes.plot(
                    [], [], color=colour, marker=theme.MARKERS[colour], markersize=size, linewidth=1.6, zorder=order
                )
                self.lines[axes, colour] = self.moving(line)

    def _axes(self, bottom: float, x: tuple[float, float], uniform: float) -> Axes:
        axes = theme.style(self.fig.add_axes((0.085, bottom, 0.665, 0.385)), y=r"$\mathcal{L}$")
        axes.set_yscale("symlog", linthresh=self.linear_up_to, linscale=2)
        axes.set(xlim=x, ylim=(-0.2, self.highest))
        axes.set_yticks([0, 1, 2, 3, 4, 10, 20], ["0", "1", "2", "3", "4", "10", "20"])
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_label_coords(-0.06, 0.5)
        axes.axhline(uniform, color=theme.INK, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
        axes.text(1.012, uniform, r"$\ln V$", transform=axes.get_yaxis_transform(), fontsize=theme.SYMBOL, va="center")
        return axes

    def update(self, data: Losses) -> Self:
        middles = (data.steps[1:] + data.steps[:-1]) / 2
        positions = np.arange(len(data.honest_at))
        show_seen = data.differs
        for (axes, colour), line in self.lines.items():
            above = axes is self.step_axes
            x, y = {
                USUAL: (data.steps, data.usual) if above else (positions, data.usual_at),
                CHOSEN: (data.steps, data.honest) if above else (positions, data.honest_at),
                SEEN: (middles, data.training) if above else (positions, data.seen_at),
            }[colour]
            if (colour == SEEN and not show_seen) or (colour == CHOSEN and data.variant == "usual"):
                x, y = [], []
            line.set_data(x, np.minimum(y, self.highest))
        self.others.set_segments([np.stack([data.steps, np.minimum(row, self.highest)], axis=1) for row in data.others])
        self.now.set_data([data.steps[data.look]] * 2, [-0.2, self.highest])
        return self

    def grips(self, data):
        return {"step": self.grip(self.step_axes, data.steps[data.look], 12, anywhere=True)}

    def words(self, data):
        ends = {name: losses[-1] for name, losses in zip(data.names, data.others, strict=True)}
        colours = {data.names[0]: USUAL} | ({data.title: CHOSEN} if data.variant != "usual" else {})
        if data.differs:
            seen = _("as training sees it")
            ends[seen], colours[seen] = data.training[-1], SEEN
        x = self.at(self.step_axes, data.steps[-1], 0)[0] + 63
        heights = {name: self.at(self.step_axes, 0, min(end, self.highest))[1] for name, end in ends.items()}
        yield from apart(Word(name, x, y, colours.get(name, theme.FAINT)) for name, y in heights.items())
        places = data.known_from / 2, (data.known_from + len(data.honest_at)) / 2
        for text, place in zip((_("cannot be known"), _("can be known")), places, strict=True):
            middle, top = self.at(self.position_axes, place - 0.5, self.highest)
            yield Word(text, middle, top - 8, theme.FAINT, "on")
        yield Word(_("uniform guess"), x, self.at(self.position_axes, 0, data.uniform)[1])
