"""The pages for a class: what they link to is there, and handouts fit one sheet of A4."""

import re
from urllib.parse import unquote, urlsplit

import make_handouts
import notebooks
import pytest
from publish.handout import CHOSEN, Notebook, chosen, everything, handout
from publish.teaching import pages

PATHS = {path.stem: path for path in notebooks.notebooks() if path.parent.name == "en"}
HANDOUTS = [*chosen(), "everything"]


@pytest.fixture(scope="module")
def class_pages() -> dict[str, str]:
    return dict(pages(PATHS))


def links(html: str) -> set[str]:
    return set(re.findall(r'<a [^>]*href="([^"]+)"', html))


def test_links_lead_to_pages_of_the_site_and_anchors_that_are_there(class_pages):
    there = {f"{stem}.html" for stem in (*class_pages, *PATHS, "index")}
    for stem, html in class_pages.items():
        ids = set(re.findall(r'\bid="([^"]+)"', html))
        for address in links(html):
            parts = urlsplit(address)
            if parts.scheme:
                assert parts.scheme == "https", address
            elif parts.path:
                assert parts.path in there, (stem, address)
            else:
                assert unquote(parts.fragment) in ids, (stem, address)


def test_the_overview_leads_to_every_plan_and_handout(class_pages):
    assert {f"{stem}.html" for stem in class_pages} - {"teaching.html"} <= links(class_pages["teaching"])
    assert "<svg" in class_pages["teaching"]


@pytest.mark.parametrize("stem", chosen())
def test_a_handout_has_all_its_parts(class_pages, stem):
    html = class_pages[f"handout-{stem}"]
    headings = ["In 30 seconds", "Picture", "Formula", "Worked number", "Two traps", "Who uses it"]
    assert re.findall("<h2>(.*?)</h2>", html) == headings
    parts = dict(zip(headings, re.split("<h2>.*?</h2>", html)[1:], strict=True))
    assert re.search('<img src="data:image/webp;base64,[^"]{1000,}" alt="[^"]{40,}"', parts["Picture"])
    assert "<math" in parts["Formula"]
    assert '<pre class="output"' in parts["Worked number"]
    assert parts["Two traps"].count('<strong>"') + parts["Two traps"].count("<strong>&quot;") == 2
    assert parts["Who uses it"].count("<tr>") > 2


def test_every_concept_has_a_handout():
    concepts = {stem for stem in PATHS if not stem.startswith("00") and stem != "17_interview"}
    assert set(chosen()) == concepts


def test_what_is_not_there_is_refused(tmp_path, monkeypatch):
    text = CHOSEN.read_text("utf-8")
    changed = tmp_path / "handouts.toml"
    for old, new, told in (
        ('"wrong-values"', '"wrong-valeus"', "want the id of a cell"),
        ('traps = ["wrong", "wrong-values"]', 'traps = ["why", "wrong-values"]', "want a wrong answer"),
        ('worked = ["by-hand", "hand-2d-score"', 'worked = ["hand-2d", "hand-2d-score"', "prints nothing"),
        ('[04_rope]\nformula = ["why"]', '[04_rope]\nformula = ["wrong"]', "want one"),
    ):
        assert old in text
        changed.write_text(text.replace(old, new), "utf-8")
        monkeypatch.setattr("publish.handout.chosen", lambda: chosen(changed))
        with pytest.raises(ValueError, match=f"04_rope.ipynb.*{told}"):
            handout(PATHS["04_rope"], PATHS)


def test_numbers_of_a_handout_are_those_that_the_notebook_stores(tmp_path):
    """The handout follows the notebook: an output that changes, changes the handout."""
    copy = tmp_path / "04_rope.ipynb"
    copy.write_text(PATHS["04_rope"].read_text("utf-8").replace("score = 2.1213", "score = 2.9999"), "utf-8")
    assert "score = 2.9999" in Notebook(copy).worked("hand-2d-score-code")


def test_map_and_lists_are_current():
    for file, text in make_handouts.overview().items():
        assert file.read_text("utf-8") == text, "run: python tools/make_handouts.py --map"


def test_the_command_makes_single_files(tmp_path, monkeypatch):
    monkeypatch.setattr(make_handouts, "print_all", lambda files: False)
    make_handouts.main(["--out", str(tmp_path), str(PATHS["04_rope"])])
    (file,) = tmp_path.iterdir()
    html = file.read_text("utf-8")
    assert file.name == "04_rope.html"
    assert links(html) == set()
    assert all(address.startswith("data:") for address in re.findall(r'(?:src|href)="([^"]+)"', html))


# ---------------------------------------------------------------- in a browser


@pytest.mark.browser
@pytest.mark.parametrize("name", HANDOUTS)
def test_a_handout_fits_one_sheet(chromium, name, tmp_path):
    html = everything(PATHS) if name == "everything" else handout(PATHS[name], PATHS)
    file = tmp_path / f"{name}.html"
    file.write_text(make_handouts.alone(html), "utf-8")
    page = chromium.new_page(viewport={"width": 703, "height": 1039})  # A4 without its margins, in CSS pixels
    page.emulate_media(media="print", color_scheme="light")
    page.goto(file.as_uri())
    page.evaluate("() => document.fonts.ready")
    sheets = page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
    assert sheets == (2 if name == "everything" else 1)  # the one for everything has two sides
    # Chromium would print what is too wide smaller.
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 703
    # No formula is wider than its place: on paper nothing can be scrolled.
    wide = "nodes => nodes.filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.textContent.slice(0, 60))"
    assert page.locator(".formula, pre, .wide").evaluate_all(wide) == []
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("stem", ["teaching", "glossary", "results", "plan-04_rope", "handout-14_decoder_layer"])
def test_nothing_sticks_out_under_the_policy(page, open_page, stem, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_page(stem)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
