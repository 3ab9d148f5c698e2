"""What `require.door` reads off arguments: the classes that an annotation asks for, and how large numbers are."""

import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import get_args, get_origin

import numpy as np


def classes(annotation: object) -> tuple[type, ...]:
    """Return the classes to check an annotation by, none where each check is the function's own."""
    if isinstance(annotation, types.UnionType):
        parts = [classes(part) or (part is type(None) and (part,)) for part in get_args(annotation)]
        return sum(parts, ()) if all(parts) else ()
    kind = get_origin(annotation) or annotation
    ours = isinstance(kind, type) and kind.__module__.startswith("transformer_parts.")
    return (kind,) if ours or kind in (Mapping, Sequence, Callable, np.random.Generator) else ()


def elements(annotation: object) -> tuple[type, ...]:
    """Return the classes of the elements where the annotation is a sequence of them."""
    return classes(get_args(annotation)[0]) if get_origin(annotation) is Sequence else ()


def extremeness(value: object) -> float:
    """Return how far the largest entry of numbers is from 1, in powers of ten; −1 for anything else."""
    if isinstance(value, Mapping | tuple | list):
        return max(map(extremeness, value.values() if isinstance(value, Mapping) else value), default=-1.0)
    try:
        largest = float(np.abs(np.asarray(value, np.float64)).max(initial=0.0))
    except (TypeError, ValueError, OverflowError):
        return -1.0
    return abs(math.log10(largest)) if 0 < largest < math.inf else math.inf if largest else 0.0
