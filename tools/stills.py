"""Write the still of every explorer, at its initial state, to figures/.

python tools/stills.py
"""

from pathlib import Path

from transformer_parts.explore.catalogue import PANELS

PROJECT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Write all stills."""
    for panel_class in PANELS:
        panel = panel_class()
        (PROJECT / panel.still).write_bytes(panel.view.still(panel.compute(**panel.state)))


if __name__ == "__main__":
    main()
