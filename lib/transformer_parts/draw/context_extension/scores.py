"""Scores and the entropy of attention before and after an extension."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import Envelope
from transformer_parts.draw.overlay import apart
from transformer_parts.draw.view import View
from transformer_parts.language import _

# The largest number of distances that are shown as single dots.
FEW = 32


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Scores of one query with equal keys at every distance, and the entropy of its attention over the nearest n."""

    # before, after: the scores at distances 0, 1, … by columns: as trained, and extended (with the attention factor)
    before: Envelope
    after: Envelope
    counts: NDArray  # (N,): numbers n of keys that the entropies are drawn at
    # uniform, entropy_before, entropy_bare, entropy_after (N,): ln n, as trained, extended without and extended with
    # the attention factor; in nats
    uniform: NDArray
    entropy_before: NDArray
    entropy_bare: NDArray
    entropy_after: NDArray
    trained_length: int  # trained_length, length: L, and s·L
    length: int
    attention_factor: float  # multiplies query and key
    near: tuple[tuple[float, float], ...]  # the scores before and after at distances 0 and 1
    # at s·L keys: as trained, extended without the factor, with it on the query alone, with it on query and key
    entropies: tuple[float, float, float, float]
    entropy_trained: float  # at L keys, as trained


class ExtensionScoresView(View[Attention]):
    """Above, the score against the distance; below, the entropy of attention over all keys up to that distance.

    Black is the model as trained, blue the extended one, dashed without the attention factor; grey begins where
    training ended; the dotted line is the entropy of equal weights.
    """

    size = (680, 460)

    def build(self) -> None:
        self.score_axes = theme.style(self.fig.add_axes((0.10, 0.595, 0.88, 0.375)), y="$s$")
        self.score_axes.tick_params(labelbottom=False)
        self.score_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.entropy_axes = theme.style(self.fig.add_axes((0.10, 0.135, 0.88, 0.415)), x="$m-n$", y="$H$")
        for axes in (self.score_axes, self.entropy_axes):
            axes.yaxis.set_label_coords(-0.07, 0.5)
        self.unseen = [
            self.moving(axes.axvspan(0, 1, facecolor=theme.GRID, edgecolor="none", alpha=0.75, zorder=0.6))
            for axes in (self.score_axes, self.entropy_axes)
        ]
        self.reach_before = self._band(theme.INK, 0.22)
        self.reach_after = self._band(theme.FIRST, 0.35)
        self.score_before = self._line(self.score_axes, color=theme.INK, linewidth=theme.THIN, markersize=4)
        self.score_after = self._line(self.score_axes, color=theme.FIRST, linewidth=theme.LINE, markersize=5)
        self.uniform = self._line(self.entropy_axes, color=theme.INK, linewidth=theme.THIN, linestyle=":")
        self.entropy_before = self._line(self.entropy_axes, color=theme.INK, linewidth=theme.LINE)
        self.entropy_bare = self._line(self.entropy_axes, color=theme.FIRST, linewidth=theme.LINE, linestyle="--")
        self.entropy_after = self._line(self.entropy_axes, color=theme.FIRST, linewidth=theme.LINE)
        self.shows = {
            "before": (self.score_before, self.entropy_before), "bare": (self.entropy_bare,),
            "after": (self.score_after, self.entropy_after),
        }  # fmt: skip

    def _line(self, axes, **look):
        (line,) = axes.plot([], [], **look)
        return self.moving(line)

    def _band(self, colour: str, alpha: float):
        band = self.score_axes.fill_between([0.0], [0.0], [0.0], color=colour, alpha=alpha, linewidth=0)
        return self.moving(band)

    def update(self, data: Attention) -> Self:
        distances = data.counts - 1
        last = float(distances[-1])
        ends = (-0.01 * last, 1.01 * last)
        scores = [part for curve in (data.before, data.after) for part in (curve.lowest, curve.highest)]
        self.limits(self.score_axes, x=ends, y=_heights(scores))
        self.limits(self.entropy_axes, x=ends, y=(0, np.ceil(1.05 * data.uniform[-1])))
        for span in self.unseen:
            span.set(x=data.trained_length, width=max(0.0, ends[1] - data.trained_length))
        for curve, reach, line in (
            (data.before, self.reach_before, self.score_before),
            (data.after, self.reach_after, self.score_after),
        ):
            reach.set_data(curve.middles, curve.lowest, curve.highest)
            line.set_data(curve.middles, curve.mean)
            line.set_marker("o" if len(distances) <= FEW else "")
        for line, entropy in (
            (self.uniform, data.uniform),
            (self.entropy_before, data.entropy_before),
            (self.entropy_bare, data.entropy_bare),
            (self.entropy_after, data.entropy_after),
        ):
            line.set_data(distances, entropy)
        return self

    def grips(self, data):
        if data.trained_length > self.entropy_axes.get_xlim()[1]:
            return {}
        return {"factor": self.grip(self.entropy_axes, data.trained_length, 0, anywhere=True)}

    def words(self, data):
        left, right = self.entropy_axes.get_xlim()
        names = {
            _("equal weights"): (data.uniform, theme.INK),
            _("as trained"): (data.entropy_before, theme.INK),
            _("without the attention factor"): (data.entropy_bare, theme.FIRST),
            _("extended"): (data.entropy_after, theme.FIRST),
        }
        ends = (
            self.word(name, self.entropy_axes, right, line[-1], colour, "left", up=8)
            for name, (line, colour) in names.items()
        )
        yield from apart(ends, 15)
        if data.trained_length < 0.7 * right:
            text = _("grey: beyond training")
            yield self.word(text, self.score_axes, right, self.score_axes.get_ylim()[1], theme.FAINT, "left", up=-6)
        yield self.word(_("score"), self.score_axes, left, self.score_axes.get_ylim()[1], up=-6)
        yield self.word(_("entropy"), self.entropy_axes, left, self.entropy_axes.get_ylim()[1], up=-6)


def _heights(parts: list[NDArray]) -> tuple[float, float]:
    """Return limits in coarse steps, so that the scale keeps still during a drag."""
    low = min(0.0, *(float(part.min()) for part in parts))
    high = max(0.5, *(float(part.max()) for part in parts))
    step = 2.0 ** np.floor(np.log2((high - low) / 5))
    return step * np.floor(low / step - 0.1), step * np.ceil(high / step + 0.1)
