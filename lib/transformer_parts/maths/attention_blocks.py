"""Attention in blocks of queries: the computation behind `attention` and `decoder`, on checked input.

Every function works on arrays whose heads are split into groups: the query is (…, G, R, L, K), with R = H/G query
heads to a key/value head, and key and value are (…, G, S, K).  The R heads of a group are rows of one matrix
product with the group's only key, so that a key is never copied for each query head.

The softmax is not normalised before the values are mixed: exp(scores) @ value is divided by the row sums
afterwards, which touches L·K numbers instead of L·S (FlashAttention, arXiv:2205.14135, §3.1).
"""

import math

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 8 * 2**20
"""Most bytes that the scores of one block may take (exceeded only where one query of a group needs more).

Smaller blocks stay nearer to the core's cache, larger ones give the matrix products more rows; with three query
heads to a group, 2 to 4 MiB were quickest at 2048 keys, 8 to 32 MiB at 16384.
"""


def split_heads(x: NDArray, n_groups: int) -> NDArray:
    """View (…, H, L, K) as (…, G, H/G, L, K): query head h stands at group h // (H/G)."""
    *lead, n_heads, rows, columns = x.shape
    return x.reshape(*lead, n_groups, n_heads // n_groups, rows, columns)


def scaled_scores(query: NDArray, key: NDArray, scale: float) -> NDArray:
    """Return scale · query @ keyᵀ for each head, (…, G, R, L, S), as a new array.

    The scale is multiplied into the query, which is the smaller factor.  Scores beyond the dtype's range become
    infinite without a warning: `exponentials` refuses them.
    """
    *lead, n_shared, n_rows, width = query.shape
    rows = np.multiply(query, scale, order="C").reshape(*lead, n_shared * n_rows, width)
    with np.errstate(over="ignore", invalid="ignore"):
        out = rows @ key.swapaxes(-1, -2)
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
    largest = scores.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        blame = "mask" if mask is not None else "bias" if bias is not None else "query"
        raise _refuse_rows(largest[..., 0], first, blame)
    scores -= largest
    np.exp(scores, out=scores)
    return scores.sum(axis=-1, keepdims=True)


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

    Parameters
    ----------
    query : (…, G, R, L, K) array
    key : (…, G, S, K) array
        All leading axes of query, key, value and out are the same.
    value : (…, G, S, Kv) array
    out : (…, G, R, L, Kv) array
        May be a view with any strides and of a narrower dtype.
    scale : float
    mask, bias : (…, G, R, L, S) arrays or None
    causal : bool
        Each block then reads only the keys that its last query sees.
    """
    *groups, n_shared, n_queries, _ = query.shape
    n_keys = key.shape[-2]
    row_bytes = n_shared * n_keys * query.dtype.itemsize
    # As many leading axes as needed are walked one by one, so that the scores of the rest fit into a block.
    fits = (d for d in range(len(groups)) if math.prod(groups[d:]) * n_queries * row_bytes <= BLOCK_BYTES)
    depth = next(fits, len(groups))
    step = max(1, BLOCK_BYTES // (math.prod(groups[depth:]) * row_bytes))
    step = min(step, n_queries)
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
            )


def _mix_block(query, key, value, out, *, scale, mask, bias, causal, first) -> None:
    block = scaled_scores(query, key, scale)
    total = exponentials(block, mask=mask, bias=bias, causal=causal, first=first)
    mixed = block.reshape(*block.shape[:-3], -1, block.shape[-1]) @ value
    np.divide(mixed.reshape(out.shape), total, out=out, casting="same_kind")
