"""Draw the still of every explorer, as it begins, into figures/.

    python tools/stills.py

The notebooks show the stills where no kernel runs, and the tests compare the explorers with them.
"""

from pathlib import Path

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.live_run import LiveRun
from transformer_parts.explore.panel import Panel

PROJECT = Path(__file__).resolve().parents[1]


def still(panel: Panel | LiveRun) -> bytes:
    """Return the picture of a panel's present state, or what a live run shows, as PNG."""
    data = panel.shown if isinstance(panel, LiveRun) else panel.compute(**panel.state)
    return panel.view.still(data)


def main() -> None:
    """Write all stills."""
    for kind in (*PANELS, *LIVE_RUNS):
        panel = kind()
        path = PROJECT / panel.still
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(still(panel))
        print(path.relative_to(PROJECT))


if __name__ == "__main__":
    main()
