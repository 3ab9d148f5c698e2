"""The glossary: in order, each term in the notebook that it names, and abbreviations of the notebooks among them."""

import re
from pathlib import Path

import nbformat
import notebooks
import pytest

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "docs" / "teaching" / "glossary.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")] for line in TEXT.splitlines() if line.startswith("| ")
][1:]
PATHS = {path.stem: path for path in notebooks.notebooks()}


def prose(stem: str) -> str:
    cells = nbformat.read(PATHS[stem], as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown").casefold()


def test_terms_are_in_order_and_once():
    terms = [term.casefold() for term, *_ in ROWS]
    assert terms == sorted(set(terms))
    assert len(terms) > 40


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_term_is_explained_where_the_glossary_says(row):
    term, meaning, link = row
    number, stem = re.fullmatch(r"\[(\d\d)\]\(\.\./\.\./notebooks/en/([\w-]+)\.ipynb\)", link).groups()
    assert stem.startswith(number)
    assert len(meaning.split()) > 4
    for name in term.split(", "):
        words = name.removeprefix("of a ").casefold()
        # As in "the entropies", "clipped", "interpolated".
        assert words in prose(stem) or words.removesuffix("ing").removesuffix("p") in prose(stem), name
    assert re.findall(r"\d", meaning.replace("16 bits", "")) == []  # numbers are the notebooks'
