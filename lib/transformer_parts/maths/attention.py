"""Scaled dot-product attention: masks, scores, weights, and the mixed values in bounded memory."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.attention_blocks import exponentials, mix, scaled_scores, split_heads
from transformer_parts.maths.softmax import entropy, logits, softmax

__all__ = ["attention", "attention_weights", "causal_mask", "entropy", "scores", "softmax"]


def causal_mask(L: int, S: int | None = None) -> NDArray[np.bool_]:
    """Return the (L, S) mask by which no query sees a later key: True = may attend.

    The last query is aligned with the last key, so that query i sees the keys 0 … i + S − L.  That is the case of
    decoding, where S − L keys come from the cache.

    Parameters
    ----------
    L : int
        Number of queries.
    S : int, optional
        Number of keys, at least L; L if not given.

    Returns
    -------
    (L, S) ndarray of bool

    Raises
    ------
    ValueError
        If L < 1 or S < L (the first queries would have no key).

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.3.

    Examples
    --------
    >>> causal_mask(2, 4).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    L = require.integer("L", L)
    S = L if S is None else require.integer("S", S, minimum=L)
    return np.tri(L, S, S - L, dtype=bool)


def scores(query: ArrayLike, key: ArrayLike, *, scale: float | None = None) -> NDArray:
    r"""Return every query's scaled inner product with every key of its head.

    .. math:: s_{h,i,j} = \text{scale} \cdot q_{h,i}^\top k_{g(h),j}, \qquad g(h) = \lfloor h / (H/G) \rfloor

    Parameters
    ----------
    query : (…, H, L, K) array_like
    key : (…, G, S, K) array_like
        H is a multiple of G; query head h reads key head h // (H // G).
    scale : float, optional
        1/√K if not given, which keeps the variance of the scores of unit-variance content at 1.

    Returns
    -------
    (…, H, L, S) ndarray
        Held whole: L·S numbers for each head.

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.1 and footnote 4;
    Ainslie et al., "GQA", arXiv:2305.13245, §2.2.

    Examples
    --------
    The two rotated vectors of RoPE's example by hand, scored by 1/√2:

    >>> print(f"{scores([[[-2.0, 1.0]]], [[[-2.0, -1.0]]]).item():.4f}")
    2.1213
    """
    got = _prepare(query, key, None, scale=scale)
    out = scaled_scores(got.query, got.key, got.scale)
    return _join(out).astype(got.dtype, copy=False)


def attention_weights(
    query: ArrayLike,
    key: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    causal: bool = False,
) -> NDArray:
    r"""Return the attention weights themselves, softmax(scale · q kᵀ + bias), every row of which sums to 1.

    Parameters
    ----------
    query, key, mask, bias, scale, causal
        As for `attention`.

    Returns
    -------
    (…, H, L, S) ndarray
        Held whole: L·S numbers for each head.  `attention` never makes this array.

    Raises
    ------
    ValueError
        As `attention` does.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.1.

    Examples
    --------
    >>> q = np.zeros((1, 3, 2))
    >>> print(np.array2string(attention_weights(q, q, causal=True)[0], precision=4))
    [[1.     0.     0.    ]
     [0.5    0.5    0.    ]
     [0.3333 0.3333 0.3333]]
    """
    got = _prepare(query, key, None, mask=mask, bias=bias, scale=scale, causal=causal)
    out = scaled_scores(got.query, got.key, got.scale)
    first = (0,) * (out.ndim - 1)
    out /= exponentials(out, mask=got.mask, bias=got.bias, causal=causal, first=first)
    return _join(out).astype(got.dtype, copy=False)


def attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    scale: float | None = None,
    causal: bool = False,
) -> NDArray:
    r"""Mix the values by the softmax of the scores.

    .. math:: \operatorname{Attn}(Q, K, V) = \operatorname{softmax}(\text{scale} \cdot Q K^\top + \text{bias})\, V

    The scores are computed for a block of queries at a time, within ``attention_blocks.BLOCK_BYTES``; with
    ``causal=True`` a block reads only the keys that it sees, so that no array of size L·S exists.

    Parameters
    ----------
    query : (…, H, L, K) array_like
    key : (…, G, S, K) array_like
        H is a multiple of G (G = H: multi-head, G = 1: multi-query); query head h reads head h // (H // G).
    value : (…, G, S, Kv) array_like
    mask : array_like of bool, optional
        Broadcasts to (…, H, L, S); True = may attend.
    bias : array_like, optional
        Broadcasts to (…, H, L, S); added to the scaled scores, −inf allowed.
    scale : float, optional
        1/√K if not given.
    causal : bool
        No query sees a later key; the last query is aligned with the last key.  Goes together with `mask`.

    Returns
    -------
    (…, H, L, Kv) ndarray
        Of the common floating dtype of query, key and value (16-bit ones are computed in float32).

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, a mask or `causal` is not bool, or a query has no key to attend
        to.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2;
    Ainslie et al., "GQA", arXiv:2305.13245, §2.2;
    Rabe and Staats, "Self-attention Does Not Need O(n²) Memory", arXiv:2112.05682, §2.

    Examples
    --------
    >>> q = np.zeros((1, 3, 2))
    >>> v = np.array([[[0.0], [1.0], [5.0]]])
    >>> print(np.array2string(attention(q, q, v, causal=True)[0, :, 0], precision=4))
    [0.  0.5 2. ]
    """
    got = _prepare(query, key, value, mask=mask, bias=bias, scale=scale, causal=causal)
    out = np.empty((*got.query.shape[:-1], got.value.shape[-1]), got.dtype)
    mix(got.query, got.key, got.value, out, scale=got.scale, mask=got.mask, bias=got.bias, causal=causal)
    return _join(out)


class _Prepared(NamedTuple):
    """Checked arguments with the heads split into groups, in the dtype to compute in."""

    query: NDArray  # (…, G, R, L, K)
    key: NDArray  # (…, G, S, K)
    value: NDArray | None  # (…, G, S, Kv)
    mask: NDArray | None  # (…, G, R, L, S)
    bias: NDArray | None  # (…, G, R, L, S)
    scale: float
    dtype: np.dtype  # of the result


def _prepare(query, key, value, *, scale, mask=None, bias=None, causal=False) -> _Prepared:
    arrays = {"query": query, "key": key} | ({} if value is None else {"value": value})
    arrays = {name: require.array(name, x, min_ndim=3) for name, x in arrays.items()}
    query, key = arrays["query"], arrays["key"]
    n_heads, n_queries, width = query.shape[-3:]
    n_groups, n_keys, _ = key.shape[-3:]
    require.last_axis("key", key, width, "query")
    if n_heads % n_groups:
        raise ValueError(f"query: got {n_heads} heads, want a multiple of the {n_groups} heads of key")
    if value is not None and arrays["value"].shape[-3:-1] != (n_groups, n_keys):
        got = arrays["value"].shape
        raise ValueError(f"value: got shape {got}, want (…, {n_groups}, {n_keys}, Kv), as key has {key.shape}")
    if require.boolean("causal", causal) and n_queries > n_keys:
        raise ValueError(
            f"causal: got {n_queries} queries and {n_keys} keys, want as many keys at least "
            f"(the last ones are aligned: query {n_queries - n_keys - 1} and those before it have no key)"
        )
    scale = 1 / math.sqrt(width) if scale is None else require.number("scale", scale)
    try:
        lead = np.broadcast_shapes(*(x.shape[:-3] for x in arrays.values()))
    except ValueError:
        shapes = " and ".join(str(x.shape) for x in arrays.values())
        raise ValueError(f"{', '.join(arrays)}: got shapes {shapes}, want leading axes that broadcast") from None
    try:
        dtype = np.result_type(*arrays.values())
    except TypeError:  # float16 with bfloat16: neither holds the other
        dtype = np.dtype(np.float32)
    compute = require.compute_dtype(dtype)
    query, key, *rest = (
        np.broadcast_to(x.astype(compute, copy=False), (*lead, *x.shape[-3:])) for x in arrays.values()
    )
    full = (*lead, n_heads, n_queries, n_keys)
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype != np.bool_:
            raise ValueError(f"mask: got {mask.dtype}, want bool, True = may attend (what is added goes to bias)")
        mask = _spread("mask", mask, full, n_groups)
    if bias is not None:
        bias = _spread("bias", logits("bias", bias, min_ndim=0), full, n_groups)
    value = rest[0] if rest else None
    return _Prepared(split_heads(query, n_groups), key, value, mask, bias, scale, dtype)


def _spread(name: str, x: NDArray, full: tuple[int, ...], n_groups: int) -> NDArray:
    require.broadcasts(name, x.shape, full, "the shape (…, H, L, S) of the scores")
    return split_heads(np.broadcast_to(x, full), n_groups)


def _join(x: NDArray) -> NDArray:
    """Turn a new array (…, G, R, L, K) back to (…, H, L, K)."""
    return x.reshape(*x.shape[:-4], -1, *x.shape[-2:])
