"""The texts of the interview page as HTML: a small part of Markdown, formulas left to the page's own typesetting."""

import json
import re
from html import escape
from pathlib import Path

_KEPT = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|`[^`]+`", re.DOTALL)


def html(text: str) -> str:
    """Return paragraphs, lists, bold, italic, code and formulas as HTML.

    Examples
    --------
    >>> html("An *angle* of **$m < n$**.")
    '<p>An <em>angle</em> of <strong>$m &lt; n$</strong>.</p>'
    """
    kept: list[str] = []

    def keep(match: re.Match) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    blocks = filter(None, re.split(r"\n\s*\n", _KEPT.sub(keep, text.strip())))
    return re.sub(r"\0(\d+)\0", lambda match: _whole(kept[int(match[1])]), "".join(map(_block, blocks)))


def line(text: str) -> str:
    """Return one line as HTML, without a paragraph around it.

    Examples
    --------
    >>> line("so *much*")
    'so <em>much</em>'
    """
    return html(text).removeprefix("<p>").removesuffix("</p>")


def _whole(piece: str) -> str:
    return f"<code>{escape(piece[1:-1])}</code>" if piece[0] == "`" else escape(piece, quote=False)


def _block(block: str) -> str:
    lines = block.strip().splitlines()
    if all(line.startswith("- ") for line in lines):
        return f"<ul>{''.join(f'<li>{_inline(line[2:])}</li>' for line in lines)}</ul>"
    return f"<p>{_inline(block.strip())}</p>"


def _inline(text: str) -> str:
    text = escape(text, quote=False)
    text = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<strong>\1</strong>", text, flags=re.DOTALL)
    return re.sub(r"(?<![\w*])\*(?=\S)(.+?)(?<=\S)\*(?![\w*])", r"<em>\1</em>", text, flags=re.DOTALL)


def notebook_link(stem: str, folder: Path | None = None) -> str:
    """Return a link to a notebook of the folder (that of the present one) by its title; its name if it is not there.

    Examples
    --------
    >>> notebook_link("99_none")
    'notebook 99_none'
    """
    path = (Path.cwd() if folder is None else folder) / f"{stem}.ipynb"
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        title = next(
            found[1] for cell in cells if (found := re.search(r"^# (.+)$", "".join(cell["source"]), re.MULTILINE))
        )
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return f"notebook {escape(stem)}"
    return f'<a href="{escape(stem)}.ipynb" target="_blank" rel="noopener">{escape(title)}</a>'
