"""What keeps a deep decoder's numbers in range: the residual stream at initialisation, and attention's logits."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.decoder import StackConfig, forward
from transformer_parts.maths.decoder.stack import Weights
from transformer_parts.maths.norms import rms_norm
from transformer_parts.maths.precision import FORMATS

__all__ = ["GrownAttention", "StreamVariance", "grown_attention", "logit_bound", "stream_variance"]


class StreamVariance(NamedTuple):
    """Mean squares along the residual stream of a decoder of L layers, two branches in each.

    Attributes
    ----------
    stream : (2L + 1,) ndarray; of the stream before the first branch and after each
    branches : (2L,) ndarray; of what each branch adds
    """

    stream: NDArray
    branches: NDArray

    @property
    def independent(self) -> NDArray:
        """What `stream` would be, shape (2L + 1,), if no branch had anything in common with the stream it joins."""
        return self.stream[0] + np.concatenate([[0.0], np.cumsum(self.branches)])


@require.door
def stream_variance(weights: Weights, tokens: ArrayLike, config: StackConfig) -> StreamVariance:
    """Run a decoder forward and return the mean square of its residual stream before and after each branch.

    The stream's mean is near zero at initialisation, so the mean square is its variance.

    Parameters
    ----------
    weights : mapping of str to ndarray; as for `stack.forward`
    tokens : array_like of int, shape (..., L); what is read; the mean runs over all tokens and channels
    config : StackConfig; placement "pre" or "sandwich", where the stream is a plain sum

    Returns
    -------
    StreamVariance

    Examples
    --------
    >>> from transformer_parts.maths.initialization import (initial_weights)
    >>> config = StackConfig(vocab_size=50, n_layers=8, d_model=64, n_heads=2, d_ff=160)
    >>> found = stream_variance(initial_weights(config, std=0.07), np.arange(16), config)
    >>> len(found.stream), bool(found.stream[-1] > found.stream[0])
    (17, True)
    """
    require.one_of("the placement of config", config.placement, ("pre", "sandwich"))
    _, tape = forward(weights, tokens, config)
    stops = [tape.streams[0]]
    for kept, after in zip(tape.layers, tape.streams[1:], strict=True):
        stops += [kept["U"], after]
    branches = [after - before for before, after in itertools.pairwise(stops)]
    return StreamVariance(
        *(np.array([np.mean(np.square(x, dtype=np.float64)) for x in xs]) for xs in (stops, branches))
    )


@require.door
def logit_bound(head_dim: int, gain: float = 1.0) -> float:
    r"""Return the largest size that a logit can have under QK-norm.

    Both vectors have RMS g, so length :math:`g\sqrt{d}`; by Cauchy and Schwarz

    .. math:: |q \cdot k| / \sqrt{d} \le g^2 d / \sqrt{d} = g^2 \sqrt{d}

    Parameters
    ----------
    head_dim : int; d, the width of a head
    gain : float; g, of both norms

    Returns
    -------
    float

    References
    ----------
    QK-norm: Henry et al., arXiv:2010.04245 (there to length 1, with one learned scale); with LayerNorm, against growing
    logits: Dehghani et al., arXiv:2302.05442, §2.

    Examples
    --------
    >>> logit_bound(64), logit_bound(64, gain=0.5)
    (8.0, 2.0)
    """
    gain = require.number("gain", gain, minimum=0, maximum=1e100)
    return gain**2 * math.sqrt(require.integer("head_dim", head_dim))


class GrownAttention(NamedTuple):
    """Causal attention of one head as its queries and keys grow, for each of N factors.

    Attributes
    ----------
    weights : (N, L, L) ndarray; attention weights; NaN in rows whose softmax is not defined, because a logit overflowed
    largest : (N,) ndarray; the largest size of a logit among those that count; infinite where one overflowed
    entropy : (N,) ndarray
        Mean entropy of the rows, in nats, the first (which has no choice) left out; NaN where a row has none.
    lost : (N,) ndarray of int; how many rows are NaN
    """

    weights: NDArray
    largest: NDArray
    entropy: NDArray
    lost: NDArray


def grown_attention(
    query: ArrayLike,
    key: ArrayLike,
    growth: ArrayLike,
    *,
    qk_norm: bool = False,
    gain: float = 1.0,
    dtype: str = "float32",
) -> GrownAttention:
    r"""Multiply queries and keys by a factor, as growing weights do, and attend.

    Without a norm the logits grow with the square of the factor.  With QK-norm, :math:`g \cdot \mathrm{RMSNorm}(q)` and
    :math:`g \cdot \mathrm{RMSNorm}(k)` take the place of q and k, and the factor is forgotten.

    Parameters
    ----------
    query, key : array_like, shape (L, K); at factor 1; at least two tokens
    growth : array_like, shape (N,); factors, positive
    qk_norm : bool; normalise both
    gain : float; g, of both norms; not used without them
    dtype : {"float32", "float16", "bfloat16"}
        The format that queries, keys, products and logits are rounded to.  Sums and the softmax run in float64: the
        matrix units of accelerators, too, add up in a wider format than they multiply in.

    Returns
    -------
    GrownAttention

    Examples
    --------
    >>> q, k = np.random.default_rng(0).standard_normal((2, 16, 64))
    >>> plain, normed = (grown_attention(q, k, [1.0, 10.0], qk_norm=norm) for norm in (False, True))
    >>> f"{plain.largest[1] / plain.largest[0]:.1f}, {normed.largest[1] / normed.largest[0]:.1f}"
    '100.0, 1.0'
    """
    query, key = (require.array(name, x, min_ndim=2) for name, x in (("query", query), ("key", key)))
    require.ndim("query", query, 2)
    if len(query) < 2:
        raise require.refusal("query", f"shape {query.shape}", "at least two tokens: one alone has no choice")
    require.shape("key", key, query.shape, "as query")
    growth = require.array("growth", growth)
    require.ndim("growth", growth, 1)
    if growth.min() <= 0:
        raise require.refusal("growth", f"{growth.min():g}", "positive factors")
    normed, gain = require.boolean("qk_norm", qk_norm), require.number("gain", gain, minimum=0)
    scalar = FORMATS[require.one_of("dtype", dtype, FORMATS)].scalar

    def rounded(x: NDArray) -> NDArray:
        with np.errstate(over="ignore"):
            return x.astype(np.float32).astype(scalar).astype(np.float64)

    def grown(x: NDArray) -> NDArray:
        x = growth[:, None, None] * x  # (N, L, K)
        if not require.all_finite(x):
            raise require.refusal("growth", f"{growth.max():g}", "factors by which query and key stay within float64")
        return rounded(gain * rms_norm(x, eps=1e-12) if normed else x)

    with np.errstate(invalid="ignore", over="ignore"):
        product = rounded(grown(query) @ grown(key).swapaxes(-1, -2))  # (N, L, L)
        logits = rounded(product / math.sqrt(query.shape[-1]))
        seen = np.tri(len(query), dtype=bool)
        largest = np.abs(np.where(seen, logits, 0)).max(axis=(-2, -1))
        logits = np.where(seen, logits, -np.inf)
        # inf − inf, or all of a row at −inf: what a softmax then gives is NaN.
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        terms = weights * np.log(np.where(weights > 0, weights, 1))
    lost = np.isnan(weights).any(axis=-1)
    entropy = -terms.sum(axis=-1)[:, 1:].mean(axis=-1) + 0.0
    return GrownAttention(weights, largest, entropy, lost.sum(axis=-1))
