"""Context extension: RoPE beyond the trained length L, by other frequencies and a factor of query and key.

Every method returns ``(inv_freq, attention_factor)``.  Nothing is remembered between calls: where the current
length matters it is an argument, so that a short input after a long one finds what it would have found before.

References
----------
S. Chen et al., "Extending Context Window of Large Language Models via Positional Interpolation", arXiv 2306.15595.
B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", arXiv 2309.00071 (v2).
Y. Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens", arXiv 2402.13753.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.context_extension_bands import ScaledRope, llama3, ntk_by_parts, yarn

__all__ = [
    "ScaledRope",
    "dynamic_factor",
    "dynamic_ntk",
    "llama3",
    "longrope",
    "ntk_aware",
    "ntk_base",
    "ntk_by_parts",
    "position_interpolation",
    "yarn",
]


def position_interpolation(head_dim: int, factor: float, *, rope_base: float = 10000.0) -> ScaledRope:
    r"""Slow every pair alike, so that position m stands where m/s stood in training.

    .. math:: f'(x, m) = f(x, mL/L'), \qquad \theta'_i = \theta_i / s, \quad s = L'/L

    Parameters
    ----------
    head_dim : int
        K, the number of channels that are turned; even.
    factor : float
        s, at least 1.
    rope_base : float
        Base of the frequencies, above 0.

    Returns
    -------
    ScaledRope
        With attention factor 1.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    Position Interpolation, arXiv 2306.15595, §2.3.

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
    head_dim : int
        K; even and at least 4 (with one pair, the fastest is the slowest).
    factor : float
        s, at least 1.
    rope_base : float
        Base in training, above 0.

    Returns
    -------
    float
        The new base.

    Raises
    ------
    ValueError
        If an argument is out of its range or the new base exceeds float64.

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.1, Definition 1.

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
    head_dim, factor, rope_base
        As in `ntk_base`.

    Returns
    -------
    ScaledRope
        With attention factor 1.

    Raises
    ------
    ValueError
        As `ntk_base` does.

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.1, Definition 1.

    Examples
    --------
    >>> [f"{x:.6f}" for x in ntk_aware(4, 8).inv_freq]
    ['1.000000', '0.001250']
    """
    return ScaledRope(rope.inv_freq(head_dim, ntk_base(head_dim, factor, rope_base=rope_base)), 1.0)


def dynamic_factor(length: int, trained_length: int, *, factor: float = 1.0) -> float:
    r"""Return the s that follows the current length, and is 1 up to the trained one.

    .. math:: s = \max\left(1,\; \text{factor} \cdot \frac{l}{L} - (\text{factor} - 1)\right)

    Parameters
    ----------
    length, trained_length, factor
        As in `dynamic_ntk`.

    Returns
    -------
    float
        At least 1.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.3.

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

    .. math:: s = \max\left(1,\; \text{factor} \cdot \frac{l}{L} - (\text{factor} - 1)\right)

    The frequencies of *every* position depend on the current length l, so that keys must be cached before their
    rotation, or rotated again (§3.3 of the paper).

    Parameters
    ----------
    head_dim : int
        K; even and at least 4.
    length : int
        l, the length of the present input.
    trained_length : int
        L.
    factor : float
        At least 1.  1 is the paper's rule, s = max(1, l/L); configurations that name a ``factor`` follow the formula
        above, in which s grows that much faster.
    rope_base : float
        Base in training, above 0.

    Returns
    -------
    ScaledRope
        With attention factor 1.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.3; the form with a factor is that of transformers' ``modeling_rope_utils``.

    Examples
    --------
    >>> [f"{dynamic_ntk(4, length, 2048).inv_freq[1]:.6f}" for length in (2048, 4096, 1)]
    ['0.010000', '0.005000', '0.010000']
    """
    current = dynamic_factor(length, trained_length, factor=factor)
    return ntk_aware(head_dim, current, rope_base=rope_base)


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
    head_dim : int
        K, the number of channels that are turned; even.
    length : int
        The length of the present input.
    trained_length : int
        L, where the lists are switched; at least 2.
    short_factor, long_factor : array_like, shape (P,)
        Above 0, one number for each pair, fastest first.
    factor : float
        s = L'/L of the extended model, at least 1.
    rope_base : float
        Base of the frequencies, above 0.

    Returns
    -------
    ScaledRope
        Frequencies, and the factor of query and key.

    Raises
    ------
    ValueError
        If an argument is out of its range or a list does not have K/2 numbers.

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
