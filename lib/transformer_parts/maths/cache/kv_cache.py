"""The key/value cache of one attention layer: what earlier tokens leave behind for later ones.

A token's key and value depend on the tokens up to it alone, so they are computed once.  Its position never changes
either: RoPE turns the key once, before it goes in, and the value not at all.
"""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from transformer_parts.maths import require, rope


class KVCache:
    """Keys and values of one layer, in a buffer that grows by doubling.

    Appending copies the new tokens alone.  What is there is moved only when the buffer is full, and as the buffer
    then doubles, a token is moved once on average, however many come.  What is reserved and not yet written costs
    address space, not memory.

    Parameters
    ----------
    rotated : bool
        Whether the keys it is given are turned by their positions already.  With False it keeps them as they were
        projected, and `turned_keys` turns all of them at every reading, by the frequencies of that moment: more
        work, and needed where frequencies change with the length.
    ordered : bool
        Refuse positions that do not rise from token to token of a row (padding left out).  That is the rule when a
        text is decoded; a cache that drops or rearranges tokens turns it off.
    capacity : int; tokens to reserve at first
    max_tokens : int, optional; never hold or reserve more
    dtype : dtype, optional
        What keys and values are stored in, such as float16.  By default the dtype of the first key, and any other is
        refused.

    References
    ----------
    Shazeer, "Fast Transformer Decoding", arXiv:1911.02150, §2.4 (incremental attention);
    Peng et al., "YaRN", arXiv:2309.00071, §3.3 (keys before the rotation, for dynamic scaling).

    Examples
    --------
    >>> cache = KVCache()
    >>> key, value = np.ones((2, 1, 3, 4))  # one kv head, three tokens, four channels
    >>> cache.append(rope.rotate(key, [0, 1, 2]), value, [0, 1, 2])
    >>> len(cache), cache.keys.shape, float(cache.next_position)
    (3, (1, 3, 4), 3.0)
    """

    def __init__(
        self,
        *,
        rotated: bool = True,
        ordered: bool = True,
        capacity: int | None = None,
        max_tokens: int | None = None,
        dtype: DTypeLike | None = None,
    ):
        self.rotated = require.boolean("rotated", rotated)
        self.ordered = require.boolean("ordered", ordered)
        self.max_tokens = None if max_tokens is None else require.integer("max_tokens", max_tokens)
        capacity = min(16, self.max_tokens or 16) if capacity is None else capacity
        self._reserve = require.integer("capacity", capacity, maximum=self.max_tokens)
        self._dtype = None if dtype is None else require.dtype("dtype", dtype)
        self._length = 0
        # key and value (…, G, capacity, K), positions and valid (…, capacity), filled to _length
        self._buffers: dict[str, NDArray] = {}
        self._highest = np.array(-np.inf)  # (…), of the positions of each row's real tokens

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        if not self._length:
            return "KVCache(empty)"
        kind = "rotated" if self.rotated else "unrotated"
        return f"KVCache({kind} keys {self.keys.shape}, {self.keys.dtype})"

    @property
    def keys(self) -> NDArray:
        """The keys as they were given, (…, G, S, K): a read-only view, good until the next append or truncate."""
        return self._view("key")

    @property
    def values(self) -> NDArray:
        """The values, (…, G, S, Kv): a read-only view like `keys`."""
        return self._view("value")

    @property
    def positions(self) -> NDArray[np.float64]:
        """The position of every token, (…, S), read-only."""
        return self._view("positions")

    @property
    def valid(self) -> NDArray[np.bool_]:
        """True for a real token, False for padding, (…, S), read-only."""
        return self._view("valid")

    @property
    def next_position(self) -> NDArray[np.float64]:
        """The position after the highest there is, for each row, (…); 0 where there is no real token."""
        return np.where(np.isneginf(self._highest), 0.0, self._highest + 1)

    @property
    def capacity(self) -> int:
        """How many tokens fit before the buffer grows."""
        return self._buffers["valid"].shape[-1] if self._buffers else self._reserve

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values there are, over all rows and kv heads."""
        return self.keys.nbytes + self.values.nbytes if self._length else 0

    def append(self, key: ArrayLike, value: ArrayLike, positions: ArrayLike, *, valid: ArrayLike | None = None) -> None:
        """Take in the keys and values of new tokens.

        Parameters
        ----------
        key : (…, G, L, K) array_like
            Turned by `positions` if the cache is of rotated keys, as projected if not.  An empty cache takes any
            sizes; then all of them but L stay the same.
        value : (…, G, L, Kv) array_like; as projected: values are never turned
        positions : (L,) or broadcastable to (…, L) array_like; the tokens' own absolute positions
        valid : (L,) or broadcastable to (…, L) array_like of bool, optional
            False marks padding; all tokens are real if not given.

        Raises
        ------
        ValueError
            If a shape or dtype does not fit, an entry is not finite, positions do not rise or there would be more
            than `max_tokens`; the cache is as it was then.

        Examples
        --------
        >>> cache = KVCache()
        >>> cache.append(np.ones((1, 1, 2)), np.ones((1, 1, 2)), [5])
        >>> cache.append(np.ones((1, 1, 2)), np.ones((1, 1, 2)), [5])
        Traceback (most recent call last):
        ...
        ValueError: positions: got 5.0 after 5.0, want positions that rise from token to token
        """
        key, value = self._entries(key, value)
        rows = (*key.shape[:-3], key.shape[-2])
        positions = _per_token("positions", require.array("positions", positions), rows)
        valid = require.as_array("valid", True if valid is None else valid)
        if valid.dtype != np.bool_:
            raise require.refusal("valid", str(valid.dtype), "bool, True = a real token")
        valid = _per_token("valid", valid, rows) if valid.ndim else np.broadcast_to(valid, rows)
        highest = self._highest_with(positions, valid)

        stop = self._length + rows[-1]
        new = {"key": key, "value": value, "positions": positions, "valid": valid}
        buffers = self._room_for(new, stop)
        for name, entries in new.items():
            _tokens(name, buffers[name], self._length, stop)[...] = entries
        self._buffers, self._highest, self._length = buffers, highest, stop

    def turned_keys(
        self,
        *,
        rope_base: float = 10000.0,
        inv_freq: ArrayLike | None = None,
        layout: str = "interleaved",
        rotary_dim: int | None = None,
    ) -> NDArray:
        """Return the keys of a cache of unrotated ones, each turned by its position: a new array.

        Parameters
        ----------
        rope_base, inv_freq, layout, rotary_dim
            As for `rope.rotate`: the frequencies of this moment.

        Returns
        -------
        (…, G, S, K) ndarray

        Raises
        ------
        ValueError
            If the keys are rotated already, or as `rope.rotate` does.

        Source: Peng et al., "YaRN", arXiv:2309.00071, §3.3.

        Examples
        --------
        >>> cache = KVCache(rotated=False)
        >>> cache.append([[[1.0, 2.0]]], [[[0.0, 0.0]]], [1])
        >>> cache.turned_keys(inv_freq=[np.pi / 2]).round(12).tolist()
        [[[-2.0, 1.0]]]
        """
        if self.rotated:
            raise require.refusal("turned_keys", "a cache of rotated keys", "one made with rotated=False: turn once")
        settings = {"rope_base": rope_base, "inv_freq": inv_freq, "layout": layout, "rotary_dim": rotary_dim}
        return rope.rotate(self.keys, self.positions[..., None, :], **settings)

    def truncate(self, length: int) -> None:
        """Forget every token after the first `length`; the buffer stays, unless nothing is left.

        Parameters
        ----------
        length : int; tokens to keep

        Raises
        ------
        ValueError
            If there are fewer.

        Examples
        --------
        >>> cache = KVCache()
        >>> cache.append(np.ones((1, 3, 2)), np.ones((1, 3, 2)), [0, 1, 2])
        >>> cache.truncate(1)
        >>> cache.positions.tolist()
        [0.0]
        """
        length = require.integer("length", length, minimum=0, maximum=self._length)
        if length == 0:
            self._buffers, self._highest = {}, np.array(-np.inf)
        elif length < self._length:
            kept = np.where(self.valid[..., :length], self.positions[..., :length], -np.inf)
            self._highest = kept.max(axis=-1)
        self._length = length

    def _view(self, name: str) -> NDArray:
        if not self._length:
            plural = {"key": "keys", "value": "values"}.get(name, name)
            raise require.refusal(plural, "an empty cache", "at least one token in it")
        view = _tokens(name, self._buffers[name], 0, self._length)
        view.flags.writeable = False
        return view

    def _entries(self, key: ArrayLike, value: ArrayLike) -> tuple[NDArray, NDArray]:
        key, value = require.array("key", key, min_ndim=3), require.array("value", value, min_ndim=3)
        if value.shape[:-1] != key.shape[:-1]:
            raise require.refusal("value", f"shape {value.shape}", f"(*{key.shape[:-1]}, Kv), as key {key.shape}")
        dtype = self._dtype or (self._buffers["key"].dtype if self._length else key.dtype)
        checked = []
        for name, new in (("key", key), ("value", value)):
            if self._length:
                *lead, _, width = self._buffers[name].shape
                require.shape(name, new, (*lead, "L", width), "as the tokens before have")
            if new.dtype != dtype and self._dtype is None:
                raise require.refusal(name, str(new.dtype), f"{dtype}, as the first key, or a cache with a dtype")
            checked.append(require.cast(name, new, dtype))
        return checked[0], checked[1]

    def _highest_with(self, positions: NDArray, valid: NDArray) -> NDArray:
        """Return each row's highest position once the new tokens are in; refuse those that do not rise."""
        before = np.broadcast_to(self._highest, positions.shape[:-1])[..., None]
        so_far = np.concatenate([before, np.where(valid, positions, -np.inf)], axis=-1)
        np.maximum.accumulate(so_far, axis=-1, out=so_far)
        falls = valid & (positions <= so_far[..., :-1])
        if self.ordered and falls.any():
            at = tuple(np.argwhere(falls)[0])
            got = f"{float(positions[at])} after {float(so_far[at])}"
            raise require.refusal("positions", got, "positions that rise from token to token")
        return so_far[..., -1]

    def _room_for(self, new: dict[str, NDArray], tokens: int) -> dict[str, NDArray]:
        """Return buffers for so many tokens that hold those there are: the present ones if they are large enough."""
        if self.max_tokens is not None and tokens > self.max_tokens:
            raise require.refusal("key", f"{tokens} tokens in all", f"at most max_tokens, {self.max_tokens}")
        if self._buffers and tokens <= self.capacity:
            return self._buffers
        capacity = max(tokens, 2 * self._length, self._reserve)
        require.sizes(capacity=capacity, rows=max(entries[..., :1, :].size for entries in (new["key"], new["value"])))
        capacity = capacity if self.max_tokens is None else min(capacity, self.max_tokens)
        buffers = {}
        for name, entries in new.items():
            axis = _token_axis(name)
            buffers[name] = np.empty((*entries.shape[:axis], capacity, *entries.shape[axis:][1:]), entries.dtype)
            if self._length:
                _tokens(name, buffers[name], 0, self._length)[...] = self._view(name)
        return buffers


def _token_axis(name: str) -> int:
    return -2 if name in ("key", "value") else -1


def _tokens(name: str, buffer: NDArray, start: int, stop: int) -> NDArray:
    return buffer[..., start:stop, :] if _token_axis(name) == -2 else buffer[..., start:stop]


def _per_token(name: str, x: NDArray, rows: tuple[int, ...]) -> NDArray:
    require.last_axis(name, x, rows[-1], "the L of key")
    require.broadcasts(name, x.shape, rows, "the (…, L) of key")
    return np.broadcast_to(x, rows)
