"""The questions as cards: filter, answer aloud, reveal, rate."""

from datetime import UTC, datetime, timedelta
from html import escape
from time import monotonic

import ipywidgets as widgets

from transformer_parts.explore.interview.sheet import RATING_LABELS, Sheet, Timer, bar, shown
from transformer_parts.explore.prose import html, line
from transformer_parts.language import _, join, plural
from transformer_parts.learn.interview import LEVELS, Bank, Question
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.ratings import Ratings

#: What can be revealed, as its button names it.
PARTS = (_("30-second answer"), _("whiteboard answer"), _("follow-ups"), _("common wrong answer"))
_HEADINGS = (_("30-second answer"), _("Whiteboard answer"), _("Follow-ups"), _("Common wrong answer"))
TIMES = ((_("no timer"), 0), (_("30 seconds"), 30), (_("3 minutes"), 180))
ORDERS = (_("weak ones first"), _("as in the bank"))
#: Seconds within which a second rating is the second half of a double click, not of a question that was read.
TWICE = 0.6


class QuestionCards(Sheet):
    """One question at a time, with what to say to it in parts that are revealed and hidden again.

    Parameters
    ----------
    ratings : Ratings, optional; where the reader's own ratings are kept; the user's file if not given
    bank : Bank, optional; the questions; the library's own if not given
    language : str, optional; language of what the reader sees

    Attributes
    ----------
    topic, level, everybody, order, time : ipywidgets controls
    parts : dict of str to ipywidgets.Button; by `PARTS`; each reveals or hides
    rate : dict of str to ipywidgets.Button; by `RATINGS`
    """

    alt = _("A card with an interview question, buttons that reveal its answers, and four buttons to rate oneself.")

    def __init__(self, ratings: Ratings | None = None, bank: Bank | None = None, *, language: str | None = None):
        self.bank = load_bank(language=language) if bank is None else bank
        self.ratings = Ratings() if ratings is None else ratings
        self._place = 0
        self._filled: Question | None = None
        self._timing = Timer(language=language)
        self._rated = -TWICE
        super().__init__(language=language)
        self._select()

    def make(self) -> list[widgets.Widget]:
        """Return the parts, from top to bottom."""
        self.topic = self.control(
            widgets.Dropdown(options=[_("all topics"), *self.bank.topics], description=_("Topic"))
        )
        self.level = self.control(widgets.Dropdown(options=[_("all levels"), *LEVELS], description=_("Level")))
        self.order = self.control(widgets.Dropdown(options=ORDERS, description=_("Order")))
        self.time = self.control(widgets.Dropdown(options=TIMES, description=_("Timer")))
        self.everybody = self.control(widgets.Checkbox(description=_("only the ten that everybody asks"), indent=False))
        for control in (self.topic, self.level, self.order, self.everybody):
            control.observe(lambda _change: self.act(self._select), names="value")
        self.time.observe(lambda _change: self.act(self._begin), names="value")
        self.card = widgets.HTMLMath().add_class("tp-card")
        self.parts = {
            name: self.button(_("Show {part}", part=name), lambda name=name: self._toggle(name)).add_class("tp-part")
            for name in PARTS
        }
        self.answers = {name: widgets.HTMLMath(layout={"display": "none"}).add_class("tp-answer") for name in PARTS}
        self.rate = {
            name: self.button(label, lambda name=name: self._rate(name)) for name, label in RATING_LABELS.items()
        }
        self.previous = self.button(_("Previous"), lambda: self._go(-1))
        self.next = self.button(_("Next"), lambda: self._go(1))
        asked = escape(self.translate(_("How well did you know it?")), quote=False)
        label = widgets.HTML(f'<span id="tp-rate">{asked}</span>')
        return [
            bar(self.topic, self.level, self.order, self.time, self.everybody).add_class("tp-filters"),
            self.card,
            self._timing.widget,
            bar(*self.parts.values()),
            *self.answers.values(),
            bar(label, *self.rate.values()),
            bar(self.previous, self.next),
        ]

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions of the current filter, in their order."""
        return self._questions

    @property
    def question(self) -> Question | None:
        """The question on the card."""
        return self._questions[self._place] if self._questions else None

    def _select(self) -> None:
        topic = None if self.topic.index == 0 else self.topic.value
        level = None if self.level.index == 0 else self.level.value
        found = self.bank.select(topic=topic, level=level, everybody_asks=self.everybody.value)
        self._questions = tuple(self.ratings.in_order(found) if self.order.value == ORDERS[0] else found)
        self._place = 0
        self._show()
        self.say(self.ratings.news())

    def _show(self) -> None:
        self._filled = None
        for name in PARTS:
            self._reveal(name, False)
        question = self.question
        for button in (*self.parts.values(), *self.rate.values(), self.previous, self.next):
            button.disabled = question is None
        if question is None:
            self._timing.stop()
            none = _("No question has this topic and this level.")
            self.card.value = f"<p>{escape(self.translate(none))}</p>"
            return
        where = [
            _("{place} of {all}", place=self._place + 1, all=len(self._questions)),
            question.topic,
            question.level,
        ]
        if question.everybody_asks:
            where.append(_("everybody asks this"))
        if (recall := self.ratings.recall(question.id)) is not None:
            where.append(_("expected recall {recall:.0%}", recall=recall))
        self.card.value = (
            f'<p class="tp-where">{escape(self.translate(join(" · ", where)))}</p>'
            f'<h3 class="tp-question">{line(question.question)}</h3>'
        )
        self._begin()

    def _begin(self) -> None:
        if self.question is not None:
            self._timing.start(self.time.value)

    def _toggle(self, name: str) -> None:
        visible = self.answers[name].layout.display == "none"
        if visible:
            self._stop()
            self._fill(name)
        self._reveal(name, visible)

    def _stop(self) -> None:
        seconds = self._timing.stop()
        if seconds is not None and self.time.value:
            self.say(_("You took {seconds:.0f} s of {most} s.", seconds=seconds, most=self.time.value))

    def _fill(self, name: str) -> None:
        """Compute the question's numbers at the first reveal, and put one part of its answer on the page."""
        self._filled = self._filled or self.question.filled()
        question = self._filled
        body = {
            PARTS[0]: html(question.short),
            PARTS[1]: html(question.whiteboard) + self._sources(question),
            PARTS[2]: "".join(
                f"<p><strong>{line(item.question)}</strong></p>{html(item.answer)}" for item in question.follow_ups
            ),
            PARTS[3]: f"<p><strong>{line(question.wrong)}</strong></p>{html(question.refuted)}",
        }[name]
        self.answers[name].value = self.section(_HEADINGS[PARTS.index(name)], body)

    def _reveal(self, name: str, visible: bool) -> None:
        shown(self.answers[name], visible)
        label = _("Hide {part}", part=name) if visible else _("Show {part}", part=name)
        self.parts[name].description = self.translate(label)

    def _rate(self, rating: str) -> None:
        if monotonic() - self._rated < TWICE:
            return
        self._rated = monotonic()
        due = self.ratings.rate(self.question.id, rating)
        wait = due - datetime.now(UTC)
        self._go(1)
        self.say(
            _(
                "Noted: {rating}. That question comes again in {wait}. {problem}",
                rating=rating,
                wait=_words(wait),
                problem=self.ratings.news(),
            )
        )
        self.parts[PARTS[0]].focus()

    def _go(self, by: int) -> None:
        self._place = (self._place + by) % len(self._questions)
        self._show()
        self.say("")

    def _sources(self, question: Question) -> str:
        items = "".join(f"<li>{line(source)}</li>" for source in question.sources)
        return f'{self.shown_in(question.notebook)}<ul class="tp-sources">{items}</ul>'


def _words(wait: timedelta) -> str:
    """Return a waiting time in words."""
    days, hours, minutes = (round(wait.total_seconds() / seconds) for seconds in (86_400, 3600, 60))
    if days >= 1:
        return plural("{n} day", "{n} days", days)
    if hours >= 1:
        return plural("{n} hour", "{n} hours", hours)
    return plural("{n} minute", "{n} minutes", minutes) if minutes >= 1 else _("a minute")
