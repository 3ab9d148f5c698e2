"""Draw the moving picture at the head of the README, figures/moving.webp.

    python tools/moving_picture.py

Query and key of one pair of channels walk down the line together: both arrows turn and the score stands still.  Then
the key walks on alone, and the score follows the curve.
"""

import io
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from stills import still

from transformer_parts.explore.rope import RopePlane

PROJECT = Path(__file__).resolve().parents[1]
PICTURE = PROJECT / "figures" / "moving.webp"
#: Milliseconds of a frame, and of the one at the end of each walk.
FRAME, REST = 110, 900
WIDTH = 680


def states() -> Iterator[tuple[dict[str, int], int]]:
    """Yield the states of the plane in order, each with its milliseconds."""
    together = [{"shift": shift} for shift in range(17)]
    alone = [{"shift": 16, "n": n} for n in range(5, 17)]
    for walk in (together, alone):
        yield from ((state, FRAME) for state in walk[:-1])
        yield walk[-1], REST


def frame(panel: RopePlane, state: dict[str, int]) -> Image.Image:
    """Return the picture of a state, as wide as the README shows it."""
    panel.put(panel.initial | state)
    with Image.open(io.BytesIO(still(panel))) as picture:
        height = round(picture.height * WIDTH / picture.width)
        return picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)


def main() -> None:
    """Write the picture."""
    panel = RopePlane()
    frames, durations = zip(*((frame(panel, state), milliseconds) for state, milliseconds in states()), strict=True)
    frames[0].save(PICTURE, save_all=True, append_images=frames[1:], duration=durations, loop=0, quality=80, method=6)
    print(f"{PICTURE.relative_to(PROJECT)}  {PICTURE.stat().st_size / 1000:.0f} kB, {len(frames)} frames")


if __name__ == "__main__":
    main()
