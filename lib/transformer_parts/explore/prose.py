"""The texts of the interview page as HTML: Markdown by mistune, formulas left to the page's own typesetting."""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from mistune import BlockParser, HTMLRenderer, InlineParser, Markdown
from mistune.plugins.table import table

from transformer_parts import language as languages
from transformer_parts.language import Language, _


def html(text: str, formula: Callable[[str], str] | None = None) -> str:
    """Return paragraphs, lists, tables, bold, italic, code and formulas as HTML.

    A formula keeps its dollar signs, or is what `formula` makes of it, dollar signs included.

    Examples
    --------
    >>> html("An *angle* of **$m < n$**.")
    '<p>An <em>angle</em> of <strong>$m &lt; n$</strong>.</p>'
    """
    renderer = HTMLRenderer()
    renderer.register("formula", lambda _renderer, source: formula(source) if formula else escape(source, quote=False))
    block, inline = BlockParser(list_rules=["fenced_code", "blank_line", "list"]), InlineParser()
    inline.register("formula", r"\$\$[\s\S]+?\$\$|\$[^$]+\$", _formula)
    block.rules, inline.rules = block.list_rules, ["formula", "codespan", "emphasis"]
    return Markdown(renderer, block, inline, plugins=[table])(text).strip()


def _formula(inline: InlineParser, match: re.Match, state) -> int:
    state.append_token({"type": "formula", "raw": match[0]})
    return match.end()


def line(text: str, formula: Callable[[str], str] | None = None) -> str:
    """Return one line as HTML, without a paragraph around it.

    Examples
    --------
    >>> line("so *much*")
    'so <em>much</em>'
    """
    return html(text, formula).removeprefix("<p>").removesuffix("</p>")


def notebook_link(stem: str, folder: Path | None = None, *, language: str | Language | None = None) -> str:
    """Return a link to a notebook of the folder (by default the current one) by its title; its name if it is not there.

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
    except (OSError, ValueError, KeyError, TypeError, StopIteration, RecursionError):
        return escape(languages.language(language).text(_("notebook {stem}", stem=stem)))
    return f'<a href="{escape(stem)}.ipynb" target="_blank" rel="noopener">{escape(title)}</a>'
