"""A mock interview: questions against the clock, one's own ratings, and a score sheet to take along."""

from base64 import b64encode
from datetime import date
from html import escape

import ipywidgets as widgets

from transformer_parts.explore.interview.sheet import Sheet, Timer, bar, section, shown
from transformer_parts.explore.prose import html, line, notebook_link
from transformer_parts.learn.interview import LEVELS, Bank
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.mock_interview import MockInterview, draw
from transformer_parts.learn.ratings import RATINGS, Ratings

FILE_NAME = "mock-interview.md"


class MockSheet(Sheet):
    """An interview from its settings to the score sheet.

    Parameters
    ----------
    seed : int, optional
        Of the questions drawn; others every time if not given.
    ratings : Ratings, optional
        Where the ratings are kept; the user's file if not given.
    bank : Bank, optional
        The questions; the library's own if not given.
    language : str, optional
        Language of what the reader sees.

    Attributes
    ----------
    count, seconds, level, everybody : ipywidgets controls
        The settings.
    interview : MockInterview or None
        The interview that goes on, or went on last.
    """

    alt = "Settings of a mock interview: number of questions, time for each, level; and a button to start."

    def __init__(
        self,
        seed: int | None = None,
        ratings: Ratings | None = None,
        bank: Bank | None = None,
        *,
        language: str | None = None,
    ):
        self.bank = load_bank() if bank is None else bank
        self.ratings = Ratings() if ratings is None else ratings
        self.interview: MockInterview | None = None
        self._seed = seed
        self._timing = Timer()
        self._took: float | None = None
        super().__init__(language=language)

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        self.count = widgets.BoundedIntText(value=5, min=1, max=len(self.bank.questions), description="Questions")
        self.seconds = widgets.BoundedIntText(value=120, min=10, max=900, step=10, description="Seconds each")
        self.level = widgets.Dropdown(options=["all levels", *LEVELS], description="Level")
        self.everybody = widgets.Checkbox(description="only the ten that everybody asks", indent=False)
        self.start = self.button("Start the interview", self._start)
        self.settings = bar(self.count, self.seconds, self.level, self.everybody, self.start).add_class("tp-filters")
        self.card = widgets.HTMLMath().add_class("tp-card")
        self.show = self.button("Show the answer", self._reveal)
        self.stop = self.button("End here", self._end)
        self.answer = widgets.HTMLMath().add_class("tp-answer")
        self.rate = {name: self.button(name.capitalize(), lambda name=name: self._rate(name)) for name in RATINGS}
        self.rating = bar(widgets.HTML("<span>How well did you know it?</span>"), *self.rate.values())
        self.asking = widgets.VBox(
            [self.card, self._timing.widget, bar(self.show, self.stop), self.answer, self.rating]
        ).add_class("tp-asking")
        self.sheet = widgets.HTML().add_class("tp-answer")
        self.text = widgets.Textarea(description="Markdown", rows=8).add_class("tp-export")
        self.again = self.button("Another interview", self._again)
        self.result = widgets.VBox([self.sheet, self.text, bar(self.again)]).add_class("tp-asking")
        self._stage(self.settings)
        return [self.settings, self.asking, self.result]

    def _stage(self, present: widgets.Widget) -> None:
        for part in (self.settings, self.asking, self.result):
            shown(part, part is present)

    def _start(self) -> None:
        level = None if self.level.index == 0 else self.level.value
        found = self.bank.select(level=level, everybody_asks=self.everybody.value)
        if not found:
            self.say("No question has these settings.")
            return
        drawn = draw(found, min(self.count.value, len(found)), seed=self._seed)
        if self._seed is not None:
            self._seed += 1
        self.interview = MockInterview(drawn, float(self.seconds.value))
        self._stage(self.asking)
        self._ask()

    def _ask(self) -> None:
        question = self.interview.present
        self._took = None
        place = len(self.interview.answered) + 1
        self.card.value = (
            f'<p class="tp-where">Question {place} of {len(self.interview.questions)} · {escape(question.topic)}</p>'
            f'<h3 class="tp-question">{line(question.question)}</h3>'
        )
        self.answer.value = ""
        shown(self.rating, False)
        self.show.disabled = False
        self._timing.start(self.seconds.value)
        self.say("")
        self.show.focus()

    def _reveal(self) -> None:
        took = self._timing.stop()
        if took is None:  # pressed twice
            return
        self._took = took
        question = self.interview.present.filled()
        self.answer.value = (
            section("30-second answer", html(question.short))
            + section("Whiteboard answer", html(question.whiteboard))
            + section("Common wrong answer", f"<p><strong>{line(question.wrong)}</strong></p>{html(question.refuted)}")
            + f"<p>Shown in {notebook_link(question.notebook)}.</p>"
        )
        shown(self.rating, True)
        over = self._took > self.interview.seconds
        self.say(f"You took {self._took:.0f} s of {self.interview.seconds:.0f} s{', over time' if over else ''}.")
        self.rate["good"].focus()
        self.show.disabled = True

    def _rate(self, rating: str) -> None:
        if self._took is None:  # pressed twice
            return
        question = self.interview.present
        self.interview.answer(rating, self._took)
        self._took = None
        if self.interview.present is None:
            self._end()
        else:
            self._ask()
        self.ratings.rate(question.id, rating)
        if self.ratings.problem:
            self.say(self.ratings.problem)

    def _end(self) -> None:
        self._timing.stop()
        today = date.today().isoformat()
        markdown = self.interview.markdown(date=today)
        self.text.value = markdown
        self.sheet.value = _table(self.interview) + _download(markdown)
        self._stage(self.result)
        self.say("" if self.interview.answered else "Ended before the first rating.")
        self.again.focus()

    def _again(self) -> None:
        self._stage(self.settings)
        self.say("")
        self.start.focus()


def _table(interview: MockInterview) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th><td>{row.questions}</td><td>{row.points} of {row.most}</td>'
        f"<td>{row.seconds:.0f} s</td><td>{row.over}</td></tr>"
        for row in interview.sheet()
    )
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Topic", "Questions", "Points", "Mean time", "Over time")
    )
    weak = "".join(
        f"<li>{line(item.question.question)} ({notebook_link(item.question.notebook)})</li>"
        for item in interview.answered
        if item.points < 2
    )
    return (
        f'<section><h4>Score sheet</h4><table class="tp-sheet"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        f"</table>{f'<p>Read again:</p><ul>{weak}</ul>' if weak else ''}</section>"
    )


def _download(markdown: str) -> str:
    data = b64encode(markdown.encode()).decode()
    return f'<p><a download="{FILE_NAME}" href="data:text/markdown;base64,{data}">Save as {FILE_NAME}</a></p>'
