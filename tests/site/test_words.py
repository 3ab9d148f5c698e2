"""The words of the site: in the pseudo-language none of its own escapes the seam."""

import re
from html import escape
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from publish.index import index
from publish.notebook_page import links, page
from publish.recorded_panel import Limits
from visible_words import ALLOWED, escaped

from transformer_parts.explore.rope import RopePlane
from transformer_parts.language import language

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks" / "en").glob("*.ipynb"))
#: What comes from the notebooks and the README, which are written in a language: texts, code, outputs, titles.
WRITTEN = (
    ".prose",
    "pre",
    ".output",
    ".contents ol",
    ".cover > h1",
    ".cover > p:not(:has(a))",
    ".card h3",
    ".card p",
    ".prediction .asked",
    "[data-written]",
)


def words(html: str) -> list[str]:
    """Return the words of a page's own that escape the seam."""
    soup = BeautifulSoup(html, "html.parser")
    for node in soup.select(", ".join((*WRITTEN, "script", "style"))):
        node.decompose()
    for node in soup.select("math"):  # a piece of a template may end within a formula
        node.replace_with(re.sub("[^⟦⟧]", "", node.text))
    for link in soup.select("a[href$='.html']"):  # titles of notebooks, alone or after a word of the site
        if "home" not in link.get("class", ()) and "call" not in link.get("class", ()):
            del link["title"]
            for text in link.find_all(string=True, recursive=False):
                text.replace_with("")
    soup.title.string = soup.title.string.rpartition(" · ")[2] if "⟦" in soup.title.string else ""
    # An explorer is called as the notebook's code calls it.
    names = {node["data-explorer"] for node in soup.select("[data-explorer]")}
    return escaped(str(soup), allowed=ALLOWED | names)


def test_no_word_of_the_first_page_escapes():
    html = index(NOTEBOOKS, language="pseudo")
    assert f'alt="{escape(language("pseudo").text(RopePlane.alt))}"' in html
    # What the pictures of the explorers are called is checked with the explorers.
    assert not words(re.sub(r'alt="[^"]*"', "", html))


@pytest.mark.parametrize("stem", ["00_start_here", "04_rope", "17_interview"])
def test_no_word_of_a_page_escapes(stem):
    path = next(path for path in NOTEBOOKS if path.stem == stem)
    html, explorers = page(path, links(NOTEBOOKS), Limits(values=5), language="pseudo")
    assert 'lang="en-x-pseudo"' in html
    assert not words(html)
    for explorer in explorers:
        assert not [word for row in explorer.content()["drawings"]["rows"] for word in escaped(row)]
