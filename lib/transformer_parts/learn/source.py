"""The library's own source, shown in a notebook: what the reader sees is what runs."""

import ast
import inspect
import textwrap
from collections.abc import Callable

from IPython.display import Markdown

from transformer_parts.language import _, join, language
from transformer_parts.maths import require


def source(function: Callable, *, docstring: bool = False) -> str:
    """Return the source of a function of the library, without its docstring unless asked.

    Raises
    ------
    ValueError
        If `function` has no Python source.

    Examples
    --------
    >>> from transformer_parts.maths import (rope)
    >>> print(source(rope.turn_interleaved).splitlines()[0])
    def turn_interleaved(x: NDArray, phases: NDArray, out: NDArray) -> None:
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise require.refusal("function", repr(function), "a function with Python source") from None
    body = ast.parse(text).body[0].body
    if docstring or len(body) < 2 or not isinstance(getattr(body[0], "value", None), ast.Constant):
        return text.rstrip()
    lines = text.splitlines()
    return "\n".join(lines[: body[0].lineno - 1] + lines[body[0].end_lineno :])


def show(*functions: Callable) -> Markdown:
    """Return the source of functions of the library as Markdown, folded, which each front end colours in its theme."""
    text = "\n\n\n".join(map(source, functions))
    names = join(", ", [f"<code>{function.__qualname__}</code>" for function in functions])
    title = language().text(_("The library's own {names}", names=names))
    return Markdown(f"<details><summary>{title}</summary>\n\n```python\n{text}\n```\n\n</details>")
