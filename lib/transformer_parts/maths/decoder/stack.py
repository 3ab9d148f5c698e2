"""A whole decoder of any depth and kind: embedding, layers, final norm, head; its loss and all its gradients.

Parameters are one flat mapping from the names of `shapes` to arrays, and so are gradients.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.attention import entropy, scores
from transformer_parts.maths.cross_entropy import cross_entropy, loss_and_gradient
from transformer_parts.maths.decoder.config import StackConfig, layer_weights, shapes
from transformer_parts.maths.decoder.layer import normalized
from transformer_parts.maths.decoder.layer_gradients import layer_backward, layer_forward, normalized_backward
from transformer_parts.maths.gradients import embedding_backward, linear_backward

__all__ = [
    "Gradients",
    "LayerNumbers",
    "Pass",
    "Tape",
    "backward",
    "forward",
    "layer_numbers",
    "loss",
    "loss_and_gradients",
]

Weights = Mapping[str, NDArray]


class Tape(NamedTuple):
    """What a forward pass kept.

    Attributes
    ----------
    tokens : (..., L) ndarray of int
    streams : tuple of (..., L, D) ndarrays
        The residual stream before the first layer, and after each: n_layers + 1 of them.
    layers : tuple of dict
        What `layer_gradients.layer_forward` kept of each layer: queries, keys, attention weights, gates.
    output : (..., L, D) ndarray; what the head reads: the last stream, after the final norm where there is one
    """

    tokens: NDArray
    streams: tuple[NDArray, ...]
    layers: tuple[dict[str, NDArray], ...]
    output: NDArray


class Gradients(NamedTuple):
    """What a backward pass found.

    Attributes
    ----------
    weights : dict of str to ndarray; the loss's gradient with respect to each parameter, by its name
    streams : tuple of (..., L, D) ndarrays; with respect to each of the tape's streams
    """

    weights: dict[str, NDArray]
    streams: tuple[NDArray, ...]


class Pass(NamedTuple):
    """One pass forward and backward.

    Attributes
    ----------
    loss : float; mean cross-entropy of the targets that count, in nats
    gradients : dict of str to ndarray; by the parameters' names
    tape : Tape; what the forward pass kept
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
    stream_gradient : (n_layers + 1,) ndarray; norm of the loss's gradient with respect to each of these streams
    weight_gradient : (n_layers,) ndarray; norm of the gradient of all parameters of a layer together
    largest_score : (n_layers,) ndarray; largest size of an attention score that a query may attend to, after scaling
    entropy : (n_layers,) ndarray; mean entropy of the attention weights over heads and queries, in nats
    """

    activation_rms: NDArray
    stream_gradient: NDArray
    weight_gradient: NDArray
    largest_score: NDArray
    entropy: NDArray


@require.door
def forward(weights: Weights, tokens: ArrayLike, config: StackConfig) -> tuple[NDArray, Tape]:
    r"""Run a decoder on token ids.

    .. math:: X_0 = E[\text{tokens}], \quad X_{l+1} = \operatorname{Layer}_l(X_l), \quad
              Z = \operatorname{Norm}(X_{n}) W_\text{head}

    A tied head is Eᵀ.  The final norm stands only where the placement leaves the stream unnormalised.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Of the names and shapes of `shapes`, all of one floating dtype of at least 32 bits.
    tokens : array_like of int, shape (..., L); from 0 to V − 1, at the positions 0 … L − 1
    config : StackConfig; sizes and kinds

    Returns
    -------
    logits : ndarray, shape (..., L, V); those at position t see the tokens 0 … t
    tape : Tape; every layer's tensors

    References
    ----------
    Vaswani et al., arXiv:1706.03762, §3; the decoder alone: Radford et al., "Improving Language Understanding by
    Generative Pre-Training", 2018, §3.1, eq. 2.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name: np.full(shape, 0.1) for name, shape in shapes(config).items()}
    >>> logits, tape = forward(weights, [[1, 2, 3]], config)
    >>> logits.shape, len(tape.streams)
    ((1, 3, 5), 3)
    """
    _check(weights, config)
    tokens = require.indices("tokens", tokens, config.vocab_size)
    if tokens.ndim < 1:
        raise require.refusal("tokens", "a single token", "at least 1 axis, the sequence")
    stream = weights["embedding"][tokens]
    streams, layers = [stream], []
    try:
        for i in range(config.n_layers):
            stream, kept = layer_forward(layer_weights(weights, i), stream, config)
            streams.append(stream)
            layers.append(kept)
        output = normalized(weights, "final_norm", stream, config) if config.final_norm else stream
    except ValueError as error:  # a step has refused what it was given
        raise _blamed(weights, stream.dtype) from error
    logits = (output.reshape(-1, config.d_model) @ _head(weights, config)).reshape(*tokens.shape, -1)
    if not require.all_finite(logits):
        raise _blamed(weights, logits.dtype)
    return logits, Tape(tokens, tuple(streams), tuple(layers), output)


@require.door
def backward(grad: ArrayLike, weights: Weights, tape: Tape, config: StackConfig) -> Gradients:
    """Return the gradients of everything from the gradient of the logits.

    Parameters
    ----------
    grad : array_like, shape (..., L, V); gradient of the loss with respect to the logits
    weights : mapping of str to ndarray; those of the forward pass
    tape : Tape; what it kept
    config : StackConfig; sizes and kinds

    Returns
    -------
    Gradients; A tied embedding's gradient is the sum of its two uses

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name: np.full(shape, 0.1) for name, shape in shapes(config).items()}
    >>> logits, tape = forward(weights, [[1, 2, 3]], config)
    >>> found = backward(np.ones_like(logits), weights, tape, config)
    >>> found.weights.keys() == weights.keys(), len(found.streams)
    (True, 3)
    """
    _check(weights, config)
    require.instance("tape", tape, Tape)
    gradients: dict[str, NDArray] = {}
    grad, of_head = linear_backward(grad, tape.output, _head(weights, config))
    if config.final_norm:
        grad, found = normalized_backward(weights, "final_norm", grad, tape.streams[-1], config)
        gradients.update(found)
    streams = [grad]
    for i in reversed(range(config.n_layers)):
        grad, found = layer_backward(grad, layer_weights(weights, i), tape.layers[i], config)
        gradients.update({f"layers.{i}.{name}": of_weight for name, of_weight in found.items()})
        streams.append(grad)
    gradients["embedding"] = embedding_backward(grad, tape.tokens, config.vocab_size)
    if config.tied:
        gradients["embedding"] += of_head.T
    else:
        gradients["head"] = of_head
    return Gradients({name: gradients[name] for name in weights}, tuple(reversed(streams)))


@require.door
def loss(weights: Weights, tokens: ArrayLike, targets: ArrayLike, config: StackConfig) -> float:
    """Return the mean cross-entropy of the targets, in nats.

    Parameters
    ----------
    weights : mapping of str to ndarray; as for `forward`
    tokens, targets : array_like of int, shape (..., L)
        What is read, and what should be predicted at each position: the next token, or −1 where nothing counts.
    config : StackConfig; sizes and kinds

    Returns
    -------
    float

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name: np.full(shape, 0.1) for name, shape in shapes(config).items()}
    >>> print(f"{loss(weights, [[1, 2, 3]], [[2, 3, -1]], config):.4f}")  # ln 5: all logits are equal
    1.6094
    """
    return cross_entropy(forward(weights, tokens, config)[0], targets)


@require.door
def loss_and_gradients(weights: Weights, tokens: ArrayLike, targets: ArrayLike, config: StackConfig) -> Pass:
    """Return the loss, its gradient with respect to every parameter, and what both passes went through.

    Parameters
    ----------
    weights : mapping of str to ndarray; as for `forward`
    tokens, targets : array_like of int, shape (..., L); as for `loss`
    config : StackConfig; sizes and kinds

    Returns
    -------
    Pass

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name: np.full(shape, 0.1) for name, shape in shapes(config).items()}
    >>> found = loss_and_gradients(weights, [[1, 2, 3]], [[2, 3, -1]], config)
    >>> found.gradients["layers.1.w_q"].shape, len(found.stream_gradients)
    ((8, 8), 3)
    """
    logits, tape = forward(weights, tokens, config)
    mean, of_logits = loss_and_gradient(logits, targets)
    found = backward(of_logits, weights, tape, config)
    mean = mean if math.isfinite(mean) else cross_entropy(logits, targets)  # which says what is wrong
    return Pass(mean, found.weights, tape, found.streams)


@require.door
def layer_numbers(found: Pass) -> LayerNumbers:
    """Return the numbers to watch of a pass forward and backward.

    Parameters
    ----------
    found : Pass; what `loss_and_gradients` returned

    Returns
    -------
    LayerNumbers; in float64

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
    >>> weights = {name: np.full(shape, 0.1) for name, shape in shapes(config).items()}
    >>> numbers = layer_numbers(loss_and_gradients(weights, [[1, 1]], [[2, 3]], config))
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
    """Return the root mean square of all entries, of any shape."""
    return norm_of([x]) / np.sqrt(x.size).item()


def norm_of(arrays: list[NDArray]) -> float:
    """Return the Euclidean norm of all entries of all arrays, as one vector; squares are summed in float64."""
    flat = (x.astype(np.float64, copy=False).ravel() for x in arrays)
    return float(np.sqrt(sum(np.dot(x, x) for x in flat)))


def _largest_score(query: NDArray, key: NDArray) -> float:
    size = np.abs(scores(query, key))
    return float(np.max(size, where=np.tri(*size.shape[-2:], dtype=bool), initial=0.0))


def _head(weights: Weights, config: StackConfig) -> NDArray:
    return weights["embedding"].T if config.tied else weights["head"]


def _blamed(weights: Weights, dtype: np.dtype) -> ValueError:
    for name, w in weights.items():
        require.all_numbers(f"weights[{name!r}]", w)
    return require.refusal("weights", "logits that are not finite", f"logits within {dtype.name}")


def _check(weights: Weights, config: StackConfig) -> None:
    wanted = shapes(config)
    if weights.keys() != wanted.keys():
        missing, unknown = sorted(wanted.keys() - weights.keys()), sorted(weights.keys() - wanted.keys())
        got = ", ".join([*(f"no {name}" for name in missing), *(f"an unknown {name}" for name in unknown)])
        raise require.refusal("weights", got, "the parameters that shapes(config) names")
    for name, shape in wanted.items():
        w = weights[name]
        if not isinstance(w, np.ndarray) or not require.is_floating(w.dtype) or w.dtype.itemsize < 4:
            raise require.refusal(
                f"weights[{name!r}]", f"{getattr(w, 'dtype', type(w).__name__)}", "float32 or float64"
            )
        require.shape(f"weights[{name!r}]", w, shape, "as shapes(config) has it")
