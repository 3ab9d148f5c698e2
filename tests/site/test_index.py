"""The first page: a card for each notebook, with what belongs to that notebook."""

import re
from html import unescape
from pathlib import Path

import make_site
import nbformat
import pytest
from notebooks import shown

from transformer_parts.explore.catalogue import PANELS

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((PROJECT / "notebooks" / "en").glob("*.ipynb"))


@pytest.fixture(scope="module")
def cards(tmp_path_factory) -> list[str]:
    """The cards of a site whose pages are left out."""
    out = tmp_path_factory.mktemp("index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make_site, "build", lambda path, *_options: path.stem)
        make_site.main(["--out", str(out), "--jobs", "1"])
    return re.findall(r'<li class="card">(.*?)</li>', (out / "index.html").read_text("utf-8"), re.DOTALL)


def test_there_is_a_card_for_each_notebook_in_order(cards):
    assert re.findall(r'href="([^"]+)"', "".join(cards)) == [f"{path.stem}.html" for path in NOTEBOOKS[1:]]
    assert all(re.search(r"<p>.{20}", card) for card in cards)


@pytest.mark.parametrize("path", NOTEBOOKS[1:], ids=lambda path: path.stem)
def test_the_still_of_a_card_is_the_first_of_its_notebook(cards, path):
    card = next(card for card in cards if f'href="{path.stem}.html"' in card)
    kinds = [found.kind for cell in nbformat.read(path, as_version=4).cells if (found := shown(cell))]
    panels = [kind for kind in kinds if kind in PANELS]
    alt = re.search(r'<img src="data:image/webp;base64,[^"]{1000,}" alt="([^"]+)"', card)
    assert (alt and unescape(alt[1])) == (panels[0].alt if panels else None)
