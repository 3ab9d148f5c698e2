"""The coding round: a task, five minutes on the clock, and a function in the cell below that a checker judges."""

from collections.abc import Callable
from html import escape
from types import MappingProxyType

import ipywidgets as widgets

from transformer_parts.explore.interview.sheet import Sheet, Timer, bar
from transformer_parts.explore.prose import line
from transformer_parts.language import _, plural
from transformer_parts.learn.coding_round import SECONDS, TASKS
from transformer_parts.learn.exercise import Verdict


class CodingRound(Sheet):
    """One task at a time; `check` judges a function that the reader has written in a cell.

    Parameters
    ----------
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    task : ipywidgets.Dropdown; which of `TASKS`
    start, hint : ipywidgets.Button
    """

    alt = _("A part of a decoder to write, a clock of five minutes, and a list of the parts that have passed.")

    def __init__(self, *, language: str | None = None):
        self._timing = Timer(language=language)
        self._checks = self._hints = 0
        self._passed = MappingProxyType({})
        super().__init__(language=language)
        self._choose()

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        options = [(task.title, task) for task in TASKS]
        self.task = self.control(widgets.Dropdown(options=options, description=_("Task")))
        self.task.observe(lambda _change: self.act(self._choose), names="value")
        self.start = self.button(_("Start the clock"), self._start)
        self.hint = self.button(_("Show a hint"), self._hint)
        self.card = widgets.HTMLMath().add_class("tp-card")
        self.results = widgets.HTML().add_class("tp-answer")
        return [bar(self.task, self.start, self.hint), self.card, self._timing.widget, self.status, self.results]

    def _choose(self) -> None:
        self._timing.stop()
        self._checks = self._hints = 0
        self.start.disabled = self.hint.disabled = False
        task = self.task.value
        contract = (*task.exercise.takes, _("returned: {what}", what=task.exercise.returns))
        items = "".join(f"<li>{line(self.translate(words))}</li>" for words in contract)
        what = line(self.translate(task.exercise.task))
        self.card.value = f"<p>{what}</p><ul>{items}</ul><pre><code>{escape(task.signature)}</code></pre>"
        self.say("")

    def _start(self) -> None:
        self._checks = 0
        self._timing.start(SECONDS)
        self.say(_("Write the function in the cell below and run it."))

    def _hint(self) -> None:
        hints = self.task.value.exercise.hints
        self._hints += 1
        self.say(hints[self._hints - 1])
        self.hint.disabled = self._hints == len(hints)

    def check(self, function: Callable) -> Verdict:
        """Judge a function by the checker of the task's exercise; stop the clock if it passes.

        Parameters
        ----------
        function : callable; the reader's function

        Returns
        -------
        Verdict

        Raises
        ------
        ValueError
            If `function` cannot be called.
        """
        verdict = self.task.value.exercise.check(function)
        self._checks += 1
        if verdict.passed and (took := self._timing.stop()) is not None:
            checks = plural("{n} check", "{n} checks", self._checks)
            self._note(_("{took:.0f} s of {most} s, {checks}", took=took, most=SECONDS, checks=checks))
        return verdict

    def _note(self, result: str) -> None:
        title = self.task.value.title
        self._passed = MappingProxyType(self._passed | {title: result})
        self.say(_("Passed: {title}, {result}", title=title, result=result), kind="right")
        rows = "".join(
            f'<tr><th scope="row">{escape(self.translate(name))}</th><td>{escape(self.translate(text))}</td></tr>'
            for name, text in self._passed.items()
        )
        table = f"<table><tbody>{rows}</tbody></table>"
        self.results.value = self.section(_("Passed"), table)
