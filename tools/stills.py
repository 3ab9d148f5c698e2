"""Draw the still of every explorer, as it begins, into figures/.

    python tools/stills.py

The notebooks show the stills where no kernel runs, and the tests compare the explorers with them.
"""

from pathlib import Path

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.panel import Panel

PROJECT = Path(__file__).resolve().parents[1]


def still(panel: Panel) -> bytes:
    """Return the picture of a panel's present state as PNG."""
    return panel.view.still(panel.compute(**panel.state))


def main() -> None:
    """Write all stills."""
    for kind in PANELS:
        panel = kind()
        path = PROJECT / panel.still
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(still(panel))
        print(path.relative_to(PROJECT))


if __name__ == "__main__":
    main()
