"""Artists that did not change are not drawn again; what is drawn is what a fresh recording of a fresh view draws."""

import gc
from collections import Counter
from collections.abc import Iterator

import ipywidgets as widgets
import numpy as np
import pytest
from explorer_page import drawn
from matplotlib import patches
from matplotlib.artist import Artist
from matplotlib.collections import EllipseCollection, LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox

from transformer_parts.draw.appearance import appearance
from transformer_parts.draw.artists import CellNumbers, HeatMap, NumberMarks
from transformer_parts.draw.recorder import Drawings, Recorder
from transformer_parts.draw.recording import KEPT, Recording
from transformer_parts.draw.view import View
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import bring, places
from transformer_parts.explore.rope_scores import RopeScores
from transformer_parts.explore.shots import Shots

# ---------------------------------------------------------------- what an artist looks like

SQUARE = [(0.1, 0.1), (0.4, 0.1), (0.4, 0.4), (0.1, 0.4)]


def heat_map(axes):
    artist = HeatMap(axes)
    artist.set_cells(np.array([[1.0, 0.0]]), 1.0)
    return artist


def heat_map_without_a_clip(axes):
    artist = heat_map(axes)
    artist.set_clip_box(None)
    return artist


def number_marks(axes):
    artist = NumberMarks(axes, 9)
    artist.set_numbers([1, 2], [(0.2, 0.2), (0.5, 0.5)])
    return artist


def cell_numbers(axes):
    artist = CellNumbers(axes)
    artist.set_values(np.array([1.0]), np.array([(0.5, 0.5)]), np.array([False]))
    return artist


MAKE = {
    "line": lambda axes: axes.plot([0, 1, 2], [0.1, 0.5, 0.2], marker="o")[0],
    "long line": lambda axes: axes.plot(np.linspace(0, 3, 4000), np.linspace(0, 1, 4000))[0],
    "text": lambda axes: axes.text(0.5, 0.5, "a"),
    "boxed text": lambda axes: axes.text(0.5, 0.5, "a", bbox={"facecolor": "red"}),
    "rectangle": lambda axes: axes.add_patch(patches.Rectangle((0.1, 0.1), 0.5, 0.5)),
    "circle": lambda axes: axes.add_patch(patches.Circle((0.5, 0.5), 0.2)),
    "polygon": lambda axes: axes.add_patch(patches.Polygon(SQUARE)),
    "arrow": lambda axes: axes.add_patch(patches.FancyArrowPatch((0, 0), (1, 1), arrowstyle="-|>")),
    "steps": lambda axes: axes.stairs([0.1, 0.5, 0.2], [0, 1, 2, 3]),
    "lines": lambda axes: axes.add_collection(LineCollection([[(0, 0), (1, 1)], [(0, 1), (1, 0)]]), autolim=False),
    "polygons": lambda axes: axes.add_collection(PolyCollection([SQUARE]), autolim=False),
    "filling": lambda axes: axes.fill_between([0, 1, 2], [0, 0, 0], [0.5, 0.1, 0.5]),
    "paths": lambda axes: axes.add_collection(PathCollection([Path(SQUARE)], offsets=[(0, 0)]), autolim=False),
    "ellipses": lambda axes: axes.add_collection(
        EllipseCollection(
            [0.2], [0.1], [0], units="xy", offsets=[(0.5, 0.5)], offset_transform=axes.transData, array=np.array([0.5]),
            clim=(-1, 1),
        ),
        autolim=False,
    ),
    "heat map": heat_map,
    "heat map without a clip": heat_map_without_a_clip,
    "numbers": number_marks,
    "cell numbers": cell_numbers,
}  # fmt: skip

ANY = {"alpha": 0.4, "visible": False, "transform": Affine2D().scale(90)}
LOOK = {"facecolor": "#123456", "edgecolor": "#654321", "linewidth": 7, "linestyle": "--", "hatch": "//"}
OF_LINES = {
    "color": "#123456", "linewidth": 7, "linestyle": ":",
    "marker": "s", "markersize": 9, "markeredgecolor": "red",
    "markerfacecolor": "red", "markeredgewidth": 3, "drawstyle": "steps", "solid_capstyle": "round", "markevery": 2,
    "dash_capstyle": "round", "solid_joinstyle": "miter", "fillstyle": "left", "xdata": [0, 1, 3], "ydata": [0, 1, 3],
    "data": ([3, 4], [1, 2]),
}  # fmt: skip
OF_TEXTS = {
    "text": "b", "position": (0.1, 0.9), "x": 0.2, "y": 0.2, "color": "red", "fontsize": 20, "rotation": 45,
    "ha": "right", "va": "top", "fontweight": "bold", "fontstyle": "italic", "fontfamily": "monospace",
    "bbox": {"facecolor": "blue", "pad": 2},
}  # fmt: skip
OF_COLLECTIONS = {"offsets": [(0.3, 0.3)], "facecolor": "#123456", "linewidth": 7, "linestyle": "--", "hatch": "//"}
CHANGES = {
    "line": OF_LINES,
    "long line": {"data": (np.linspace(0, 2, 4000), np.linspace(0, 1, 4000))},
    "text": OF_TEXTS,
    "boxed text": OF_TEXTS,
    "rectangle": LOOK | {
        "xy": (0, 0), "width": 0.1, "height": 0.1, "bounds": (0, 0, 1, 1), "angle": 30, "joinstyle": "round",
    },
    "circle": LOOK | {"center": (0.1, 0.1), "radius": 0.4},
    "polygon": LOOK | {"xy": SQUARE[:3], "closed": False},
    "arrow": LOOK | {"arrowstyle": "-", "connectionstyle": "arc3,rad=0.4", "mutation_scale": 20},
    "steps": LOOK,
    "lines": {
        "segments": [[(0, 0), (1, 0.5)]], "color": "#123456", "linewidth": 7, "linestyle": "--", "capstyle": "round",
    },
    "polygons": OF_COLLECTIONS | {"verts": [SQUARE[:3]], "edgecolor": "#123456"},
    "filling": OF_COLLECTIONS | {"verts": [SQUARE[:3]], "edgecolor": "#123456"},
    "paths": OF_COLLECTIONS | {"paths": [Path(SQUARE[:3])]},
    "ellipses": {
        "offsets": [(0.3, 0.3)], "array": np.array([-0.5]), "clim": (0, 1), "cmap": "plasma",
        "widths": [0.5], "heights": [0.3], "angles": [40], "edgecolor": "red",
    },
    "heat map": {},
    "heat map without a clip": {},
    "numbers": {"facecolor": "#123456"},
    "cell numbers": {},
}  # fmt: skip
CALLS = {
    "steps": {"data": lambda artist: artist.set_data([0.3, 0.1, 0.2], [0, 1, 2, 3])},
    "line": {
        "clip path": lambda line: line.set_clip_path(patches.Circle((0.5, 0.5), 0.2, transform=line.axes.transData))
    },
    "arrow": {"places": lambda arrow: arrow.set_positions((0, 0), (0.5, 0.2))},
    "boxed text": {"the box's colour": lambda text: text.get_bbox_patch().set_facecolor("blue")},
    "heat map": {"cells": lambda artist: artist.set_cells(np.array([[0.0, 1.0]]), 1.0)},
    "numbers": {
        "numbers": lambda artist: artist.set_numbers([1, 3], [(0.2, 0.2), (0.5, 0.5)]),
        "places": lambda artist: artist.set_numbers([1, 2], [(0.2, 0.2), (0.5, 0.6)]),
    },
    "cell numbers": {
        "values": lambda artist: artist.set_values(np.array([2.0]), np.array([(0.5, 0.5)]), np.array([False])),
        "light": lambda artist: artist.set_values(np.array([1.0]), np.array([(0.5, 0.5)]), np.array([True])),
    },
    "filling": {"data": lambda artist: artist.set_data([0, 1, 2], [0, 0, 0], [0.2, 0.1, 0.5])},
    "ellipses": {"limits": lambda artist: artist.norm.__setattr__("vmin", -3)},
}

CASES = [
    *((kind, name, lambda artist, name=name, value=value: artist.set(**{name: value}))
      for kind, changes in CHANGES.items() for name, value in (ANY | changes).items()),
    *((kind, name, call) for kind, calls in CALLS.items() for name, call in calls.items()),
    *((kind, "clipping", lambda artist: artist.set_clip_on(not artist.get_clip_on())) for kind in MAKE),
    *((kind, "the place of its axes", lambda artist: artist.axes.set_position((0.2, 0.2, 0.3, 0.3))) for kind in MAKE),
]  # fmt: skip


@pytest.fixture
def axes():
    figure = Figure(figsize=(2, 2), dpi=100)
    return figure.add_axes((0.1, 0.1, 0.8, 0.8), xlim=(0, 3), ylim=(0, 1))


@pytest.mark.parametrize(("kind", "name", "change"), CASES, ids=[f"{kind}-{name}" for kind, name, _ in CASES])
def test_another_property_is_another_appearance(axes, kind, name, change):
    artist = MAKE[kind](axes)
    recorder = Recorder(200, 200, 100, Drawings())
    before = appearance(artist)
    assert hash(before) == hash(appearance(artist))
    artist.draw(recorder)
    assert appearance(artist) == before, "to be drawn is no change"
    change(artist)
    after = appearance(artist)
    if (kind, name) != ("ellipses", "transform"):  # which they set themselves when they are drawn
        assert after != before
    artist.draw(recorder)
    assert appearance(artist) == after


@pytest.mark.parametrize("kind", MAKE)
def test_the_same_set_again_is_no_other_appearance(axes, kind):
    artist = MAKE[kind](axes)

    def set_all():
        if kind == "line":
            artist.set_data([0, 1, 2], [0.1, 0.5, 0.2])
        elif hasattr(artist, "set_facecolor"):
            artist.set_facecolor(artist.get_facecolor())
        artist.set_visible(True)

    set_all()
    before = appearance(artist)
    set_all()
    artist.stale = True
    assert appearance(artist) == before


def test_what_is_not_a_number_stays_what_it_is(axes):
    (line,) = axes.plot([], [])
    line.set_data([float("nan")], [0])
    before = appearance(line)
    line.set_data([float("nan")], [0])
    assert appearance(line) == before


def test_styles_of_arrows_are_compared_by_what_they_are(axes):
    """Not by where they are in the memory, which the next one may take."""
    arrow = MAKE["arrow"](axes)
    seen = {}
    for step in range(200):
        style = ("-|>", "-", "->", "<-")[step % 4]
        arrow.set_arrowstyle(style)
        gc.collect(0)
        assert seen.setdefault(style, appearance(arrow)) == appearance(arrow)
    assert len(set(seen.values())) == 4


def test_data_changed_in_place_are_another_appearance(axes):
    heights = np.array([0.1, 0.5, 0.2])
    (line,) = axes.plot([0, 1, 2], heights)
    before = appearance(line)
    heights[1] = 0.7
    line.set_ydata(heights)
    assert appearance(line) != before


# ---------------------------------------------------------------- what is drawn


def parts(given: Recording | Shots, data: object) -> list:
    """Return what a frame of some data draws, with everything that it refers to."""
    shots = given
    return drawn(shots, shots.shot(data))


@pytest.fixture
def drawn_artists(monkeypatch) -> Iterator[list[Artist]]:
    """Note which artists a recording draws."""
    noted, draw = [], Recording._draw
    monkeypatch.setattr(Recording, "_draw", lambda self, artist: (noted.append(artist), draw(self, artist))[1])
    return noted


def steps(panel: Panel, rng: np.random.Generator, count: int) -> Iterator[object]:
    """Yield the data of states on a walk: mostly one control moves at a time, now and then a button is pressed."""
    settings = [panel.initial, *panel.presets.values()]
    yield panel.compute(**panel.state)
    for step in range(count):
        if step % 6 == 5:
            panel.put(settings[rng.integers(len(settings))])
        else:
            control = panel.controls[rng.choice(list(panel.controls))]
            there = list(places(control))
            at = there[rng.integers(len(there))]
            # To a neighbour as often as anywhere: what looks alike is where something is taken for unchanged.
            if rng.random() < 0.5 and (now := getattr(control, "index", control.value)) in there:
                at = there[min(there.index(now) + 1, len(there) - 1)]
            bring(control, at)
        yield panel.compute(**panel.state)


#: So many steps of a walk; all panels are walked, a third of them from commit to commit at length.
STEPS, AT_LENGTH = 3, 12


@pytest.mark.sweep
@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_a_walk_draws_what_a_fresh_recording_of_a_fresh_view_draws(kind, sample, monkeypatch, drawn_artists):
    """That which looks as it did is not drawn again, and nothing is left over from what was drawn before."""
    panel, rng = kind(), sample.rng(kind.__name__)
    monkeypatch.setattr(panel, "refresh", lambda: None)
    at_length = sample.everything or kind in sample.of(PANELS, len(PANELS) // 3, lambda kind: kind.__name__)
    walked = Shots(panel.make_view(), panel.numbers)
    seen = []
    for step, data in enumerate(steps(panel, rng, AT_LENGTH if at_length else STEPS)):
        shot = walked.shot(data)
        count = len(drawn_artists)
        assert walked.shot(data) == shot
        assert drawn_artists[count:] == [], "drawn again though nothing has changed"
        if step % 3 == 0 or at_length:
            fresh = Shots(panel.make_view(), panel.numbers)
            if (mine := drawn(walked, shot)) != (others := parts(fresh, data)):
                wrong = [place for place, (a, b) in enumerate(zip(mine[1], others[1], strict=True)) if a != b]
                artists = [walked._view.moving_artists[place] for place in wrong]
                assert mine[0] == others[0], f"{kind.__name__}: step {step}, state {panel.state}: the background"
                pytest.fail(f"{kind.__name__}: step {step}, state {panel.state}: {artists}")
            seen.append((data, shot))
    for data, shot in seen:
        assert drawn(walked, walked.shot(data)) == drawn(walked, shot)


def test_where_only_a_marker_moves_the_curves_are_not_drawn_again(drawn_artists):
    panel = RopeScores()
    shots = Shots(panel.make_view(), panel.numbers)
    control = panel.controls["offset"]
    there = list(places(control).values())
    start = there.index(control.value)
    shots.shot(panel.compute(**panel.state))
    counts = []
    for value in there[start + 1 : start + 12]:
        drawn_artists.clear()
        shots.shot(panel.compute(**panel.state | {"offset": value}))
        counts.append(Counter(type(artist).__name__ for artist in drawn_artists))
        assert all(len(np.ravel(artist.get_xdata())) < 100 for artist in drawn_artists if hasattr(artist, "get_xdata"))
    every = len(shots._view.moving_artists)
    assert all(0 < count.total() <= every / 2 for count in counts), counts


class Line(View[tuple]):
    """A line, a dot and a frame whose limits follow."""

    size = (60, 40)

    def build(self):
        self.axes = self.fig.add_axes((0.2, 0.2, 0.7, 0.7), xlim=(0, 1), ylim=(0, 9))
        self.line = self.moving(self.axes.plot([0, 1], [0, 1])[0])
        self.dot = self.moving(self.axes.plot([0.5], [0], marker="o")[0])

    def update(self, data):
        self.line.set_ydata([0, data[0]])
        self.dot.set_ydata([data[1]])
        self.limits(self.axes, y=(0, data[2]))
        return self


def test_only_what_changed_is_drawn(drawn_artists):
    view = Line()
    record = Recording(view)
    record.frame((1, 1, 9))
    drawn_artists.clear()
    record.frame((1, 2, 9))
    assert drawn_artists == [view.dot]
    drawn_artists.clear()
    record.frame((1, 1, 9))
    assert drawn_artists == []
    # With other limits everything that depends on them is elsewhere.
    record.frame((1, 1, 8))
    assert {view.line, view.dot, view.axes.yaxis} <= {*drawn_artists}
    assert view.axes.xaxis not in drawn_artists
    drawn_artists.clear()
    record.frame((1, 2, 9))
    record.frame((1, 1, 8))
    assert drawn_artists == []


def test_an_artist_that_fails_half_way_leaves_nothing_to_the_next(monkeypatch):
    view = Line()
    record = Recording(view)
    wanted = record.frame((1, 1, 9)), record.frame((2, 2, 9))

    def fail(recorder):
        type(view.line).draw(view.line, recorder)
        raise RuntimeError("half way")

    monkeypatch.setattr(view.line, "draw", fail)
    with pytest.raises(RuntimeError, match="half way"):
        record.frame((3, 3, 9))
    monkeypatch.undo()
    parts_before = len(record.drawings.parts)
    again = record.frame((3, 3, 9))
    assert (record.frame((1, 1, 9)), record.frame((2, 2, 9))) == wanted
    fresh = Recording(Line())
    theirs = fresh.frame((3, 3, 9))
    mine, others = (list(one.drawings.parts) for one in (record, fresh))
    assert [len(mine[part]) for part in again[1]] == [len(others[part]) for part in theirs[1]]
    assert len(record.drawings.parts) <= parts_before + 2


def test_the_last_looks_are_remembered(drawn_artists):
    record = Recording(Line())
    for height in range(KEPT):
        record.frame((1, height, 9))
    drawn_artists.clear()
    for height in range(KEPT):
        record.frame((1, height, 9))
    assert drawn_artists == []
    record.frame((1, KEPT, 9))
    drawn_artists.clear()
    record.frame((1, KEPT, 9))
    assert drawn_artists == []
    record.frame((1, 0, 9))
    assert len(drawn_artists) == 1


def test_new_data_in_the_old_numbers_of_a_background_are_not_mixed_up(drawn_artists):
    view = Line()
    record = Recording(view)
    first = record.frame((1, 1, 9))
    view.axes.set_facecolor("#123456")
    view.redraw_background()
    drawn_artists.clear()
    second = record.frame((1, 1, 9))
    assert second[0] != first[0]
    assert second[1] == first[1]
    assert view.line not in drawn_artists
    assert view.axes.patch in drawn_artists


@pytest.fixture(autouse=True)
def _closed():
    yield
    widgets.Widget.close_all()


def test_a_box_is_compared_by_its_edges(axes):
    artist = MAKE["line"](axes)
    before = appearance(artist)
    artist.set_clip_box(Bbox([(0, 0), (50, 50)]))
    between = appearance(artist)
    artist.set_clip_box(Bbox([(0, 0), (50, 60)]))
    assert len({before, between, appearance(artist)}) == 3


class Faces(View[float]):
    """An ellipse in units of the data, whose limits follow."""

    size = (60, 40)

    def build(self):
        self.axes = self.fig.add_axes((0.2, 0.2, 0.7, 0.7), xlim=(0, 1), ylim=(0, 9))
        faces = EllipseCollection([0.2], [2], [0], units="xy", offsets=[(0.5, 0.5)], offset_transform=None)
        self.faces = self.moving(self.axes.add_collection(faces, autolim=False))

    def update(self, data):
        self.limits(self.axes, y=(0, data))
        return self


def test_what_has_the_size_of_its_data_follows_the_limits():
    record = Recording(Faces())
    first, second = record.frame(9.0), record.frame(3.0)
    assert first[1] != second[1]
    assert record.frame(9.0) == first
