"""A mock interview: a few questions, the time each took, the reader's ratings, and a score sheet by topic."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from transformer_parts import language as languages
from transformer_parts.language import Language, _, join
from transformer_parts.learn.interview import Question
from transformer_parts.learn.ratings import RATINGS
from transformer_parts.maths import require

#: Points of each rating, in the order of `RATINGS`.
POINTS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Answered:
    """One question of an interview, done."""

    question: Question
    rating: str  # one of `RATINGS`
    seconds: float  # from seeing the question to seeing its answer
    follow_ups: tuple[float, ...] = ()  # the same of each follow-up that was asked

    @property
    def points(self) -> int:
        """0 to 3."""
        return POINTS[RATINGS.index(self.rating)]


@dataclass(frozen=True)
class ScoreRow:
    """One line of the score sheet.

    Attributes
    ----------
    name : str; the topic, or "All"
    questions, points, most : int; how many questions, the points, and the most that could be had
    seconds : float; mean time
    over : int; questions and follow-ups that took longer than their time
    """

    name: str
    questions: int
    points: int
    most: int
    seconds: float
    over: int

    @property
    def score(self) -> str:
        """The points, in words."""
        return _("{points} of {most}", points=self.points, most=self.most)

    @property
    def mean_time(self) -> str:
        """The mean time, in words."""
        return _("{seconds:.0f} s", seconds=self.seconds)


def draw(questions: Sequence[Question], count: int, *, seed: int | None = None) -> tuple[Question, ...]:
    """Draw questions at random, from as many topics as can be.

    Raises
    ------
    ValueError
        If `count` is below 1 or above the number of questions.

    Examples
    --------
    >>> from transformer_parts.learn.interview_files import load_bank
    >>> drawn = draw(load_bank().questions, 8, seed=1)
    >>> len({question.topic for question in drawn})
    8
    """
    count = require.integer("count", count, maximum=len(questions))
    rng = np.random.default_rng(None if seed is None else require.integer("seed", seed, minimum=0))
    by_topic: dict[str, list[Question]] = {}
    for index in rng.permutation(len(questions)):
        by_topic.setdefault(questions[index].topic, []).append(questions[index])
    # One of each topic, then a second of each, until there are enough.
    rounds = max(map(len, by_topic.values()))
    drawn = [topic[turn] for turn in range(rounds) for topic in by_topic.values() if turn < len(topic)][:count]
    return tuple(drawn[index] for index in rng.permutation(count))


@dataclass
class MockInterview:
    """An interview that is going on."""

    questions: tuple[Question, ...]  # in the order in which they are asked
    seconds: float  # the time for each
    #: The time for each follow-up.
    follow_up_seconds: float = 60.0
    answered: list[Answered] = field(default_factory=list)  # what has been done so far

    @property
    def present(self) -> Question | None:
        """The question that is being asked; None at the end."""
        return self.questions[len(self.answered)] if len(self.answered) < len(self.questions) else None

    def answer(self, rating: str, seconds: float, follow_ups: Sequence[float] = ()) -> None:
        """Note the rating and the times of the current question and its follow-ups, and go on to the next.

        Raises
        ------
        ValueError
            If the interview is over, there is no such rating, or a time is negative.
        """
        require.one_of("rating", rating, RATINGS)
        seconds = require.number("seconds", seconds, minimum=0)
        further = tuple(require.number("follow_ups", took, minimum=0) for took in follow_ups)
        if self.present is None:
            raise require.refusal("answer", f"one more than {len(self.questions)}", "none after the last question")
        self.answered.append(Answered(self.present, RATINGS[RATINGS.index(rating)], seconds, further))

    def sheet(self) -> list[ScoreRow]:
        """Return the score by topic and, last, of all; nothing where nothing was answered."""
        topics = list(dict.fromkeys(item.question.topic for item in self.answered))
        parts = [(topic, [item for item in self.answered if item.question.topic == topic]) for topic in topics]
        parts += [(_("All"), self.answered)] if self.answered else []
        return [
            ScoreRow(
                name=name,
                questions=len(items),
                points=sum(item.points for item in items),
                most=max(POINTS) * len(items),
                seconds=sum(item.seconds for item in items) / len(items),
                over=sum(item.seconds > self.seconds for item in items)
                + sum(took > self.follow_up_seconds for item in items for took in item.follow_ups),
            )
            for name, items in parts
        ]

    def markdown(self, *, date: str = "", language: str | Language | None = None) -> str:
        """Return the score sheet as Markdown: the table by topic, each question, and what to read again.

        Parameters
        ----------
        date : str, optional; A date for the heading
        language : str or Language, optional; as `transformer_parts.language.language` takes it
        """
        text, date = languages.language(language).text, require.text("date", date)
        heading = _("Mock interview, {date}", date=date) if date else _("Mock interview")
        count = _(
            "{done} of {all} questions, {seconds:.0f} s each.",
            done=len(self.answered),
            all=len(self.questions),
            seconds=self.seconds,
        )
        lines = [f"# {text(heading)}", "", text(count), ""]
        columns = (_("topic"), _("questions"), _("points"), _("mean time"), _("over time"))
        lines += [_line(text(column) for column in columns), "|---|---|---|---|---|"]
        for row in self.sheet():
            cells = (row.name, str(row.questions), row.score, row.mean_time, str(row.over))
            lines.append(_line(text(cell) for cell in cells))
        columns = (_("question"), _("rating"), _("time"), _("follow-ups"))
        lines += ["", _line(text(column) for column in columns), "|---|---|---|---|"]
        for item in self.answered:
            times = [_("{seconds:.0f} s", seconds=took) for took in (item.seconds, *item.follow_ups)]
            cells = (_cell(item.question.question), item.rating, times[0], join(", ", times[1:]))
            lines.append(_line(text(cell) for cell in cells))
        weak = [item.question for item in self.answered if item.points < 2]
        if weak:
            lines += ["", text(_("Read again:")), ""]
            lines += [f"- {_cell(question.question)} ({question.notebook})" for question in weak]
        return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Return a text that does not break out of a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")
