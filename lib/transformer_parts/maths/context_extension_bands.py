"""Context extension band by band: what happens to a pair depends on how often it turns within the trained length.

References
----------
B. Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models", arXiv 2309.00071 (v2).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require, rope

RAMPS = ("index", "rotations")


class ScaledRope(NamedTuple):
    """The frequencies to turn by, and the factor of query and key.

    Attributes
    ----------
    inv_freq : ndarray, shape (P,)
        Radians per position, for ``rope.rotate(…, inv_freq=…)``.
    attention_factor : float
        Multiplies the query *and* the key, so that the logits are multiplied by its square.
    """

    inv_freq: NDArray[np.float64]
    attention_factor: float


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
    head_dim : int
        K, the number of channels that are turned; even.
    factor : float
        s = L'/L, at least 1.
    trained_length : int
        L, positions.
    rope_base : float
        Base of the frequencies, above 0 (above 1 with the "index" ramp).
    beta_fast, beta_slow : float
        Rotations within the trained length; the paper calls them β and α.
    ramp : {"index", "rotations"}
        Which ramp.
    truncate : bool
        With the "index" ramp, widen its bounds to whole indices as the released code does; not read otherwise.

    Returns
    -------
    ScaledRope
        With attention factor 1.

    Raises
    ------
    ValueError
        If an argument is out of its range, or ``beta_fast`` is not above ``beta_slow``.

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
    beta_slow = require.number("beta_slow", beta_slow, above=0)
    beta_fast = require.number("beta_fast", beta_fast, above=beta_slow)
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
    head_dim, factor, trained_length, rope_base, beta_fast, beta_slow, ramp, truncate
        As in `ntk_by_parts`.

    Returns
    -------
    ScaledRope
        Frequencies, and the factor of query and key.

    Raises
    ------
    ValueError
        As `ntk_by_parts` does.

    References
    ----------
    YaRN, arXiv 2309.00071v2, §3.4, Definition 3.

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
    head_dim : int
        K, the number of channels that are turned; even.
    factor : float
        s, at least 1.
    trained_length : int
        L, the length before the extension.
    rope_base : float
        Base of the frequencies, above 0.
    low_freq_factor, high_freq_factor : float
        Rotations within L at the two ends of the blend.

    Returns
    -------
    ScaledRope
        With attention factor 1.

    Raises
    ------
    ValueError
        If an argument is out of its range, or ``high_freq_factor`` is not above ``low_freq_factor``.

    References
    ----------
    The Llama 3 Herd of Models, arXiv 2407.21783, §3.2, has the base 500,000; the rule itself is published in code
    alone (``apply_scaling`` in ``models/llama3/model.py`` of github.com/meta-llama/llama-models).

    Examples
    --------
    >>> from transformer_parts.maths import rope
    >>> ratios = llama3(128).inv_freq / rope.inv_freq(128, 500000.0)
    >>> [int((ratios == 1).sum()), int((ratios == 1 / 8).sum())]
    [29, 29]
    """
    low = require.number("low_freq_factor", low_freq_factor, above=0)
    high = require.number("high_freq_factor", high_freq_factor, above=low)
    return ntk_by_parts(
        head_dim, factor, trained_length, rope_base=rope_base, beta_fast=high, beta_slow=low, ramp="rotations"
    )
