"""Both norms as maps of space: onto a sphere, and onto the circle where a plane cuts it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Polygon, Rectangle
from matplotlib.text import Text
from numpy.typing import ArrayLike, NDArray

from transformer_parts.draw import theme
from transformer_parts.draw.norms.bars import LAYER_NORM, RMS_NORM, Pair
from transformer_parts.draw.overlay import Word
from transformer_parts.draw.view import View
from transformer_parts.language import _


@dataclass(frozen=True)
class Space:
    """A vector of three channels on its way through both norms."""

    pair: Pair  # the vector, both outputs, the moments
    centered: NDArray  # (3,): x - μ, its projection on the plane perpendicular to (1, 1, 1)
    shifted: NDArray  # (N, 3): what RMSNorm makes of x + s·(1, 1, 1), for s from far below zero to far above
    azimuth: float  # azimuth, elevation: direction of the viewer, in degrees
    elevation: float


class NormSphereView(View[Space]):
    """The sphere of all vectors of RMS 1, the plane of mean 0, and the ways of x to both outputs.

    What lies behind the centre is dotted, and fainter where it is the sphere's net.  An arrow that is too long for the
    picture is cut within it, and has no head there.
    """

    size = (680, 470)
    radius = 3**0.5
    reach = 2.5
    #: Half the width and height of what vectors may fill: the rest is for their names.
    room = np.array([3.1, 2.15])
    ones = np.ones(3)
    quarter_turn = np.array([[0, -1], [1, 0]])

    def build(self) -> None:
        width = self.reach * self.size[0] / self.size[1]
        self.axes = self.fig.add_axes((0, 0, 1, 1), xlim=(-width, width), ylim=(-self.reach, self.reach))
        self.axes.set_axis_off()
        # Parallels and meridians about (1, 1, 1); the parallel at mean 0 is LayerNorm's circle.
        heights = self.radius * np.sin(np.radians([-60, -30, 30, 60]))
        across = circle(self.ones, 1.0, points=13)[:6]
        rings = [circle(self.ones, (self.radius**2 - height**2) ** 0.5, height, points=61) for height in heights]
        rings += [circle(normal, self.radius, points=61) for normal in across]
        gap = np.full((1, 3), np.nan)
        self._net = np.concatenate([part for ring in rings for part in (ring, gap)])
        self._equator = circle(self.ones, self.radius)

        self.axes.add_patch(Circle((0, 0), self.radius, facecolor="#f4f4f4", edgecolor="none", zorder=0))
        self.outline = self.moving(Circle((0, 0), self.radius, fill=False, edgecolor=theme.FAINT, zorder=1.8))
        self.axes.add_patch(self.outline)
        self.net = self._line("#d9d9d9", theme.THIN, "-", 1.5), self._line("#ebebeb", theme.THIN, "-", 1)
        self.disc = self.moving(Polygon(np.zeros((3, 2)), facecolor=LAYER_NORM, alpha=0.10, edgecolor="none", zorder=2))
        self.axes.add_patch(self.disc)
        self.equator = self._curve(LAYER_NORM, 1.5, 3)
        self.path = self._curve(RMS_NORM, 1.5, 3)
        self.coordinate_axes = [self._arrow(theme.FAINT, theme.THIN, 8, f"$x_{i}$") for i in (1, 2, 3)]
        self.ones_axis = self._line(theme.INK, theme.THIN, (0, (8, 3, 1, 3)))
        self.ones_symbol = self._text(r"$(1,1,1)$", theme.INK)
        self.drop = self._line(LAYER_NORM, theme.THIN, (0, (2, 2)))
        self.rays = [self._line(theme.INK, theme.THIN, (0, (2, 2))), self._line(LAYER_NORM, theme.THIN, (0, (2, 2)))]
        self.x_arrow = self._arrow(theme.INK, theme.LINE, 16, "$x$")
        self.centered_arrow = self._arrow(LAYER_NORM, theme.LINE, 12, r"$x-\mu$")
        window = Rectangle(-self.room, *(2 * self.room), transform=self.axes.transData)
        for line in (self.drop, *self.rays):
            line.set_clip_path(window)
        self.rms_point = self._point(RMS_NORM)
        self.layer_point = self._point(LAYER_NORM)
        self.shows = {
            "x": self.x_arrow,
            "centered": self.centered_arrow,
            "rms_norm": (self.rms_point,),
            "layer_norm": (self.layer_point,),
        }

    def _line(self, colour: str, width: float, dash: str | tuple, zorder: float = 4) -> Line2D:
        (line,) = self.axes.plot([], [], color=colour, linewidth=width, linestyle=dash, zorder=zorder)
        return self.moving(line)

    def _curve(self, colour: str, width: float, zorder: float) -> tuple[Line2D, Line2D]:
        return self._line(colour, width, "-", zorder), self._line(colour, width, (0, (1, 2)), zorder)

    def _text(self, symbol: str, colour: str) -> Text:
        text = self.axes.text(0, 0, symbol, color=colour, fontsize=theme.SYMBOL, ha="center", va="center", zorder=8)
        return self.moving(text)

    def _arrow(self, colour: str, width: float, head: float, symbol: str) -> tuple[FancyArrowPatch, Text]:
        arrow = FancyArrowPatch(
            (0, 0), (1, 1), shrinkA=0, shrinkB=0, color=colour, arrowstyle="-|>", mutation_scale=head,
            linewidth=width, zorder=5,
        )  # fmt: skip
        self.axes.add_patch(arrow)
        return self.moving(arrow), self._text(symbol, theme.INK if colour == theme.FAINT else colour)

    def _point(self, colour: str) -> Line2D:
        (point,) = self.axes.plot(
            [], [], ls="", marker=theme.MARKERS[colour], ms=10, color=colour, markeredgecolor=theme.INK, zorder=7
        )
        return self.moving(point)

    def update(self, data: Space) -> Self:
        to_screen = camera(data.azimuth, data.elevation).T
        for (front, back), curve in (
            (self.net, self._net),
            (self.equator, self._equator),
            (self.path, data.shifted),
        ):
            near, far = front_and_back(curve @ to_screen)
            front.set_data(*near.T)
            back.set_data(*far.T)
        self.disc.set_xy((self._equator @ to_screen)[:, :2])
        for arrow, end in zip(self.coordinate_axes, np.eye(3), strict=True):
            self._place(arrow, 2.15 * end @ to_screen)
        axis = 2.15 / 3**0.5 * self.ones @ to_screen
        self.ones_axis.set_data([-axis[0], axis[0]], [-axis[1], axis[1]])
        # End on, the axis is a point under the arrows, and its name would hide them.
        self.ones_symbol.set_visible(float(np.hypot(*axis[:2])) > 0.5)

        x, centered = data.pair.x @ to_screen, data.centered @ to_screen
        rms, layer = data.pair.rms_norm @ to_screen, data.pair.layer_norm @ to_screen
        self._place(self.x_arrow, x)
        self.ones_symbol.set_position(self._beside_x(axis[:2], x[:2]))
        self._place(self.centered_arrow, centered, beside=True)
        self.drop.set_data([x[0], centered[0]], [x[1], centered[1]])
        # Along its own direction each vector goes out to the sphere, or back to it.
        for ray, start, end in zip(self.rays, (x, centered), (rms, layer), strict=True):
            ray.set_data([start[0], end[0]], [start[1], end[1]])
        self.rms_point.set_data([rms[0]], [rms[1]])
        self.layer_point.set_data([layer[0]], [layer[1]])
        return self

    def grips(self, data):
        grips = {}
        for i in (0, 1):
            place = self.axis_ends(i, data.azimuth, data.elevation)
            if np.isfinite(place).all():
                grips[f"axis{i + 1}"] = self.grip(self.axes, *place)
        return grips

    @staticmethod
    def axis_ends(axis: int, azimuth: ArrayLike, elevation: ArrayLike) -> NDArray:
        """Return where the end of the first or second axis stands, (…, 2); infinite where it points away."""
        a, e = np.radians(azimuth) - axis * np.pi / 2, np.radians(elevation)
        ends = 2.15 * np.stack(np.broadcast_arrays(-np.sin(a), -np.sin(e) * np.cos(a)), axis=-1)
        return np.where((np.cos(a) > 1e-9)[..., None], ends, np.inf)

    def words(self, data):
        to_screen = camera(data.azimuth, data.elevation).T
        rms, layer = ((point @ to_screen)[:2] for point in (data.pair.rms_norm, data.pair.layer_norm))
        sides = ("left", "right") if rms[0] < layer[0] else ("right", "left")
        yield self.word(_("RMSNorm"), self.axes, *rms, RMS_NORM, sides[0])
        yield self.word(_("LayerNorm"), self.axes, *layer, LAYER_NORM, sides[1])
        for text, colour, height in (
            (_("grey sphere: RMS 1"), theme.FAINT, 0),
            (_("red circle: RMS 1 and mean 0"), LAYER_NORM, 1),
            (_("blue curve: x moved along (1, 1, 1)"), RMS_NORM, 2),
        ):
            yield Word(text, 8, self.size[1] - 50 + 19 * height, colour)

    def _place(self, arrow: tuple[FancyArrowPatch, Text], end: NDArray, *, beside: bool = False) -> None:
        body, text = arrow
        whole = bool((np.abs(end[:2]) <= self.room).all())
        end = self._within(end[:2])
        body.set_positions((0, 0), tuple(end))
        body.set_arrowstyle("-|>" if whole else "-")
        length = float(np.hypot(*end))
        body.set_visible(length > 1e-9)
        outward = end / length if length > 1e-9 else np.array([0.0, 1.0])
        if beside:
            text.set_visible(length > 0.25)
            text.set_position(tuple(0.6 * end + 0.25 * outward @ self.quarter_turn))
        else:
            text.set_position(tuple(end + 0.2 * outward))

    def _within(self, end: NDArray) -> NDArray:
        """Return `end`, or where the way to it from the centre leaves the room."""
        return end / max(1.0, float((np.abs(end) / self.room).max()))

    def _beside_x(self, axis: NDArray, x: NDArray) -> NDArray:
        """Return the place of the axis label: beyond the axis's end, or beside it where the arrow of x ends there."""
        x = self._within(x)

        def distance(place: NDArray) -> float:
            along = np.clip(place @ x / max(float(x @ x), 1e-12), 0, 1)
            return float(np.hypot(*(place - along * x)))

        if distance(1.12 * axis) > 0.35:
            return 1.12 * axis
        # Aside by more across than up, as the name is wider than it is high; where there is most room.
        aside = np.array([0.65, 0.35]) * (axis / max(float(np.hypot(*axis)), 1e-12) @ self.quarter_turn)
        names = [np.array(name.get_position()) for _, name in self.coordinate_axes]
        return max(
            (1.1 * axis + aside, 1.1 * axis - aside),
            key=lambda place: min(distance(place), *(float(np.hypot(*(place - name))) for name in names)),
        )


def camera(azimuth: float, elevation: float) -> NDArray[np.float64]:
    """Return the rotation (3, 3) whose rows are the screen's right, its up, and the direction towards the viewer.

    The viewer's azimuth is counted about the third axis, counter-clockwise from the first, its elevation from the plane
    of the first two, both in degrees.  ``points @ camera.T`` has screen coordinates and nearness as its columns.

    Examples
    --------
    >>> (camera(0, 0) @ [0.0, 1.0, 0.0]).tolist()
    [1.0, 0.0, 0.0]
    """
    (sin_a, sin_e), (cos_a, cos_e) = np.sin(np.radians([azimuth, elevation])), np.cos(np.radians([azimuth, elevation]))
    return np.array(
        [
            [-sin_a, cos_a, 0.0],
            [-sin_e * cos_a, -sin_e * sin_a, cos_e],
            [cos_e * cos_a, cos_e * sin_a, sin_e],
        ]
    )


def circle(normal: ArrayLike, radius: float, height: float = 0.0, points: int = 97) -> NDArray[np.float64]:
    """Return a closed circle about the axis `normal`, at `height` along it, shape (points, 3).

    Examples
    --------
    >>> circle([0, 0, 2.0], 1.0, 0.5, points=5).round(6)[:, 2].tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5]
    """
    normal = np.asarray(normal, dtype=np.float64)
    normal = normal / np.linalg.norm(normal)
    across = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    across /= np.linalg.norm(across)
    turn = np.linspace(0, 2 * np.pi, points)[:, None]
    return height * normal + radius * (np.cos(turn) * across + np.sin(turn) * np.cross(normal, across))


def front_and_back(curve: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split a curve in screen coordinates into the parts nearer to the viewer than the origin and further away.

    Both have all N points, with NaN, where a line breaks, in place of the other part's.

    Examples
    --------
    >>> front, back = front_and_back(np.array([[0.0, 1.0, 2.0], [1.0, 1.0, -2.0]]))
    >>> front.tolist(), back.tolist()
    ([[0.0, 1.0], [nan, nan]], [[nan, nan], [1.0, 1.0]])
    """
    near = curve[:, 2:] >= 0
    return np.where(near, curve[:, :2], np.nan), np.where(near, np.nan, curve[:, :2])
