"""The methods of context extension by the names of the panels' menu."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from transformer_parts.language import _
from transformer_parts.maths import context_extension, rope
from transformer_parts.maths.context_extension import ScaledRope
from transformer_parts.models import configs


def _plain(head_dim, factor, trained_length, length, rope_base):
    return ScaledRope(rope.inv_freq(head_dim, rope_base), 1.0)


def _interpolated(head_dim, factor, trained_length, length, rope_base):
    return context_extension.position_interpolation(head_dim, factor, rope_base=rope_base)


def _ntk(head_dim, factor, trained_length, length, rope_base):
    return context_extension.ntk_aware(head_dim, factor, rope_base=rope_base)


def _dynamic(head_dim, factor, trained_length, length, rope_base):
    return context_extension.dynamic_ntk(head_dim, length, trained_length, rope_base=rope_base)


def _banded(function, head_dim, factor, trained_length, length, rope_base, **more):
    return function(head_dim, factor, trained_length, rope_base=rope_base, **more)


def _longrope(head_dim, factor, trained_length, length, rope_base):
    short, long = configs.factors_for(head_dim // 2)
    return context_extension.longrope(head_dim, length, trained_length, short, long, factor=factor, rope_base=rope_base)


#: Each takes (head_dim, factor, trained_length, length, rope_base) and may ignore some of them.
METHODS: Mapping[str, Callable[..., ScaledRope]] = MappingProxyType(
    {
        _("RoPE as trained"): _plain,
        _("Position Interpolation"): _interpolated,
        _("NTK-aware"): _ntk,
        _("Dynamic NTK"): _dynamic,
        _("NTK-by-parts, paper's ramp"): partial(_banded, context_extension.ntk_by_parts, ramp="rotations"),
        _("YaRN, paper's ramp"): partial(_banded, context_extension.yarn, ramp="rotations"),
        _("YaRN, code's ramp"): partial(_banded, context_extension.yarn, ramp="index"),
        _("LongRoPE, Phi-3's factors"): _longrope,
        _("Llama 3 bands"): partial(_banded, context_extension.llama3),
    }
)
FACTORS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def lengths(lowest: int, highest: int) -> tuple[int, ...]:
    """Return the powers of two and the numbers midway between them, from `lowest` to `highest`.

    Every product of a power of two with one of `FACTORS` is among them.

    Examples
    --------
    >>> lengths(4, 12)
    (4, 6, 8, 12)
    """
    steps = (2**power * part // 2 for power in range(1, 40) for part in (2, 3))
    return tuple(step for step in steps if lowest <= step <= highest)
