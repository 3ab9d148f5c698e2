"""Runs of a cached decoder, right or in the way of a fault, beside the whole sequence at once."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.attention import attention_weights
from transformer_parts.maths.cache_decoding import rotation_settings
from transformer_parts.maths.cache_faults import FAULTS, FaultyCache
from transformer_parts.maths.decoder import DecoderLayer

__all__ = ["Decoding", "Glance", "decode", "whole"]


class Glance(NamedTuple):
    """What the newest token compares itself with in one layer.

    Attributes
    ----------
    query : (H, K) ndarray
        Its turned queries.
    keys : (G, S, K) ndarray
        The keys as they are read.
    weights : (H, S) ndarray
        Its attention weights.
    """

    query: NDArray
    keys: NDArray
    weights: NDArray


class Decoding(NamedTuple):
    """What a cached decoder makes of a sequence, at the end of the prompt and after each of N further tokens.

    Attributes
    ----------
    outputs : (N + 1, D) ndarray
        Output of the stack for the newest token.
    glances : tuple of Glance
        What that token compares itself with in the chosen layer.

    Examples
    --------
    >>> Decoding(np.array([[1.0, 2.0]]), ()).errors(Decoding(np.array([[1.0, 5.0]]), ())).tolist()
    [3.0]
    """

    outputs: NDArray
    glances: tuple[Glance, ...]

    def errors(self, right: "Decoding") -> NDArray:
        """Return the largest difference from the right output, for each token.

        Parameters
        ----------
        right : Decoding
            What `whole` returns.

        Returns
        -------
        (N + 1,) ndarray
        """
        return np.abs(self.outputs - right.outputs).max(axis=-1)


def decode(
    layers: Sequence[DecoderLayer],
    x: ArrayLike,
    prompt: int,
    fault: str = "none",
    *,
    pad: int = 0,
    trained_length: int = 1,
    layer: int = 0,
) -> Decoding:
    """Run a prompt at once and the tokens after it one by one, through caches used in the way of a fault.

    Parameters
    ----------
    layers : sequence of DecoderLayer
        The stack.
    x : (T, D) array_like
        What enters the first layer: padding, prompt and the tokens decoded after it, whose number is N.
    prompt : int
        Tokens of the prompt, without its padding.
    fault : str
        A name in `FAULTS`.
    pad : int
        Padding before the prompt.
    trained_length : int
        L of dynamic scaling; read by its faults alone.
    layer : int
        The layer to glance at.

    Returns
    -------
    Decoding

    Raises
    ------
    ValueError
        If `fault` is unknown or a number does not fit.

    Examples
    --------
    >>> layers = [DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, std=0.5, seed=seed) for seed in (0, 1)]
    >>> x = np.random.default_rng(0).normal(size=(9, 8))
    >>> right = whole(layers, x, prompt=6)
    >>> bool(decode(layers, x, 6).errors(right).max() < 1e-12)
    True
    >>> (decode(layers, x, 6, "restart").errors(right) > 0.1).tolist()
    [False, True, True, True]
    """
    x, pad, prompt, layer = _checked(layers, x, prompt, pad, layer)
    way = FAULTS[require.one_of("fault", fault, FAULTS)]
    trained_length = require.integer("trained_length", trained_length)
    caches = [
        FaultyCache(way, pad=pad, trained_length=trained_length, layer=i, settings=rotation_settings(each))
        for i, each in enumerate(layers)
    ]
    outputs, seen = [], []
    for start, stop in steps_of(pad + prompt, len(x)):
        stream = x[start:stop]
        for i, (each, cache) in enumerate(zip(layers, caches, strict=True)):
            parts = {}
            each.project(stream, np.zeros(stop - start), lambda name, _, part, parts=parts: parts.update({name: part}))
            query, keys, values, mask = cache.take(parts["q"], parts["k"], parts["v"])
            whole_mask = np.broadcast_to(mask, (each.n_heads, *mask.shape))
            u = stream + each.attend(query, keys, values, mask=whole_mask)
            stream = u + each.feed_forward(u)
            if i == layer:
                seen.append(glance_at(query, keys, mask, each.scale))
        outputs.append(stream[-1])
    return Decoding(np.array(outputs), tuple(seen))


def whole(
    layers: Sequence[DecoderLayer],
    x: ArrayLike,
    prompt: int,
    *,
    pad: int = 0,
    trained_length: int | None = None,
    layer: int = 0,
) -> Decoding:
    """Return the right answer to `decode`: the whole sequence up to each token at once, with no cache and no padding.

    Parameters
    ----------
    layers, x, prompt, pad, layer
        As for `decode`.  The padding is left out, of the glances' keys and weights too.
    trained_length : int, optional
        Let the base follow the length beyond it (dynamic scaling): every length is then a pass of its own.

    Returns
    -------
    Decoding

    Raises
    ------
    ValueError
        As `decode` does.

    References
    ----------
    Peng et al., "YaRN", arXiv:2309.00071, §3.3.

    Examples
    --------
    >>> layer = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, std=0.5)
    >>> x = np.random.default_rng(0).normal(size=(6, 8))
    >>> right = whole([layer], x, prompt=4)
    >>> bool((right.outputs == layer(x)[3:]).all()), right.glances[0].weights.shape
    (True, (2, 4))
    """
    x, pad, prompt, layer = _checked(layers, x, prompt, pad, layer)
    x = x[pad:]
    together = len(x) if trained_length is None else require.integer("trained_length", trained_length)
    together = min(max(together, 0), len(x))
    passes = [(range(prompt, together + 1), layers)] if together >= prompt else []
    for length in range(max(prompt, together + 1), len(x) + 1):
        way = FAULTS["base changed, unrotated keys"]
        turns = [way.turn(length, trained_length, each.head_dim, rotation_settings(each)) for each in layers]
        scaled = [dataclasses.replace(each, inv_freq=t["inv_freq"]) for each, t in zip(layers, turns, strict=True)]
        passes.append((range(length, length + 1), scaled))
    outputs, seen = [], []
    for lengths, stack in passes:
        stream = x[: lengths[-1]]
        for i, each in enumerate(stack):
            if i == layer:
                steps = {step.name: step.value for step in each.trace(stream)}
                query, key, weights = (steps[name] for name in ("q_rotated", "k_rotated", "weights"))
                seen += [Glance(query[:, n - 1], key[:, :n], weights[:, n - 1, :n]) for n in lengths]
                stream = steps["Y"]
            else:
                stream = each(stream)
        outputs += [stream[n - 1] for n in lengths]
    return Decoding(np.array(outputs), tuple(seen))


def _checked(layers, x, prompt, pad, layer) -> tuple[NDArray, int, int, int]:
    x = require.array("x", x, min_ndim=2)
    require.ndim("x", x, 2)
    pad = require.integer("pad", pad, minimum=0, maximum=len(x) - 1)
    prompt = require.integer("prompt", prompt, maximum=len(x) - pad)
    if not layers:
        raise require.refusal("layers", "none", "at least one")
    return x, pad, prompt, require.integer("layer", layer, minimum=0, maximum=len(layers) - 1)


def steps_of(prompt: int, tokens: int) -> list[tuple[int, int]]:
    """Return where each chunk starts and stops: the prompt, then one token each."""
    return [(0, prompt), *((t, t + 1) for t in range(prompt, tokens))]


def glance_at(query: NDArray, keys: NDArray, mask: NDArray, scale: float | None) -> Glance:
    """Return what the last of some queries compares itself with; the last row of the mask is its own."""
    weights = attention_weights(query[:, -1:], keys, mask=mask[-1:], scale=scale)[:, 0]
    return Glance(query[:, -1], keys.copy(), weights)
