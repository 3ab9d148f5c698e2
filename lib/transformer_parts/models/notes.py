"""JSON files of our own with a digest of what they hold, so that a damaged or edited one is refused.

The first entry of such a file, ``sha256``, is the digest of everything else in it.
"""

import hashlib
import json
import re
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

_DIGEST = re.compile(r'\A\{(\s*"sha256": "[0-9a-f]*",)?')


def digest(notes: dict[str, Any]) -> str:
    """Return the SHA-256 of all entries but ``sha256``, whatever their order and the file's layout."""
    rest = {name: value for name, value in notes.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(text: str) -> str:
    """Return the text of a JSON object with its digest as the first entry, in place of one that it has.

    Examples
    --------
    >>> sealed(sealed('{"seed": 1}')) == sealed('{"seed": 1}')
    True
    """
    return _DIGEST.sub(f'{{\n "sha256": "{digest(json.loads(text))}",', text, count=1)


def read(file: Traversable | Path, command: str) -> dict[str, Any]:
    """Return the entries of a file that `sealed` wrote; `command` is what writes it again.

    A missing file raises FileNotFoundError, a damaged one ValueError.
    """
    try:
        notes = json.loads(file.read_text(encoding="utf-8"))
        wanted, got = notes["sha256"], digest(notes)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(file, repr(error), command) from None
    if got != wanted:
        raise damaged(file, f"SHA-256 {got} of its entries, and not {wanted} as it says itself", command)
    return notes


def damaged(file: Traversable | Path, reason: str, command: str) -> ValueError:
    """Return the error of a damaged file."""
    return ValueError(f"{file}: got a damaged file ({reason}), want one that `{command}` wrote")
