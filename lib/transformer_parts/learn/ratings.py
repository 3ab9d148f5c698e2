"""The reader's own ratings, kept between sessions, and which question comes next.

When a question should come again is decided by the spaced-repetition scheduler of the package `fsrs`, from all ratings
of that question so far.  They are kept in one small JSON file of the user's, outside the project.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from fsrs import Card, Rating, Scheduler
from platformdirs import user_data_path

from transformer_parts.language import Message, _
from transformer_parts.learn.interview import Question
from transformer_parts.learn.kept_file import KeptFile, now_with_zone
from transformer_parts.maths import require

RATINGS = (_("again"), _("hard"), _("good"), _("easy"))
PLACE_VARIABLE = "TRANSFORMER_PARTS_RATINGS"


def default_path() -> Path:
    """Return where the ratings are kept: what TRANSFORMER_PARTS_RATINGS names, or a file in the user's data folder."""
    named = os.environ.get(PLACE_VARIABLE)
    if named:
        return Path(os.path.expanduser(named))
    return user_data_path("transformer-parts", appauthor=False) / "interview.json"


class Ratings(KeptFile[Card]):
    """How the reader rated each question, and when it should come again.

    Parameters
    ----------
    path : Path, optional; the file, `default_path` if not given; see `KeptFile` for how it is kept
    now : function, optional; returns the present time, with its zone

    Attributes
    ----------
    problem : str; what is wrong with the file, in a sentence or two; empty if nothing is
    """

    section = "cards"

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = now_with_zone):
        # Without fuzzing, equal ratings lead to equal times.
        self._scheduler = Scheduler(enable_fuzzing=False)
        self._held: dict[str, Card] = {}  # rated here, and in no file
        super().__init__(default_path() if path is None else path, now)

    def rate(self, question_id: str, rating: str) -> datetime:
        """Keep a rating, and return when the question should come again.

        If the file cannot be written, the rating holds for this session, and `problem` says so.

        Raises
        ------
        ValueError
            If there is no such rating.
        """
        value = Rating(RATINGS.index(require.one_of("rating", rating, RATINGS)) + 1)
        self.keep(lambda: self._review(question_id, value))
        return self.entries()[question_id].due

    def recall(self, question_id: str) -> float | None:
        """Return the probability with which the scheduler expects the answer to be known now; None if never rated."""
        card = self.entries().get(question_id)
        return None if card is None else float(self._scheduler.get_card_retrievability(card, self._now()))

    def due(self, question_id: str) -> datetime | None:
        """Return when a question should come again; None if it was never rated."""
        card = self.entries().get(question_id)
        return None if card is None else card.due

    def in_order(self, questions: Iterable[Question]) -> list[Question]:
        """Sort questions: those that are due, the least known first; then those never rated; then the others by time.

        Among those never rated, and where all else is equal, the given order stays.
        """
        now, cards = self._now(), self.entries()

        def place(question: Question) -> tuple[float, ...]:
            card = cards.get(question.id)
            if card is None:
                return (1,)
            if card.due <= now:
                # The scheduler counts whole days; within one, what was due first comes first.
                return (0, self.recall(question.id), card.due.timestamp())
            return (2, card.due.timestamp())

        return sorted(questions, key=place)

    def _review(self, question_id: str, value: Rating) -> None:
        cards = self.entries()
        card = cards.get(question_id) or Card(card_id=len(cards), due=self._now())
        self._held[question_id] = self._scheduler.review_card(card, value, self._now())[0]

    def parsed(self, name: str, plain: Any) -> Card:
        """Return a card; refuse one that can be read, but not be sorted, compared or rated."""
        card = Card.from_dict(plain)
        if card.last_review is None or card.last_review.tzinfo is None or card.due.tzinfo is None:
            raise ValueError(_("{card}: no review, or times without a zone", card=name))
        try:
            self._scheduler.get_card_retrievability(card, self._now())
            for value in Rating:
                self._scheduler.review_card(card, value, self._now())
        except Exception as error:
            raise ValueError(f"{name}: {type(error).__name__}: {error}") from error
        return card

    def plain(self, entry: Card) -> dict[str, Any]:
        """Return a card as JSON."""
        return dict(entry.to_dict())

    def entries(self) -> Mapping[str, Card]:
        """Return the cards of the file and of this session."""
        return self._kept | self._held

    def settle(self) -> None:
        """Let go of cards that another session has rated later."""
        for name in [name for name, card in self._held.items() if not _newer(card, self._kept.get(name))]:
            del self._held[name]

    def written(self) -> None:
        """Let go of the cards of this session."""
        self._held = {}

    def unreadable(self, error: str) -> Message:
        """Say that the file is damaged."""
        return _(
            "{path} cannot be read as ratings ({error}). The ratings start empty; the next one moves that file aside.",
            path=str(self.path),
            error=error,
        )

    def moved_aside(self, aside: str) -> Message:
        """Say that the damaged file has another name now."""
        return _("The file of ratings could not be read and was kept as {aside}.", aside=aside)

    def deleted(self) -> Message:
        """Say that the file was deleted during the session."""
        return _("The file of ratings has been deleted meanwhile, so the ratings started empty again.")

    def session_only(self, reason: str) -> Message:
        """Say that nothing can be kept, and why."""
        return _(
            "Ratings hold for this session only: they cannot be kept in {path} ({reason}). To keep them elsewhere, set"
            " the environment variable {variable} to the path of another file before you start JupyterLab.",
            path=str(self.path),
            reason=reason,
            variable=PLACE_VARIABLE,
        )


def _newer(card: Card, other: Card | None) -> bool:
    return other is None or card.last_review > other.last_review
