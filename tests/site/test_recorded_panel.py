"""What a page keeps of an explorer: which values, and that picture and table are the panel's own."""

import base64
import itertools
import json
import zlib
from types import SimpleNamespace

import pytest
from explorer_page import drawn
from publish.recorded_panel import Limits, RecordedPanel, options, thin

from transformer_parts.explore.budget import BudgetCost
from transformer_parts.explore.readout import table
from transformer_parts.explore.rope import RopePlane
from transformer_parts.explore.shots import Shot


@pytest.fixture(scope="module")
def plane() -> RecordedPanel:
    return RecordedPanel(RopePlane(), Limits(values=5))


@pytest.mark.parametrize("count", [2, 5, 9, 10, 33, 64, 513, 8193])
@pytest.mark.parametrize("most", [5, 9, 33])
def test_thinning_keeps_ends_and_start_and_about_as_many(count, most):
    for at in (0, count // 3, count - 1):
        kept = thin(count, at, most)
        assert kept == sorted(set(kept))
        assert {0, at, count - 1} <= set(kept) <= set(range(count))
        assert min(count, most // 2) <= len(kept) <= most + 4
        if count <= most:
            assert len(kept) == count


def test_a_long_range_is_densest_about_the_start():
    kept = thin(8193, 4096, 33)
    gaps = [b - a for a, b in itertools.pairwise(kept)]
    middle = kept.index(4096)
    assert gaps[middle] == gaps[middle - 1] == 1
    assert max(gaps) in (gaps[0], gaps[-1])


def test_every_control_has_its_range_from_every_setting(plane):
    assert list(plane.settings) == ["Reset", *plane.panel.presets]
    for start in plane.starts:
        assert set(start.ranges) == set(plane.panel.controls)
        for name, moved in start.ranges.items():
            assert moved.labels[moved.at] == start.labels[name]
            assert moved.shots[moved.at] == start.shot
            assert len(moved.labels) == len(moved.shots) == len(moved.moved)
            assert moved.full == len(options(plane.panel.controls[name]))


def test_the_pack_holds_the_tables_of_the_panel(plane):
    pack = json.loads(zlib.decompress(base64.b64decode(plane.pack)))
    for label, start in zip(plane.settings, pack["starts"], strict=True):
        described = {control["name"]: control for control in start["controls"]}
        assert list(described) == list(plane.panel.controls)
        for name, moved in start["ranges"].items():
            labels = described[name]["labels"]
            assert len(labels) == len(moved["shots"]) == len(moved["moved"])
            value = dict(options(plane.panel.controls[name]))[labels[-1]]
            plane.panel.reset()
            plane.panel.put(plane.settings[label] | {name: value})
            wanted = table(plane.panel.rows(plane.panel.compute(**plane.panel.state)))
            # The page's script sets styles: its policy allows none in the text.
            wanted = wanted.replace(' style="', ' data-style="')
            rows = "".join(pack["drawings"]["rows"][row] for row in pack["shots"][moved["shots"][-1]][1])
            assert f'">{rows}</table>' in wanted, (label, name)


def test_the_pack_holds_the_pictures_of_the_panel(plane):
    pack = json.loads(zlib.decompress(base64.b64decode(plane.pack)))
    held = SimpleNamespace(things=lambda: pack["drawings"])
    for label, start in zip(plane.settings, pack["starts"], strict=True):
        labels = {control["name"]: control["labels"] for control in start["controls"]}
        assert {name: labels[name][at] for name, at in start["at"].items()} == {
            name: {value: text for text, value in options(control)}[plane.settings[label][name]]
            for name, control in plane.panel.controls.items()
        }
        for name, moved in start["ranges"].items():
            assert moved["shots"][start["at"][name]] == start["shot"]
            for place in (0, len(labels[name]) // 2):
                value = dict(options(plane.panel.controls[name]))[labels[name][place]]
                plane.panel.reset()
                plane.panel.put(plane.settings[label] | {name: value})
                fresh = plane.panel.make_shots(plane.panel.make_view())
                wanted = drawn(fresh, fresh.shot(plane.panel.compute(**plane.panel.state)))
                shot = Shot(*pack["shots"][moved["shots"][place]])
                assert drawn(held, shot) == json.loads(json.dumps(wanted)), (label, name, place)


def test_what_moves_along_has_places_on_the_page():
    """Or, where the page has no such value, a label."""
    explorer = RecordedPanel(BudgetCost(), Limits(values=5))
    for start in explorer.content()["starts"]:
        labels = {control["name"]: control["labels"] for control in start["controls"]}
        for moved in start["ranges"].values():
            for along in moved["moved"]:
                for name, at in along.items():
                    assert at not in labels[name] if isinstance(at, str) else 0 <= at < len(labels[name])


def test_what_is_thinned_is_said(plane):
    said = {label: (kept, full) for label, kept, full in plane.thinned}
    controls = plane.panel.controls
    assert set(said) == {control.description for control in controls.values() if len(options(control)) > 5}
    for control in controls.values():
        assert said[control.description][1] == len(options(control))


def test_a_control_takes_others_along():
    explorer = RecordedPanel(BudgetCost(), Limits(values=5))
    moved = [along for start in explorer.starts for found in start.ranges.values() for along in found.moved if along]
    assert moved
    for along in moved:
        assert set(along) <= set(explorer.panel.controls)


def test_limits_end_the_rounds():
    few, more = (RecordedPanel(BudgetCost(), Limits(values=9, frames=frames)) for frames in (10, 10_000))
    assert few.frames < more.frames
    assert len(RecordedPanel(BudgetCost(), Limits(values=9, bytes=1)).pack) == len(few.pack)
