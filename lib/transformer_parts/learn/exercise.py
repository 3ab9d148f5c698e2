"""The contract of an exercise: a task, a right answer, and the wrong answers that people give.

Tasks, hints and messages are messages of `transformer_parts.language`; they are translated when they are shown.

A checker runs the reader's function on inputs that the reader has not seen.  Where the result is wrong it is compared
with what each known mistake gives on the same inputs, and the mistake is named.
"""

import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from transformer_parts.language import _, join, language
from transformer_parts.learn import results
from transformer_parts.maths import require

MOST_CASES = 10_000
_ROOM = "transformer_parts.learn."


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that people give, and what to say to it."""

    name: str  # A short name ("negative angle")
    function: Callable  # an implementation that makes the mistake
    message: str  # what is wrong and where to look, in a sentence or two


@dataclass(frozen=True)
class Verdict:
    """The checker's answer; a notebook shows its message."""

    passed: bool  # whether every unseen input gave the right result
    message: str  # what was found
    mistake: str | None = None  # the name of the mistake, where it is a known one

    def __repr__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {language().text(self.message)}"

    def _repr_html_(self) -> str:
        return f'<p role="status">{escape(repr(self))}</p>'


@dataclass(frozen=True)
class Exercise:
    """A function to write, with its checker.  A notebook shows its task and nothing that gives the solution away."""

    task: str  # what to write, with the signature
    solution: Callable  # the right answer
    #: ``inputs(rng)`` returns the positional arguments of one unseen case.
    inputs: Callable[[np.random.Generator], tuple]
    mistakes: Sequence[Mistake]  # the wrong answers that are told apart
    hints: Sequence[str]  # hints in steps, each saying more than the one before
    tolerance: float = 1e-9  # largest absolute difference that counts as right
    takes: Sequence[str] = ()  # a line for each argument: "x: array of shape (d,), d even"
    returns: str = ""  # what comes back: its kind, shape and order; what is easily got wrong, such as ε

    def __repr__(self) -> str:
        return "\n".join([self._words(self.task), *(f"  {label}: {words}" for label, words in self._contract())])

    def _repr_html_(self) -> str:
        task = re.sub(r"\w+\([^)]*\)(?=: )", r"<code>\g<0></code>", _coded(self._words(self.task)), count=1)
        items = "".join(f"<li>{escape(label)}: {_coded(words)}</li>" for label, words in self._contract())
        return f"<p>{task}</p><ul>{items}</ul>"

    def _contract(self) -> list[tuple[str, str]]:
        """Return the lines below the task, each with its label: what goes in, what comes out, the shapes of a case."""
        inputs = self.inputs(np.random.default_rng(0))
        names = re.match(r"\w+\(([^)]*)\)", self.task)[1].split(", ")
        given = ", ".join(f"{name} {_kind(value)}" for name, value in zip(names, inputs, strict=True))
        shapes = f"`{given} → {_kind(self.solution(*_copies(inputs)))}`"
        lines = [(_("given"), words) for words in self.takes]
        lines += [(_("returned"), self.returns)] * bool(self.returns)
        return [(self._words(label), self._words(words)) for label, words in [*lines, (_("one case"), shapes)]]

    @staticmethod
    def _words(message: str) -> str:
        return language().text(message)

    def hint(self, step: int = 1) -> str:
        """Return hint number `step`, counted from 1, in the reader's language.

        Raises
        ------
        ValueError
            If there is no such hint.
        """
        return language().text(self.hints[require.integer("step", step, maximum=len(self.hints)) - 1])

    def check(self, function: Callable, *, seed: int | None = None, cases: int = 8) -> Verdict:
        """Run the reader's function on unseen inputs and say what was found.

        Parameters
        ----------
        function : callable; the reader's function
        seed : int, optional; seed of the inputs; new ones at every call by default
        cases : int; how many inputs, at most `MOST_CASES`

        Returns
        -------
        Verdict; passed, or the first thing that is wrong

        Raises
        ------
        ValueError
            If `function` cannot be called.
        """
        if not callable(function):
            raise require.refusal("function", repr(function), "a function to check")
        rng = np.random.default_rng(None if seed is None else require.integer("seed", seed, minimum=0))
        inputs = [self.inputs(rng) for _case in range(require.integer("cases", cases, maximum=MOST_CASES))]
        results, narrow = [], False
        for arguments in inputs:
            given = _copies(arguments)
            try:
                result = function(*given)
            except (Exception, SystemExit) as error:  # whatever the reader's code raises is an answer to the reader
                return Verdict(
                    False,
                    _("Your function stopped with {what}{where}", what=_described(error), where=_line_of(error)),
                )
            if not all(map(_same, given, arguments)):
                return Verdict(
                    False, _("Your function changed its input in place; return a new array."), "input changed"
                )
            wanted = np.asarray(self.solution(*_copies(arguments)))
            refusal = _refusal(result, wanted)
            if refusal:
                return refusal
            results.append((np.array(result, dtype=float), wanted))
            narrow |= np.asarray(result).dtype in (np.float16, np.float32)
        worst = max(float(np.abs(result - wanted).max()) for result, wanted in results)
        if worst <= self.tolerance:
            message = _("Right on {cases} unseen inputs; largest difference {worst:.1e}.", cases=cases, worst=worst)
            return Verdict(True, join(" ", [message, *self._recorded(function)]))
        for mistake in self.mistakes:
            made = [np.asarray(mistake.function(*_copies(arguments))) for arguments in inputs]
            pairs = zip(results, made, strict=True)
            if all(m.shape == r.shape and np.abs(r - m).max() <= self.tolerance for (r, _wanted), m in pairs):
                return Verdict(False, mistake.message, mistake.name)
        largest = max(float(np.abs(wanted).max()) for _result, wanted in results)
        if narrow and worst <= 1e-5 * largest:
            return Verdict(
                False, _("Almost: differences up to {worst:.1e}. Compute in float64.", worst=worst), "precision"
            )
        return Verdict(False, _("Not yet: the largest difference from the right result is {worst:.3g}.", worst=worst))

    def _recorded(self, function: Callable) -> list[str]:
        """Record that the reader's own function passed; return what is wrong with the file of results, once."""
        # What a notebook defines is the reader's; a library's function or a test's is not.
        if getattr(function, "__module__", None) != "__main__" or (name := self.name) is None:
            return []
        kept = results.own()
        kept.record("exercise", name, right=True)
        return [news] if (news := kept.news()) else []

    @property
    def name(self) -> str | None:
        """Its name by the module of the room that holds it, such as ``"rope.ROTATE"``; None if none does."""
        for module in [module for name, module in sys.modules.items() if name.startswith(_ROOM)]:
            for name, value in vars(module).items():
                if value is self:
                    return f"{module.__name__.removeprefix(_ROOM)}.{name}"
        return None


def _kind(value: object) -> str:
    """Return a number as it is, of an array the shape, of anything else the type."""
    if isinstance(value, str | bool | np.bool_ | None):
        return repr(value)
    if not isinstance(value, np.ndarray | list | tuple | np.generic | float | int):
        return type(value).__name__
    array = np.asarray(value)
    return str(array.shape) if array.ndim else f"{array[()]:.6g}" if array.dtype.kind == "f" else str(array)


def _coded(words: str) -> str:
    """Return words as HTML, what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(words))


def _line_of(error: BaseException) -> str:
    """Return where the reader's own code stopped: the innermost line of the cell or file it began in."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
    return _(" (line {line} of its cell)", line=lines[-1]) if lines else ""


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _copies(arguments: tuple) -> tuple:
    return tuple(value.copy() if isinstance(value, np.ndarray) else value for value in arguments)


def _same(one: object, other: object) -> bool:
    return np.array_equal(one, other, equal_nan=True) if isinstance(one, np.ndarray) else one == other


def _refusal(result: object, wanted: np.ndarray) -> Verdict | None:
    """Return what is wrong with the kind of a result, whatever its numbers."""
    if result is None or result is Ellipsis:
        return Verdict(False, _("Nothing came back yet: let your function return its result."), "nothing returned")
    no_numbers = Verdict(
        False, _("Your function returned {name}, want numbers.", name=type(result).__name__), "no numbers"
    )
    try:
        if np.iscomplexobj(result):
            return Verdict(False, _("Your function returned complex numbers, want real ones."), "complex")
        if np.asarray(result).dtype.kind not in "biufO":  # text and dates would be read as numbers
            return no_numbers
        numbers = np.asarray(result, dtype=float)
    except Exception:  # a result may be an object that does anything when it is read
        return no_numbers
    if numbers.shape != wanted.shape:
        return Verdict(
            False,
            _("Your result has shape {got}, want {wanted}.", got=numbers.shape, wanted=wanted.shape),
            "shape",
        )
    if not np.isfinite(numbers).all():
        return Verdict(False, _("Your result holds NaN or infinity."), "not finite")
    return None
