"""An image as its distinct colours, rows and columns: a heat map enlarged to device pixels goes back to its cells."""

import numpy as np
from numpy.typing import NDArray

#: Code of the character that stands for colour 0: those before it would need escapes in JSON.
FIRST = 35


def encode(pixels: NDArray[np.uint8]) -> tuple[str, tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """Return (cells, widths, heights, colours) of an image, shape (height, width, 4).

    Neighbouring columns that are equal are one column with a width, and rows likewise.  `cells` has one character for
    each cell, row by row; its code less `FIRST` is the number of the cell's colour.

    Examples
    --------
    >>> import numpy as np
    >>> encode(np.full((2, 3, 4), 255, np.uint8))
    ('#', (3,), (2,), ('#ffffffff',))
    """
    packed = np.ascontiguousarray(pixels).view(np.uint32)[..., 0]
    columns, widths = _runs(packed)
    rows, heights = _runs(packed[:, columns].T)
    cells = packed[np.ix_(rows, columns)]
    colours, indices = np.unique(cells, return_inverse=True)
    names = tuple(f"#{bytes(colour).hex()}" for colour in colours.view(np.uint8).reshape(-1, 4))
    return "".join(map(chr, (indices.ravel() + FIRST).tolist())), widths, heights, names


def encode_cells(cells: NDArray[np.uint8], colours: NDArray[np.uint32], width: int, height: int) -> tuple:
    """Return the same of cells that share a box of whole pixels, given as numbers of `colours` (as RGBA in memory).

    Examples
    --------
    >>> encode_cells(np.array([[0, 1]], np.uint8), np.array([0xFF, 0xFF00], "<u4"), 3, 2)
    ('#$', (2, 1), (2,), ('#ff000000', '#00ff0000'))
    """
    (rows, heights), (columns, widths) = (
        _shares(size, have) for size, have in zip((height, width), cells.shape, strict=True)
    )
    shown = cells[np.ix_(rows, columns)]
    used = np.bincount(shown.ravel(), minlength=len(colours)) > 0
    codes = (np.cumsum(used) - 1 + FIRST).astype("<u4")
    text = codes[shown].tobytes().decode("utf-32-le")
    names = tuple(f"#{bytes(colour).hex()}" for colour in colours[used].view(np.uint8).reshape(-1, 4))
    return text, widths, heights, names


def _shares(size: int, count: int) -> tuple[NDArray, tuple[int, ...]]:
    """Return which of so many cells have pixels in a length, and how many pixels each of them has."""
    shares = np.bincount(np.arange(size) * count // size, minlength=count)
    shown = np.flatnonzero(shares)
    return shown, tuple(shares[shown].tolist())


def _runs(packed: NDArray[np.uint32]) -> tuple[NDArray, tuple[int, ...]]:
    """Return the first of each run of equal columns, and the lengths of the runs."""
    changes = np.flatnonzero((packed[:, 1:] != packed[:, :-1]).any(axis=0)) + 1
    starts = np.concatenate([[0], changes])
    return starts, tuple(np.diff(np.concatenate([starts, [packed.shape[1]]])).tolist())
