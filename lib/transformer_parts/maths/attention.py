"""Scaled dot-product attention: masks, scores, weights, and the mixed values in bounded memory."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = [
    "BLOCK_BYTES",
    "attention",
    "attention_weights",
    "causal_mask",
    "entropy",
    "scores",
    "softmax",
]


def causal_mask(L: int, S: int | None = None) -> NDArray[np.bool_]:
    """Return the (L, S) mask by which no query sees a later key: True = may attend.

    The last query is aligned with the last key, so that query i sees the keys 0 … i + S − L.  That is the case of
    decoding, where S − L keys come from the cache.

    Parameters
    ----------
    L : int; number of queries
    S : int, optional; number of keys, at least L; L if not given

    Returns
    -------
    (L, S) ndarray of bool

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.3.

    Examples
    --------
    >>> causal_mask(2, 4).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    L = require.integer("L", L)
    S = L if S is None else require.integer("S", S, minimum=L)
    require.sizes(L=L, S=S)
    return np.tri(L, S, S - L, dtype=bool)


def scores(query: ArrayLike, key: ArrayLike, *, scale: float | None = None) -> NDArray:
    r"""Return every query's scaled inner product with every key of its head.

    .. math:: s_{h,i,j} = \text{scale} \cdot q_{h,i}^\top k_{g(h),j}, \qquad g(h) = \lfloor h / (H/G) \rfloor

    Parameters
    ----------
    query : (…, H, L, K) array_like
    key : (…, G, S, K) array_like; H is a multiple of G; query head h reads key head h // (H // G)
    scale : float, optional; 1/√K if not given, which keeps the variance of the scores of unit-variance content at 1

    Returns
    -------
    (…, H, L, S) ndarray; held whole: L·S numbers for each head

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
    got = _prepare(query, key, _NONE, scale=scale)
    out = _join(scaled_scores(got.query, got.key, got.scale))
    if not require.all_finite(out):
        largest = np.abs(got.query).max()
        raise require.refusal("query", f"entries up to {largest:.3g}", f"scores within {out.dtype.name}")
    return require.cast("query", out, got.dtype)


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
    query, key, mask, bias, scale, causal : as for `attention`

    Returns
    -------
    (…, H, L, S) ndarray
        Held whole: L·S numbers for each head.  `attention` never makes this array.

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.1.

    Examples
    --------
    >>> q = np.zeros((1, 3, 2))
    >>> print(np.array2string(attention_weights(q, q, causal=True)[0], precision=4))
    [[1.     0.     0.    ]
     [0.5    0.5    0.    ]
     [0.3333 0.3333 0.3333]]
    """
    got = _prepare(query, key, _NONE, mask=mask, bias=bias, scale=scale, causal=causal)
    out = scaled_scores(got.query, got.key, got.scale)  # (…, G, R, L, S)
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

    The scores are computed for a block of queries at a time, within ``BLOCK_BYTES``; with
    ``causal=True`` a block reads only the keys that it sees, so that no array of size L·S exists.

    Parameters
    ----------
    query : (…, H, L, K) array_like
    key : (…, G, S, K) array_like
        H is a multiple of G (G = H: multi-head, G = 1: multi-query); query head h reads head h // (H // G).
    value : (…, G, S, Kv) array_like
    mask : array_like of bool, optional; broadcasts to (…, H, L, S); True = may attend
    bias : array_like, optional; broadcasts to (…, H, L, S); added to the scaled scores, −inf allowed
    scale : float, optional; 1/√K if not given
    causal : bool
        No query sees a later key; the last query is aligned with the last key.  Goes together with `mask`.

    Returns
    -------
    (…, H, L, Kv) ndarray; of the common floating dtype of query, key and value (16-bit ones are computed in float32)

    Raises
    ------
    ValueError
        If a query has no key to attend to.

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2; Ainslie et al., "GQA", arXiv:2305.13245, §2.2;
    Rabe and Staats, "Self-attention Does Not Need O(n²) Memory", arXiv:2112.05682, §2.

    Examples
    --------
    >>> q = np.zeros((1, 3, 2))
    >>> v = np.array([[[0.0], [1.0], [5.0]]])
    >>> print(np.array2string(attention(q, q, v, causal=True)[0, :, 0], precision=4))
    [0.  0.5 2. ]
    """
    got = _prepare(query, key, value, mask=mask, bias=bias, scale=scale, causal=causal)
    out = np.empty((*got.query.shape[:-1], got.value.shape[-1]), got.dtype)  # (…, G, R, L, Kv)
    with np.errstate(over="ignore", invalid="ignore"):
        mix(got.query, got.key, got.value, out, scale=got.scale, mask=got.mask, bias=got.bias, causal=causal)
    if not require.all_finite(out):
        raise require.refusal("value", f"entries up to {np.abs(got.value).max():.3g}", f"sums within {out.dtype.name}")
    return _join(out)


def weigh(weights: NDArray, value: NDArray) -> NDArray:
    """Return weights (…, H, L, S) @ value (…, G, S, Kv), (…, H, L, Kv); the query heads of a group share its values."""
    rows = split_heads(weights, value.shape[-3])
    mixed = rows.reshape(*rows.shape[:-3], -1, rows.shape[-1]) @ value
    return mixed.reshape(*weights.shape[:-1], value.shape[-1])


def blockwise(
    query: NDArray, key: NDArray, value: NDArray, *, scale: float | None, mask: NDArray | None, causal: bool
) -> NDArray:
    """Return what `attention` does, of checked arrays of one dtype; heads are merged without a copy after it."""
    *lead, n_heads, length, width = query.shape
    out = np.empty((*lead, length, n_heads, value.shape[-1]), query.dtype).swapaxes(-3, -2)  # (…, H, L, Kv)
    scale = 1 / math.sqrt(width) if scale is None else scale
    groups = key.shape[-3]
    split, parts, mask = (None if a is None else split_heads(a, groups) for a in (query, out, mask))
    mix(split, key, value, parts, scale=scale, mask=mask, causal=causal)
    return out


_SCORES = "the shape (…, H, L, S) of the scores"
_NONE = ()  # where a function has no values; None given for them is refused


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
    arrays = {"query": query, "key": key} | ({} if value is _NONE else {"value": value})
    arrays = {name: require.array(name, x, min_ndim=3) for name, x in arrays.items()}
    query, key = arrays["query"], arrays["key"]
    n_heads, n_queries, width = query.shape[-3:]
    n_groups, n_keys, _ = key.shape[-3:]
    require.last_axis("key", key, width, "query")
    if n_heads % n_groups:
        raise ValueError(f"query: got {n_heads} heads, want a multiple of the {n_groups} heads of key")
    if value is not _NONE and arrays["value"].shape[-3:-1] != (n_groups, n_keys):
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
        mask = split_heads(require.mask("mask", mask, full, _SCORES), n_groups)
    if bias is not None:
        bias = logits("bias", bias, min_ndim=0)
        require.broadcasts("bias", bias.shape, full, _SCORES)
        bias = split_heads(np.broadcast_to(bias, full), n_groups)
    value = rest[0] if rest else None
    return _Prepared(split_heads(query, n_groups), key, value, mask, bias, scale, dtype)


def _join(x: NDArray) -> NDArray:
    """Turn a new array (…, G, R, L, K) back to (…, H, L, K)."""
    return x.reshape(*x.shape[:-4], -1, *x.shape[-2:])


BLOCK_BYTES = 8 * 2**20
"""Most bytes that the scores of one block may take (exceeded only where one query of a group needs more)."""

# Within them, a block has as many scores as stay in a core's cache, or more where its rows are so long that the matrix
# products would else have too few of them to be fast.
_CACHE_BYTES, _FEW_ROWS = 3 * 2**19, 192


def split_heads(x: NDArray, n_groups: int) -> NDArray:
    """View (…, H, L, K) as (…, G, H/G, L, K): query head h belongs to group h // (H/G)."""
    *lead, n_heads, rows, columns = x.shape
    return x.reshape(*lead, n_groups, n_heads // n_groups, rows, columns)


def scaled_scores(query: NDArray, key: NDArray, scale: float, *, room: NDArray | None = None) -> NDArray:
    """Return scale · query @ keyᵀ for each head, (…, G, R, L, S), as a new array or in `room`, a flat one.

    The scale is multiplied into the query, which is the smaller factor.  Scores beyond the dtype's range become
    infinite without a warning: `exponentials` refuses them.
    """
    *lead, n_shared, n_rows, width = query.shape
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.multiply(query, scale, order="C").reshape(*lead, n_shared * n_rows, width)  # (…, G, R·L, K)
        if room is not None:
            shape = (*rows.shape[:-1], key.shape[-2])
            room = room[: math.prod(shape)].reshape(shape)
        out = np.matmul(rows, key.swapaxes(-1, -2), out=room)  # (…, G, R·L, S)
    return out.reshape(*out.shape[:-2], n_shared, n_rows, key.shape[-2])


def exponentials(
    scores: NDArray, *, mask: NDArray | None, bias: NDArray | None, causal: bool, first: tuple[int, ...]
) -> NDArray:
    """Turn scores (…, G, R, L, S) in place into exp(score − the row's largest) and return the row sums.

    `causal` lets the last row see every column, the row before it all but the last, and so on.  `first` is the
    index of the block's first row among all of (…, G, R, L), for the message about a row without a key.
    """
    if bias is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            scores += bias.astype(scores.dtype, copy=False)
    if mask is not None:
        np.copyto(scores, -np.inf, where=~mask)
    if causal:
        rows = scores.shape[-2]
        np.copyto(scores[..., -rows:], -np.inf, where=~np.tri(rows, dtype=bool))
    largest = scores.max(axis=-1, keepdims=True)  # (…, G, R, L, 1)
    if not np.isfinite(largest).all():
        blame = "mask" if mask is not None else "bias" if bias is not None else "query"
        raise _refuse_rows(largest[..., 0], first, blame)
    with np.errstate(over="ignore"):  # further below the largest than the dtype reaches: −inf, of weight 0
        scores -= largest
    np.exp(scores, out=scores)
    return np.vecdot(scores, np.ones(scores.shape[-1], scores.dtype))[..., None]  # a sum at the speed of BLAS


def _refuse_rows(largest: NDArray, first: tuple[int, ...], blame: str) -> ValueError:
    row = np.argwhere(~np.isfinite(largest))[0]
    # a block has no axes left for what the loop over groups has already chosen
    *lead, group, shared, query = np.add(first, np.pad(row, (len(first) - len(row), 0))).tolist()
    where = f"at index {(*lead, group * largest.shape[-2] + shared, query)} of (…, head, query)"
    if largest[tuple(row)] == -np.inf and blame != "query":
        return ValueError(f"{blame}: got no key to attend to {where}, want at least one")
    return ValueError(f"query: got scores beyond the range of {largest.dtype} {where}, want finite ones")


def mix(
    query: NDArray,
    key: NDArray,
    value: NDArray,
    out: NDArray,
    *,
    scale: float,
    mask: NDArray | None = None,
    bias: NDArray | None = None,
    causal: bool = False,
) -> None:
    """Write softmax(scale · query @ keyᵀ + bias) @ value into `out`, a block of query rows at a time.

    query is (…, G, R, L, K), key (…, G, S, K), value (…, G, S, Kv), mask and bias (…, G, R, L, S), all with the same
    leading axes; `out`, (…, G, R, L, Kv), may have any strides and a narrower dtype.  With `causal` each block reads
    only the keys that its last query sees.
    """
    *groups, n_shared, n_queries, _ = query.shape
    n_keys = key.shape[-2]
    row_bytes = n_shared * n_keys * query.dtype.itemsize
    limit = min(BLOCK_BYTES, max(_CACHE_BYTES, _FEW_ROWS * n_keys * query.dtype.itemsize))
    # As many leading axes as needed are walked one by one, so that the scores of the rest fit into a block.
    fits = (d for d in range(len(groups)) if math.prod(groups[d:]) * n_queries * row_bytes <= limit)
    depth = next(fits, len(groups))
    step = max(1, limit // (math.prod(groups[depth:]) * row_bytes))
    step = min(step, n_queries)
    # One array for the scores of all blocks: new memory would cost about as much as the exponentials.
    room = np.empty(step * math.prod(groups[depth:]) * n_shared * n_keys, query.dtype)
    for at in np.ndindex(*groups[:depth]):
        for start in range(0, n_queries, step):
            stop = min(start + step, n_queries)
            seen = n_keys - n_queries + stop if causal else n_keys
            rows = (*at, ..., slice(start, stop), slice(None))
            square = (*at, ..., slice(start, stop), slice(seen))
            keys = (*at, ..., slice(seen), slice(None))
            _mix_block(
                query[rows],
                key[keys],
                value[keys],
                out[rows],
                scale=scale,
                mask=None if mask is None else mask[square],
                bias=None if bias is None else bias[square],
                causal=causal,
                first=(*at, *(0,) * (len(groups) - depth), 0, start),
                room=room,
            )


def _mix_block(query, key, value, out, *, scale, mask, bias, causal, first, room) -> None:
    block = scaled_scores(query, key, scale, room=room)  # (…, G, R, rows, S)
    total = exponentials(block, mask=mask, bias=bias, causal=causal, first=first)
    mixed = block.reshape(*block.shape[:-3], -1, block.shape[-1]) @ value  # (…, G, R·rows, Kv)
    np.divide(mixed.reshape(out.shape), total, out=out, casting="same_kind")


def softmax(x: ArrayLike, axis: int = -1) -> NDArray:
    r"""Turn each slice of `x` into positive weights that sum to 1.

    .. math:: \operatorname{softmax}(x)_i = e^{x_i - m} / \sum_j e^{x_j - m}, \qquad m = \max_j x_j

    Subtracting the maximum changes nothing mathematically and keeps every exponential at 1 or below.

    Parameters
    ----------
    x : (…) array_like; logits; −inf (weight 0) is allowed
    axis : int; the axis along which the weights sum to 1

    Returns
    -------
    (…) ndarray; of the shape and floating dtype of `x`

    Raises
    ------
    ValueError
        If a slice holds nothing but −inf.

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.1.

    Examples
    --------
    >>> print(np.array2string(softmax([0.0, np.log(3.0), -np.inf]), precision=4))
    [0.25 0.75 0.  ]
    """
    x = logits("x", x)
    axis = require.integer("axis", axis, minimum=-x.ndim, maximum=x.ndim - 1)
    largest = x.max(axis=axis, keepdims=True)
    if (largest == -np.inf).any():
        where = tuple(np.argwhere(np.squeeze(largest == -np.inf, axis))[0].tolist())
        raise ValueError(
            f"x: got nothing but -inf in the slice {where} along axis {axis % x.ndim}, want a finite entry"
        )
    compute = require.compute_dtype(x.dtype)
    with np.errstate(over="ignore"):  # further below the largest than the dtype reaches: −inf, of weight 0
        out = np.subtract(x, largest, dtype=compute)
    np.exp(out, out=out)
    out /= out.sum(axis=axis, keepdims=True)
    return out.astype(x.dtype, copy=False)


@require.door
def entropy(weights: ArrayLike, axis: int = -1) -> NDArray:
    r"""Return the entropy of attention weights, in nats.

    .. math:: H(p) = -\sum_j p_j \ln p_j, \qquad 0 \ln 0 = 0

    It runs from 0 (one key has all the weight) to ln S (all S keys have the same); e^H is the number of keys
    that are effectively read.

    Parameters
    ----------
    weights : (…, S) array_like; weights that are not negative and sum to 1 along `axis`
    axis : int; the axis to sum over

    Returns
    -------
    (…) ndarray; without that axis, in the floating dtype of `weights`

    Raises
    ------
    ValueError
        If a sum is not 1 (logits were passed, say).

    Source: Shannon, "A Mathematical Theory of Communication", 1948, §6.

    Examples
    --------
    >>> print(np.array2string(entropy([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]), precision=4))
    [0.6931 0.    ]
    """
    weights = require.array("weights", weights)
    axis = require.integer("axis", axis, minimum=-weights.ndim, maximum=weights.ndim - 1)
    p = weights.astype(require.compute_dtype(weights.dtype), copy=False)
    if p.min() < 0:
        raise ValueError(f"weights: got {p.min():g}, want no negative weight")
    off = np.abs(p.sum(axis=axis) - 1).max()
    if off > max(1e-5, 4 * float(_eps(weights.dtype))):
        raise ValueError(f"weights: got sums along axis {axis % weights.ndim} that miss 1 by {off:.3g}, want sums of 1")
    out = np.log(p, out=np.zeros_like(p), where=p > 0)
    out *= p
    # 0 − sum, so that a sure choice has the entropy 0 rather than −0
    return np.asarray(0 - out.sum(axis=axis)).astype(weights.dtype, copy=False)


def logits(name: str, x: ArrayLike, *, min_ndim: int = 1) -> NDArray:
    """Return `x`, the argument `name`, as a floating array of finite numbers and −inf; refuse NaN and +inf.

    Softmax and what is added to its argument (`attention`'s bias) are checked by it.
    """
    x = require.array(name, x, min_ndim=min_ndim, finite=False)
    if x.max() == np.inf:
        raise ValueError(f"{name}: got inf, want finite numbers or -inf")
    return x


def _eps(dtype: np.dtype) -> float:
    """Return the spacing of a floating dtype at 1 (np.finfo does not know bfloat16, which keeps 7 bits)."""
    return 2.0**-7 if dtype.name == "bfloat16" else np.finfo(dtype).eps
