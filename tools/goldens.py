"""Write tests/explore/goldens/tables.json: what stands beside every explorer's picture.  Run by `make goldens`.

For each explorer: its controls with their labels and ranges, what the play button moves, and the values and the table
of numbers at the start and after each preset.  What changes is printed and is to be read before it is committed.
"""

import difflib
import json
from pathlib import Path

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.controls import range_of
from transformer_parts.explore.panel import Panel

FILE = Path(__file__).resolve().parents[1] / "tests/explore/goldens/tables.json"


class NoPicture:
    """A view that draws nothing: tables come from the data."""

    size = (1, 1)

    def frame(self, data: object) -> bytes:
        return b""


def tables(kind: type[Panel]) -> dict:
    """Return what an explorer shows in words and numbers."""
    panel = type(kind.__name__, (kind,), {"make_view": lambda self: NoPicture()})()
    plays = {} if panel.play is None else {"label": panel.controls[panel.play].description, "ms": panel.play_interval}
    found = {
        "controls": {
            name: f"{control.description} [{', '.join(control.options[i][0] for i in (0, -1))}]"
            if type(control).__name__ == "SelectionSlider"
            else f"{control.description} [{range_of(control)}]"
            for name, control in panel.controls.items()
        },
        "play": {"control": panel.play, **plays},
        "start": {"state": panel.state, "rows": _rows(panel)},
    }
    for label, values in panel.presets.items():
        panel.reset()
        panel.set(**values)
        found[str(label)] = {"sets": dict(values), "rows": _rows(panel)}
    return json.loads(json.dumps(found, default=float))


def _rows(panel: Panel) -> list[str]:
    return [f"{row.label} | {row.value}" for row in panel.rows(panel.shown)]


def text(golden: dict) -> str:
    """Return the tables as the file has them."""
    return json.dumps(golden, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file and print what has changed."""
    before = FILE.read_text("utf-8") if FILE.exists() else ""
    after = text({kind.__name__: tables(kind) for kind in PANELS})
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(after, "utf-8")
    changes = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "now", lineterm="", n=4)
    print("\n".join(changes) or "Nothing has changed.")


if __name__ == "__main__":
    main()
