"""Numbers with two decimals in the cells of a heat map, as shapes in one collection: quicker than texts."""

from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D, IdentityTransform
from numpy.typing import NDArray

from transformer_parts.draw import theme

_CHARACTERS = "0123456789.−"
_WIDTHS = MappingProxyType({".": 0.5, "−": 1.25})  # of a digit's
_ON_LIGHT, _ON_DARK = to_rgba(theme.INK), to_rgba(theme.PAPER)
#: The widest number that is written out; beyond it, digits would leave their cell.
WIDEST = 5


class CellNumbers(PathCollection):
    """Numbers centred on places, each white or dark as the cell beneath it asks for.

    Parameters
    ----------
    axes : Axes
        Where they stand; places are fractions of its width and height.
    """

    def __init__(self, axes: Axes):
        super().__init__([], offsets=np.empty((0, 2)), offset_transform=IdentityTransform(), linewidth=0)
        shapes = [TextPath((0, 0), character, size=theme.TEXT - 1) for character in _CHARACTERS]
        self._pixels = axes.figure.dpi / 72
        self._advance = TextPath((0, 0), "00", size=theme.TEXT - 1).get_extents().width / 2 * 1.04 * self._pixels
        down = Affine2D().translate(0, -shapes[0].get_extents().height / 2).scale(self._pixels)
        self._shapes = {c: down.transform_path(shape) for c, shape in zip(_CHARACTERS, shapes, strict=True)}
        self.set_transform(IdentityTransform())
        axes.add_collection(self, autolim=False)

    def set_values(self, values: NDArray, places: NDArray, light: NDArray) -> None:
        """Show `values` (N,) at `places` (N, 2), in white where `light` (N,) is true."""
        paths, offsets, colours = [], [], []
        for value, (x, y), on_dark in zip(
            values.tolist(), self.axes.transAxes.transform(places).tolist(), light.tolist(), strict=True
        ):
            text = written(value)
            widths = [self._advance * _WIDTHS.get(character, 1.0) for character in text]
            x -= sum(widths) / 2
            for character, width in zip(text, widths, strict=True):
                paths.append(self._shapes[character])
                offsets.append((x, y))
                colours.append(_ON_DARK if on_dark else _ON_LIGHT)
                x += width
        self.set_paths(paths or [Path(np.empty((0, 2)))])
        self.set_offsets(np.reshape(offsets, (-1, 2)))
        self.set_facecolor(colours or "none")


def written(value: float) -> str:
    """Return a number as it stands in a cell: two decimals, fewer where it is long.

    Examples
    --------
    >>> written(-0.456), written(-0.001), written(-12.34), written(1234.5)
    ('−0.46', '0.00', '−12.3', '1234')
    """
    for decimals in (2, 1, 0):
        text = f"{round(value, decimals) + 0.0:.{decimals}f}"
        if len(text) <= WIDEST:
            break
    return text.replace("-", "−")
