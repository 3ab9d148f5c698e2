"""A small JSON file of the user's: several sessions may write it at once, and nothing of the user's is lost.

`Ratings` and `Results` are such files.  What is in the file's place and is no such file is left alone.
"""

import json
import os
import shutil
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any, ClassVar, Generic, TypeVar

from filelock import FileLock, Timeout

from transformer_parts.language import Message, _
from transformer_parts.maths import require

VERSION = 1
#: What some hundred entries take is about 20 kB: what is larger than this is another kind of file.
MOST_BYTES = 10_000_000
#: Seconds to wait until another session has written what it adds.
PATIENCE = 5

Entry = TypeVar("Entry")


def now_with_zone() -> datetime:
    """Return the present time, with its zone."""
    return datetime.now(UTC)


class DamagedError(Exception):
    """What was such a file cannot be read; the argument says why."""


class NotOursError(Exception):
    """What is there is left as it is; the argument says what it is."""


class KeptFile(ABC, Generic[Entry]):
    """Entries by name, kept in a file.

    The file is what counts: what is added goes to what it holds at that moment, so that several sessions can use it
    at once, and a file that was deleted stays deleted.  What cannot be written holds for the session, and is written
    with the next that can.  A damaged file is moved aside under another name before the next is written; a folder, a
    device, or a file of another kind is left alone.

    `path` is the file, which is made with the first entry; if it is a link, the file that it leads to is written.
    `now` is a function that returns the present time, with its zone.

    Attributes
    ----------
    problem : str; what is wrong with the file, in a sentence or two; empty if nothing is
    """

    section: ClassVar[str]  # of the file, that holds the entries

    def __init__(self, path: Path, now: Callable[[], datetime]):
        if not isinstance(path, str | os.PathLike):
            raise require.refusal("path", repr(path), "the path of a file")
        require.instance("now", now, Callable)
        # A session may change its folder meanwhile.
        self.path = Path(os.path.abspath(path))
        self.problem = ""
        self._said = self._notice = ""
        self._now = now
        self._kept: dict[str, Entry] = {}  # what the file held when it was last read
        try:
            self._kept = self._read(os.path.realpath(self.path))
        except DamagedError as error:
            self.problem = self.unreadable(str(error.args[0]))
        except (NotOursError, OSError, ValueError) as error:
            self.problem = self.session_only(_reason(error))

    # ---------------------------------------------------------------- what a subclass says of its entries

    @abstractmethod
    def parsed(self, name: str, plain: Any) -> Entry:
        """Return an entry as it was written; any error of a wrong value or kind says that the file is damaged."""

    @abstractmethod
    def plain(self, entry: Entry) -> dict[str, Any]:
        """Return an entry as JSON."""

    @abstractmethod
    def entries(self) -> Mapping[str, Entry]:
        """Return what the file held, with what this session has added."""

    @abstractmethod
    def settle(self) -> None:
        """Let go of what this session holds and the file, just read, has made obsolete."""

    @abstractmethod
    def written(self) -> None:
        """Let go of what this session held: it is in the file."""

    @abstractmethod
    def unreadable(self, error: str) -> Message:
        """Say that the file is damaged."""

    @abstractmethod
    def moved_aside(self, aside: str) -> Message:
        """Say that the damaged file has another name now."""

    @abstractmethod
    def deleted(self) -> Message:
        """Say that the file was deleted during the session."""

    @abstractmethod
    def session_only(self, reason: str) -> Message:
        """Say that nothing can be kept, and why."""

    # ---------------------------------------------------------------- what all have in common

    def keep(self, change: Callable[[], object]) -> None:
        """Make a change to the newest entries, once, and write them.

        If the file cannot be written, the change holds for this session, and `problem` says so.
        """
        changed = False
        try:
            with self._alone() as file:
                self._refresh(file)
                change()
                changed = True
                self._write(file)
            self.problem = self._notice
        except (NotOursError, OSError, ValueError) as error:
            self.problem = self.session_only(_reason(error))
            if not changed:
                change()

    def news(self) -> str:
        """Return `problem` where it has changed since it was asked for last, otherwise an empty text."""
        said, self._said = self._said, self.problem
        return self.problem if self.problem != said else ""

    @contextmanager
    def _alone(self) -> Iterator[str]:
        """Yield the path of the file that is written, behind all links, while no other session writes it."""
        file = os.path.realpath(self.path)
        _is_there(file)
        folder, name = os.path.split(file)
        os.makedirs(folder, exist_ok=True)
        lock = os.path.join(folder, f".{name}.transformer-parts-lock")
        if os.path.lexists(lock) and not (stat.S_ISREG(os.lstat(lock).st_mode) and os.path.getsize(lock) == 0):
            raise NotOursError(_("{path} is in the way", path=lock))
        with ExitStack() as stack:
            # On a file system without locks an entry that two sessions write at once may be lost, no more.
            with suppress(NotImplementedError):
                stack.enter_context(FileLock(lock, timeout=PATIENCE))
            yield file

    def _refresh(self, file: str) -> None:
        """Take over what the file holds now; note what the reader should know of it."""
        before = self._kept
        try:
            self._kept = self._read(file)
        except DamagedError:
            aside = _free_name(file)
            os.rename(file, aside)
            self._notice = self.moved_aside(aside)
            return
        self.settle()
        if before and not self._kept:
            self._notice = self.deleted()

    def _read(self, file: str) -> dict[str, Entry]:
        if not _is_there(file):
            return {}
        data = Path(file).read_bytes()
        try:
            content = json.loads(data)  # in any Unicode encoding, with or without a byte-order mark
        except (ValueError, RecursionError) as error:
            if data.strip() and not file.endswith(".json"):
                raise NotOursError(_("it is a file of another kind")) from error
            raise DamagedError(f"{type(error).__name__}: {error}") from error
        if not isinstance(content, dict) or not {"version", self.section} <= content.keys():
            raise NotOursError(_("it is a file of another kind"))
        if content["version"] != VERSION:
            version = str(content["version"])
            raise NotOursError(_("version {version}, this library writes {own}", version=version, own=VERSION))
        try:
            return {name: self.parsed(name, plain) for name, plain in content[self.section].items()}
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise DamagedError(f"{type(error).__name__}: {error}") from error

    def _write(self, file: str) -> None:
        entries = dict(self.entries())
        plain = {name: self.plain(entry) for name, entry in sorted(entries.items())}
        if os.path.exists(file) and not os.stat(file).st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise NotOursError(_("it is write-protected"))
        write_whole(file, json.dumps({"version": VERSION, self.section: plain}, indent=1))
        self._kept = entries
        self.written()


def write_whole(file: str, text: str) -> None:
    """Write a file beside its place and move it there, so that a stop halfway leaves the old one whole."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(file), prefix=f".{os.path.basename(file)}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as beside:
            beside.write(text)
            beside.flush()
            os.fsync(beside.fileno())
        if os.path.exists(file):
            shutil.copymode(file, temporary)
        _move(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _reason(error: Exception) -> str:
    if isinstance(error, Timeout):
        return _("another session holds it")
    if error.args and isinstance(error.args[0], Message):
        return error.args[0]
    # The system's own words, without the number that it puts before them.
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _is_there(file: str) -> bool:
    """Return whether there is a file; refuse whatever else is in its place, before it is opened."""
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(found.st_mode):
        raise NotOursError(_("it is a folder"))
    if not stat.S_ISREG(found.st_mode):
        raise NotOursError(_("it is no regular file"))
    if found.st_size > MOST_BYTES:
        raise NotOursError(_("it is a file of another kind"))
    return True


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
