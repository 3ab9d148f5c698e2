"""What passes through a decoder leave behind, and the numbers by layer that are watched while it is trained."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths.attention import entropy, scores

__all__ = ["Gradients", "LayerNumbers", "Pass", "Tape", "layer_numbers", "norm_of", "rms"]


class Tape(NamedTuple):
    """What a forward pass kept.

    Attributes
    ----------
    tokens : (..., L) ndarray of int
    streams : tuple of (..., L, D) ndarrays
        The residual stream before the first layer, and after each: n_layers + 1 of them.
    layers : tuple of dict
        What `stack_layer.layer_forward` kept of each layer: queries, keys, attention weights, gates.
    output : (..., L, D) ndarray
        What the head reads: the last stream, after the final norm where there is one.
    """

    tokens: NDArray
    streams: tuple[NDArray, ...]
    layers: tuple[dict[str, NDArray], ...]
    output: NDArray


class Gradients(NamedTuple):
    """What a backward pass found.

    Attributes
    ----------
    weights : dict of str to ndarray
        The loss's gradient with respect to each parameter, by its name.
    streams : tuple of (..., L, D) ndarrays
        With respect to each of the tape's streams.
    """

    weights: dict[str, NDArray]
    streams: tuple[NDArray, ...]


class Pass(NamedTuple):
    """One pass forward and backward.

    Attributes
    ----------
    loss : float
        Mean cross-entropy of the targets that count, in nats.
    gradients : dict of str to ndarray
        By the parameters' names.
    tape : Tape
        What the forward pass kept.
    stream_gradients : tuple of (..., L, D) ndarrays
        With respect to the residual stream before the first layer and after each.
    """

    loss: float
    gradients: dict[str, NDArray]
    tape: Tape
    stream_gradients: tuple[NDArray, ...]


class LayerNumbers(NamedTuple):
    """Numbers of one pass, by layer.

    Attributes
    ----------
    activation_rms : (n_layers + 1,) ndarray
        Root mean square of the residual stream before the first layer and after each.
    stream_gradient : (n_layers + 1,) ndarray
        Norm of the loss's gradient with respect to each of these streams.
    weight_gradient : (n_layers,) ndarray
        Norm of the gradient of all parameters of a layer together.
    largest_score : (n_layers,) ndarray
        Largest size of an attention score that a query may attend to, after scaling.
    entropy : (n_layers,) ndarray
        Mean entropy of the attention weights over heads and queries, in nats.
    """

    activation_rms: NDArray
    stream_gradient: NDArray
    weight_gradient: NDArray
    largest_score: NDArray
    entropy: NDArray


def layer_numbers(found: Pass) -> LayerNumbers:
    """Return the numbers to watch of a pass forward and backward.

    Parameters
    ----------
    found : Pass
        What `stack.loss_and_gradients` returned.

    Returns
    -------
    LayerNumbers
        In float64.

    Examples
    --------
    >>> from transformer_parts.maths import stack
    >>> config = stack.StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name: np.full(shape, 0.1) for name, shape in stack.shapes(config).items()}
    >>> numbers = layer_numbers(stack.loss_and_gradients(weights, [[1, 1]], [[2, 3]], config))
    >>> numbers.activation_rms[0].round(6), numbers.entropy.round(4).tolist()  # (0 + ln 2)/2: equal scores
    (np.float64(0.1), [0.3466, 0.3466])
    """
    tape, gradients = found.tape, found.gradients
    of_layers = [
        [g for name, g in gradients.items() if name.startswith(f"layers.{i}.")] for i in range(len(tape.layers))
    ]
    largest = [_largest_score(kept["query"], kept["key"]) for kept in tape.layers]
    return LayerNumbers(
        activation_rms=np.array([rms(x) for x in tape.streams]),
        stream_gradient=np.array([norm_of([g]) for g in found.stream_gradients]),
        weight_gradient=np.array([norm_of(gs) for gs in of_layers]),
        largest_score=np.array(largest),
        entropy=np.array([np.mean(entropy(kept["weights"]), dtype=np.float64) for kept in tape.layers]),
    )


def rms(x: NDArray) -> float:
    """Return the root mean square of all entries.

    Parameters
    ----------
    x : ndarray
        Of any shape.

    Returns
    -------
    float

    Examples
    --------
    >>> rms(np.array([[1.0, 7.0]]))
    5.0
    """
    return norm_of([x]) / np.sqrt(x.size).item()


def norm_of(arrays: list[NDArray]) -> float:
    """Return the Euclidean norm of all entries of all arrays, as one vector.

    Parameters
    ----------
    arrays : list of ndarray
        Of any shapes; the sum of squares is taken in float64.

    Returns
    -------
    float

    Examples
    --------
    >>> norm_of([np.array([3.0]), np.array([[0.0, 4.0]])])
    5.0
    """
    flat = (x.astype(np.float64, copy=False).ravel() for x in arrays)
    return float(np.sqrt(sum(np.dot(x, x) for x in flat)))


def _largest_score(query: NDArray, key: NDArray) -> float:
    size = np.abs(scores(query, key))
    return float(np.max(size, where=np.tri(*size.shape[-2:], dtype=bool), initial=0.0))
