"""Print how large the project is: lines of code without docstrings, comments and blank lines, by room.

    python tools/size.py

A line that holds code, or a string that is no docstring, is a line of code.  For JavaScript a line is code if it is
neither blank nor a comment alone.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Size(NamedTuple):
    """Files, lines of code, and lines in all."""

    files: int
    code: int
    lines: int


def code_lines(source: str) -> int:
    """Return how many lines of Python hold code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def script_lines(source: str) -> int:
    """Return how many lines of JavaScript hold code."""
    bare = re.sub(r"^\s*/\*.*?\*/\s*$", "", source, flags=re.DOTALL | re.MULTILINE)
    return sum(bool(line.strip()) and not line.lstrip().startswith("//") for line in bare.splitlines())


def size(paths: Iterable[Path]) -> Size:
    """Return the size of files of Python or JavaScript."""
    sources = [(path.suffix, path.read_text("utf-8")) for path in paths]
    code = sum(script_lines(text) if suffix == ".js" else code_lines(text) for suffix, text in sources)
    return Size(len(sources), code, sum(len(text.splitlines()) for _, text in sources))


def sizes() -> dict[str, Size]:
    """Return the size of each room of the library, of all its Python and JavaScript, and of what is around it."""
    library = PROJECT / "lib" / "transformer_parts"
    rooms = sorted(path for path in library.iterdir() if (path / "__init__.py").exists())
    found = {room.name: size(room.rglob("*.py")) for room in rooms}
    return found | {
        "lib, Python": size((PROJECT / "lib").rglob("*.py")),
        "lib, JavaScript": size((PROJECT / "lib").rglob("*.js")),
        **{name: size((PROJECT / name).rglob("*.py")) for name in ("tests", "tools", "benchmarks")},
    }


def main() -> None:
    """Print the table."""
    print(f"{'':<18}{'files':>8}{'code':>8}{'lines':>8}")
    for name, counted in sizes().items():
        print(f"{name:<18}" + "".join(f"{number:>8,}" for number in counted))


if __name__ == "__main__":
    main()
