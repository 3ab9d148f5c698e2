"""Numbers for the texts of the bank: each entry names a function of this package, which computes them.

A function takes nothing and returns a mapping of names to numbers.  Those of claims return their verdicts too, computed
from the numbers and not from what the file says.
"""

import re
from collections.abc import Callable, Mapping
from numbers import Number

from transformer_parts.learn.evidence import (
    budget,
    cache,
    context_extension,
    feedforward,
    norms,
    positions,
    rope,
    training,
)
from transformer_parts.maths import require

Evidence = Callable[[], Mapping[str, Number]]

MODULES = (
    positions,
    rope,
    cache,
    context_extension,
    norms,
    feedforward,
    budget,
    training,
)
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLACE = re.compile(r"<<(\w+)(?::([^<>]*))?>>")


def find(name: str) -> Evidence:
    """Return the evidence function of a name.

    Raises
    ------
    ValueError
        If none has it.
    """
    for module in MODULES:
        if name in module.__all__:
            return getattr(module, name)
    raise require.refusal("evidence", repr(name), "a name in __all__ of one of the modules learn/evidence/*.py")


def names_in(text: str) -> frozenset[str]:
    """Return the names of the numbers that a text asks for.

    Examples
    --------
    >>> sorted(names_in("from <<low:.1f>> to <<high:.1f>>"))
    ['high', 'low']
    """
    return frozenset(match[1] for match in PLACE.finditer(text))


def fill(text: str, numbers: Mapping[str, Number]) -> str:
    """Put numbers into their places in a text.

    Raises
    ------
    ValueError
        If the text asks for a number that is not there, or in a format that it cannot have.

    Examples
    --------
    >>> fill("the score is <<score:.2f>>", {"score": 2**0.5})
    'the score is 1.41'
    """

    def put(match: re.Match) -> str:
        name, form = match[1], match[2] or ""
        if name not in numbers:
            raise require.refusal("text", f"<<{name}>>", f"one of {', '.join(numbers)}")
        try:
            printed = _as_printed(format(numbers[name], form))
        except (ValueError, TypeError) as error:
            raise require.refusal("text", match[0], f"a format that a number can have ({error})") from None
        # In a formula a comma alone would be followed by a gap.
        return printed.replace(",", "{,}") if _inside_a_formula(text, match.start()) else printed

    return PLACE.sub(put, text)


def _inside_a_formula(text: str, place: int) -> bool:
    """Return whether a place in a text is between dollar signs."""
    return text[:place].replace("$$", "$").count("$") % 2 == 1


def _as_printed(number: str) -> str:
    """Return a formatted number as books print it: a true minus sign, powers of ten, ∞."""
    if match := re.fullmatch(r"(-?[\d.]+)e([+-]\d+)", number):
        if float(match[1]) == 0:
            return "0"
        number = f"{match[1]}·10{str(int(match[2])).translate(_RAISED)}"
    return number.replace("inf", "∞").replace("-", "−")
