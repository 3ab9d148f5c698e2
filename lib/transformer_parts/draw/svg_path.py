"""Paths as SVG path data in whole steps, relative to the point before: short, and read by every browser."""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from matplotlib.path import Path
from numpy.typing import NDArray

#: Steps of a recorded coordinate in one device pixel.
STEPS = 8

_LETTERS = MappingProxyType({Path.MOVETO: "m", Path.LINETO: "l", Path.CURVE3: "q", Path.CURVE4: "c"})
_POINTS = MappingProxyType({Path.MOVETO: 1, Path.LINETO: 1, Path.CURVE3: 2, Path.CURVE4: 3})


def path_data(vertices: NDArray, codes: NDArray | None = None) -> str:
    """Return a path, in pixels, as relative SVG path data in whole steps.

    Examples
    --------
    >>> path_data(np.array([[1, 1], [2, 1], [2, 0.5]]))
    'm8 8l8 0 0-4'
    """
    if codes is None:
        codes = np.full(len(vertices), Path.LINETO)
        codes[0] = Path.MOVETO
    points = np.round(STEPS * np.asarray(vertices)).astype(int)
    if codes[-1] == Path.STOP:
        points, codes = points[:-1], codes[:-1]
    if not len(codes):
        return ""
    if codes[0] == Path.MOVETO and (codes[1:] == Path.LINETO).all():
        return _polyline(points)
    points, codes = points.tolist(), codes.tolist()
    text, last = [], ""
    x = y = start_x = start_y = i = 0
    while i < len(codes):
        code = codes[i]
        if code == Path.CLOSEPOLY:
            text.append("z")
            x, y, last = start_x, start_y, "z"
            i += 1
            continue
        letter, count = _LETTERS[code], _POINTS[code]
        numbers = [n for point in points[i : i + count] for n in (point[0] - x, point[1] - y)]
        i += count
        if letter == "l" and numbers == [0, 0] and last == "l":
            continue
        text.append(("" if letter == last else letter) + _numbers(numbers, spaced=letter == last))
        x, y = points[i - 1]
        if letter == "m":
            start_x, start_y = x, y
        last = letter
    return "".join(text)


def _polyline(points: NDArray[np.int_]) -> str:
    """Return the data of one line through all points."""
    steps = np.diff(points, axis=0)
    if len(steps) > 1:
        stays = ~steps.any(axis=1)
        stays[0] = False
        steps = steps[~stays]
    start = "m" + _numbers(points[0].tolist(), spaced=False)
    return f"{start}l" + " ".join(map(str, steps.ravel().tolist())).replace(" -", "-") if len(steps) else start


def _numbers(numbers: Sequence[int], *, spaced: bool) -> str:
    """Return numbers with a space only where no sign parts them."""
    first, *rest = numbers
    text = f" {first}" if spaced and first >= 0 else str(first)
    return text + "".join(f" {n}" if n >= 0 else str(n) for n in rest)
