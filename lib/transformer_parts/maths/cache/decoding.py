"""Decoding with a cache: a decoder layer, or a stack of them, run on the new tokens alone.

Whole-sequence causal attention and decoding token by token, or in chunks, are the same computation in another order.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.cache.kv_cache import KVCache
from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.maths.decoder.steps import Note, pass_on

__all__ = ["layer_step", "position_ids", "stack_step"]


def advance(
    layer: DecoderLayer,
    x: NDArray,
    cache: KVCache,
    positions: NDArray,
    *,
    valid: NDArray | None = None,
    inv_freq: ArrayLike | None = None,
    note: Note = pass_on,
) -> NDArray:
    """Take one step of decoding: project the new tokens, append them to the cache, attend to all there is.

    The arguments are not checked, and the cache keeps what it took if something fails; `layer_step` sees to both.

    Parameters
    ----------
    layer : DecoderLayer
    x : (…, L, D) ndarray; the residual stream of the new tokens
    cache : KVCache; the layer's own
    positions : (L,) or (…, L) ndarray
    valid : (…, L) ndarray of bool, optional
    inv_freq : (P,) array_like, optional
    note : function (name, value), optional; all as in `layer_step`

    Returns
    -------
    (…, L, D) ndarray

    Examples
    --------
    >>> layer, cache = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16), KVCache()
    >>> advance(layer, np.ones((3, 8)), cache, np.arange(3)).shape, len(cache)
    ((3, 8), 3)
    """
    query, key, value = layer.project(x, positions if cache.rotated else None, note)
    cache.append(key, value, positions, valid=valid)
    if cache.rotated:
        keys = cache.keys
    else:  # turned at every reading, by the frequencies of this moment
        rotation = layer.config.rotation | ({} if inv_freq is None else {"inv_freq": inv_freq})
        query, keys = rope.rotate(query, positions[..., None, :], **rotation), cache.turned_keys(**rotation)
    keys, values = (part.astype(query.dtype, copy=False) for part in (keys, cache.values))  # (…, G, S, K)
    return layer.finish(x, query, keys, values, mask=_mask(cache, query.shape), note=note)


def position_ids(valid: ArrayLike, start: ArrayLike = 0.0) -> NDArray[np.float64]:
    r"""Return the positions of tokens some of which are padding: how many real ones come before each.

    .. math:: p_j = \text{start} + \sum_{i<j} \text{valid}_i

    Parameters
    ----------
    valid : (…, L) array_like of bool; True for a real token, False for padding
    start : (…) array_like; the position of each row's first real token

    Returns
    -------
    (…, L) ndarray
        Positions.  Those of padding do not matter, as nobody attends to it.

    Examples
    --------
    >>> position_ids([[False, False, True, True], [True, True, True, True]]).tolist()
    [[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 2.0, 3.0]]
    """
    valid = require.as_array("valid", valid)
    if valid.dtype != np.bool_ or valid.ndim == 0:
        got = f"an array of {valid.dtype} of shape {valid.shape}"
        raise require.refusal("valid", got, "bool of shape (…, L), True = a real token")
    start = require.array("start", start, min_ndim=0)
    require.broadcasts("start", start.shape, valid.shape[:-1], "the leading axes of valid")
    return start[..., None] + (np.cumsum(valid, axis=-1) - valid)


@require.door
def layer_step(
    layer: DecoderLayer,
    x: ArrayLike,
    cache: KVCache,
    positions: ArrayLike | None = None,
    *,
    valid: ArrayLike | None = None,
    inv_freq: ArrayLike | None = None,
    note: Note = pass_on,
) -> NDArray:
    """Run one decoder layer on new tokens, which see one another causally and all that is in the cache.

    Parameters
    ----------
    layer : DecoderLayer; the layer
    x : (…, L, D) array_like; the residual stream of the new tokens: the whole prompt, a chunk of it, or one token
    cache : KVCache; this layer's own; the new keys and values are appended to it
    positions : (L,) or broadcastable to (…, L) array_like, optional
        The new tokens' absolute positions; by default they go on where each row of the cache stands.
    valid : (L,) or broadcastable to (…, L) array_like of bool, optional
        False marks padding, which the cache remembers: no other token ever attends to it.
    inv_freq : (P,) array_like, optional
        Frequencies of this moment instead of the layer's, for a cache of unrotated keys.
    note : function (name, value), optional
        Called with each intermediate tensor, which it returns, as in a call of the layer.

    Returns
    -------
    (…, L, D) ndarray; the layer's output for the new tokens, in the dtype of `x`

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite, the cache refuses the tokens, or `inv_freq` is given with
        a cache of rotated keys (which were turned by others).  The cache is as it was then.

    Source: Shazeer, "Fast Transformer Decoding", arXiv:1911.02150, §2.4.

    Examples
    --------
    >>> layer = DecoderLayer.random(d_model=8, n_heads=2, n_kv_heads=1, d_ff=16, std=0.5)
    >>> x, cache = np.random.default_rng(0).normal(size=(5, 8)), KVCache()
    >>> steps = [layer_step(layer, x[t : t + 1], cache) for t in range(5)]
    >>> bool(np.abs(np.concatenate(steps) - layer(x)).max() < 1e-12)
    True
    """
    x, positions, valid = _new_tokens(layer, x, cache, positions, valid)
    with _all_or_nothing([cache]):
        return _advance_checked(layer, x, cache, positions, valid, inv_freq, note)


@require.door
def stack_step(
    layers: Sequence[DecoderLayer],
    x: ArrayLike,
    caches: Sequence[KVCache],
    positions: ArrayLike | None = None,
    *,
    valid: ArrayLike | None = None,
    inv_freq: ArrayLike | None = None,
) -> NDArray:
    """Run decoder layers one after the other on new tokens, each with a cache of its own.

    A token has one position in all layers: it is read once, before the first layer has grown its cache.

    Parameters
    ----------
    layers : sequence of DecoderLayer; in order
    x : (…, L, D) array_like; the residual stream of the new tokens as it enters the first layer
    caches : sequence of KVCache; as many, all of one length
    positions, valid, inv_freq
        As for `layer_step`, the same for all layers

    Returns
    -------
    (…, L, D) ndarray; the output of the last layer, in the dtype of `x`

    Raises
    ------
    ValueError
        As `layer_step` does, or if the caches do not belong to the layers.  Every cache is as it was then.

    Source: Pope et al., "Efficiently Scaling Transformer Inference", arXiv:2211.05102, §2.

    Examples
    --------
    >>> layers = [DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, seed=seed) for seed in range(3)]
    >>> caches = [KVCache() for _ in layers]
    >>> x = np.random.default_rng(0).normal(size=(5, 8))
    >>> prompt, token = stack_step(layers, x[:4], caches), stack_step(layers, x[4:], caches)
    >>> whole = x
    >>> for layer in layers:
    ...     whole = layer(whole)
    >>> bool(np.abs(token - whole[4:]).max() < 1e-12), len(caches[2])
    (True, 5)
    """
    layers, caches = list(layers), list(caches)
    if not layers:
        raise require.refusal("layers", "none", "at least one")
    if len(caches) != len(layers):
        raise require.refusal("caches", f"{len(caches)} of them", f"{len(layers)}, one for each layer")
    lengths = [len(cache) for cache in caches]
    if len(set(map(id, caches))) < len(caches) or len(set(lengths)) > 1:
        raise require.refusal("caches", f"lengths {lengths}", "one length, and a cache of its own for each layer")
    x, positions, valid = _new_tokens(layers[0], x, caches[0], positions, valid)
    with _all_or_nothing(caches):
        for layer, cache in zip(layers, caches, strict=True):
            x = _advance_checked(layer, x, cache, positions, valid, inv_freq, pass_on)
    return x


@contextmanager
def _all_or_nothing(caches: Sequence[KVCache]) -> Iterator[None]:
    """Whatever goes wrong inside, no cache has grown."""
    lengths = [len(cache) for cache in caches]
    try:
        yield
    except BaseException:
        for cache, length in zip(caches, lengths, strict=True):
            cache.truncate(length)
        raise


def _advance_checked(layer: DecoderLayer, x, cache: KVCache, positions, valid, inv_freq, note: Note) -> NDArray:
    if cache.rotated and inv_freq is not None:
        raise require.refusal("inv_freq", "frequencies for a cache of rotated keys", "none, or KVCache(rotated=False)")
    stream = x.astype(require.compute_dtype(x.dtype), copy=False)
    y = advance(layer, stream, cache, positions, valid=valid, inv_freq=inv_freq, note=note)
    return y.astype(x.dtype, copy=False)


def _new_tokens(layer: DecoderLayer, x, cache: KVCache, positions, valid) -> tuple[NDArray, NDArray, NDArray | None]:
    x = require.array("x", x, min_ndim=2)
    require.last_axis("x", x, layer.config.d_model, "attn_norm")
    rows = x.shape[:-1]
    if valid is not None:
        valid = require.mask("valid", valid, rows, "the (…, L) of x", "a real token")
    if positions is None:
        start = cache.next_position
        require.broadcasts("x's leading axes", rows[:-1], start.shape, "those of the cache") if len(cache) else None
        positions = start[..., None] + np.arange(rows[-1]) if valid is None else position_ids(valid, start)
    else:
        positions = require.array("positions", positions)
        require.last_axis("positions", positions, rows[-1], "the L of x")
        require.broadcasts("positions", positions.shape, rows, "the (…, L) of x")
    return x, positions, valid


def _mask(cache: KVCache, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """Return the (…, H, L, S) mask that keeps everyone off the padding, or None where there is no padding.

    Padding attends to itself, because a softmax over nothing has no value; nobody reads what it makes.
    """
    valid = cache.valid
    if valid.all():
        return None
    *lead, heads, length, _ = shape
    own = np.eye(length, len(cache), len(cache) - length, dtype=bool)
    return np.broadcast_to((valid[..., None, :] | own)[..., None, :, :], (*lead, heads, length, len(cache)))
