"""Context extension: RoPE beyond the trained length L, by other frequencies and a factor of query and key.

Every method returns ``(inv_freq, attention_factor)``.  Nothing is kept between calls: where the current length
matters it is an argument, so that a short input after a long one gets the same frequencies as before.

References
----------
S. Chen et al., "Extending Context Window of Large Language Models via Positional Interpolation", arXiv 2306.15595.
B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", arXiv 2309.00071 (v2).
Y. Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", arXiv 2402.13753.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope

__all__ = [
    "RAMPS",
    "AngleCoverage",
    "ScaledRope",
    "angle_coverage",
    "dynamic_factor",
    "dynamic_ntk",
    "entropy_by_length",
    "llama3",
    "longrope",
    "ntk_aware",
    "ntk_base",
    "ntk_by_parts",
    "position_interpolation",
    "yarn",
]

RAMPS = ("index", "rotations")


class ScaledRope(NamedTuple):
    """The frequencies to turn by, and the factor of query and key.

    Attributes
    ----------
    inv_freq : ndarray, shape (P,); radians per position, for ``rope.rotate(…, inv_freq=…)``
    attention_factor : float; multiplies the query *and* the key, so that the logits are multiplied by its square
    """

    inv_freq: NDArray[np.float64]
    attention_factor: float


@require.door
def ntk_by_parts(
    head_dim: int,
    factor: float,
    trained_length: int,
    *,
    rope_base: float = 10000.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "index",
    truncate: bool = True,
) -> ScaledRope:
    r"""Slow the pairs that turn seldom by the whole factor, leave those that turn often, and blend between.

    .. math::
        \theta'_i = \gamma_i\,\theta_i + (1 - \gamma_i)\,\theta_i / s, \qquad
        r_i = L / \lambda_i = L\theta_i / 2\pi

    with L the trained length and γ the ramp from 0 (few rotations) to 1 (many).  There are two ramps:

    - "rotations", the paper's: linear in the rotations,
      :math:`\gamma_i = \operatorname{clip}((r_i - \beta_\text{slow}) / (\beta_\text{fast} - \beta_\text{slow}), 0, 1)`.
    - "index", that of the authors' released code and of the checkpoints trained with it: linear in the index of
      the pair, from 1 at :math:`i(\beta_\text{fast})` to 0 at :math:`i(\beta_\text{slow})`, where
      :math:`i(\beta) = K \ln(L / 2\pi\beta) / (2 \ln \text{base})` is where a pair makes β rotations.

    Parameters
    ----------
    head_dim : int; K, the number of channels that are turned; even
    factor : float; s = L'/L, at least 1
    trained_length : int; L, positions
    rope_base : float; base of the frequencies, above 0 (above 1 with the "index" ramp)
    beta_fast, beta_slow : float; rotations within the trained length; the paper calls them β and α
    ramp : {"index", "rotations"}; which ramp
    truncate : bool
        With the "index" ramp, widen its bounds to whole indices as the released code does; ignored otherwise.

    Returns
    -------
    ScaledRope : with attention factor 1

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.2, Definition 2; the released code is ``LlamaYaRNScaledRotaryEmbedding.py`` of
    github.com/jquesnelle/yarn.

    Examples
    --------
    >>> for ramp in ("index", "rotations"):
    ...     scaled = ntk_by_parts(8, 4, 256, ramp=ramp).inv_freq
    ...     print([f"{x:.4f}" for x in scaled / ntk_by_parts(8, 1, 256).inv_freq])
    ['1.0000', '0.6250', '0.2500', '0.2500']
    ['1.0000', '0.3244', '0.2500', '0.2500']
    """
    factor = require.number("factor", factor, minimum=1)
    trained_length = require.integer("trained_length", trained_length)
    beta_slow = require.number("beta_slow", beta_slow, minimum=1e-9)
    beta_fast = require.number("beta_fast", beta_fast, above=beta_slow, maximum=1e9)
    require.one_of("ramp", ramp, RAMPS)
    truncate = require.boolean("truncate", truncate)
    inv_freq = rope.inv_freq(head_dim, rope_base)
    if ramp == "rotations":
        rotations = trained_length * inv_freq / (2 * np.pi)
        kept = np.clip((rotations - beta_slow) / (beta_fast - beta_slow), 0, 1)
    else:
        rope_base = require.number("rope_base", rope_base, above=1)
        bounds = (
            head_dim * math.log(trained_length / (2 * math.pi * beta)) / (2 * math.log(rope_base))
            for beta in (beta_fast, beta_slow)
        )
        kept = _index_ramp(*bounds, head_dim, truncate)
    return ScaledRope(inv_freq * kept + inv_freq / factor * (1 - kept), 1.0)


def _index_ramp(low: float, high: float, head_dim: int, truncate: bool) -> NDArray[np.float64]:
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    # The released code limits the upper bound by the number of channels, not of pairs, and checkpoints depend on it.
    low, high = max(low, 0), min(high, head_dim - 1)
    # Where every pair lies on one side of the ramp the limits cross, and the released code then does the opposite of
    # what is meant; here the ramp becomes a step at the limit.
    low = min(low, high)
    if high == low:
        high += 0.001
    return 1 - np.clip((np.arange(head_dim // 2) - low) / (high - low), 0, 1)


def yarn(
    head_dim: int,
    factor: float,
    trained_length: int,
    *,
    rope_base: float = 10000.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "index",
    truncate: bool = True,
) -> ScaledRope:
    r"""Take the frequencies of `ntk_by_parts` and sharpen the attention.

    .. math:: \operatorname{softmax}\left(\frac{q^{\mathsf T} k}{t \sqrt K}\right), \qquad
        \sqrt{1/t} = 0.1 \ln s + 1

    The attention factor is :math:`\sqrt{1/t}`.  Applied to query and to key it multiplies the logits by
    :math:`(0.1 \ln s + 1)^2 = 1/t`.

    Parameters
    ----------
    head_dim, factor, trained_length, rope_base, beta_fast, beta_slow, ramp, truncate : as in `ntk_by_parts`

    Returns
    -------
    ScaledRope : frequencies, and the factor of query and key

    Source: YaRN, arXiv 2309.00071v2, §3.4, Definition 3.

    Examples
    --------
    >>> f"{yarn(128, 8, 4096).attention_factor:.6f}"
    '1.207944'
    """
    parts = ntk_by_parts(
        head_dim,
        factor,
        trained_length,
        rope_base=rope_base,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        ramp=ramp,
        truncate=truncate,
    )
    return parts._replace(attention_factor=0.1 * math.log(factor) + 1)


def llama3(
    head_dim: int,
    factor: float = 8.0,
    trained_length: int = 8192,
    *,
    rope_base: float = 500000.0,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> ScaledRope:
    r"""Apply the band rule of Llama 3.1: the paper's ramp of YaRN from 1 to 4 rotations, without the temperature.

    Pairs of wavelength above L / low_freq_factor are slowed by the factor, those below L / high_freq_factor are
    left; between, the frequency is blended linearly in the rotations L/λ.

    Parameters
    ----------
    head_dim, factor, trained_length, rope_base : as in `ntk_by_parts`
    low_freq_factor, high_freq_factor : float; rotations within L at the two ends of the blend

    Returns
    -------
    ScaledRope : with attention factor 1

    References
    ----------
    The Llama 3 Herd of Models, arXiv 2407.21783, §3.2, has the base 500,000; the rule itself is published in code
    alone (``apply_scaling`` in ``models/llama3/model.py`` of github.com/meta-llama/llama-models).

    Examples
    --------
    >>> from transformer_parts.maths import (rope)
    >>> ratios = llama3(128).inv_freq / rope.inv_freq(128, 500000.0)
    >>> [int((ratios == 1).sum()), int((ratios == 1 / 8).sum())]
    [29, 29]
    """
    low = require.number("low_freq_factor", low_freq_factor, minimum=1e-9)
    high = require.number("high_freq_factor", high_freq_factor, above=low, maximum=1e9)
    return ntk_by_parts(
        head_dim, factor, trained_length, rope_base=rope_base, beta_fast=high, beta_slow=low, ramp="rotations"
    )


def position_interpolation(head_dim: int, factor: float, *, rope_base: float = 10000.0) -> ScaledRope:
    r"""Slow every pair alike, so that position m has the angles that m/s had in training.

    .. math:: f'(x, m) = f(x, mL/L'), \qquad \theta'_i = \theta_i / s, \quad s = L'/L

    Parameters
    ----------
    head_dim, factor, rope_base : as in `ntk_by_parts`

    Returns
    -------
    ScaledRope : with attention factor 1

    Source: Position Interpolation, arXiv 2306.15595, §2.3.

    Examples
    --------
    >>> position_interpolation(4, 2).inv_freq.tolist()
    [0.5, 0.005]
    """
    factor = require.number("factor", factor, minimum=1)
    return ScaledRope(rope.inv_freq(head_dim, rope_base) / factor, 1.0)


def ntk_base(head_dim: int, factor: float, *, rope_base: float = 10000.0) -> float:
    r"""Return the base that slows the slowest pair by exactly s and leaves the fastest.

    .. math:: \text{base}' = \text{base} \cdot s^{K/(K-2)}

    because the slowest pair's exponent is :math:`(K-2)/K`.

    Parameters
    ----------
    head_dim : int; K; even and at least 4 (with one pair, the fastest is the slowest)
    factor : float; s, at least 1
    rope_base : float; base in training, above 0

    Returns
    -------
    float; the new base, which must be within float64

    Source: YaRN, arXiv 2309.00071v2, §3.1, Definition 1.

    Examples
    --------
    >>> f"{ntk_base(128, 8):.4f}"
    '82684.6226'
    """
    head_dim = require.integer("head_dim", head_dim, minimum=4, multiple_of=2)
    factor = require.number("factor", factor, minimum=1)
    rope_base = require.number("rope_base", rope_base, above=0)
    try:
        base = rope_base * factor ** (head_dim / (head_dim - 2))
    except OverflowError:
        base = math.inf
    if math.isinf(base):
        raise require.refusal("factor", repr(factor), "a factor whose base is within float64")
    return base


def ntk_aware(head_dim: int, factor: float, *, rope_base: float = 10000.0) -> ScaledRope:
    r"""Slow pair i by :math:`s^{2i/(K-2)}`: the fastest not at all, the slowest by exactly s.

    .. math:: \theta'_i = \text{base}'^{\,-2i/K}, \qquad \text{base}' = \text{base} \cdot s^{K/(K-2)}

    Parameters
    ----------
    head_dim, factor, rope_base : as in `ntk_base`

    Returns
    -------
    ScaledRope : with attention factor 1

    Source: YaRN, arXiv 2309.00071v2, §3.1, Definition 1.

    Examples
    --------
    >>> [f"{x:.6f}" for x in ntk_aware(4, 8).inv_freq]
    ['1.000000', '0.001250']
    """
    return ScaledRope(rope.inv_freq(head_dim, ntk_base(head_dim, factor, rope_base=rope_base)), 1.0)


@require.door
def dynamic_factor(length: int, trained_length: int, *, factor: float = 1.0) -> float:
    r"""Return the s that follows the current length, and is 1 up to the trained one.

    .. math:: s = \max\left(1,\; \text{factor} \cdot \frac{l}{L} - (\text{factor} - 1)\right)

    Parameters
    ----------
    length, trained_length, factor : as in `dynamic_ntk`

    Returns
    -------
    float; at least 1

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.3, for a factor of 1: s = max(1, l / L).  The factor is that of transformers' dynamic
    scaling.

    Examples
    --------
    >>> [dynamic_factor(length, 2048) for length in (1024, 2048, 3072)]
    [1.0, 1.0, 1.5]
    """
    length = require.integer("length", length)
    trained_length = require.integer("trained_length", trained_length)
    factor = require.number("factor", factor, minimum=1)
    return max(1.0, factor * length / trained_length - (factor - 1))


def dynamic_ntk(
    head_dim: int, length: int, trained_length: int, *, factor: float = 1.0, rope_base: float = 10000.0
) -> ScaledRope:
    r"""Apply `ntk_aware` with the s of `dynamic_factor`, which follows the current length.

    The frequencies of *every* position depend on the current length l, so that keys must be cached before their
    rotation, or rotated again (§3.3 of the paper).

    Parameters
    ----------
    head_dim : int; K; even and at least 4
    length : int; l, the length of the present input
    trained_length : int; L
    factor : float
        At least 1.  1 is the paper's rule, s = max(1, l/L); configurations that name a ``factor`` follow the formula of
        `dynamic_factor`, in which s grows that much faster.
    rope_base : float; base in training, above 0

    Returns
    -------
    ScaledRope : with attention factor 1

    Source: YaRN, arXiv 2309.00071v2, §3.3; the form with a factor is that of transformers' ``modeling_rope_utils``.

    Examples
    --------
    >>> [f"{dynamic_ntk(4, length, 2048).inv_freq[1]:.6f}" for length in (2048, 4096, 1)]
    ['0.010000', '0.005000', '0.010000']
    """
    current = dynamic_factor(length, trained_length, factor=factor)
    return ntk_aware(head_dim, current, rope_base=rope_base)


@require.door
def longrope(
    head_dim: int,
    length: int,
    trained_length: int,
    short_factor: ArrayLike,
    long_factor: ArrayLike,
    *,
    factor: float,
    rope_base: float = 10000.0,
) -> ScaledRope:
    r"""Divide each pair's frequency by a factor of its own, found by search: one list for short inputs, one for long.

    .. math::
        \theta'_i = \theta_i / \lambda_i, \qquad \text{attention factor} = \sqrt{1 + \ln s / \ln L}

    with λ the short list for a current length up to L and the long list beyond.  The attention factor belongs to
    the model, not to the input: it is the same for both lists.

    Parameters
    ----------
    head_dim : int; K, the number of channels that are turned; even
    length : int; the length of the present input
    trained_length : int; L, where the lists are switched; at least 2
    short_factor, long_factor : array_like, shape (P,); above 0, one number for each pair, fastest first
    factor : float; s = L'/L of the extended model, at least 1
    rope_base : float; base of the frequencies, above 0

    Returns
    -------
    ScaledRope : frequencies, and the factor of query and key

    References
    ----------
    LongRoPE, arXiv 2402.13753, §3.1 (the factors; its threshold for the first tokens is not in released models) and
    §3.3 (the second list).  The attention factor is that of the released Phi-3 models' code.

    Examples
    --------
    >>> [longrope(4, length, 64, [1, 1], [1, 8], factor=8).inv_freq.tolist() for length in (64, 65)]
    [[1.0, 0.01], [1.0, 0.00125]]
    """
    inv_freq = rope.inv_freq(head_dim, rope_base)
    length = require.integer("length", length)
    trained_length = require.integer("trained_length", trained_length, minimum=2)
    factor = require.number("factor", factor, minimum=1)
    short_factor = _factors("short_factor", short_factor, inv_freq)
    long_factor = _factors("long_factor", long_factor, inv_freq)
    attention_factor = math.sqrt(1 + math.log(factor) / math.log(trained_length))
    return ScaledRope(inv_freq / (long_factor if length > trained_length else short_factor), attention_factor)


def _factors(name: str, factors: ArrayLike, inv_freq: NDArray) -> NDArray[np.float64]:
    factors = require.array(name, factors).astype(np.float64)
    require.shape(name, factors, inv_freq.shape, "one factor for each pair of head_dim")
    require.number(name, float(factors.min()), above=0)
    return factors


# Angles that agree to this relative difference count as equal: the slowest pair of NTK-aware reaches its trained
# angle exactly, but for rounding.
_ROUNDING = 1e-9


class AngleCoverage(NamedTuple):
    """Angles seen in training and angles reached, pair by pair.

    Attributes
    ----------
    ratio : ndarray, shape (P,); θ'/θ: position m has the angles that m times this had in training
    seen, reached : ndarray, shape (P,); radians turned over the trained length and over the present one
    excess : ndarray, shape (P,); angle reached over angle seen
    complete : ndarray of bool, shape (P,); pairs that made a whole turn in training: no angle is new to them
    beyond : ndarray of bool, shape (P,); pairs that made none, and now reach an angle that they had not seen
    """

    ratio: NDArray[np.float64]
    seen: NDArray[np.float64]
    reached: NDArray[np.float64]
    excess: NDArray[np.float64]
    complete: NDArray[np.bool_]
    beyond: NDArray[np.bool_]


@require.door
def angle_coverage(trained: ArrayLike, extended: ArrayLike, trained_length: int, length: int) -> AngleCoverage:
    r"""Compare the angles of an extended model with those its training has seen.

    .. math:: \text{seen}_i = L\theta_i, \qquad \text{reached}_i = l\theta'_i

    A pair with :math:`L\theta_i \ge 2\pi`, that is of wavelength up to L, has seen every angle.

    Parameters
    ----------
    trained, extended : array_like, shape (P,); θ and θ', radians per position, above 0
    trained_length, length : int; L, and l, of the present input

    Returns
    -------
    AngleCoverage : by pair

    Source: YaRN, arXiv 2309.00071v2, §3.2 (the pairs of wavelength above L).

    Examples
    --------
    >>> coverage = angle_coverage([1.0, 0.01], [1.0, 0.01], 64, 128)
    >>> coverage.reached.tolist(), coverage.complete.tolist(), coverage.beyond.tolist()
    ([128.0, 1.28], [True, False], [False, True])
    """
    trained = require.array("trained", trained).astype(np.float64)
    require.ndim("trained", trained, 1)
    extended = require.array("extended", extended).astype(np.float64)
    require.shape("extended", extended, trained.shape, "as trained has")
    for name, frequencies in (("trained", trained), ("extended", extended)):
        require.number(name, float(frequencies.min()), above=0)
    seen = require.integer("trained_length", trained_length) * trained
    reached = require.integer("length", length) * extended
    excess, complete = reached / seen, seen >= 2 * np.pi
    beyond = ~complete & (excess > 1 + _ROUNDING)
    return AngleCoverage(extended / trained, seen, reached, excess, complete, beyond)


@require.door
def entropy_by_length(scores: ArrayLike) -> NDArray[np.float64]:
    r"""Return the entropy of the attention weights over the first n scores, for every n.

    .. math:: H_n = \ln Z_n - \frac{1}{Z_n} \sum_{j \le n} s_j e^{s_j}, \qquad Z_n = \sum_{j \le n} e^{s_j}

    With scores by offset this is a query's entropy over a context that grows away from it; one pass gives all n.

    Parameters
    ----------
    scores : array_like, shape (N,); logits within 600 of each other, so that float64 holds all exponentials

    Returns
    -------
    ndarray, shape (N,); in nats, from 0 at n = 1 to at most ln N

    Examples
    --------
    >>> [f"{h:.4f}" for h in entropy_by_length([1.0, 1.0, 1.0])]  # 0, ln 2, ln 3
    ['0.0000', '0.6931', '1.0986']
    """
    scores = require.array("scores", scores).astype(np.float64)
    require.ndim("scores", scores, 1)
    shifted = scores - scores.max()
    if shifted.min() < -600:
        raise require.refusal("scores", f"scores that differ by {-shifted.min():g}", "differences up to 600")
    exponentials = np.exp(shifted)
    total = np.cumsum(exponentials)
    return np.maximum(np.log(total) - np.cumsum(shifted * exponentials) / total, 0.0)
