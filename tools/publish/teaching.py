"""The pages for a class: overview with the map, plans, glossary, the format of results, and handouts."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from publish.handout import chosen, everything, handout
from publish.notebook_page import PROJECT, environment, style, with_font
from publish.prose import Prose
from transformer_parts import language as languages

TEACHING = PROJECT / "docs" / "teaching"
#: Where a link of the texts leads on the site.
_PLACES = (
    (r"(?:\.\./)+notebooks/\w+/([\w-]+)\.ipynb", r"\1.html"),
    (r"(?:\.\./)?plans/([\w-]+)\.md", r"plan-\1.html"),
    (r"\.\./README\.md", "teaching.html"),
    (r"(?:\.\./)?(glossary|results)\.md", r"\1.html"),
)


def page_of_text(file: Path, *, language: str | None = None, below: str = "") -> str:
    """Return a text of docs/teaching as a page; `below` is more Markdown, put at its end."""
    source = f"{file.read_text('utf-8')}\n{below}"
    for pattern, place in _PLACES:
        source = re.sub(rf"\]\({pattern}\)", rf"]({place})", source)
    drawn = (TEACHING / "map.svg").read_text("utf-8")
    source = re.sub(
        r"!\[[^\]]*\]\(map\.svg\)", lambda _found: f'<div class="wide" tabindex="0">\n{drawn}</div>\n', source
    )
    prose = Prose(file.parent)
    html = prose.html(source)
    html = (
        environment(languages.language(language))
        .get_template("page.html")
        .render(
            title=re.match("# (.+)", source)[1],
            blocks=[{"kind": "prose", "html": html}],
            headings=[heading for heading in prose.headings if heading[0] == 2],
            previous=None, following=None, packs={}, scripts={}, style=style(), font=None,
        )
    )  # fmt: skip
    return with_font(html)


def pages(paths: Mapping[str, Path], *, language: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield stem and HTML of every page for a class; `paths` are the notebooks by their stems."""
    takes = chosen()
    listed = "\n".join(f"- [Handout {stem[:2]}](handout-{stem}.html)" for stem in takes)
    handouts = f"## Handouts\n\n- [Everything on one handout](handout-everything.html)\n{listed}\n"
    yield "teaching", page_of_text(TEACHING / "README.md", language=language, below=handouts)
    for name in ("glossary", "results"):
        yield name, page_of_text(TEACHING / f"{name}.md", language=language)
    for plan in sorted((TEACHING / "plans").glob("*.md")):
        yield f"plan-{plan.stem}", page_of_text(plan, language=language)
    for stem in takes:
        yield f"handout-{stem}", handout(paths[stem], paths, language=language)
    yield "handout-everything", everything(paths, language=language)
