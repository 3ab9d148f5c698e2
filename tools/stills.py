"""Draw the still of every explorer, as it begins, into figures/.

    python tools/stills.py [name ...]

Without names all are drawn; a name is that of an explorer's class, such as RopePlane.  The notebooks show the stills
where no kernel runs, and the tests compare the explorers with them.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.panel import Panel

PROJECT = Path(__file__).resolve().parents[1]


def still(panel: Panel | LiveRun) -> bytes:
    """Return the picture of a panel's present state, or what a live run shows, as PNG."""
    data = panel.shown if isinstance(panel, LiveRun) else panel.compute(**panel.state)
    return panel.view.still(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the stills named on the command line, or all."""
    kinds = {kind.__name__: kind for kind in (*PANELS, *LIVE_RUNS)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="an explorer's class, such as RopePlane")
    names = parser.parse_args(arguments).names
    if unknown := [name for name in names if name not in kinds]:
        parser.error(f"name: got {', '.join(unknown)}, want some of {', '.join(kinds)}")
    for name in names or kinds:
        panel = kinds[name]()
        path = PROJECT / panel.still
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(still(panel))
        print(path.relative_to(PROJECT))


if __name__ == "__main__":
    main()
