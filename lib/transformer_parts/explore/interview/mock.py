"""A mock interview: questions and follow-ups against the clock, one's own ratings, a score sheet to take along."""

from base64 import b64encode
from datetime import date
from html import escape

import ipywidgets as widgets

from transformer_parts.explore.interview.sheet import RATING_LABELS, Sheet, Timer, bar, shown
from transformer_parts.explore.prose import html, line, notebook_link
from transformer_parts.language import _, join
from transformer_parts.learn.interview import LEVELS, Bank, Question
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.mock_interview import MockInterview, draw
from transformer_parts.learn.ratings import Ratings

FILE_NAME = _("mock-interview.md")


class MockSheet(Sheet):
    """An interview from its settings to the score sheet.

    Parameters
    ----------
    seed : int, optional; of the questions drawn; others every time if not given
    ratings : Ratings, optional; where the ratings are kept; the user's file if not given
    bank : Bank, optional; the questions; the library's own if not given
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    count, seconds, follow_up_seconds, level, everybody : ipywidgets controls; the settings
    interview : MockInterview or None; the interview that goes on, or went on last
    """

    alt = _("Settings of a mock interview: number of questions, time for each, level; and a button to start.")

    def __init__(
        self,
        seed: int | None = None,
        ratings: Ratings | None = None,
        bank: Bank | None = None,
        *,
        language: str | None = None,
    ):
        self.bank = load_bank(language=language) if bank is None else bank
        self.ratings = Ratings() if ratings is None else ratings
        self.interview: MockInterview | None = None
        self._seed = seed
        self._timing, self._further_timing = Timer(language=language), Timer(language=language)
        self._took: float | None = None
        self._further: list[float] = []
        self._filled: Question | None = None
        super().__init__(language=language)
        if not self.bank.questions:
            self.start.disabled = True
            self.say(_("There are no questions."))

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        self.count = self.control(
            widgets.BoundedIntText(value=5, min=1, max=max(1, len(self.bank.questions)), description=_("Questions"))
        )
        self.seconds = self.control(
            widgets.BoundedIntText(value=120, min=10, max=900, step=10, description=_("Seconds each"))
        )
        self.follow_up_seconds = self.control(
            widgets.BoundedIntText(value=60, min=10, max=900, step=10, description=_("Follow-up (s)"))
        )
        levels = [_("all levels"), *LEVELS]
        self.level = self.control(widgets.Dropdown(options=levels, value=LEVELS[0], description=_("Level")))
        self.everybody = self.control(widgets.Checkbox(description=_("only the ten that everybody asks"), indent=False))
        self.start = self.button(_("Start the interview"), self._start)
        settings = (self.count, self.seconds, self.follow_up_seconds, self.level, self.everybody, self.start)
        self.settings = bar(*settings).add_class("tp-filters")
        self.card = widgets.HTMLMath().add_class("tp-card")
        self.show = self.button(_("Show the answer"), self._reveal)
        self.stop = self.button(_("End here"), self._end)
        self.answer = widgets.HTMLMath().add_class("tp-answer")
        self.follow_ups = widgets.HTMLMath().add_class("tp-answer")
        self.ask = self.button(_("Ask a follow-up"), self._ask_further)
        self.show_further = self.button(_("Show its answer"), self._reveal_further)
        self.further = bar(self.ask, self.show_further)
        self.rate = {
            name: self.button(label, lambda name=name: self._rate(name)) for name, label in RATING_LABELS.items()
        }
        asked = escape(self.translate(_("How well did you know it?")), quote=False)
        self.rating = bar(widgets.HTML(f"<span>{asked}</span>"), *self.rate.values())
        answers = [self.answer, self.follow_ups, self._further_timing.widget, self.further, self.rating]
        self.asking = widgets.VBox([self.card, self._timing.widget, bar(self.show, self.stop), *answers]).add_class(
            "tp-asking"
        )
        self.sheet = widgets.HTML().add_class("tp-answer")
        self.text = widgets.Textarea(description=self.translate(_("Markdown")), rows=8).add_class("tp-export")
        self.again = self.button(_("Another interview"), self._again)
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
            self.say(_("No question has these settings."))
            return
        drawn = draw(found, min(self.count.value, len(found)), seed=self._seed)
        if self._seed is not None:
            self._seed += 1
        self.interview = MockInterview(drawn, float(self.seconds.value), float(self.follow_up_seconds.value))
        self._stage(self.asking)
        self._ask()

    def _ask(self) -> None:
        question = self.interview.present
        self._took, self._further = None, []
        self._further_timing.stop()
        place = _(
            "Question {place} of {all}", place=len(self.interview.answered) + 1, all=len(self.interview.questions)
        )
        where = join(" · ", [place, question.topic])
        self.card.value = (
            f'<p class="tp-where">{escape(self.translate(where))}</p>'
            f'<h3 class="tp-question">{line(question.question)}</h3>'
        )
        self.answer.value = self.follow_ups.value = ""
        shown(self.rating, False)
        shown(self.further, False)
        self.show.disabled = False
        self._timing.start(self.seconds.value)
        self.say("")
        self.show.focus()

    def _reveal(self) -> None:
        took = self._timing.stop()
        if took is None:  # pressed twice
            return
        self._took = took
        self._filled = question = self.interview.present.filled()
        self.answer.value = (
            self.section(_("30-second answer"), html(question.short))
            + self.section(_("Whiteboard answer"), html(question.whiteboard))
            + self.section(
                _("Common wrong answer"), f"<p><strong>{line(question.wrong)}</strong></p>{html(question.refuted)}"
            )
            + self.shown_in(question.notebook)
        )
        shown(self.rating, True)
        shown(self.further, True)
        self.ask.disabled, self.show_further.disabled = False, True
        self._say_time(took, self.interview.seconds)
        self.ask.focus()
        self.show.disabled = True

    def _say_time(self, took: float, most: float) -> None:
        self.say(
            _("You took {seconds:.0f} s of {most:.0f} s, over time.", seconds=took, most=most)
            if took > most
            else _("You took {seconds:.0f} s of {most:.0f} s.", seconds=took, most=most)
        )

    def _ask_further(self) -> None:
        """Show the next follow-up and start its clock."""
        if self.ask.disabled:  # pressed twice
            return
        item = self._filled.follow_ups[len(self._further)]
        self.follow_ups.value += f'<p class="tp-question">{line(item.question)}</p>'
        self._further_timing.start(self.follow_up_seconds.value)
        self.say("")
        self.show_further.disabled = False
        self.show_further.focus()
        self.ask.disabled = True

    def _reveal_further(self) -> None:
        """Stop the clock of the follow-up and show its answer."""
        took = self._further_timing.stop()
        if took is None:  # pressed twice
            return
        item = self._filled.follow_ups[len(self._further)]
        self._further.append(took)
        self.follow_ups.value += self.section(_("Its answer"), html(item.answer))
        self._say_time(took, self.interview.follow_up_seconds)
        left = len(self._further) < len(self._filled.follow_ups)
        self.ask.disabled = not left
        (self.ask if left else self.rate["good"]).focus()
        self.show_further.disabled = True

    def _rate(self, rating: str) -> None:
        if self._took is None:  # pressed twice
            return
        question = self.interview.present
        self.interview.answer(rating, self._took, self._further)
        self._took = None
        if self.interview.present is None:
            self._end()
        else:
            self._ask()
        self.ratings.rate(question.id, rating)
        if news := self.ratings.news():
            self.say(news)

    def _end(self) -> None:
        self._timing.stop()
        self._further_timing.stop()
        today = date.today().isoformat()
        markdown = self.interview.markdown(date=today, language=self.language)
        self.text.value = markdown
        self.sheet.value = self._table() + self._download(markdown)
        self._stage(self.result)
        self.say("" if self.interview.answered else _("Ended before the first rating."))
        self.again.focus()

    def _again(self) -> None:
        self._stage(self.settings)
        self.say("")
        self.start.focus()

    def _table(self) -> str:
        def shown_text(words: str) -> str:
            return escape(self.translate(words))

        rows = "".join(
            f'<tr><th scope="row">{shown_text(row.name)}</th><td>{row.questions}</td><td>{shown_text(row.score)}</td>'
            f"<td>{shown_text(row.mean_time)}</td><td>{row.over}</td></tr>"
            for row in self.interview.sheet()
        )
        columns = (_("Topic"), _("Questions"), _("Points"), _("Mean time"), _("Over time"))
        head = "".join(f'<th scope="col">{shown_text(name)}</th>' for name in columns)
        weak = "".join(
            f"<li>{line(item.question.question)} ({notebook_link(item.question.notebook, language=self.language)})</li>"
            for item in self.interview.answered
            if item.points < 2
        )
        title = shown_text(_("Read again:"))
        again = f"<p>{title}</p><ul>{weak}</ul>" if weak else ""
        table = f'<table class="tp-sheet"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        return self.section(_("Score sheet"), f"{table}{again}")

    def _download(self, markdown: str) -> str:
        data = b64encode(markdown.encode()).decode()
        label = escape(self.translate(_("Save as {file}", file=FILE_NAME)))
        name = escape(self.translate(FILE_NAME))
        return f'<p><a download="{name}" href="data:text/markdown;base64,{data}">{label}</a></p>'
