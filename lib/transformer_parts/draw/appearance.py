"""What an artist looks like, as a value that can be compared: artists that did not change need not be drawn again."""

from collections.abc import Hashable
from types import MappingProxyType

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection, EllipseCollection
from matplotlib.colorizer import Colorizer
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import BboxBase, Transform

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
        "_sticky_edges",
    )
)
# What an artist that belongs to another, as a text's box, is given when that one is drawn.
_PLACED = frozenset(("_x", "_y", "_width", "_height", "_transform", "_transformSet", "_mutation_scale"))
_DERIVED = MappingProxyType(
    {
        Line2D: frozenset(
            ("_path", "_xy", "_x", "_y", "_x_filled", "_transformed_path", "_subslice", "_invalidx", "_invalidy")
        ),
        Collection: frozenset(
            (
                "_mapped_colors",
                "_transforms",
                "_facecolors",
                "_edgecolors",
                "_face_is_mapped",
                "_edge_is_mapped",
                "_offset_transform",
            )
        ),
        EllipseCollection: frozenset(("_transform",)),
        FancyArrowPatch: frozenset(("_dpi_cor",)),
        Text: frozenset(("_renderer",)),
    }
)


# Of these kinds a value is compared as it is.
_PLAIN = frozenset((str, int, float, bool, type(None), np.float64, np.float32, np.int64, np.bool_))


def _left_out(kind: type[Artist]) -> frozenset[str]:
    return _BOOKKEEPING.union(*(names for owner, names in _DERIVED.items() if issubclass(kind, owner)))


def appearance(artist: Artist) -> Hashable:
    """Return a value that is another one whenever the artist would be drawn in another way within the same limits.

    It is made of all that the artist keeps, so that a property which a view changes is never forgotten.  Of things
    that this module does not know, each counts as another one; the value holds them, so that none takes the place in
    memory of another.
    """
    # First the transform, to which some artists bring what they keep.
    transform = None if isinstance(artist, EllipseCollection) else _value(artist.get_transform())
    offsets = _value(artist.get_offset_transform()) if isinstance(artist, Collection) else None
    place = None if artist.axes is None else _value(artist.axes.bbox)
    return (transform, offsets, place, *_kept(artist, _left_out(type(artist))))


def _kept(artist: Artist, left_out: frozenset[str]) -> list[Hashable]:
    return [_value(value) for name, value in vars(artist).items() if name not in left_out]


def _value(value: object) -> Hashable:
    kind = type(value)
    if kind in _PLAIN:
        # One that is not a number is no other one than before.
        return value if value == value else "nan"
    if kind is np.ndarray:
        return (value.shape, value.tobytes() if value.dtype != object else tuple(map(_value, value.flat)))
    if kind is list or kind is tuple:
        return tuple(map(_value, value))
    if kind is dict:
        return tuple((name, _value(part)) for name, part in value.items())
    if kind is Path:
        return (_value(value.vertices), _value(value.codes))
    if isinstance(value, Transform):
        return value.get_affine().get_matrix().tobytes()
    if isinstance(value, BboxBase):
        return value.get_points().tobytes()
    if kind is np.ma.MaskedArray:
        return (_value(value.data), _value(np.ma.getmaskarray(value)))
    if kind is MarkerStyle:
        return (_value(value.get_marker()), value.get_fillstyle())
    if kind is FontProperties:
        return _value(vars(value))
    if kind is Colorizer:
        return (value.vmin, value.vmax, value.cmap.name, value.norm)
    if isinstance(value, Artist):
        return tuple(_kept(value, _left_out(kind) | _PLACED))
    if kind.__module__ == "matplotlib.patches":
        # The styles of arrows, their bends and boxes: a few numbers, made anew each time that one is set.
        return (kind, _value(vars(value)))
    return value if kind.__hash__ else id(value)
