"""The front end is one module, and the linter has nothing to say of its parts."""

import subprocess
import sys
from pathlib import Path

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.front_end import FrontEnd
from transformer_parts.explore.rope import RopePlane

FRONT = Path(__file__).resolve().parents[2] / "lib" / "transformer_parts" / "explore" / "front"


def test_the_module_of_the_widget_has_no_imports_and_one_export():
    assert "\nimport " not in FrontEnd._esm
    assert [line for line in FrontEnd._esm.splitlines() if line.startswith("export")] == ["export default {"]


def test_the_linter_is_content():
    linter = Path(sys.executable).with_name("oxlint")
    command = [linter, "--deny-warnings", FRONT]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_buttons_of_a_player_are_named_by_what_they_move():
    panel = RopePlane()
    label = panel.controls[panel.play].description
    assert panel._front_end.play_names == [f"Play or pause: {label}", f"Stop: {label}", f"Repeat: {label}"]
    still = next(kind for kind in PANELS if kind.play is None)
    assert still()._front_end.play_names == []
