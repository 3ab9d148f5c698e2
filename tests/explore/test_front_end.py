"""The front end is one module, and the linter has nothing to say of its parts."""

import re
import subprocess
import sys
from pathlib import Path

from transformer_parts.explore import page_part
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.front_end import PAGE, FrontEnd, joined
from transformer_parts.explore.rope import RopePlane

FRONT = Path(__file__).resolve().parents[2] / "lib" / "transformer_parts" / "explore" / "front"


def test_the_module_of_the_widget_has_no_imports_and_one_export():
    assert "\nimport " not in FrontEnd._esm
    assert [line for line in FrontEnd._esm.splitlines() if line.startswith("export")] == ["export default () => {"]


def test_the_linter_is_content():
    linter = Path(sys.executable).with_name("oxlint")
    command = [linter, "--deny-warnings", FRONT]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_module_of_a_page_without_a_kernel_has_no_imports_and_no_exports():
    module = joined(*PAGE)
    assert [line for line in module.splitlines() if line.startswith(("import", "export"))] == []
    assert "class Session" in module


def test_what_a_page_must_know_of_a_panel_is_said_at_the_beginning():
    panel = RopePlane()
    front = panel._front_end
    assert [control["name"] for control in front.controls] == list(panel.controls)
    assert front.presets == [*panel.presets, "Reset"]
    assert (front.play, front.interval) == (panel.play, panel.play_interval)
    label = panel.controls[panel.play].description
    assert (front.words["play"], front.words["pause"]) == (f"Play: {label}", f"Pause: {label}")
    assert front.alt == panel.alt
    width, height = panel.view.size
    assert front.size == {"width": width, "height": height, "pixelRatio": 2}
    assert {name: getattr(front, name) for name in page_part.of(panel)} == page_part.of(panel)
    still = next(kind for kind in PANELS if kind.play is None)()
    assert still._front_end.play == ""


def test_the_page_uses_no_word_that_it_was_not_given():
    used = {word for name in FRONT.glob("*.js") for word in re.findall(r"part\.words\.(\w+)", name.read_text("utf-8"))}
    assert used == set(RopePlane()._front_end.words)
