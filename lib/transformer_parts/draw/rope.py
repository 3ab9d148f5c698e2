"""RoPE in one plane (query and key as arrows) and in all planes of a head (a clock for each pair)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.artists import ClockFaces
from transformer_parts.draw.view import View
from transformer_parts.language import _, plural


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
    #: The largest score that the lengths allow, 2.5²/√2, with some room: limits stand still while lengths change.
    most_score = 4.6

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
        self.curve_axes.set(ylim=(-self.most_score, self.most_score))
        (wave,) = self.curve_axes.plot([], [], color=theme.FAINT, linewidth=theme.THIN)
        (curve,) = self.curve_axes.plot([], [], color=theme.INK, linestyle="", marker="o", markersize=4)
        (mark,) = self.curve_axes.plot([], [], color=theme.THIRD, marker="D", markersize=9, markeredgecolor=theme.INK)
        self.wave, self.curve, self.mark = map(self.moving, (wave, curve, mark))
        self.shows = {
            "query": (self.query_arrow, self.query_symbol),
            "key": (self.key_arrow, self.key_symbol),
            "score": (self.mark,),
        }

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
        # Where the arrows nearly meet, their symbols stand on either side.
        apart = self._sideways(data.turned_query, data.turned_key)
        self._place(data.query, data.turned_query, data.query_angle, "query", apart)
        self._place(data.key, data.turned_key, data.key_angle, "key", -apart)
        self.limits(self.curve_axes, x=(data.offsets[0] - 0.5, data.offsets[-1] + 0.5))
        self.wave.set_data(data.wave_offsets, data.wave)
        self.curve.set_data(data.offsets, data.scores)
        self.mark.set_data([data.offset], [data.score])
        return self

    def grips(self, data):
        return {
            "query": self.grip(self.plane, *data.turned_query),
            "key": self.grip(self.plane, *data.turned_key),
            "offset": self.grip(self.curve_axes, data.offset, data.score, anywhere=True),
        }

    def words(self, data):
        names = ((_("query q"), data.query, theme.QUERY), (_("key k"), data.key, theme.KEY))
        for text, before, colour in names:
            yield self.word(text, self.plane, *before, colour, "right" if before[0] >= 0 else "left")
        turned = ((data.query_angle, 2.9, theme.QUERY), (data.key_angle, 2.5, theme.KEY))
        for angle, height, colour in turned:
            turns = int(abs(angle) / (2 * np.pi))
            if turns:
                text = plural("and {n} whole turn", "and {n} whole turns", turns)
                yield self.word(text, self.plane, -self.reach, height, colour)
        yield self.word(_("score"), self.curve_axes, data.offset, data.score, theme.THIRD, "above")

    @staticmethod
    def _sideways(query: NDArray, key: NDArray) -> float:
        """Return to which side of its arrow the query's symbol goes: 1 left, -1 right, 0 where the arrows are apart."""
        cross, dot = query[0] * key[1] - query[1] * key[0], float(query @ key)
        if dot <= 0 or abs(cross) > 0.45 * dot:
            return 0.0
        return -1.0 if cross >= 0 else 1.0

    def _place(self, before: NDArray, after: NDArray, angle: float, which: str, side: float) -> None:
        getattr(self, f"{which}_before").set_positions((0, 0), tuple(before))
        getattr(self, f"{which}_arrow").set_positions((0, 0), tuple(after))
        length = float(np.hypot(*after))
        start = float(np.arctan2(before[1], before[0]))
        # One arc, without the whole turns, which are said in words.
        turn = np.linspace(0, np.fmod(angle, 2 * np.pi), 65)
        radius = (0.35 if which == "query" else 0.28) * length
        getattr(self, f"{which}_arc").set_data(radius * np.cos(start + turn), radius * np.sin(start + turn))
        outward = after / length if length else np.array([1.0, 0.0])
        sideways = np.array([-outward[1], outward[0]])
        tip = np.clip(after + 0.55 * outward + 0.6 * side * sideways, -self.reach + 0.5, self.reach - 0.5)
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
