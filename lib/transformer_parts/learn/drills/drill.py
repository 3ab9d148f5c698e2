"""The contract of a drill: a calculation with fresh numbers, its answer, and the slips that give other numbers.

A drill's numbers are drawn for each seed, again until every slip gives a number that no rounding confuses with
the right one or with another slip's.  So a wrong number that is known names the slip that made it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from transformer_parts.language import _, join
from transformer_parts.learn import quantity
from transformer_parts.learn.exercise import Verdict
from transformer_parts.maths import require

#: Right answer and slips are at least this part of the right answer's size apart.
APART = 3 * quantity.TOLERANCE
_MOST_DRAWS = 2000

Numbers = tuple[Fraction, ...]


@dataclass(frozen=True)
class Slip:
    """A wrong way to calculate, and what to say to whoever took it."""

    name: str  # A short name ("degrees for radians")
    #: takes the drill's values by keyword and returns the number, or numbers, that the slip gives.
    function: Callable[..., Any]
    message: str  # what went wrong


@dataclass(frozen=True)
class Drill:
    """A calculation to be done on paper.

    Attributes
    ----------
    name, title : str; for code, and for the page
    notebook : str; stem of the notebook that teaches it
    draw : callable; ``draw(rng)`` returns the values by name
    task : callable; takes the values and returns what is asked, in Markdown
    answer : callable; takes the values and returns the number or numbers, by the library
    working : callable; takes the values and returns the way to the answer, in Markdown
    slips : sequence of Slip; at least four
    kind : {"real", "count", "bytes", "flops"}; what the answer is, and so which units it may have
    """

    name: str
    title: str
    notebook: str
    draw: Callable[[np.random.Generator], Mapping[str, Any]]
    task: Callable[..., str]
    answer: Callable[..., Any]
    working: Callable[..., str]
    slips: Sequence[Slip]
    kind: str = "real"

    def case(self, seed: int | None = None) -> "Case":
        """Return a case with the numbers of a seed; new ones at every call by default.

        Raises
        ------
        ValueError
            If `seed` is negative.
        """
        if seed is not None:
            seed = require.integer("seed", seed, minimum=0)
        rng = np.random.default_rng(seed)
        for _draw in range(_MOST_DRAWS):
            values = MappingProxyType(dict(self.draw(rng)))
            case = Case(
                self,
                values,
                _numbers(self.answer(**values)),
                tuple(_numbers(slip.function(**values)) for slip in self.slips),
            )
            if case.is_telling():
                return case
        raise RuntimeError(f"{self.name}: no telling numbers in {_MOST_DRAWS} draws")


@dataclass(frozen=True)
class Case:
    """A drill with its numbers."""

    drill: Drill
    values: Mapping[str, Any]  # the numbers given
    right: Numbers  # the answer
    slipped: tuple[Numbers, ...]  # what each slip gives

    @property
    def task(self) -> str:
        """What is asked."""
        return self.drill.task(**self.values)

    @property
    def working(self) -> str:
        """The way to the answer, and the answer."""
        return _("{working} = **{answer}**", working=self.drill.working(**self.values), answer=self.shown)

    @property
    def shown(self) -> str:
        """The right answer, as it is printed."""
        return _shown(self.right, self.drill.kind)

    @property
    def slipped_shown(self) -> tuple[str, ...]:
        """What each slip gives, as it is printed."""
        return tuple(_shown(numbers, self.drill.kind) for numbers in self.slipped)

    def is_telling(self) -> bool:
        """Return whether right answer and slips are all far enough apart."""
        every = (self.right, *self.slipped)
        size = _size(self.right)
        return size > 0 and all(
            _distance(one, other) > APART * max(size, _size(one), _size(other))
            for place, one in enumerate(every)
            for other in every[:place]
        )

    def check(self, text: str) -> Verdict:
        """Return the verdict on a typed answer.  One that cannot be read is reported as such and is no mistake."""
        try:
            given = quantity.read(text, self.drill.kind, len(self.right))
        except quantity.UnreadableError as error:
            return Verdict(False, error.words, "unreadable")
        if self._is(given, self.right):
            return Verdict(True, _("Right: {shown}.", shown=self.shown))
        for slip, numbers in zip(self.drill.slips, self.slipped, strict=True):
            if self._is(given, numbers):
                return Verdict(False, slip.message, slip.name)
        values = tuple(number.value for number in given)
        if _distance(values, self.right) <= 4 * quantity.TOLERANCE * _size(self.right):
            return Verdict(False, _("Close. Carry more digits on the way, and give those that you have."), "rounding")
        if _distance(tuple(-value for value in values), self.right) <= quantity.TOLERANCE * _size(self.right):
            return Verdict(False, _("The size is right, the sign is not."), "sign")
        return Verdict(False, _("Not yet, and none of the known slips gives this."))

    def _is(self, given: Sequence[quantity.Given], numbers: Numbers) -> bool:
        size = _size(numbers)
        return all(
            quantity.agrees(one, number, self.drill.kind, size) for one, number in zip(given, numbers, strict=True)
        )


def _numbers(answer: Any) -> Numbers:
    """Return numbers exactly as they are: integers stay integers, floats become the fractions that they are."""
    return tuple(
        Fraction(int(number)) if isinstance(number, int | np.integer) else Fraction(float(number))
        for number in (answer if isinstance(answer, Sequence | np.ndarray) else [answer])
    )


def _size(numbers: Numbers) -> Fraction:
    return max(abs(number) for number in numbers)


def _distance(one: Numbers, other: Numbers) -> Fraction:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _shown(numbers: Numbers, kind: str) -> str:
    if len(numbers) == 1:
        return _printed(numbers[0], kind)
    # What is left by rounding beside larger numbers is shown as the 0 that it stands for.
    floor = _size(numbers) / 10**12
    numbers = [Fraction(0) if abs(number) < floor else number for number in numbers]
    return _("({numbers})", numbers=join(", ", [_printed(number, kind) for number in numbers]))


def _printed(number: Fraction, kind: str) -> str:
    if kind == "real":
        value = float(number)
        text = f"{value:,.6f}" if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.5e}"
        return text.replace("-", "−")
    whole = f"{int(number):,}" if number.denominator == 1 else f"{float(number):,.2f}"
    if kind == "bytes":
        for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if number >= size:
                return _("{count} bytes ({rounded:.4g} {unit})", count=whole, rounded=float(number / size), unit=unit)
    return whole
