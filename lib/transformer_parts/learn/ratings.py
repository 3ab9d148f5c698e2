"""The reader's own ratings, kept between sessions, and which question comes next.

When a question should come again is decided by the spaced-repetition scheduler of the package `fsrs`, from all ratings
of that question so far.  They are kept in one small JSON file of the user's, outside the project.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fsrs import Card, Rating, Scheduler
from platformdirs import user_data_path

from transformer_parts.language import Message, _
from transformer_parts.learn.interview import Question
from transformer_parts.maths import require

RATINGS = (_("again"), _("hard"), _("good"), _("easy"))
VERSION = 1


def default_path() -> Path:
    """Return where the ratings are kept: what TRANSFORMER_PARTS_RATINGS names, or a file in the user's data folder."""
    named = os.environ.get("TRANSFORMER_PARTS_RATINGS")
    return Path(named) if named else user_data_path("transformer-parts", appauthor=False) / "interview.json"


def _now() -> datetime:
    return datetime.now(UTC)


class Ratings:
    """How the reader rated each question, and when it should come again.

    A file that cannot be read stops nothing: `problem` says so, the session begins without ratings, and before the
    first new rating is written the unreadable file is moved aside under another name.

    Parameters
    ----------
    path : Path, optional
        The file; `default_path` if not given.  It is made with the first rating.
    now : function, optional
        Returns the present time, with its zone.

    Attributes
    ----------
    problem : str
        What is wrong with the file, in a sentence; empty if nothing is.
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = _now):
        self.path = default_path() if path is None else Path(path)
        self.problem = ""
        self._unreadable = False
        self._now = now
        # Without fuzzing, equal ratings lead to equal times.
        self._scheduler = Scheduler(enable_fuzzing=False)
        self._cards = self._read()

    def rate(self, question_id: str, rating: str) -> datetime:
        """Keep a rating, and return when the question should come again.

        Raises
        ------
        ValueError
            If there is no such rating.
        OSError
            If the file cannot be written; the rating holds for this session then.
        """
        value = Rating(RATINGS.index(require.one_of("rating", rating, RATINGS)) + 1)
        for name, card in self._read().items():  # another session may have rated meanwhile
            if name not in self._cards or card.last_review > self._cards[name].last_review:
                self._cards[name] = card
        card = self._cards.get(question_id) or Card(card_id=len(self._cards), due=self._now())
        card, _log = self._scheduler.review_card(card, value, self._now())
        self._cards[question_id] = card
        self._write()
        return card.due

    def recall(self, question_id: str) -> float | None:
        """Return the probability with which the scheduler expects the answer to be known now; None if never rated."""
        card = self._cards.get(question_id)
        return None if card is None else float(self._scheduler.get_card_retrievability(card, self._now()))

    def due(self, question_id: str) -> datetime | None:
        """Return when a question should come again; None if it was never rated."""
        card = self._cards.get(question_id)
        return None if card is None else card.due

    def in_order(self, questions: Iterable[Question]) -> list[Question]:
        """Sort questions: those that are due, the least known first; then those never rated; then the others by time.

        Among those never rated, and where all else is equal, the given order stays.
        """
        now = self._now()

        def place(question: Question) -> tuple[float, ...]:
            card = self._cards.get(question.id)
            if card is None:
                return (1,)
            if card.due <= now:
                # The scheduler counts whole days; within one, what was due first comes first.
                return (0, self.recall(question.id), card.due.timestamp())
            return (2, card.due.timestamp())

        return sorted(questions, key=place)

    def _read(self) -> dict[str, Card]:
        try:
            content = json.loads(self.path.read_text("utf-8"))
            if content["version"] != VERSION:
                raise ValueError(
                    _(
                        "version {version}, this library writes {own}",
                        version=str(content["version"]),
                        own=VERSION,
                    )
                )
            cards = {name: Card.from_dict(card) for name, card in content["cards"].items()}
            for name, card in cards.items():
                self._try_out(name, card)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._unreadable = True
            self.problem = _(
                "{path} cannot be read as ratings ({kind}: {error}). The ratings begin anew; the next one moves that"
                " file aside.",
                path=str(self.path),
                kind=type(error).__name__,
                error=error.args[0] if error.args and isinstance(error.args[0], Message) else str(error),
            )
            return {}
        return cards

    def _try_out(self, name: str, card: Card) -> None:
        """Refuse a card that can be read, but not be sorted, compared or rated."""
        if card.last_review is None or card.last_review.tzinfo is None or card.due.tzinfo is None:
            raise ValueError(_("{card}: no review, or times without a zone", card=name))
        try:
            self._scheduler.get_card_retrievability(card, self._now())
            for value in Rating:
                self._scheduler.review_card(card, value, self._now())
        except Exception as error:
            raise ValueError(f"{name}: {type(error).__name__}: {error}") from error

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._unreadable:
            aside = _free_name(self.path)
            self.path.rename(aside)
            self._unreadable = False
            self.problem = _("The file of ratings could not be read and was kept as {aside}.", aside=str(aside))
        content: Mapping[str, Any] = {
            "version": VERSION,
            "cards": {name: dict(card.to_dict()) for name, card in sorted(self._cards.items())},
        }
        # Written beside and moved into place, so that a stop halfway leaves the old file whole.
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.unreadable-{number}")).exists():
        number += 1
    return aside
