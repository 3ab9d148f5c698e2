"""What an artist looks like, as a value that can be compared: artists that did not change need not be drawn again."""

from collections.abc import Hashable
from types import MappingProxyType

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from matplotlib.transforms import Transform

# What an artist keeps for its own use, or has derived from the rest when it was drawn.
_BOOKKEEPING = frozenset(
    (
        "axes",
        "_axes",
        "_parent_figure",
        "figure",
        "_callbacks",
        "stale_callback",
        "_stale",
        "_remove_method",
        "_mouseover",
    )
)
_DERIVED = MappingProxyType(
    {
        Line2D: frozenset(("_path", "_xy", "_x", "_y", "_transformed_path", "_subslice", "_invalidx", "_invalidy")),
        Collection: frozenset(("_mapped_colors", "_transforms")),
    }
)


# Of these kinds a value is compared as it is.
_PLAIN = frozenset((str, int, float, bool, type(None), np.float64, np.float32, np.int64, np.bool_, FontProperties))


def _left_out(kind: type[Artist]) -> frozenset[str]:
    return _BOOKKEEPING.union(*(names for owner, names in _DERIVED.items() if issubclass(kind, owner)))


def appearance(artist: Artist) -> Hashable:
    """Return a value that is another one whenever the artist would be drawn in another way within the same limits.

    It is made of all that the artist keeps, so that a property which a view changes is never forgotten.  Things of
    other kinds than data count by their identity.
    """
    left_out = _left_out(type(artist))
    kept = [_value(value) for name, value in vars(artist).items() if name not in left_out]
    if isinstance(artist, Collection):
        kept.append(_value(artist.get_offset_transform()))
    return (_value(artist.get_transform()), *kept)


def _value(value: object) -> Hashable:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is np.ndarray:
        return (value.shape, value.tobytes() if value.dtype != object else tuple(map(_value, value.flat)))
    if kind is list or kind is tuple:
        return tuple(map(_value, value))
    if kind is Path:
        return (_value(value.vertices), _value(value.codes))
    if isinstance(value, Transform):
        return value.get_affine().get_matrix().tobytes()
    if kind is np.ma.MaskedArray:
        return (_value(value.data), _value(np.ma.getmaskarray(value)))
    if kind is MarkerStyle:
        return (_value(value.get_marker()), value.get_fillstyle())
    return id(value)
