"""RoPE in one plane (query and key as arrows) and in all planes of a head (a clock for each pair)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import ClockFaces
from transformer_parts.draw.view import View


@dataclass(frozen=True)
class Plane:
    """Query and key before and after their rotations, and the score they make at every offset."""

    query: NDArray  # query, key, turned_query, turned_key (2,): the four vectors
    key: NDArray
    turned_query: NDArray
    turned_key: NDArray
    query_angle: float  # query_angle, key_angle: by how much each was turned, in radians
    key_angle: float
    offsets: NDArray  # offsets, scores (N,): the score at whole offsets n - m
    scores: NDArray
    wave_offsets: NDArray  # wave_offsets, wave (N',): the cosine that runs through them
    wave: NDArray
    offset: float  # offset, score: the place on that curve
    score: float


class RopePlaneView(View[Plane]):
    """Left, the plane with both arrows and the angles they were turned by; right, the score against the offset."""

    size = (680, 400)
    reach = 3.2

    def build(self) -> None:
        self.plane = theme.style(self.fig.add_axes((0.06, 0.09, 0.50, 0.85)))
        self.plane.set(xlim=(-self.reach, self.reach), ylim=(-self.reach, self.reach), aspect="equal")
        self.plane.set_xticks(range(-3, 4))
        self.plane.set_yticks(range(-3, 4))
        self.plane.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.plane.axvline(0, color=theme.FAINT, linewidth=theme.THIN)
        self.query_before, self.query_arrow, self.query_arc, self.query_symbol = self._arrow(
            theme.QUERY, r"$R(m\theta)\,q$"
        )
        self.key_before, self.key_arrow, self.key_arc, self.key_symbol = self._arrow(theme.KEY, r"$R(n\theta)\,k$")

        self.curve_axes = theme.style(self.fig.add_axes((0.66, 0.15, 0.32, 0.76)), x="$n-m$", y="$s$")
        self.curve_axes.axhline(0, color=theme.FAINT, linewidth=theme.THIN)
        (wave,) = self.curve_axes.plot([], [], color=theme.FAINT, linewidth=theme.THIN)
        (curve,) = self.curve_axes.plot([], [], color=theme.INK, linestyle="", marker="o", markersize=4)
        (mark,) = self.curve_axes.plot([], [], color=theme.THIRD, marker="D", markersize=9, markeredgecolor=theme.INK)
        self.wave, self.curve, self.mark = map(self.moving, (wave, curve, mark))

    def _arrow(self, colour: str, symbol: str) -> tuple:
        ends = {"posA": (0, 0), "posB": (1, 1), "shrinkA": 0, "shrinkB": 0, "color": colour}
        before = FancyArrowPatch(**ends, arrowstyle="-|>", mutation_scale=10, linewidth=theme.THIN, linestyle=":")
        after = FancyArrowPatch(**ends, arrowstyle="-|>", mutation_scale=16, linewidth=theme.LINE)
        self.plane.add_patch(before)
        self.plane.add_patch(after)
        (arc,) = self.plane.plot([], [], color=colour, linewidth=theme.THIN)
        text = self.plane.text(0, 0, symbol, color=colour, fontsize=theme.SYMBOL, ha="center", va="center")
        return tuple(map(self.moving, (before, after, arc, text)))

    def update(self, data: Plane) -> Self:
        self._place(data.query, data.turned_query, data.query_angle, "query")
        self._place(data.key, data.turned_key, data.key_angle, "key")
        span = max(1.0, 1.05 * float(np.abs(data.wave).max()))
        # Steps of one half keep the scale still under a moving hand.
        span = np.ceil(2 * span) / 2
        self.limits(self.curve_axes, x=(data.offsets[0] - 0.5, data.offsets[-1] + 0.5), y=(-span, span))
        self.wave.set_data(data.wave_offsets, data.wave)
        self.curve.set_data(data.offsets, data.scores)
        self.mark.set_data([data.offset], [data.score])
        return self

    def _place(self, before: NDArray, after: NDArray, angle: float, which: str) -> None:
        getattr(self, f"{which}_before").set_positions((0, 0), tuple(before))
        getattr(self, f"{which}_arrow").set_positions((0, 0), tuple(after))
        length = float(np.hypot(*after))
        start = float(np.arctan2(before[1], before[0]))
        # A turn of many rounds is drawn as a spiral, so that rounds can be counted.
        turn = np.linspace(0, angle, 8 + int(16 * min(abs(angle), 40)))
        radius = (0.35 if which == "query" else 0.28) * length * (1 + 0.04 * np.abs(turn) / np.pi)
        getattr(self, f"{which}_arc").set_data(radius * np.cos(start + turn), radius * np.sin(start + turn))
        outward = after / length if length else np.array([1.0, 0.0])
        tip = np.clip(after + 0.42 * outward, -self.reach + 0.5, self.reach - 0.5)
        getattr(self, f"{which}_symbol").set_position(tuple(tip))


@dataclass(frozen=True)
class Clocks:
    """The angle of each pair's two hands."""

    query_angles: NDArray  # query_angles, key_angles (P,): radians, counter-clockwise from the right
    key_angles: NDArray
    # (P,): cos of the angle between the hands: what the pair would add to the score of two unit hands
    alignment: NDArray
    inv_freq: NDArray  # (P,): radians per position


class RopeClocksView(View[Clocks]):
    """One clock for each pair of channels, the fastest first.

    The face is gold where the hands agree, white where they are at a right angle, grey where they oppose.
    """

    size = (680, 320)

    def build(self) -> None:
        self.axes = self.fig.add_axes((0.01, 0.01, 0.98, 0.98))
        self.axes.set_axis_off()
        self.axes.set(aspect="equal")
        self.clocks = ClockFaces(self.axes, self.moving)

    def update(self, data: Clocks) -> Self:
        pairs = len(data.alignment)
        columns = int(np.ceil(np.sqrt(pairs * self.size[0] / self.size[1])))
        rows = -(-pairs // columns)
        index = np.arange(pairs)
        centres = np.stack([index % columns, -(index // columns)], axis=-1).astype(float)
        width = max(columns, rows * self.size[0] / self.size[1])
        height = width * self.size[1] / self.size[0]
        middle = ((columns - 1) / 2, -(rows - 1) / 2)
        self.limits(
            self.axes,
            x=(middle[0] - width / 2, middle[0] + width / 2),
            y=(middle[1] - height / 2, middle[1] + height / 2),
        )
        self.clocks.set_clocks(centres, data.query_angles, data.key_angles, data.alignment)
        return self
