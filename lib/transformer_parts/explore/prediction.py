"""A prediction: the reader commits to a number or a choice, and sees the computed answer beside it only then."""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from html import escape

import ipywidgets as widgets
import numpy as np

from transformer_parts.explore.interview.sheet import Sheet, bar, shown
from transformer_parts.language import Language, _, plural
from transformer_parts.learn import quantity
from transformer_parts.maths import require

#: A number that is this near to the answer, as a part of it, is marked as right.
NEAR = 0.1


class Prediction(Sheet):
    """A question whose answer is computed when the reader has committed to one.

    Parameters
    ----------
    question : str; may contain formulas between dollar signs
    answer : callable; computes, without arguments, the number, or the index of the right choice (a bool for two)
    choices : sequence of str; the answers to choose from; a number is asked for if there are none
    unit : str; unit of the number, such as "times" or "%"
    form : str; how the number is shown, as `format` takes it
    language : str, optional; language of the buttons and messages

    Attributes
    ----------
    buttons : tuple of ipywidgets.Button; one for each choice
    number : ipywidgets.Text; the number that the reader types
    votes : ipywidgets.Text; what a class says: the hands for each choice, or all its numbers
    """

    def __init__(
        self,
        question: str,
        *,
        answer: Callable[[], float],
        choices: Sequence[str] = (),
        unit: str = "",
        form: str = ".3g",
        language: str | Language | None = None,
    ):
        if not callable(answer):
            raise require.refusal("answer", repr(answer), "a function without arguments that computes it")
        if isinstance(choices, str) or len(choices) == 1 or len(set(choices)) < len(choices):
            raise require.refusal("choices", repr(choices), "two or more different answers, or none")
        self.question, self.answer, self.choices = question, answer, tuple(choices)
        self.unit, self.form = unit, form
        self.alt = f"{question} ({' / '.join(self.choices)})" if self.choices else question
        super().__init__(language=language)

    def answer_text(self) -> str:
        """Compute the answer and return it as it is shown: the right choice, or the number with its unit."""
        answer = self.answer()
        if self.choices:
            return self.choices[require.integer("answer", int(answer), minimum=0, maximum=len(self.choices) - 1)]
        return f"{format(answer, self.form)} {self.unit}".strip()

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        question = widgets.HTMLMath(f'<p class="tp-question">{escape(self.question, quote=False)}</p>')
        self.buttons = tuple(
            self.button(choice, lambda index=index: self._choose(index)) for index, choice in enumerate(self.choices)
        )
        self.number = self.control(widgets.Text(description=_("I say"), continuous_update=False))
        self.number.observe(lambda change: self.act(self._commit) if change["new"].strip() else None, names="value")
        self.commit = self.button(_("Commit"), self._commit)
        self.again = self.button(_("Ask again"), self._ask_again, layout={"display": "none"})
        self.ask_class = self.button(_("Ask a class"), self._open_class)
        example = " ".join("752413986"[: len(self.choices)])
        what = _("hands for each: {example}", example=example) if self.choices else _("all their numbers")
        self.votes = self.control(widgets.Text(description=_("Class"), placeholder=what, continuous_update=False))
        self.votes.observe(lambda change: self.act(self._count) if change["new"].strip() else None, names="value")
        self.count = self.button(_("Show the answer"), self._count)
        self.class_row = bar(self.votes, self.count)
        shown(self.class_row, False)
        asked = self.buttons or (self.number, widgets.Label(self.unit), self.commit)
        self.tally = widgets.HTML()
        return [
            question.add_class("tp-card"),
            bar(*asked, self.again, self.ask_class),
            self.class_row,
            self.status,
            self.tally,
        ]

    def _choose(self, index: int) -> None:
        answer = self.answer_text()
        said = self.choices[index]
        self._reveal(_quoted(said), _quoted(answer), kind="right" if said == answer else "wrong")

    def _commit(self) -> None:
        if not self.number.value.strip():
            self.say(_("Type a number first."))
            self.number.focus()
            return
        if (given := self._numbers([self.number.value])) is None:
            return
        (value,), right = given, self.answer()
        near = abs(float(value) - right) <= NEAR * abs(right)
        said = f"{self.number.value.strip().removesuffix(self.unit).strip()} {self.unit}".strip()
        self._reveal(said, self.answer_text(), kind="right" if near else "")

    def _reveal(self, said: str, answer: str, *, kind: str) -> None:
        self._close()
        self.say(_("You said {said}; it is **{answer}**.", said=said, answer=answer), kind=kind)

    def _close(self) -> None:
        shown(self.again, True)
        self.again.focus()
        for control in (*self.buttons, self.number, self.commit, self.votes, self.count):
            control.disabled = True

    def _ask_again(self) -> None:
        for control in (*self.buttons, self.number, self.commit, self.votes, self.count):
            control.disabled = False
        self.number.value = self.votes.value = self.tally.value = ""
        self.say("")
        (self.votes if self.class_row.layout.display is None else (*self.buttons, self.number)[0]).focus()
        shown(self.again, False)

    def _open_class(self) -> None:
        hidden = self.class_row.layout.display is not None
        shown(self.class_row, hidden)
        (self.votes if hidden else self.ask_class).focus()

    def _count(self) -> None:
        pieces = [piece for piece in re.split(r"[;,\s]+", self.votes.value) if piece]
        if not pieces:
            self.say(_("Type what the class says first."))
            self.votes.focus()
            return
        if (numbers := self._numbers(pieces)) is None:
            return
        answer = self.answer_text()
        wanted = len(self.choices)
        if wanted and (len(numbers) != wanted or not all(n >= 0 and n.denominator == 1 for n in numbers)):
            counts = plural("{n} count of hands", "{n} counts of hands, one for each choice", wanted)
            self.say(_("Got {got}, want {wanted}.", got=_quoted(self.votes.value), wanted=counts))
            return
        self._close()
        if wanted:
            hands = [int(value) for value in numbers]
            self.tally.value = self._table(hands, answer)
            right = hands[self.choices.index(answer)]
            self.say(
                _("{right} of {all} said so: it is **{answer}**.", right=right, all=sum(hands), answer=_quoted(answer))
            )
            return
        given = [float(value) for value in numbers]
        values = {"median": float(np.median(given)), "low": min(given), "high": max(given), "answer": answer}
        count = plural("{n} number", "{n} numbers", len(given))
        self.say(
            _("{count} from {low:.3g} to {high:.3g}, median {median:.3g}; it is **{answer}**.", count=count, **values)
        )

    def _table(self, hands: Sequence[int], answer: str) -> str:
        rows = "".join(
            f'<tr><th scope="row">{"✓ " if choice == answer else ""}<span translate="no">{escape(choice)}</span></th>'
            f"<td>{count}</td></tr>"
            for choice, count in zip(self.choices, hands, strict=True)
        )
        return f'<table class="tp-sheet tp-hands">{rows}</table>'

    def _numbers(self, pieces: Sequence[str]) -> list[Fraction] | None:
        """Return typed numbers, with or without the unit; None, and a word to the reader, if one cannot be read."""
        try:
            return [quantity.read(piece.strip().removesuffix(self.unit), "count")[0].value for piece in pieces]
        except quantity.UnreadableError as error:
            self.say(error.words)
            return None

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(include, exclude)
        items = "".join(f"<li>{escape(choice)}</li>" for choice in self.choices)
        return data | {"text/html": f"<p>{escape(self.question)}</p>" + (items and f"<ul>{items}</ul>")}, metadata


def _quoted(words: str) -> str:
    return f"“{words}”"
