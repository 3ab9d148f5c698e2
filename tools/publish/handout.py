"""Handouts: a printable page for each notebook, and one for all, made of what the notebooks and the library hold.

Nothing is written here but headings: formulas, pictures, numbers and wrong answers are the notebooks' own, and the
tables of who uses what come from `models.architectures`.  docs/teaching/handouts.toml says which cells are taken.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType

import nbformat
from notebooks import shown

from publish.notebook_page import PROJECT, environment, style, title_of, with_font
from publish.prose import Prose, picture
from transformer_parts import language as languages
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.language import _
from transformer_parts.models.architectures import architectures

CHOSEN = PROJECT / "docs" / "teaching" / "handouts.toml"
_HEADS = MappingProxyType(
    {
        "model": _("models"), "positions": _("positions"), "norm": _("norm"), "placement": _("placement"),
        "feed_forward": _("feed-forward"), "qk_norm": _("QK-norm"), "kv_heads": _("kv heads, of query heads"),
    }
)  # fmt: skip


def chosen(file: Path = CHOSEN) -> dict[str, dict]:
    """Return what each handout takes from its notebook, by the notebook's stem."""
    return tomllib.loads(file.read_text("utf-8"))


class Notebook:
    """A notebook of which handouts take parts.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = path
        self.cells = nbformat.read(path, as_version=4).cells
        self._prose = Prose(path.parent)

    @property
    def title(self) -> str:
        """Its first heading."""
        return title_of(nbformat.from_dict({"cells": self.cells}))

    def cell(self, name: str) -> nbformat.NotebookNode:
        """Return a cell by its id.

        Raises
        ------
        ValueError
            If there is none.
        """
        for cell in self.cells:
            if cell.id == name:
                return cell
        raise ValueError(f"{self.path.name}: got {name!r}, want the id of a cell; see docs/teaching/handouts.toml")

    def html(self, source: str) -> str:
        """Return Markdown as HTML, without the heading of a section and without stills and links that paper lacks."""
        source = re.sub(r"^## .+\n", "", source)
        source = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", source)
        source = re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", source)
        return self._prose.html(source)

    def part(self, name: str) -> str:
        """Return a cell as HTML: prose, or what its code prints."""
        cell = self.cell(name)
        if cell.cell_type == "markdown":
            return self.html(cell.source)
        texts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
        printed = "".join(texts).rstrip("\n")
        return f'<pre class="output" tabindex="0">{escape(printed)}</pre>' if printed else ""

    def worked(self, name: str) -> str:
        """Return a cell of the worked number as HTML; code has to print something."""
        if not (part := self.part(name)):
            raise ValueError(f"{self.path.name}, cell {name}: got code that prints nothing, want a number on the page")
        return part

    def below(self, name: str) -> str:
        """Return what the code below a cell prints, as HTML."""
        at = [cell.id for cell in self.cells].index(self.cell(name).id) + 1
        return self.part(self.cells[at].id) if self.cells[at].cell_type == "code" else ""

    def trap(self, name: str) -> str:
        """Return a wrong answer, which is quoted in bold type, and what the code below it prints, as HTML."""
        source = re.sub(r"^## .+\n+", "", self.cell(name).source)
        if not source.startswith('**"'):
            raise ValueError(f"{self.path.name}, cell {name}: got {source[:20]!r}, want a wrong answer in quotes")
        return self.html(source) + self.below(name)

    def formulas(self, place: str) -> str:
        """Return the displayed formulas of a cell, those within its lines (``"why|inline"``) or its tables as HTML."""
        name, _, kind = place.partition("|")
        source = self.cell(name).source
        if kind == "table":
            return self.tables(name)
        found = re.findall(r"\$\$.+?\$\$", source, re.DOTALL)
        if kind == "inline":
            found = [f"$${inline}$$" for inline in re.findall(r"(?<!\$)\$([^$]*=[^$]*)\$", source)]
        if not found:
            raise ValueError(f"{self.path.name}, cell {place}: got no formula, want one")
        return self.html("\n\n".join(found))

    def question(self) -> str:
        """Return the question in its second cell, without the marks of bold type, as HTML."""
        return self.html(re.search(r"\*\*(.+?)\*\*", self.cell("question").source, re.DOTALL)[1])

    def answer(self) -> str:
        """Return the 30-second answer of its card as HTML."""
        return self.html(re.search(r"\*\*In 30 seconds\.\*\* (.+?)\n\n", self.cell("card").source, re.DOTALL)[1])

    def tables(self, name: str) -> str:
        """Return the tables of a cell as HTML."""
        return self.html("\n".join(re.findall(r"^\|.+\|$", self.cell(name).source, re.MULTILINE)))

    def still(self, language: languages.Language) -> dict | None:
        """Return the picture of its first explorer, with its words; None if it has no explorer."""
        panel = next((found.kind for cell in self.cells if (found := shown(cell)) and found.kind in PANELS), None)
        return panel and {"source": picture(PROJECT / panel.still), "alt": language.text(panel.alt)}


def users(columns: Sequence[str], spoken: languages.Language) -> str:
    """Return a table of the published decoders, those that agree in the named parts on one row, as HTML."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row in architectures():
        found.setdefault(tuple(getattr(row, column) for column in columns), []).append(row.model)
    heads = "".join(f'<th scope="col">{escape(spoken.text(_HEADS[column]))}</th>' for column in (*columns, "model"))
    rows = ("".join(f"<td>{escape(part) or '–'}</td>" for part in (*parts, ", ".join(models)))
            for parts, models in found.items())  # fmt: skip
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="wide" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def handout(path: Path, paths: Mapping[str, Path], *, language: str | None = None) -> str:
    """Return the handout of a notebook as a page.

    Parameters
    ----------
    path : Path
    paths : mapping of str to Path; all notebooks by their stems
    language : str, optional; of the page's own words

    Raises
    ------
    ValueError
        If a cell that it takes is not there.
    """
    notebook, takes, spoken = Notebook(path), chosen()[path.stem], languages.language(language)

    def formulas() -> Iterator[str]:
        for name in takes["formula"]:
            stem, _, cell = name.rpartition(":")
            yield (Notebook(paths[stem]) if stem else notebook).formulas(cell)

    html = (
        environment(spoken)
        .get_template("handout.html")
        .render(
            title=notebook.title,
            question=notebook.question(),
            answer=notebook.answer(),
            formula="".join(formulas()),
            still=notebook.still(spoken),
            worked="".join(map(notebook.worked, takes["worked"])),
            traps=[notebook.trap(name) for name in takes["traps"]],
            users=notebook.tables(takes["users"]) if isinstance(takes["users"], str) else users(takes["users"], spoken),
            also=takes.get("also", ""),
            stem=path.stem,
            style=style(),
        )
    )
    return with_font(html)


def everything(paths: Mapping[str, Path], *, language: str | None = None) -> str:
    """Return one handout for all notebooks: the page of summary, the formulas, who uses what, and the first suspects.

    Raises
    ------
    ValueError
        If a cell that it takes is not there.
    """
    takes, spoken = chosen(), languages.language(language)
    start = Notebook(next(path for stem, path in paths.items() if stem.startswith("00")))
    concepts = {stem: Notebook(paths[stem]) for stem in takes}
    entries = [
        {"title": notebook.title, "formula": notebook.formulas(name)}
        for stem, notebook in concepts.items()
        for name in takes[stem]["formula"][:1]
        if ":" not in name  # another's formula is in its own place
    ]
    html = (
        environment(spoken)
        .get_template("everything.html")
        .render(
            summary=start.part("summary"),
            entries=entries,
            users=users(["positions", "norm", "placement", "feed_forward"], spoken),
            suspects=concepts["15_stability"].tables("why-parts"),
            style=style(),
        )
    )
    return with_font(html)
