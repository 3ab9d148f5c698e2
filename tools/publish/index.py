"""The first page: what this is, and the notebooks in order, each with its question and a picture."""

import re
from collections.abc import Sequence
from pathlib import Path

import nbformat
from notebooks import shown

from publish.notebook_page import PROJECT, environment, explorer_block, links, scripts, style, with_font
from publish.prose import Prose, picture
from publish.recorded_panel import Limits, RecordedPanel
from transformer_parts import language as languages
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.rope import RopePlane
from transformer_parts.language import Language


def index(paths: Sequence[Path], limits: Limits | None = None, *, language: str | Language | None = None) -> str:
    """Return the first page, with the plane of RoPE to take hold of and a card for each notebook but the first.

    Its words are those of the README and of the start page, the first notebook; those of its links and the names of
    the explorers' pictures are in the language.
    """
    language = languages.language(language)
    start = nbformat.read(paths[0], as_version=4)
    questions = _questions(start)
    readme = (PROJECT / "README.md").read_text("utf-8")
    entries = []
    for path, link in zip(paths[1:], links(paths[1:]), strict=True):
        number, _, name = link.title.partition(" · ")
        prose = Prose(path.parent)
        entries.append(
            {
                "number": number, "name": name, "href": f"{path.stem}.html",
                "question": prose.html(questions.get(path.name, "")), "still": _still(path, language),
            }
        )  # fmt: skip
    plane = RecordedPanel(RopePlane(language=language), limits)
    html = (
        environment(language)
        .get_template("index.html")
        .render(
            title=re.match(r"# (.+)", readme)[1],
            about=Prose(PROJECT).html(readme.split("\n\n")[1]),
            start=f"{paths[0].stem}.html",
            entries=entries,
            block={**explorer_block("plane", plane), "code": ""},
            pack=plane.pack.decode(),
            scripts=scripts({"explorer"}),
            style=style(),
        )
    )
    return with_font(html)


def _questions(start: nbformat.NotebookNode) -> dict[str, str]:
    """Return the question that each notebook answers, from the table of the start page."""
    text = "\n".join(cell.source for cell in start.cells if cell.cell_type == "markdown")
    return dict(re.findall(r"^\| \[[^\]]+\]\(([\w-]+\.ipynb)\) \| (.+) \|$", text, re.MULTILINE))


def _still(path: Path, language: Language) -> dict | None:
    notebook = nbformat.read(path, as_version=4)
    kinds = [found.kind for cell in notebook.cells if (found := shown(cell))]
    panel = next((kind for kind in kinds if kind in PANELS), None)
    if panel is not None:
        return {"source": picture(PROJECT / panel.still, width=680), "alt": language.text(panel.alt)}
    found = re.search(r"!\[([^\]]+)\]\(([^)]+\.png)\)", "".join(cell.source for cell in notebook.cells))
    return found and {"source": picture(path.parent / found[2], width=680), "alt": found[1]}
