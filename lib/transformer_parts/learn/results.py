"""What a reader has passed: exercises, claims judged, drills; kept like the ratings, and exported for a teacher.

Nothing leaves the machine by itself.  `export` writes one file where the reader says, and `read` reads such a file on
the teacher's side.  docs/teaching/results.md states its format.

    python -m transformer_parts.learn.results export anna.json --name "Anna"
    python -m transformer_parts.learn.results read *.json
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transformer_parts.language import Message, _, language
from transformer_parts.learn import ratings
from transformer_parts.learn.kept_file import MOST_BYTES, KeptFile, now_with_zone, write_whole
from transformer_parts.maths import require

#: What is recorded, and the section of the exported file that holds it.
KINDS = MappingProxyType({"exercise": "exercises", "claim": "claims", "drill": "drills"})
FORMAT = "transformer-parts results"
VERSION = 1
#: The seeds of a drill that are kept, the latest.
MOST_SEEDS = 100


def default_path() -> Path:
    """Return where results are kept: beside the ratings, such as interview-results.json beside interview.json."""
    beside = ratings.default_path()
    return beside.with_name(f"{beside.stem}-results.json")


@dataclass(frozen=True)
class Result:
    """How often something was tried and how often it was right.

    Of an exercise only what passed is recorded, so that both numbers are equal.
    """

    tries: int
    right: int
    last: datetime  # when it was tried last
    passed: datetime | None = None  # when it was right for the first time
    seeds: tuple[int, ...] = ()  # of the drill's cases that were right and had a seed


class Results(KeptFile[Result]):
    """The reader's results.

    Parameters
    ----------
    path : Path, optional; the file, `default_path` if not given; see `KeptFile` for how it is kept
    now : function, optional; returns the present time, with its zone

    Attributes
    ----------
    problem : str; what is wrong with the file, in a sentence or two; empty if nothing is
    """

    section = "results"

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = now_with_zone):
        self._held: list[tuple[str, bool, int | None, datetime]] = []  # recorded here, and in no file
        super().__init__(default_path() if path is None else path, now)

    def record(self, kind: str, name: str, *, right: bool, seed: int | None = None) -> None:
        """Keep how something was answered.

        `kind` is one of `KINDS`, `name` such as ``"rope.ROTATE"``, the id of a claim or the name of a drill, and
        `seed` that of a drill's case, if it had one.  If the file cannot be written, the result holds for this
        session, and `problem` says so.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        key = f"{require.one_of('kind', kind, KINDS)} {require.text('name', name)}"
        event = (
            key,
            require.boolean("right", right),
            None if seed is None else require.integer("seed", seed, minimum=0),
            self._now(),
        )
        self.keep(lambda: self._held.append(event))

    def of(self, kind: str) -> dict[str, Result]:
        """Return the results of a kind, by name.

        Raises
        ------
        ValueError
            If there is no such kind.
        """
        start = f"{require.one_of('kind', kind, KINDS)} "
        return {key.removeprefix(start): result for key, result in self.entries().items() if key.startswith(start)}

    def export(self, path: str | os.PathLike, name: str = "") -> str:
        """Write all results into one file, for a teacher, and return what was written where.

        An earlier export at `path` is replaced; any other file is left alone and named in a ValueError.  `name` is
        whose results they are, as the reader wishes to be called.
        """
        if not isinstance(path, str | os.PathLike):
            raise require.refusal("path", repr(path), "the path of a file")
        path = Path(path).expanduser()
        if path.exists():
            try:
                read(path)
            except ValueError as error:
                wanted = "a new file, or an earlier export, which is replaced"
                raise require.refusal("path", repr(str(path)), wanted) from error
        elif not path.absolute().parent.is_dir():
            raise require.refusal("path", repr(str(path)), "a file in a folder that is there")
        found = {section: self.of(kind) for kind, section in KINDS.items()}
        content = {
            "format": FORMAT,
            "version": VERSION,
            "name": require.text("name", name),
            "made": self._now().isoformat(),
        }
        content |= {section: {key: _plain(result) for key, result in of.items()} for section, of in found.items()}
        write_whole(str(path.absolute()), json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        return _(
            "Written to {path}: {exercises} exercises, {claims} claims, {drills} drills. Nothing was sent anywhere.",
            path=str(path),
            **{section: len(of) for section, of in found.items()},
        )

    # ---------------------------------------------------------------- how they are kept

    def parsed(self, name: str, plain: Any) -> Result:
        """Return a result as it was written."""
        if name.partition(" ")[0] not in KINDS:
            raise ValueError(f"{name}: no kind of result")
        return _result(name, plain)

    def plain(self, entry: Result) -> dict[str, Any]:
        """Return a result as JSON."""
        return _plain(entry)

    def entries(self) -> Mapping[str, Result]:
        """Return the results of the file with what this session adds to them."""
        found = dict(self._kept)
        for key, right, seed, when in self._held:
            found[key] = _counted(found.get(key), right, seed, when)
        return found

    def settle(self) -> None:
        """Nothing: what this session adds is added to whatever the file holds."""

    def written(self) -> None:
        """Let go of what this session has added."""
        self._held = []

    def unreadable(self, error: str) -> Message:
        """Say that the file is damaged."""
        return _(
            "{path} cannot be read as results ({error}). The results start empty; the next one moves that file aside.",
            path=str(self.path),
            error=error,
        )

    def moved_aside(self, aside: str) -> Message:
        """Say that the damaged file has another name now."""
        return _("The file of results could not be read and was kept as {aside}.", aside=aside)

    def deleted(self) -> Message:
        """Say that the file was deleted during the session."""
        return _("The file of results has been deleted meanwhile, so the results started empty again.")

    def session_only(self, reason: str) -> Message:
        """Say that nothing can be kept, and why."""
        return _(
            "Results hold for this session only: they cannot be kept in {path} ({reason}). They are kept beside the"
            " ratings, whose place the environment variable {variable} names.",
            path=str(self.path),
            reason=reason,
            variable=ratings.PLACE_VARIABLE,
        )


@dataclass(frozen=True)
class Export:
    """What a student has handed in."""

    name: str
    made: datetime
    exercises: Mapping[str, Result]
    claims: Mapping[str, Result]
    drills: Mapping[str, Result]


def own() -> Results:
    """Return the results of the user, one object for all that records in a session."""
    return _at(default_path())


@cache
def _at(path: Path) -> Results:
    return Results(path)


def read(path: str | os.PathLike) -> Export:
    """Read an exported file.

    Raises
    ------
    ValueError
        If it is no such file, of another version, or holds something that no export writes.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("larger than any export")
        content = json.loads(path.read_bytes())
        wrong = not isinstance(content, dict) or content.get("format") != FORMAT
    except (OSError, ValueError, RecursionError) as error:
        raise require.refusal("path", repr(str(path)), f"an exported file ({error})") from error
    if wrong:
        raise require.refusal("path", repr(str(path)), f"a file whose format is {FORMAT!r}")
    if content.get("version") != VERSION:
        raise require.refusal(f"version of {path}", repr(content.get("version")), f"{VERSION}")
    try:
        sections = {section: content[section].items() for section in KINDS.values()}
        found = {section: {name: _result(name, plain) for name, plain in of} for section, of in sections.items()}
        return Export(str(content["name"]), _time(content["made"]), **found)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise require.refusal("path", repr(str(path)), f"an exported file ({type(error).__name__}: {error})") from error


def table(exports: Sequence[Export]) -> str:
    """Return one line for each student and, below, one for each item with how many have it right.

    Students are named as their files name them.
    """
    lines = [
        _("{name}: {exercises} exercises passed, {claims} of {judged} claims and {drills} of {tried} drills right",
            name=export.name or "?", exercises=len(export.exercises),
            claims=_right(export.claims), judged=len(export.claims),
            drills=_right(export.drills), tried=len(export.drills))
        for export in exports
    ]  # fmt: skip
    for section in KINDS.values():
        for name in sorted({name for export in exports for name in getattr(export, section)}):
            having = sum(_right({name: of[name]}) for export in exports if name in (of := getattr(export, section)))
            lines.append(f"{having:3} / {len(exports)}  {section:9}  {name}")
    return "\n".join(language().text(line) for line in lines)


def _right(results: Mapping[str, Result]) -> int:
    return sum(result.right > 0 for result in results.values())


def _counted(before: Result | None, right: bool, seed: int | None, when: datetime) -> Result:
    result = before or Result(0, 0, when)
    seeds = result.seeds if seed is None or not right or seed in result.seeds else (*result.seeds, seed)
    return replace(
        result,
        tries=result.tries + 1,
        right=result.right + right,
        last=max(when, result.last),
        passed=result.passed or (when if right else None),
        seeds=seeds[-MOST_SEEDS:],
    )


def _plain(result: Result) -> dict[str, Any]:
    plain = {"tries": result.tries, "right": result.right, "last": result.last.isoformat()}
    if result.passed is not None:
        plain["passed"] = result.passed.isoformat()
    if result.seeds:
        plain["seeds"] = list(result.seeds)
    return plain


def _result(name: str, plain: Any) -> Result:
    tries, right = (require.integer(f"{name}: {key}", plain[key], minimum=0) for key in ("tries", "right"))
    passed = _time(plain["passed"]) if "passed" in plain else None
    if right > tries or tries == 0 or (passed is None) != (right == 0):
        raise ValueError(f"{name}: got {right} right of {tries}")
    seeds = tuple(require.integer(f"{name}: seed", seed, minimum=0) for seed in plain.get("seeds", []))
    return Result(tries, right, _time(plain["last"]), passed, seeds)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text}: a time without a zone")
    return time


def main(arguments: Sequence[str] | None = None) -> None:
    """Export the user's own results, or read those of a class."""
    parser = argparse.ArgumentParser(prog="python -m transformer_parts.learn.results", description="Results of readers")
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="write your results into one file")
    exporting.add_argument("path", type=Path)
    exporting.add_argument("--name", default="", help="whose results they are")
    reading = commands.add_parser("read", help="read exported files and print them as a table")
    reading.add_argument("paths", type=Path, nargs="+")
    asked = parser.parse_args(arguments)
    try:
        if asked.command == "export":
            said = language().text(own().export(asked.path, asked.name))
        else:
            said = table([read(path) for path in asked.paths])
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    sys.stdout.write(f"{said}\n")


if __name__ == "__main__":
    main()
