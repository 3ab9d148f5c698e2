"""Every control of every panel is moved: each value, single moves, and joint settings.

The panels are driven as the browser drives them, by assigning a control's value, which runs its callbacks.  In place of
the encoded picture a panel shows the hash of its canvas here, so that a difference of one pixel counts.

Every state that is visited is computed, with its table.  Drawing takes ten times as long: all states of a third of the
panels are drawn, another third from commit to commit, and some states of the others.
"""

import dataclasses
import hashlib
import inspect
import itertools
import logging
from collections.abc import Iterator
from types import SimpleNamespace

import ipywidgets as widgets
import numpy as np
import pytest
from sampling import Sample

from transformer_parts.draw import frame, theme
from transformer_parts.draw.view import View
from transformer_parts.explore import controls
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.component import Picture
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.positions import PositionTable
from transformer_parts.explore.readout import Row, table

pytestmark = pytest.mark.sweep

#: So many panels are drawn in full.
DRAWN_IN_FULL = len(PANELS) // 3
#: Of the others one state in so many is drawn.
DRAWN_OF = 8
#: Joint settings of a panel; all of them and every one drawn with --everything.
JOINT_SETTINGS, ALL_JOINT_SETTINGS = 80, 200
# Menus and switches are tried whole, and so are sliders over up to this many whole numbers.
MOST_INTEGERS = 300
MOST_OPTIONS = 40


@pytest.fixture(autouse=True)
def _hash_in_place_of_encoding(monkeypatch):
    monkeypatch.setattr(frame, "live", lambda canvas: hashlib.sha1(canvas.buffer_rgba()).digest())
    # One device pixel per CSS pixel: a quarter of the pixels, all of the artists.
    monkeypatch.setattr(View.__init__, "__defaults__", (1.0,))


@pytest.fixture(params=PANELS, ids=lambda panel: panel.__name__)
def panel(request) -> Panel:
    return request.param()


@pytest.fixture
def in_full(request, sample) -> bool:
    """Whether all states of this panel are drawn in this run."""
    return request.getfixturevalue("panel").__class__ in sample.of(PANELS, DRAWN_IN_FULL, lambda kind: kind.__name__)


def walk(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def picture(panel: Panel) -> bytes:
    return next(widget for widget in walk(panel.widget) if isinstance(widget, Picture)).value


def shown(panel: Panel) -> tuple[bytes, str]:
    """What the reader sees, after making sure that the last step went well."""
    assert panel.error is None, panel.state
    assert panel.status.value == ""
    return picture(panel), panel.readout.value


def every_value(control: widgets.Widget) -> list:
    """Return all that a control offers at present."""
    if isinstance(control, widgets.Checkbox):
        return [False, True]
    if isinstance(control, widgets.IntSlider):
        return list(range(control.min, control.max + 1, control.step))
    assert isinstance(control, widgets.Dropdown | widgets.SelectionSlider), f"no way to drive {type(control).__name__}"
    return [value for _, value in control._options_full]


def values(panel: Panel, name: str) -> list:
    """Return the values a control is driven through: all, or an even choice and all that is singular."""
    control = panel.controls[name]
    every = every_value(control)
    most = MOST_INTEGERS if isinstance(control, widgets.IntSlider) else MOST_OPTIONS
    if len(every) <= most or isinstance(control, widgets.Dropdown):
        return every
    exact = [preset[name] for preset in panel.presets.values() if name in preset] + [panel.initial[name]]
    keep = {every.index(value) for value in exact if value in every}
    keep.update(range(0, len(every), -(-len(every) // MOST_OPTIONS)), range(8), range(len(every) - 8, len(every)))
    if isinstance(control, widgets.IntSlider):
        powers = {2**i + d for i in range(24) for d in (-1, 0, 1)}
        keep.update(i for i, value in enumerate(every) if value in powers)
    return [every[i] for i in sorted(keep)]


def move(panel: Panel, name: str, value: object, monkeypatch) -> None:
    """Give a control a value, with what moves along, and draw nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(panel, "refresh", lambda: None)
        panel.controls[name].value = value
    assert panel.error is None, panel.state


def random_value(panel: Panel, name: str, rng: np.random.Generator) -> object:
    offered = every_value(panel.controls[name])
    return offered[rng.integers(len(offered))]


def wander(panel: Panel, rng: np.random.Generator, monkeypatch, *, draw: bool = True) -> None:
    """Give every control a random value of those it then offers, in random order, and refresh once."""
    for name in rng.permutation(list(panel.controls)):
        move(panel, name, random_value(panel, name, rng), monkeypatch)
    panel.refresh() if draw else computed(panel)


def computed(panel: Panel) -> object:
    """Return the data of the present state, after making sure that they have a table."""
    data = panel.compute(**panel.state)
    assert table(panel.rows(data))
    return data


def places(panel: Panel, monkeypatch) -> Iterator[dict]:
    """Yield states to try a control in: the first one, the presets, and some at random."""
    yield panel.initial
    yield from panel.presets.values()
    rng = np.random.default_rng(1)
    for _ in range(30):
        wander(panel, rng, monkeypatch)
        yield panel.state


def differs(one: object, other: object) -> bool:
    """Tell whether the data of two pictures differ by more than rounding."""
    if dataclasses.is_dataclass(one):
        fields = [field.name for field in dataclasses.fields(one)]
        return type(one) is not type(other) or any(differs(getattr(one, f), getattr(other, f)) for f in fields)
    if isinstance(one, dict):
        return one.keys() != other.keys() or any(differs(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) != len(other) or any(itertools.starmap(differs, zip(one, other, strict=True)))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype.kind not in "fiub":
        return not np.array_equal(one, other)
    return not np.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)


# ---------------------------------------------------------------- one control at a time


def test_every_value_of_every_control(panel, in_full, monkeypatch):
    sharp: list[View] = []
    for name, control in panel.controls.items():
        panel.reset()
        seen = {}
        for place, value in enumerate(every := values(panel, name)):
            move(panel, name, value, monkeypatch)
            assert control.value == value
            data = computed(panel)
            if not (in_full or place % DRAWN_OF == 0 or place == len(every) - 1):
                continue
            panel.refresh()
            twin = seen.setdefault(shown(panel), data)
            if differs(twin, data):
                # What neighbours differ by may be less than a CSS pixel: at the page's resolution it is seen.
                if not sharp:
                    monkeypatch.setattr(View.__init__, "__defaults__", (2.0,))
                    sharp.append(panel.make_view())
                told = f"{name} = {value}: the data changed, nothing on the page did"
                assert sharp[0].frame(twin) != sharp[0].frame(data), told


def test_every_control_changes_what_is_shown(panel, monkeypatch):
    """Somewhere: a control may do nothing where another rules it out (the direction of a vector without length)."""
    still_dead = set(panel.controls)
    for place in places(panel, monkeypatch):
        for name in sorted(still_dead):
            panel.set(**place)
            before = shown(panel)
            offered = every_value(panel.controls[name])
            for value in {str(offered[i]): offered[i] for i in (0, 1 % len(offered), len(offered) // 2, -1)}.values():
                panel.controls[name].value = value
                if shown(panel) != before:
                    still_dead.discard(name)
        if not still_dead:
            break
    assert not still_dead


# ---------------------------------------------------------------- joint settings


def test_joint_settings_give_frames_of_the_state_alone(panel, in_full, sample, monkeypatch):
    rng = sample.rng(type(panel).__name__)
    before = artists(panel.view)
    kept = []
    for step in range(ALL_JOINT_SETTINGS if sample.everything else JOINT_SETTINGS):
        wander(panel, rng, monkeypatch, draw=in_full or step % DRAWN_OF == 0)
        if step % DRAWN_OF == 0:
            kept.append((panel.state, shown(panel)[0]))
    differing = {str(state): picture for state, picture in kept}
    assert len(set(differing.values())) > len(differing) // 2, "few of the settings have a picture of their own"
    for number, (state, picture) in enumerate(kept[:10]):
        assert panel.frame(state) == picture, f"not the same after other states: {state}"
        if number % 3 == 0:
            data = panel.compute(**state)
            assert panel.make_view().frame(data) == picture, f"not what a fresh view draws: {state}"
            assert panel.view.update(data) is panel.view
    after = artists(panel.view)
    assert len(after) == len(before)
    assert all(one is other for one, other in zip(before, after, strict=True)), "artists made anew"


def artists(view: View) -> list:
    """Return all artists by identity, but ticks, which matplotlib makes and drops as limits ask for them."""
    return [view.fig, *view.fig.get_children(), *(artist for axes in view.fig.axes for artist in axes.get_children())]


def test_single_moves_give_what_a_new_panel_computes(panel, in_full, sample, monkeypatch):
    """After each move of one control: what is remembered from before, of results or ranges, would show itself here."""
    rng = sample.rng(type(panel).__name__)
    wander(panel, rng, monkeypatch, draw=False)
    rounds = max(3, -(-(60 if in_full else 24) // len(panel.controls)))
    for name in (name for _ in range(rounds) for name in rng.permutation(list(panel.controls))):
        others = [value for value in every_value(panel.controls[name]) if value != panel.state[name]]
        if not others:
            continue
        move(panel, name, others[rng.integers(len(others))], monkeypatch)
        data = computed(panel)
        fresh = undrawn(type(panel), monkeypatch)
        fresh.put(panel.state)
        assert not differs(data, fresh.compute(**panel.state)), f"{name} was moved last: {panel.state}"
        assert offers(panel) == offers(fresh), f"{name} was moved last: {panel.state}"


def undrawn(kind: type[Panel], monkeypatch) -> Panel:
    """Return a new panel, its picture left out."""
    with monkeypatch.context() as patch:
        patch.setattr(kind, "make_view", lambda self: SimpleNamespace(size=(1, 1), shows={}, frame=lambda data: b""))
        return kind()


def offers(panel: Panel) -> dict[str, tuple]:
    """Return what each control offers."""
    kinds = ("min", "max", "step", "options", "disabled")
    return {name: tuple(getattr(control, kind, None) for kind in kinds) for name, control in panel.controls.items()}


def test_state_can_be_set_back_whatever_was_before(panel, in_full, sample, monkeypatch):
    rng = sample.rng(type(panel).__name__)
    for _ in range(8 if in_full else 2):
        wander(panel, rng, monkeypatch)
        state, page = panel.state, shown(panel)
        wander(panel, rng, monkeypatch, draw=False)
        panel.set(**state)
        assert panel.state == state
        assert shown(panel) == page


# ---------------------------------------------------------------- buttons


def test_preset_buttons_and_reset(panel, monkeypatch):
    buttons = {widget.description: widget for widget in walk(panel.widget) if isinstance(widget, widgets.Button)}
    assert list(buttons) == [*panel.presets, "Reset"]
    assert panel.presets, "a panel begins with a worked example"
    start, page = panel.state, shown(panel)
    rng = np.random.default_rng(3)
    pages = {}
    for label, values in panel.presets.items():
        buttons[label].click()
        assert panel.state | dict(values) == panel.state
        pages[label] = shown(panel)
        wander(panel, rng, monkeypatch)
        buttons["Reset"].click()
        assert (panel.state, shown(panel)) == (start, page)
    assert len(set(pages.values())) == len(pages), "two presets show the same"


# ---------------------------------------------------------------- a panel as it begins


@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_coupling_has_nothing_to_do_in_the_first_state(begun, kind):
    panel = begun(kind)
    before = panel.state
    for name in panel.controls:
        panel.couple(name)
        assert panel.state == before, f"coupling of {name}"


@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_play_button_moves_a_slider_over_whole_numbers(begun, kind):
    panel = begun(kind)
    players = [widget for widget in walk(panel.widget) if isinstance(widget, widgets.Play)]
    assert len(players) == (panel.play is not None)
    if panel.play is not None:
        assert isinstance(panel.controls[panel.play], widgets.IntSlider)
        assert players[0].value == panel.controls[panel.play].value


@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_every_panel_and_control_has_its_words(begun, kind):
    panel = begun(kind)
    assert len(panel.alt) > 40
    assert panel.still.startswith("figures/")
    labels = [control.description for control in panel.controls.values()]
    assert all(labels)
    assert len(set(labels)) == len(labels)


def test_no_two_panels_share_a_still_or_a_name():
    assert len({panel.still for panel in PANELS}) == len({panel.__name__ for panel in PANELS}) == len(PANELS)


@pytest.mark.sampled(DRAWN_IN_FULL)
@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_real_frames_are_small_enough_for_the_wire(kind, sample, monkeypatch):
    monkeypatch.undo()
    panel = kind()
    rng = sample.rng(kind.__name__)
    # A heat map of thousands of cells has as many edges.
    most = 800_000 if kind is PositionTable else 450_000
    for _ in range(3):
        assert len(picture(panel)) < most, panel.state
        wander(panel, rng, monkeypatch)


# ---------------------------------------------------------------- the sweep can fail


class DotView(View):
    """A dot; its colour is set, and its size is left as it was at a height of 50."""

    size = (40, 30)

    def build(self):
        self.axes = theme.style(self.fig.add_axes((0, 0, 1, 1)), grid=False)
        self.limits(self.axes, x=(0, 100), y=(0, 100))
        (dot,) = self.axes.plot([50], [0], marker="o", color=theme.INK)
        self.dot = self.moving(dot)

    def update(self, data):
        self.dot.set_ydata([data["y"]])
        self.dot.set_markersize(data.get("size", self.dot.get_markersize()))
        return self


class DotPanel(Panel):
    """Two sliders over whole numbers, both seen in the picture."""

    still = "figures/dot.png"

    def make_controls(self):
        return {"a": controls.integer("a", 10, 0, 50), "b": controls.integer("b", 10, 0, 50)}

    def make_view(self):
        return DotView()

    def compute(self, *, a, b):
        return {"y": a + b / 2, "size": 4.0 + b / 10}

    def rows(self, data):
        return [Row("y", str(data["y"]))]


class FaultAtOneValue(DotPanel):
    def compute(self, *, a, b):
        return super().compute(a=1 / (a - 37), b=b)


class FaultAtOneCorner(DotPanel):
    def compute(self, *, a, b):
        return super().compute(a=a, b=1 / (a < 25 or b < 25))


class DeadControl(DotPanel):
    def compute(self, *, a, b):
        return super().compute(a=a, b=10)


class UnseenData(DotPanel):
    def compute(self, *, a, b):
        return super().compute(a=a, b=10) | {"unseen": b}


class LeftOver(DotPanel):
    def compute(self, *, a, b):
        data = super().compute(a=a, b=b)
        return data if self.at(b) else {"y": data["y"]}

    def at(self, b):
        return b >= 25


class LeftOverAtOneValue(LeftOver):
    def at(self, b):
        return b == 25


class Remembers(DotPanel):
    highest = 0

    def compute(self, *, a, b):
        self.highest = max(a, self.highest)
        return super().compute(a=self.highest, b=b)


class RemembersWithoutKey(DotPanel):
    known = None

    def compute(self, *, a, b):
        if self.known is None or self.known[0] != a:
            self.known = a, super().compute(a=a, b=b)
        return self.known[1]


class RangeOfBefore(DotPanel):
    def couple(self, name):
        if name == "a":
            self.controls["b"].max = max(self.controls["b"].max, 50 + self.controls["a"].value)


class FirstSizeView(DotView):
    first = None

    def update(self, data):
        self.first = self.first or data["size"]
        return super().update(data | {"size": self.first})


class DrawnOnce(DotPanel):
    def make_view(self):
        return FirstSizeView()


class AnewView(DotView):
    def update(self, data):
        self._moving.remove(self.dot)
        self.dot.remove()
        (dot,) = self.axes.plot([50], [0], marker="o", color=theme.INK)
        self.dot = self.moving(dot)
        return super().update(data)


class DrawnAnew(DotPanel):
    def make_view(self):
        return AnewView()


class DraggedOff(DotPanel):
    def couple(self, name):
        if name == "a" and self.controls["a"].value > 40:
            self.controls["a"].value = 40


class Logs(DotPanel):
    def rows(self, data):
        logging.getLogger("transformer_parts.explore").warning("not good: %s", data)
        return super().rows(data)


SWEEPS = (
    test_every_value_of_every_control,
    test_every_control_changes_what_is_shown,
    test_joint_settings_give_frames_of_the_state_alone,
    test_single_moves_give_what_a_new_panel_computes,
    test_state_can_be_set_back_whatever_was_before,
)


def sweep(kind, test, in_full, sample, monkeypatch, logged):
    given = {"panel": kind(), "in_full": in_full, "sample": sample, "monkeypatch": monkeypatch}
    test(**{name: given[name] for name in inspect.signature(test).parameters})
    assert not logged.messages


@pytest.mark.parametrize("in_full", [True, False], ids=["in full", "sampled"])
@pytest.mark.parametrize("test", SWEEPS)
def test_sweep_passes_a_sound_panel(test, in_full, sample, monkeypatch, logged):
    sweep(DotPanel, test, in_full, sample, monkeypatch, logged)


FAULTS = (
    (FaultAtOneValue, test_every_value_of_every_control),
    (UnseenData, test_every_value_of_every_control),
    (DraggedOff, test_every_value_of_every_control),
    (Logs, test_every_value_of_every_control),
    (DeadControl, test_every_control_changes_what_is_shown),
    (FaultAtOneCorner, test_joint_settings_give_frames_of_the_state_alone),
    (LeftOver, test_joint_settings_give_frames_of_the_state_alone),
    (Remembers, test_joint_settings_give_frames_of_the_state_alone),
    (DrawnOnce, test_joint_settings_give_frames_of_the_state_alone),
    (DrawnAnew, test_joint_settings_give_frames_of_the_state_alone),
    (Remembers, test_single_moves_give_what_a_new_panel_computes),
    (RemembersWithoutKey, test_single_moves_give_what_a_new_panel_computes),
    (RangeOfBefore, test_single_moves_give_what_a_new_panel_computes),
)


@pytest.mark.parametrize(
    ("kind", "test", "in_full"),
    [
        *((*fault, in_full) for fault in FAULTS for in_full in (True, False)),
        # What one value leaves behind is seen where all states are drawn.
        (LeftOverAtOneValue, test_joint_settings_give_frames_of_the_state_alone, True),
    ],
)
def test_sweep_finds(kind, test, in_full, monkeypatch, logged):
    with pytest.raises((AssertionError, ZeroDivisionError, ValueError)):
        sweep(kind, test, in_full, Sample("the same in every run"), monkeypatch, logged)
    logged.clear()
