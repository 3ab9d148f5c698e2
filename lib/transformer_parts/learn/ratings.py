"""The reader's own ratings, kept between sessions, and which question comes next.

When a question should come again is decided by the spaced-repetition scheduler of the package `fsrs`, from all ratings
of that question so far.  They are kept in one small JSON file of the user's, outside the project.
"""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import sleep

from filelock import FileLock, Timeout
from fsrs import Card, Rating, Scheduler
from platformdirs import user_data_path

from transformer_parts.language import Message, _
from transformer_parts.learn.interview import Question
from transformer_parts.maths import require

RATINGS = (_("again"), _("hard"), _("good"), _("easy"))
VERSION = 1
PLACE_VARIABLE = "TRANSFORMER_PARTS_RATINGS"
#: Ratings of some hundred questions take about 20 kB: what is larger than this is another kind of file.
MOST_BYTES = 10_000_000
#: Seconds to wait until another session has written its rating.
PATIENCE = 5


def default_path() -> Path:
    """Return where the ratings are kept: what TRANSFORMER_PARTS_RATINGS names, or a file in the user's data folder."""
    named = os.environ.get(PLACE_VARIABLE)
    if named:
        return Path(os.path.expanduser(named))
    return user_data_path("transformer-parts", appauthor=False) / "interview.json"


def _now() -> datetime:
    return datetime.now(UTC)


class _DamagedError(Exception):
    """What was a file of ratings cannot be read; the argument says why."""


class _NotOursError(Exception):
    """What is there is left as it is; the argument says what it is."""


class Ratings:
    """How the reader rated each question, and when it should come again.

    The file is what counts: each rating is added to what it holds at that moment, so that several sessions can use it
    at once, and a file that was deleted stays deleted.  A rating that cannot be written holds for the session, and is
    written with the next one that can.  A damaged file of ratings is moved aside under another name before the next
    rating is written; a folder, a device, or a file of another kind is left alone.

    Parameters
    ----------
    path : Path, optional
        The file; `default_path` if not given.  It is made with the first rating.  If it is a link, the file that it
        leads to is written.
    now : function, optional; returns the present time, with its zone

    Attributes
    ----------
    problem : str; what is wrong with the file, in a sentence or two; empty if nothing is
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = _now):
        if not isinstance(path, str | os.PathLike | None):
            raise require.refusal("path", repr(path), "the path of a file")
        require.instance("now", now, Callable)
        # A session may change its folder meanwhile.
        self.path = Path(os.path.abspath(default_path() if path is None else path))
        self.problem = ""
        self._said = self._notice = ""
        self._now = now
        # Without fuzzing, equal ratings lead to equal times.
        self._scheduler = Scheduler(enable_fuzzing=False)
        self._kept: dict[str, Card] = {}  # what the file held when it was last read
        self._held: dict[str, Card] = {}  # rated here, and in no file
        try:
            self._kept = self._read(os.path.realpath(self.path))
        except _DamagedError as error:
            self.problem = _(
                "{path} cannot be read as ratings ({error}). The ratings start empty; the next one moves that file"
                " aside.",
                path=str(self.path),
                error=error.args[0],
            )
        except (_NotOursError, OSError, ValueError) as error:
            self.problem = self._not_kept(error)

    def rate(self, question_id: str, rating: str) -> datetime:
        """Keep a rating, and return when the question should come again.

        If the file cannot be written, the rating holds for this session, and `problem` says so.

        Raises
        ------
        ValueError
            If there is no such rating.
        """
        value = Rating(RATINGS.index(require.one_of("rating", rating, RATINGS)) + 1)
        reviewed = False
        try:
            with self._alone() as file:
                self._refresh(file)
                reviewed = bool(self._review(question_id, value))
                self._write(file)
            self.problem = self._notice
        except (_NotOursError, OSError, ValueError) as error:
            self.problem = self._not_kept(error)
            if not reviewed:
                self._review(question_id, value)
        return self._cards[question_id].due

    def news(self) -> str:
        """Return `problem` where it has changed since it was asked for last, otherwise an empty text."""
        said, self._said = self._said, self.problem
        return self.problem if self.problem != said else ""

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

    @property
    def _cards(self) -> dict[str, Card]:
        return self._kept | self._held

    def _review(self, question_id: str, value: Rating) -> Card:
        cards = self._cards
        card = cards.get(question_id) or Card(card_id=len(cards), due=self._now())
        self._held[question_id] = self._scheduler.review_card(card, value, self._now())[0]
        return self._held[question_id]

    def _not_kept(self, error: Exception) -> str:
        reason = error.args[0] if error.args and isinstance(error.args[0], Message) else ""
        if isinstance(error, Timeout):
            reason = _("another session holds it")
        elif not reason:
            # The system's own words, without the number that it puts before them.
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return _(
            "Ratings hold for this session only: they cannot be kept in {path} ({reason}). To keep them elsewhere, set"
            " the environment variable {variable} to the path of another file before you start JupyterLab.",
            path=str(self.path),
            reason=reason,
            variable=PLACE_VARIABLE,
        )

    @contextmanager
    def _alone(self) -> Iterator[str]:
        """Yield the path of the file that is written, behind all links, while no other session writes it."""
        file = os.path.realpath(self.path)
        _is_there(file)
        folder, name = os.path.split(file)
        os.makedirs(folder, exist_ok=True)
        lock = os.path.join(folder, f".{name}.transformer-parts-lock")
        if os.path.lexists(lock) and not (stat.S_ISREG(os.lstat(lock).st_mode) and os.path.getsize(lock) == 0):
            raise _NotOursError(_("{path} is in the way", path=lock))
        with ExitStack() as stack:
            # On a file system without locks a rating that two sessions write at once may be lost, no more.
            with suppress(NotImplementedError):
                stack.enter_context(FileLock(lock, timeout=PATIENCE))
            yield file

    def _refresh(self, file: str) -> None:
        """Take over what the file holds now; note what the reader should know of it."""
        before = self._kept
        try:
            self._kept = self._read(file)
        except _DamagedError:
            aside = _free_name(file)
            os.rename(file, aside)
            self._notice = _("The file of ratings could not be read and was kept as {aside}.", aside=aside)
            return
        for name in [name for name, card in self._held.items() if not _newer(card, self._kept.get(name))]:
            del self._held[name]
        if before and not self._kept:
            self._notice = _("The file of ratings has been deleted meanwhile, so the ratings started empty again.")

    def _read(self, file: str) -> dict[str, Card]:
        if not _is_there(file):
            return {}
        data = Path(file).read_bytes()
        try:
            content = json.loads(data)  # in any Unicode encoding, with or without a byte-order mark
        except (ValueError, RecursionError) as error:
            if data.strip() and not file.endswith(".json"):
                raise _NotOursError(_("it is a file of another kind")) from error
            raise _DamagedError(f"{type(error).__name__}: {error}") from error
        if not isinstance(content, dict) or not {"version", "cards"} <= content.keys():
            raise _NotOursError(_("it is a file of another kind"))
        if content["version"] != VERSION:
            version = str(content["version"])
            raise _NotOursError(_("version {version}, this library writes {own}", version=version, own=VERSION))
        try:
            cards = {name: Card.from_dict(card) for name, card in content["cards"].items()}
            for name, card in cards.items():
                self._try_out(name, card)
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise _DamagedError(f"{type(error).__name__}: {error}") from error
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

    def _write(self, file: str) -> None:
        cards = self._cards
        content = {"version": VERSION, "cards": {name: dict(card.to_dict()) for name, card in sorted(cards.items())}}
        exists = os.path.exists(file)
        if exists and not os.stat(file).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise _NotOursError(_("it is write-protected"))
        # Written beside and moved into place, so that a stop halfway leaves the old file whole.
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(file), prefix=f".{os.path.basename(file)}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as beside:
                json.dump(content, beside, indent=1)
                beside.flush()
                os.fsync(beside.fileno())
            if exists:
                shutil.copymode(file, temporary)
            _move(temporary, file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._kept, self._held = cards, {}


def _is_there(file: str) -> bool:
    """Return whether there is a file; refuse whatever else is in its place, before it is opened."""
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(found.st_mode):
        raise _NotOursError(_("it is a folder"))
    if not stat.S_ISREG(found.st_mode):
        raise _NotOursError(_("it is no regular file"))
    if found.st_size > MOST_BYTES:
        raise _NotOursError(_("it is a file of another kind"))
    return True


def _newer(card: Card, other: Card | None) -> bool:
    return other is None or card.last_review > other.last_review


def _move(temporary: str, file: str) -> None:
    """Put a file in the place of another; on Windows that is refused for the moment in which somebody reads it."""
    for _attempt in range(20):
        try:
            os.replace(temporary, file)
            return
        except PermissionError:
            sleep(0.05)
    os.replace(temporary, file)


def _free_name(file: str) -> str:
    number = 1
    while os.path.lexists(aside := f"{file}.unreadable-{number}"):
        number += 1
    return aside
