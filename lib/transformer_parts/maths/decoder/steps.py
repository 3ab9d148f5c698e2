"""The steps of a decoder layer: what is recorded of each of its tensors, and the function that records them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from numpy.typing import NDArray

from transformer_parts.maths.attention import scores
from transformer_parts.maths.decoder.config import StackConfig

__all__ = ["Step"]

#: Called with the name and the value of each tensor of a layer; returns the value.
Note = Callable[[str, NDArray], NDArray]


def pass_on(name: str, value: NDArray) -> NDArray:
    """Return the value and record nothing: the `note` of a layer that is not watched.

    Parameters
    ----------
    name : str
    value : ndarray

    Returns
    -------
    ndarray

    Examples
    --------
    >>> pass_on("q", 1.5)
    1.5
    """
    return value


class Step(NamedTuple):
    """One intermediate tensor of a decoder layer and what it took to make it.

    Attributes
    ----------
    name : str; what it is, such as "q" or "weights"
    axes : str; its axes in the letters of the package, such as "… H L K"
    value : ndarray; the tensor; not to be written to, for later steps may share its memory
    uses : tuple of str; the names of the weights that are used in this step
    parameters : int; how many numbers these weights have
    flops : int; operations of the step's matrix product, a multiplication and an addition counted as two; 0 without one
    """

    name: str
    axes: str
    value: NDArray
    uses: tuple[str, ...] = ()
    parameters: int = 0
    flops: int = 0


_AXES: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("x", "norm1", "attention", "sum1", "U", "norm2", "ffn", "sum2", "Y"), "… L D")
    | dict.fromkeys(("q", "q_rotated", "mixed"), "… H L K")
    | dict.fromkeys(("k", "v", "k_rotated"), "… G S K")
    | dict.fromkeys(("scores", "weights"), "… H L S")
    | dict.fromkeys(("gate", "up", "product", "hidden"), "… L F")
)
_MATRICES: Mapping[str, str] = MappingProxyType(
    {
        "q": "w_q",
        "k": "w_k",
        "v": "w_v",
        "attention": "w_o",
        "gate": "w_gate",
        "up": "w_up",
        "hidden": "w_in",
        "ffn": "w_down w_out",  # whichever the layer has
    }
)


def recorder(steps: list[Step], weights: Mapping[str, NDArray], config: StackConfig) -> Note:
    """Return a `note` that appends each tensor of a layer to `steps`, with its scores, which it computes itself.

    What a layer notes for its backward pass alone is left out.
    """
    before, queries = config.placement == "pre", []
    norms = {"norm1" if before else "U": "attn_norm", "norm2" if before else "Y": "ffn_norm"}

    def record(name: str, value: NDArray, flops: int = 0) -> None:
        names = [*_MATRICES.get(name, "").split(), norms.get(name), f"{norms.get(name)}_bias"]
        uses = tuple(use for use in names if use in weights)
        if name in _MATRICES:
            flops = 2 * value.size // weights[uses[0]].shape[1] * weights[uses[0]].size
        steps.append(Step(name, _AXES[name], value, uses, sum(weights[use].size for use in uses), flops))

    def note(name: str, value: NDArray) -> NDArray:
        if name == "query":
            queries.append(value)
        elif name == "key":
            found = scores(queries[-1], value, scale=config.scale)
            record("scores", found, 2 * found.size * value.shape[-1])
        elif name == "mixed":
            record(name, value, 2 * value.size * steps[-1].value.shape[-1])  # the step before: the weights
        elif name in _AXES:
            record(name, value)
        return value

    return note
