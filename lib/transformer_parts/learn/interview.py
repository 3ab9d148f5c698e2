"""Interview questions and statements to judge, as the bank has them."""

from dataclasses import dataclass, replace

from transformer_parts.language import _
from transformer_parts.learn import evidence
from transformer_parts.maths import require

LEVELS = (_("core"), _("practice"), _("depth"))


@dataclass(frozen=True)
class FollowUp:
    """A question that comes after the answer, and its own answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Question:
    """A question of the bank.

    Attributes
    ----------
    id, topic, level : str; its name, the topic of its file, and one of `LEVELS`
    everybody_asks : bool; whether it is one of those that hardly an interview leaves out
    question, short, whiteboard : str
        What is asked; what one says in 30 seconds; what one writes on the whiteboard in three minutes.
    follow_ups : tuple of FollowUp; two
    wrong, refuted : str; the answer that is often given and false, and the number that refutes it
    evidence : str; the function of `evidence` that computes the numbers in all these texts
    sources : tuple of str; papers with their sections
    notebook : str; stem of the notebook that shows it
    """

    id: str
    topic: str
    level: str
    question: str
    short: str
    whiteboard: str
    follow_ups: tuple[FollowUp, ...]
    wrong: str
    refuted: str
    evidence: str
    sources: tuple[str, ...]
    notebook: str
    everybody_asks: bool = False

    def filled(self) -> "Question":
        """Return the question with every number in its texts computed now."""
        numbers = evidence.find(self.evidence)()
        texts = {
            name: evidence.fill(getattr(self, name), numbers)
            for name in ("question", "short", "whiteboard", "wrong", "refuted")
        }
        follow_ups = tuple(
            FollowUp(evidence.fill(item.question, numbers), evidence.fill(item.answer, numbers))
            for item in self.follow_ups
        )
        return replace(self, **texts, follow_ups=follow_ups)


@dataclass(frozen=True)
class Claim:
    """A statement to be judged.

    Attributes
    ----------
    id, topic, statement : str; its name, the topic of its file, and the statement
    holds : bool; whether it is true
    shown : str; what settles it, shown after the choice
    evidence : str; the function of `evidence` that computes the numbers
    notebook : str; stem of the notebook that shows it
    verdict : str; name of the number that says whether the statement holds
    """

    id: str
    topic: str
    statement: str
    holds: bool
    shown: str
    evidence: str
    notebook: str
    verdict: str = "holds"

    def settled(self) -> tuple[bool, str]:
        """Compute whether the statement holds, and return that with the text that shows it."""
        numbers = evidence.find(self.evidence)()
        return bool(numbers[self.verdict]), evidence.fill(self.shown, numbers)


@dataclass(frozen=True)
class Bank:
    """All questions and claims, in the order of the files."""

    questions: tuple[Question, ...]
    claims: tuple[Claim, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in order."""
        return tuple(dict.fromkeys(item.topic for item in (*self.questions, *self.claims)))

    def select(
        self, *, topic: str | None = None, level: str | None = None, everybody_asks: bool = False
    ) -> tuple[Question, ...]:
        """Return the questions of a topic, of a level, and of those that everybody asks.

        Raises
        ------
        ValueError
            If there is no such topic or level.
        """
        if topic is not None:
            require.one_of("topic", topic, self.topics)
        if level is not None:
            require.one_of("level", level, LEVELS)
        return tuple(
            question
            for question in self.questions
            if topic in (None, question.topic)
            and level in (None, question.level)
            and (question.everybody_asks or not everybody_asks)
        )
