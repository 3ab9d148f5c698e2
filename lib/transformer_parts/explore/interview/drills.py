"""The drills: a calculation with fresh numbers, a line to type the answer, and what to say to it."""

from html import escape
from types import MappingProxyType

import ipywidgets as widgets

from transformer_parts.explore.interview.sheet import Sheet, bar, shown
from transformer_parts.explore.prose import html, line, notebook_link
from transformer_parts.language import _, join
from transformer_parts.learn import results
from transformer_parts.learn.drills import DRILLS, Drill

_HINTS = MappingProxyType(
    {
        "real": _("Three significant digits are enough."),
        "count": _("In full (134,515,008) or rounded with K, M or B (134.5M)."),
        "bytes": _("In bytes, or with kB, MB, GB, KiB, MiB, GiB."),
        "flops": _("In full, as 1.5e9, or with MFLOP, GFLOP."),
    }
)


class DrillSheet(Sheet):
    """One drill at a time.

    Parameters
    ----------
    seed : int, optional
        Of the first case; the following cases have the following seeds.  New numbers every time if not given.
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    drill : ipywidgets.Dropdown; which drill
    answer : ipywidgets.Text; what the reader types; Enter checks it
    """

    alt = _("A calculation with fresh numbers, a line for the answer, and buttons to check it and to see the working.")

    def __init__(self, seed: int | None = None, *, language: str | None = None):
        self._seed = seed
        self._right = self._tried = 0
        self._kept = results.own()
        super().__init__(language=language)
        self._draw()

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        titles = [
            (_("{number} · {title}", number=number, title=drill.title), drill) for number, drill in enumerate(DRILLS, 1)
        ]
        self.drill = self.control(widgets.Dropdown(options=titles, description=_("Drill")))
        self.drill.observe(lambda _change: self.act(self._draw), names="value")
        self.task = widgets.HTMLMath().add_class("tp-card")
        self.answer = self.control(widgets.Text(description=_("Answer"), continuous_update=False))
        self.answer.observe(lambda change: self.act(self._check) if change["new"].strip() else None, names="value")
        self.working = widgets.HTMLMath(layout={"display": "none"}).add_class("tp-answer")
        self.show_working = self.button(_("Show the working"), self._toggle)
        self.check = self.button(_("Check"), self._check_again)
        self.new = self.button(_("New numbers"), self._fresh)
        self.tally = widgets.HTML()
        return [
            bar(self.drill).add_class("tp-filters"),
            self.task,
            bar(self.answer, self.check),
            self.status,
            self.working,
            bar(self.new, self.show_working, self.tally),
        ]

    @property
    def present(self) -> Drill:
        """The drill that is chosen."""
        return self.drill.value

    def _draw(self) -> None:
        self.case, self._case_seed = self.present.case(self._seed), self._seed
        if self._seed is not None:
            self._seed += 1
        hints = [_HINTS[self.present.kind]]
        if len(self.case.right) > 1:
            hints.append(_("Several numbers: separate them by commas."))
        link = notebook_link(self.present.notebook, language=self.language)
        self.task.value = (
            f'<p class="tp-where">{link}</p>{html(self.translate(self.case.task))}'
            f'<p class="tp-where">{line(self.translate(join(" ", hints)))}</p>'
        )
        self._open = True
        self.answer.value = ""
        self.working.value = ""
        self._reveal(False)
        self.say("")

    def _fresh(self) -> None:
        self._draw()
        self.answer.focus()

    def _check_again(self) -> None:
        if self.answer.value.strip():
            self._check()
        else:
            self.say(_("Type your answer first."))
            self.answer.focus()

    def _check(self) -> None:
        verdict = self.case.check(self.answer.value)
        if verdict.mistake == "unreadable":
            self.say(verdict.message)
            return
        if self._open:  # only the first answer to a case counts
            self._open = False
            self._tried += 1
            self._right += verdict.passed
            self._kept.record("drill", self.present.name, right=verdict.passed, seed=self._case_seed)
            tally = _("{right} of {tried} right at the first try", right=self._right, tried=self._tried)
            self.tally.value = f"<span>{escape(self.translate(tally))}</span>"
        said = [verdict.message, *filter(None, [self._kept.news()])]
        self.say(join(" ", said), kind="right" if verdict.passed else "wrong")

    def _toggle(self) -> None:
        visible = self.working.layout.display == "none"
        if visible:
            self._open = False  # what has been seen does not count
            self.working.value = self.section(_("Working"), html(self.translate(self.case.working)))
        self._reveal(visible)

    def _reveal(self, visible: bool) -> None:
        shown(self.working, visible)
        self.show_working.description = self.translate(_("Hide the working") if visible else _("Show the working"))
