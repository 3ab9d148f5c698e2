"""Ways of getting a cached decoder wrong, run as they are written, so that the error of each can be measured.

Each fault runs through the same `KVCache` as the right way and differs in the one thing that its name says;
the second half of this module runs them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.attention import attention_weights
from transformer_parts.maths.cache.fault_names import FAULTS, Chunk, Fault
from transformer_parts.maths.cache.kv_cache import KVCache
from transformer_parts.maths.decoder import DecoderLayer

__all__ = [
    "Decoding",
    "FaultyCache",
    "Glance",
    "decode",
    "head_run",
    "head_whole",
    "misplaced",
    "whole",
]


class FaultyCache:
    """The cache of one layer, used in the way of a fault.

    Parameters
    ----------
    fault : Fault; the way
    pad : int; padding at the left of the prompt
    trained_length : int; L of dynamic scaling
    layer : int; index of the layer
    settings : mapping; the keywords of `rope.rotate` in the right way

    Examples
    --------
    >>> one = np.ones((1, 1, 2))
    >>> cache = FaultyCache(FAULTS["restart"])
    >>> for token in range(3):
    ...     query, keys, values, mask = cache.take(one, one, one)
    >>> cache.kept.positions.tolist()
    [0.0, 0.0, 0.0]
    """

    @require.door
    def __init__(
        self,
        fault: Fault,
        *,
        pad: int = 0,
        trained_length: int = 1,
        layer: int = 0,
        settings: Mapping[str, object] = MappingProxyType({}),
    ):
        self.fault, self.pad = fault, require.integer("pad", pad, minimum=0)
        self.trained_length = require.integer("trained_length", trained_length)
        self.layer = require.integer("layer", layer, minimum=0)
        self.settings = settings
        self.kept = KVCache(rotated=fault.scaling != "unrotated", ordered=False)

    @require.door
    def take(self, query: NDArray, key: NDArray, value: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Append new tokens and return what attention would be given.

        Parameters
        ----------
        query : (…, H, L, K) ndarray; not yet turned, like `key`
        key, value : (…, G, L, K) ndarrays

        Returns
        -------
        query : (…, H, L, K) ndarray; turned
        keys, values : (…, G, S, K) ndarrays; all there are, the keys turned
        mask : (L, S) ndarray of bool; who may attend to whom
        """
        given = {"query": query, "key": key, "value": value}
        query, key, value = (require.array(name, x, min_ndim=3) for name, x in given.items())
        require.shape("query", query, (*key.shape[:-3], "H", *key.shape[-2:]), "as key but for the heads")
        require.shape("value", value, (*key.shape[:-1], "Kv"), "as key but for the width")
        start, length = len(self.kept), key.shape[-2]
        chunk = Chunk(start, length, self.pad, self.layer, key.shape[-3])
        positions = self.fault.place(chunk)
        real = start + length - self.pad
        settings = self.fault.turn(real, self.trained_length, key.shape[-1], self.settings)
        if self.fault.again and start:
            turned = rope.rotate(self.kept.keys, self.kept.positions[..., None, :], **settings)
            others = self.kept.values.copy(), self.kept.positions.copy()
            self.kept.truncate(0)
            self.kept.append(turned, *others)
        self.kept.append(rope.rotate(key, positions, **settings) if self.kept.rotated else key, value, positions)
        keys = self.kept.keys if self.kept.rotated else self.kept.turned_keys(**settings)
        mask = np.tri(length, len(self.kept), start, dtype=bool)
        if not self.fault.sees_padding:
            mask[:, : self.pad] = False
            np.fill_diagonal(mask[:, start:], True)  # padding attends to itself
        return rope.rotate(query, positions, **settings), keys, self.kept.values, mask


class Glance(NamedTuple):
    """What the newest token compares itself with in one layer.

    Attributes
    ----------
    query : (H, K) ndarray; its turned queries
    keys : (G, S, K) ndarray; the keys as they are read
    weights : (H, S) ndarray; its attention weights
    """

    query: NDArray
    keys: NDArray
    weights: NDArray


class Decoding(NamedTuple):
    """What a cached decoder makes of a sequence, at the end of the prompt and after each of N further tokens.

    Attributes
    ----------
    outputs : (N + 1, D) ndarray; output of the stack for the newest token
    glances : tuple of Glance; what that token compares itself with in the chosen layer

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
        right : Decoding; what `whole` returns

        Returns
        -------
        (N + 1,) ndarray
        """
        require.instance("right", right, Decoding)
        require.shape("right.outputs", right.outputs, self.outputs.shape, "as this decoding has")
        return np.abs(self.outputs - right.outputs).max(axis=-1)


@require.door
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
    layers : sequence of DecoderLayer; the stack
    x : (T, D) array_like
        What enters the first layer: padding, prompt and the tokens decoded after it, whose number is N.
    prompt : int; tokens of the prompt, without its padding
    fault : str; A name in `FAULTS`
    pad : int; padding before the prompt
    trained_length : int; L of dynamic scaling; read by its faults alone
    layer : int; the layer to glance at

    Returns
    -------
    Decoding

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
        FaultyCache(way, pad=pad, trained_length=trained_length, layer=i, settings=each.config.rotation)
        for i, each in enumerate(layers)
    ]
    outputs, seen = [], []
    for start, stop in steps_of(pad + prompt, len(x)):
        stream = x[start:stop]
        for i, (each, cache) in enumerate(zip(layers, caches, strict=True)):
            query, keys, values, mask = cache.take(*each.project(stream))
            stream = each.finish(stream, query, keys, values, mask=np.broadcast_to(mask, (each.n_heads, *mask.shape)))
            if i == layer:
                seen.append(glance_at(query, keys, mask, each.scale))
        outputs.append(stream[-1])
    return Decoding(np.array(outputs), tuple(seen))


@require.door
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

    Source: Peng et al., "YaRN", arXiv:2309.00071, §3.3.

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
        turns = [way.turn(length, trained_length, each.head_dim, each.config.rotation) for each in layers]
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


@require.door
def head_run(
    query: ArrayLike,
    key: ArrayLike,
    prompt: int,
    fault: str = "none",
    *,
    trained_length: int = 1,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Glance, ...]:
    """Fill the cache of one head in the way of a fault, and glance at the newest token of every step.

    Parameters
    ----------
    query, key : (T, K) array_like; of every token, not yet turned
    prompt : int; tokens that come at once; the others come one by one
    fault : str
        A name in `FAULTS`.  Where layers matter the head is of a layer after the first.
    trained_length : int; L of dynamic scaling; read by its faults alone
    settings : mapping; keywords of `rope.rotate`

    Returns
    -------
    tuple of Glance; for the last token of the prompt and each token after it, with one head, H = G = 1

    Examples
    --------
    >>> ones = np.ones((5, 2))
    >>> print(np.array2string(head_run(ones, ones, 4, "restart")[-1].weights[0], precision=3))
    [0.368 0.192 0.05  0.022 0.368]
    """
    query, key, prompt = _checked_head(query, key, prompt)
    way = FAULTS[require.one_of("fault", fault, FAULTS)]
    trained_length = require.integer("trained_length", trained_length)
    cache = FaultyCache(way, trained_length=trained_length, layer=1, settings=settings)
    seen = []
    for start, stop in steps_of(prompt, len(query)):
        new = key[None, start:stop]
        turned, keys, _, mask = cache.take(query[None, start:stop], new, new)
        seen.append(glance_at(turned, keys, mask, None))
    return tuple(seen)


@require.door
def head_whole(
    query: ArrayLike,
    key: ArrayLike,
    prompt: int,
    *,
    trained_length: int | None = None,
    settings: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Glance, ...]:
    """Return the right answer to `head_run`: every length at once, with no cache.

    Parameters
    ----------
    query, key, prompt, settings
        As for `head_run`.
    trained_length : int, optional; let the base follow the length beyond it (dynamic scaling)

    Returns
    -------
    tuple of Glance

    Source: Peng et al., "YaRN", arXiv:2309.00071, §3.3.

    Examples
    --------
    >>> ones = np.ones((5, 2))
    >>> print(np.array2string(head_whole(ones, ones, 4)[-1].weights[0], precision=3))
    [0.053 0.033 0.074 0.288 0.551]
    """
    query, key, prompt = _checked_head(query, key, prompt)
    way = FAULTS["none" if trained_length is None else "base changed, unrotated keys"]
    trained_length = require.integer("trained_length", 1 if trained_length is None else trained_length)
    seen, turned = [], None
    for length in range(prompt, len(query) + 1):
        if turned is None or (way.dynamic and length > trained_length):
            turn = way.turn(length, trained_length, key.shape[-1], settings)
            turned = [rope.rotate(part[None], np.arange(len(key)), **turn) for part in (query, key)]
        mask = np.ones((1, length), dtype=bool)
        seen.append(glance_at(turned[0][:, :length], turned[1][:, :length], mask, None))
    return tuple(seen)


@require.door
def misplaced(weights: ArrayLike, right: ArrayLike) -> NDArray:
    r"""Return the share of attention that goes to other tokens than it should.

    .. math:: \tfrac12 \sum_j |w_j - w^\star_j|

    Parameters
    ----------
    weights, right : (…, S) array_like; attention weights; each row sums to 1

    Returns
    -------
    (…) ndarray; from 0 (the same) to 1 (no token in common)

    Examples
    --------
    >>> float(misplaced(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25])))
    0.25
    """
    weights, right = require.in_one_dtype(weights=weights, right=right)
    require.shape("right", right, weights.shape, "as weights has")
    return np.abs(weights - right).sum(axis=-1) / 2


def _checked_head(query: ArrayLike, key: ArrayLike, prompt: int) -> tuple[NDArray, NDArray, int]:
    query, key = (require.array(name, part, min_ndim=2) for name, part in (("query", query), ("key", key)))
    require.ndim("query", query, 2)
    require.shape("key", key, query.shape, "as query")
    return query, key, require.integer("prompt", prompt, maximum=len(query))
