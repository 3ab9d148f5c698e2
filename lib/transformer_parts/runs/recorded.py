"""Small files of recorded runs: what was measured, by which command, with which arguments, where and when.

A module of this room that records has the name of its file: ``python -m transformer_parts.runs.NAME`` writes
``data/NAME.json``, and `load` reads it.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from time import process_time
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.models import notes as notes_file

#: Significant digits kept of each number.
DIGITS = 6

_NOT_FINITE = ("nan", "inf", "-inf")

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class RecordedRun:
    """What one command measured."""

    name: str  # name of the file, and of the module that wrote it
    command: str  # what to type to write it again
    arguments: Tree  # everything the numbers depend on (sizes, seeds, learning rates), by name
    # The measurements, by name; mappings may be nested. Lists of numbers are read-only float64 arrays, in which NaN and
    # infinities are kept; lists of words, or of rows of different lengths, are tuples.
    series: Tree = field(repr=False)
    # ``date``, ``machine``, ``python``, ``numpy``, and ``cpu_seconds``, what the recording took
    provenance: Tree = field(repr=False)


def command(name: str) -> str:
    """Return the command that writes a recording.

    Examples
    --------
    >>> command("stability")
    'python -m transformer_parts.runs.stability'
    """
    return f"python -m {__package__}.{name}"


def load(name: str, folder: Traversable | Path | None = None) -> RecordedRun:
    """Read the recording ``NAME.json`` from `folder`, by default the library's own data; nothing is cached.

    A missing file raises FileNotFoundError, a damaged one ValueError.
    """
    file = (files(__package__) / "data" if folder is None else folder) / f"{name}.json"
    notes = notes_file.read(file, command(name))
    try:
        return RecordedRun(
            name=notes["name"],
            command=notes["command"],
            arguments=_frozen(notes["arguments"]),
            series=_frozen(notes["series"], arrays=True),
            provenance=_frozen(notes["provenance"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise notes_file.damaged(file, repr(error), command(name)) from None


def save(name: str, *, arguments: Tree, series: Tree, cpu_seconds: float, folder: Path | None = None) -> Path:
    """Write a recording under the name of the module that makes it, and return its path.

    `arguments` are everything the numbers depend on.  `series` are arrays or lists of numbers, single numbers or words,
    by name; mappings may be nested.  Numbers are kept to `DIGITS` significant digits.
    The file also holds the SHA-256 of all this, which `load` compares.
    """
    notes = {
        "name": name,
        "command": command(name),
        "arguments": _plain("arguments", arguments),
        "provenance": {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}",
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cpu_seconds": round(require.number("cpu_seconds", cpu_seconds, minimum=0), 1),
        },
        "series": _plain("series", series),
    }
    text = notes_file.sealed(_lines(notes)) + "\n"
    path = (Path(str(files(__package__) / "data")) if folder is None else folder) / f"{name}.json"
    path.write_text(text, encoding="utf-8")
    return path


def main(name: str, record: Callable[[], tuple[Tree, Tree]], about: str) -> None:
    """Run the command of a module that records: `record` for arguments and series, write the file, print its path."""
    parser = argparse.ArgumentParser(prog=command(name), description=about)
    parser.add_argument("--folder", type=Path, help="where to write (default: the library's own data)")
    options = parser.parse_args()
    begun = process_time()
    arguments, series = record()
    path = save(name, arguments=arguments, series=series, cpu_seconds=process_time() - begun, folder=options.folder)
    parser.exit(message=f"{path}\n")


def _frozen(tree: object, *, arrays: bool = False) -> Any:
    if isinstance(tree, dict):
        return MappingProxyType({name: _frozen(value, arrays=arrays) for name, value in tree.items()})
    if arrays and isinstance(tree, str) and tree in _NOT_FINITE:
        return float(tree)
    if isinstance(tree, list):
        return _array(tree) if arrays else tuple(map(_frozen, tree))
    return tree


def _array(values: list) -> NDArray[np.float64] | tuple:
    try:
        # JSON has no word for NaN and infinities; `_digits` writes them as text, which NumPy reads as numbers.
        array = np.array(values, dtype=np.float64)
    except ValueError:
        return tuple(_frozen(value, arrays=True) for value in values)
    array.setflags(write=False)
    return array


def _plain(path: str, value: object) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise require.refusal(path, f"the key {name!r}", "strings as keys")
        return {name: _plain(f"{path}[{name!r}]", item) for name, item in value.items()}
    if isinstance(value, str | bool | np.bool_) or value is None:
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, list | tuple):
        return [_plain(f"{path}[{i}]", item) for i, item in enumerate(value)]
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise require.refusal(path, repr(value), "numbers, words or a mapping of such")
    return _digits(array.tolist())


def _digits(value: list | float) -> Any:
    if isinstance(value, list):
        return [_digits(item) for item in value]
    if isinstance(value, int):
        return value
    if not np.isfinite(value):
        return str(value)
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 10**DIGITS else short


def _lines(value: object, indent: str = "") -> str:
    """Return JSON with each mapping spread over lines and each list on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    inner = indent + " "
    items = (f"{inner}{json.dumps(name, ensure_ascii=False)}: {_lines(item, inner)}" for name, item in value.items())
    return "{\n" + ",\n".join(items) + f"\n{indent}}}"
