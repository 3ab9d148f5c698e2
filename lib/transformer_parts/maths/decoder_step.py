"""What a decoder layer tells of its intermediate tensors as it comes by them."""

from collections.abc import Callable
from typing import NamedTuple

from numpy.typing import NDArray

__all__ = ["Note", "Step"]


class Step(NamedTuple):
    """One intermediate tensor of a decoder layer.

    Attributes
    ----------
    name : str
        What it is, such as "q" or "weights".
    axes : str
        Its axes in the letters of the package, such as "… H L K".
    value : ndarray
        The tensor; not to be written to, for later steps may share its memory.
    """

    name: str
    axes: str
    value: NDArray


#: Takes a step's name, axes and value as the layer comes by it.
Note = Callable[[str, str, NDArray], None]
