"""What lies over each picture: grips that a hand can take hold of, words, and what lights up with a row or a term."""

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import Joint

#: Width of words on a page of the picture's own width, in pixels: see style.css.
WORDS = FontProperties(size=12.6)
#: Values of a control that are tried.
TRIED = 9

pytestmark = pytest.mark.sweep
every_panel = pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)


def settings(panel: Panel) -> dict[str, dict]:
    """Return what differs from the first state there and at the presets of a panel."""
    return {"start": {}} | {label: dict(preset) for label, preset in panel.presets.items()}


def shown(panel: Panel, *moves: dict):
    """Make moves from the first state; return the grips and the words that lie over its picture then."""
    for values in (panel.initial, *moves):
        panel.put(values)
    data = panel.compute(**panel.state)
    view = panel.view.update(data)
    return view.grips(data), list(view.words(data))


@every_panel
def test_every_picture_can_be_touched_or_its_panel_says_why_not(kind):
    assert bool(kind.handles) != bool(kind.untouchable), kind.__name__
    for name, (label, controls, along) in kind.handles.items():
        assert label, name
        assert set(controls) <= set(kind().controls), name
        assert 1 <= len(controls) <= 2, name
        assert along in ("x", "y", "xy"), name


@every_panel
def test_grips_stand_in_the_picture_and_every_handle_has_one_somewhere(kind):
    panel = kind()
    width, height = panel.view.size
    found = set()
    for label, state in settings(panel).items():
        grips, _words = shown(panel, state)
        assert set(grips) <= set(panel.handles), label
        for name, grip in grips.items():
            assert isinstance(grip, Grip), name
            if np.isfinite([grip.x, grip.y]).all():
                assert -1 <= grip.x <= width + 1, (label, name)
                assert -1 <= grip.y <= height + 1, (label, name)
                found.add(name)
    assert found == set(panel.handles)


@every_panel
def test_a_grip_moves_with_its_control(kind):
    """The place nearest to where a value's grip stands is that value's, or one where it stands as well."""
    panel = kind()
    for name, (_label, names, along) in panel.handles.items():
        if len(names) > 1:
            continue
        places, keys = [], []
        for state in settings(panel).values():
            shown(panel, state)
            joint = Joint(panel.controls, names)
            for key in _some(joint.keys):
                try:
                    grips, _words = shown(panel, state, joint.values(key))
                except ValueError:
                    continue
                if name in grips and np.isfinite(grips[name][:2]).all():
                    places.append(grips[name][:2])
                    keys.append(key)
            if len(places) > 1:
                break
        counts = np.array([along != "y", along != "x"], float)
        places = np.array(places) * counts
        assert len(places) > 1, name
        assert np.ptp(places, axis=0).max() > 12, f"{name} hardly moves"


def _some(keys: list[int]) -> list[int]:
    return [keys[i] for i in np.unique(np.linspace(0, len(keys) - 1, TRIED).astype(int))]


@every_panel
def test_a_track_has_the_place_of_every_value(kind, rng):
    panel = kind()
    for name, (_label, names, _along) in panel.handles.items():
        panel.put(panel.initial)
        track = panel.track(name)
        if track is None:
            assert len(names) == 1, f"{name} moves two controls, whose places only a track can give"
            continue
        joint = Joint(panel.controls, names)
        track = track.reshape(-1, 2)
        lows = [min(of) for of in joint._places]
        counts = [len(of) for of in joint._places]
        assert len(track) == np.prod(counts), name
        for number in rng.integers(len(track), size=TRIED):
            at = dict(zip(names, np.add(np.unravel_index(number, counts), lows).tolist(), strict=True))
            key = joint.key(at)
            if len(names) > 1:
                assert key == number, "steps of one are wanted of controls that move together"
            grips, _words = shown(panel, joint.values(key))
            if name in grips:
                assert np.allclose(track[number], grips[name][:2], atol=0.6), (name, at)


def extent(word: Word) -> tuple[float, float, float, float]:
    """Return about where a word lies: left, top, right, bottom."""
    box = TextPath((0, 0), str(word.text) or " ", prop=WORDS).get_extents()
    width, height = box.width, 13
    left = {"right": 5, "left": -width - 5}.get(word.side, -width / 2)
    top = {"above": -height - 11, "below": 11}.get(word.side, -height / 2)
    return word.x + left, word.y + top, word.x + left + width, word.y + top + height


@every_panel
def test_words_lie_in_the_picture_and_not_over_one_another(kind):
    panel = kind()
    width, height = panel.view.size
    for label, state in settings(panel).items():
        _grips, words = shown(panel, state)
        boxes = [extent(word) for word in words]
        for word, (left, top, right, bottom) in zip(words, boxes, strict=True):
            inside = left >= -2 and right <= width + 2 and top >= -2 and bottom <= height + 2
            assert inside, (label, word.text, (left, top, right, bottom))
        for i, one in enumerate(boxes):
            for j, other in enumerate(boxes[:i]):
                across = min(one[2], other[2]) - max(one[0], other[0])
                down = min(one[3], other[3]) - max(one[1], other[1])
                assert across <= 1 or down <= 1, (label, words[i].text, words[j].text)


@every_panel
def test_what_lights_up_is_in_the_picture(kind):
    panel = kind()
    data = panel.compute(**panel.state)
    marks = {row.mark for row in panel.rows(data)} | {term.mark for term in panel.formula(data)} - {""}
    assert marks - {""} <= set(panel.view.shows)
    for name, artists in panel.view.shows.items():
        assert artists, name
        assert set(artists) <= set(panel.view.moving_artists), name


@every_panel
def test_primary_and_idle_controls_and_guided_presets_are_there(kind):
    panel = kind()
    assert set(panel.primary) <= set(panel.controls)
    assert len(panel.primary) <= 5
    assert set(panel.guide) <= set(panel.presets)
    for state in settings(panel).values():
        panel.put(panel.initial)
        panel.put(state)
        idle = panel.idle(panel.state)
        assert set(idle) <= set(panel.controls)
        before = panel.shots.shot(panel.compute(**panel.state))
        for name in idle:
            joint = Joint(panel.controls, (name,))
            for key in _some(joint.keys)[:3]:
                # What is greyed does nothing, so nobody misses it.
                assert panel.shots.shot(panel.compute(**panel.state | joint.values(key))).frame == before.frame, name


def test_a_view_says_where_points_of_axes_are(rng):
    view = PANELS[0]().view
    axes = view.fig.axes[0]
    x, y = rng.uniform(*np.sort(axes.get_xlim()), 3), rng.uniform(*np.sort(axes.get_ylim()), 3)
    places = view.at(axes, x[:, None], y)
    assert places.shape == (3, 3, 2)
    (left, top), (right, bottom) = view.at(axes, axes.get_xlim(), axes.get_ylim()[::-1])
    for one, low, high in ((places[..., 0], left, right), (places[..., 1], top, bottom)):
        assert one.min() >= min(low, high) - 1e-6
        assert one.max() <= max(low, high) + 1e-6
