"""A hand on every control of every panel: each value, and hundreds of joint settings.

The panels are driven as the browser drives them, by assigning a control's value, which runs its callbacks.  In place of
the encoded picture a panel shows the hash of its canvas here, so that thousands of frames cost little and a difference
of one pixel counts.
"""

import dataclasses
import hashlib
import inspect
import itertools
import logging
from collections.abc import Iterator

import ipywidgets as widgets
import numpy as np
import pytest

from transformer_parts.draw import frame, theme
from transformer_parts.draw.view import View
from transformer_parts.explore import controls
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.component import Picture
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.positions import PositionTable
from transformer_parts.explore.readout import Row

JOINT_SETTINGS = 200
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
    exact = [preset[name] for preset in panel.presets.values() if name in preset] + [panel._initial[name]]
    keep = {every.index(value) for value in exact if value in every}
    keep.update(range(0, len(every), -(-len(every) // MOST_OPTIONS)), range(8), range(len(every) - 8, len(every)))
    if isinstance(control, widgets.IntSlider):
        powers = {2**i + d for i in range(24) for d in (-1, 0, 1)}
        keep.update(i for i, value in enumerate(every) if value in powers)
    return [every[i] for i in sorted(keep)]


def wander(panel: Panel, rng: np.random.Generator, monkeypatch) -> None:
    """Give every control a random value of those it then offers, in random order, and refresh once."""
    with monkeypatch.context() as patch:
        patch.setattr(panel, "refresh", lambda: None)
        for name in rng.permutation(list(panel.controls)):
            offered = every_value(panel.controls[name])
            panel.controls[name].value = offered[rng.integers(len(offered))]
            assert panel.error is None, panel.state
    panel.refresh()


def places(panel: Panel, monkeypatch) -> Iterator[dict]:
    """Yield states to try a control in: the first one, the presets, and some at random."""
    yield panel._initial
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


def test_every_value_of_every_control(panel, monkeypatch):
    # At the page's resolution: what neighbours differ by may be less than a CSS pixel.
    monkeypatch.setattr(View.__init__, "__defaults__", (2.0,))
    panel = type(panel)()
    for name, control in panel.controls.items():
        panel.reset()
        seen = {}
        for value in values(panel, name):
            control.value = value
            assert control.value == value
            page = shown(panel)
            data = panel.compute(**panel.state)
            twin = seen.setdefault(page, data)
            assert not differs(twin, data), f"{name} = {value}: the data changed, nothing on the page did"


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


def test_joint_settings_give_frames_of_the_state_alone(panel, monkeypatch):
    rng = np.random.default_rng(20261130)
    kept = []
    for step in range(JOINT_SETTINGS):
        wander(panel, rng, monkeypatch)
        picture, _ = shown(panel)
        if step % 20 == 0:
            kept.append((panel.state, picture))
    assert len({picture for _, picture in kept}) == len({str(state) for state, _ in kept})
    for number, (state, picture) in enumerate(kept):
        assert panel.frame(state) == picture, f"not the same after other states: {state}"
        if number % 3 == 0:
            assert type(panel)().frame(state) == picture, f"not what a fresh panel draws: {state}"


def test_state_can_be_set_back_whatever_was_before(panel, monkeypatch):
    rng = np.random.default_rng(7)
    for _ in range(8):
        wander(panel, rng, monkeypatch)
        state, page = panel.state, shown(panel)
        wander(panel, rng, monkeypatch)
        panel.set(**state)
        assert panel.state == state
        assert shown(panel) == page


def test_coupling_has_nothing_to_do_in_the_first_state(panel):
    before = panel.state
    for name in panel.controls:
        panel.couple(name)
        assert panel.state == before, f"coupling of {name}"


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


def test_play_button_moves_a_slider_over_whole_numbers(panel):
    players = [widget for widget in walk(panel.widget) if isinstance(widget, widgets.Play)]
    assert len(players) == (panel.play is not None)
    if panel.play is not None:
        assert isinstance(panel.controls[panel.play], widgets.IntSlider)
        assert players[0].value == panel.controls[panel.play].value


# ---------------------------------------------------------------- names and words


def test_every_panel_and_control_has_its_words(panel):
    assert len(panel.alt) > 40
    assert panel.still.startswith("figures/")
    labels = [control.description for control in panel.controls.values()]
    assert all(labels)
    assert len(set(labels)) == len(labels)


def test_no_two_panels_share_a_still_or_a_name():
    assert len({panel.still for panel in PANELS}) == len({panel.__name__ for panel in PANELS}) == len(PANELS)


def test_real_frames_are_small_enough_for_the_wire(monkeypatch):
    monkeypatch.undo()
    for kind in PANELS:
        panel = kind()
        rng = np.random.default_rng(5)
        for _ in range(3):
            # A heat map of thousands of cells has as many edges.
            most = 800_000 if kind is PositionTable else 400_000
            assert len(picture(panel)) < most, (kind.__name__, panel.state)
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
        return data if b == 25 else {"y": data["y"]}


class Remembers(DotPanel):
    highest = 0

    def compute(self, *, a, b):
        self.highest = max(a, self.highest)
        return super().compute(a=self.highest, b=b)


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
)


def sweep(kind, test, monkeypatch, logged):
    panel = kind()
    test(panel, monkeypatch) if "monkeypatch" in inspect.signature(test).parameters else test(panel)
    assert not logged.messages


@pytest.mark.parametrize("test", SWEEPS)
def test_sweep_passes_a_sound_panel(test, monkeypatch, logged):
    sweep(DotPanel, test, monkeypatch, logged)


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (FaultAtOneValue, test_every_value_of_every_control),
        (UnseenData, test_every_value_of_every_control),
        (DraggedOff, test_every_value_of_every_control),
        (Logs, test_every_value_of_every_control),
        (DeadControl, test_every_control_changes_what_is_shown),
        (FaultAtOneCorner, test_joint_settings_give_frames_of_the_state_alone),
        (LeftOver, test_joint_settings_give_frames_of_the_state_alone),
        (Remembers, test_joint_settings_give_frames_of_the_state_alone),
    ],
)
def test_sweep_finds(kind, test, monkeypatch, logged):
    with pytest.raises(AssertionError):
        sweep(kind, test, monkeypatch, logged)
    logged.clear()
