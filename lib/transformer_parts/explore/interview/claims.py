"""Statements to judge: true or false, then the number that settles it."""

from html import escape

import ipywidgets as widgets
import numpy as np

from transformer_parts.explore.interview.sheet import Sheet, bar
from transformer_parts.explore.prose import html
from transformer_parts.language import _, join
from transformer_parts.learn import results
from transformer_parts.learn.interview import Bank, Claim
from transformer_parts.learn.interview_files import load_bank


class ClaimRound(Sheet):
    """One statement at a time, in a random order, each once before any comes again.

    Parameters
    ----------
    seed : int, optional; of the order; another one every time if not given
    bank : Bank, optional; the statements; the library's own if not given
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    true, false, next : ipywidgets.Button
    """

    alt = _("A statement, two buttons to call it true or false, and the computed number that settles it.")

    def __init__(self, seed: int | None = None, bank: Bank | None = None, *, language: str | None = None):
        claims = (load_bank(language=language) if bank is None else bank).claims
        self.claims = tuple(claims[index] for index in np.random.default_rng(seed).permutation(len(claims)))
        self._place = 0
        self._right = self._tried = 0
        self._kept = results.own()
        super().__init__(language=language)
        if self.claims:
            self._show()
            return
        for button in (self.true, self.false, self.next):
            button.disabled = True
        self.say(_("There are no statements."))

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        self.statement = widgets.HTMLMath().add_class("tp-card")
        self.true = self.button(_("True"), lambda: self._choose(True))
        self.false = self.button(_("False"), lambda: self._choose(False))
        self.next = self.button(_("Next statement"), self._go)
        self.settled = widgets.HTMLMath().add_class("tp-answer")
        self.tally = widgets.HTML()
        return [self.statement, bar(self.true, self.false, self.next, self.tally), self.status, self.settled]

    @property
    def claim(self) -> Claim:
        """The statement that is shown."""
        return self.claims[self._place]

    def _show(self) -> None:
        self._open = True
        place = _("{place} of {all}", place=self._place + 1, all=len(self.claims))
        where = join(" · ", [place, self.claim.topic])
        self.statement.value = (
            f'<p class="tp-where">{escape(self.translate(where))}</p>'
            f'<div class="tp-question">{html(self.claim.statement)}</div>'
        )
        self.settled.value = ""
        self.say("")

    def _choose(self, choice: bool) -> None:
        holds, text = self.claim.settled()
        right = choice == holds
        if self._open:  # a second choice is no longer a choice
            self._open = False
            self._tried += 1
            self._right += right
            self._kept.record("claim", self.claim.id, right=right)
            tally = _("{right} of {tried} right", right=self._right, tried=self._tried)
            self.tally.value = f"<span>{escape(self.translate(tally))}</span>"
        self.settled.value = f"<section>{html(text)}{self.shown_in(self.claim.notebook)}</section>"
        verdict = _("The statement is **true**.") if holds else _("The statement is **false**.")
        self.say(join(" ", [verdict, *filter(None, [self._kept.news()])]), kind="right" if right else "wrong")
        self.next.focus()

    def _go(self) -> None:
        self._place = (self._place + 1) % len(self.claims)
        self._show()
        self.true.focus()
