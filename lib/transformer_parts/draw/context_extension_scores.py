"""What an extension does to scores and to attention: both against the distance, before and after."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.envelope import Envelope
from transformer_parts.draw.view import View

# Up to how many distances are told apart by dots.
FEW = 32


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Scores of one query with equal keys at every distance, and the entropy of its attention over the nearest n.

    Attributes
    ----------
    before, after : Envelope
        The scores at distances 0, 1, … by columns: as trained, and extended (with the attention factor).
    counts : ndarray, shape (N,)
        Numbers n of keys that the entropies are drawn at.
    uniform, entropy_before, entropy_bare, entropy_after : ndarray, shape (N,)
        ln n, as trained, extended without and extended with the attention factor; in nats.
    trained_length, length : int
        L, and s·L.
    attention_factor : float
        Multiplies query and key.
    near : tuple of (float, float)
        The scores before and after at distances 0 and 1.
    entropies : tuple of float
        At s·L keys: as trained, extended without the factor, with it on the query alone, with it on query and key.
    entropy_trained : float
        At L keys, as trained.
    """

    before: Envelope
    after: Envelope
    counts: NDArray
    uniform: NDArray
    entropy_before: NDArray
    entropy_bare: NDArray
    entropy_after: NDArray
    trained_length: int
    length: int
    attention_factor: float
    near: tuple[tuple[float, float], ...]
    entropies: tuple[float, float, float, float]
    entropy_trained: float


class AttentionView(View[Attention]):
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


def _heights(parts: list[NDArray]) -> tuple[float, float]:
    """Return limits in coarse steps, so that the scale stands still under a moving hand."""
    low = min(0.0, *(float(part.min()) for part in parts))
    high = max(0.5, *(float(part.max()) for part in parts))
    step = 2.0 ** np.floor(np.log2((high - low) / 5))
    return step * np.floor(low / step - 0.1), step * np.ceil(high / step + 0.1)
