"""The coding round of an interview: parts of a decoder to write in five minutes, judged by the exercises' checkers."""

from dataclasses import dataclass

import numpy as np

from transformer_parts.language import _
from transformer_parts.learn import budget, cache, norms, rope, swiglu, why_position
from transformer_parts.learn.exercise import Exercise, Mistake

#: The time for each task.
SECONDS = 300


def _half(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.split(x, 2, axis=-1))


def _joined(*parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts, axis=-1)


def _by_halves(x, cos, sin):
    a, b = _half(x)
    return x * cos + _joined(-b, a) * sin


def _tables(rng):
    length, half = int(rng.integers(3, 8)), int(rng.integers(2, 6))
    angles = rng.uniform(0.2, 3, (length, half))
    tables = (np.concatenate([f(angles)] * 2, axis=-1) for f in (np.cos, np.sin))
    return rng.standard_normal((2, length, 2 * half)), *tables


def _neighbours(x):
    turned = np.empty_like(x)
    turned[..., 0::2], turned[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    return turned


ROTATE_HALF = Exercise(
    task=_(
        "rope_by_halves(x, cos, sin): RoPE as x·cos + rotate_half(x)·sin; channel i is paired with channel"
        " i + head_dim/2"
    ),
    takes=(
        _("`x`: array of shape (H, L, head_dim), head_dim even"),
        _("`cos`, `sin`: arrays of shape (L, head_dim), for each position and channel; their two halves are equal"),
    ),
    returns=_("a new array of the shape of `x`"),
    solution=_by_halves,
    inputs=_tables,
    mistakes=(
        Mistake("identity", lambda x, c, s: x, _("Your function returns x as it was: nothing turned.")),
        Mistake(
            "sign on the wrong half",
            lambda x, c, s: x * c + _joined(_half(x)[1], -_half(x)[0]) * s,
            _("You turn the other way: rotate_half is (−b, a), with the minus on the half that comes first."),
        ),
        Mistake(
            "no minus",
            lambda x, c, s: x * c + _joined(*_half(x)[::-1]) * s,
            _("You exchange the halves without a minus. That is no rotation: rotate_half is (−b, a)."),
        ),
        Mistake(
            "halves not exchanged",
            lambda x, c, s: x * c + _joined(-_half(x)[0], _half(x)[1]) * s,
            _("Your halves stay in their places. The second half, negated, comes first: (−b, a)."),
        ),
        Mistake(
            "neighbouring channels",
            lambda x, c, s: x * c + _neighbours(x) * s,
            _("You pair neighbouring channels (2i, 2i + 1). Here channel i is paired with channel i + head_dim/2."),
        ),
        Mistake(
            "sine and cosine exchanged",
            lambda x, c, s: _by_halves(x, s, c),
            _("You multiply x by the sines and rotate_half(x) by the cosines: it is the other way round."),
        ),
    ),
    hints=(
        _("Call the two halves of the channels a and b. The pair (a, b) becomes (a·cos − b·sin, b·cos + a·sin)."),
        _("So x·cos is the first term of each half. The factor of sin is (−b, a): that is rotate_half(x)."),
        _("a, b = np.split(x, 2, axis=-1); np.concatenate([-b, a], axis=-1). cos and sin broadcast over the heads."),
    ),
)


@dataclass(frozen=True)
class Task:
    """One task of the round."""

    title: str
    exercise: Exercise
    notebook: str  # stem of the notebook that shows it

    @property
    def signature(self) -> str:
        """The first line of the function to write.

        Examples
        --------
        >>> TASKS[0].signature
        'def rotate(x, position, rope_base):'
        """
        return f"def {str(self.exercise.task).partition(': ')[0]}:"


TASKS = (
    Task(_("RoPE"), rope.ROTATE, "04_rope"),
    Task(_("RoPE by rotate_half"), ROTATE_HALF, "06_rope_layout"),
    Task(_("RMSNorm"), norms.RMS_NORM, "09_norms"),
    Task(_("causal attention"), why_position.ATTEND, "01_why_position"),
    Task(_("attention with a cache"), cache.STEP, "07_cache"),
    Task(_("SwiGLU"), swiglu.SWIGLU, "12_swiglu"),
    Task(_("parameters of a decoder"), budget.PARAMETERS, "13_budget"),
)
