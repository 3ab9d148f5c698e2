"""The pages in a browser, from a server with a strict policy or from files, and with all other hosts blocked."""

import base64
import io
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import make_site
import nbformat
import numpy as np
import pytest
from notebooks import shown
from PIL import Image
from playwright.sync_api import Locator, Page, expect
from publish.notebook_page import MOST_BYTES
from publish.recorded_panel import options

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.readout import Row

pytestmark = pytest.mark.browser

LOADED = r"""<(?:script|img|link|iframe|source)[^>]*?(?:src|href)=["']([^"']{0,40})"""

PROJECT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(p for p in (PROJECT / "notebooks" / "en").glob("*.ipynb"))
# With formulas, a heat map, play buttons, menus and boxes, and the sheets among them.
BUILT = ("00_start_here", "01_why_position", "04_rope", "17_interview")


def pixels(page: Page, name: str) -> np.ndarray:
    """Return a picture of the page, painted at the resolution at which it was recorded."""
    address = page.locator(f"[data-explorer={name}] .tp-body").evaluate(
        """({explorer}) => {
            const {width, pixelRatio} = explorer.part.size;
            explorer.painter.fit(width, pixelRatio);
            explorer.paint();
            return explorer.canvas.toDataURL();
        }"""
    )
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))).convert("RGB"), int)


def still(panel) -> np.ndarray:
    picture = panel.view.still(panel.compute(**panel.state))
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), int)


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Return the mean difference in grey levels, of 255."""
    assert a.shape == b.shape
    return float(np.abs(a - b).max(axis=-1).mean())


@pytest.mark.parametrize("stem", [*BUILT, "index"])
def test_a_page_is_bounded_and_asks_for_nothing(built, open_page, stem):
    html = built(stem).read_text("utf-8")
    assert len(html.encode()) <= MOST_BYTES
    loaded = re.findall(LOADED, html)
    assert loaded
    beside = {"fonts", "scripts", "styles"}
    assert {address.partition("/")[0] for address in loaded if not address.startswith("data:")} <= beside
    assert all((built(stem).parent / address).is_file() for address in loaded if not address.startswith("data:"))
    # Nothing in the page that the policy forbids; it is also sent with the page.
    assert re.findall(r"<style|<script(?![^>]* src=)|<[^<>]* (?:style|on[a-z]+)=|javascript:", html) == []
    open_page(stem)


@pytest.mark.parametrize("stem", ["04_rope", "17_interview"])
def test_a_page_of_the_site_works_from_its_file(built, open_page, stem):
    page = open_page(built(stem))
    assert page.evaluate("() => getComputedStyle(document.body).margin") == "0px"
    assert page.locator("[data-sheet] .filters:visible").count() == (stem == "17_interview")


def test_a_page_in_one_file_asks_for_nothing_and_moves(tmp_path, open_page):
    path = next(path for path in NOTEBOOKS if path.stem == "04_rope")
    make_site.main(["--one-file", "--out", str(tmp_path), "--values", "5", "--jobs", "1", str(path)])
    (file,) = tmp_path.iterdir()
    html = file.read_text("utf-8")
    loaded = re.findall(LOADED, html) + re.findall(r"url\(([^)]{0,40})", html)
    assert loaded
    assert [address for address in loaded if not address.startswith("data:")] == []
    page = open_page(file)
    before = pixels(page, "plane")
    page.locator("[data-explorer=plane] [data-control=m]").press("End")
    page.wait_for_timeout(50)
    assert apart(before, pixels(page, "plane")) > 1


def test_the_swatches_of_a_table_keep_their_colours(page, open_page):
    open_page("04_rope")
    colours = "nodes => nodes.map(node => getComputedStyle(node).backgroundColor)"
    swatches = page.locator("[data-explorer=plane] .tp-swatch")
    first = swatches.evaluate_all(colours)
    assert len(set(first)) > 1
    page.locator("[data-explorer=plane] [data-control=m]").press("End")
    page.wait_for_timeout(50)
    assert swatches.evaluate_all(colours) == first
    assert "rgba(0, 0, 0, 0)" not in first


def test_links_lead_to_pages_and_anchors_that_are_there(built, page):
    names = {f"{path.stem}.html" for path in NOTEBOOKS} | {"index.html", "teaching.html"}
    for stem in (*BUILT, "index"):
        page.goto(built(stem).as_uri())
        addresses = page.locator("a").evaluate_all("nodes => nodes.map(node => node.getAttribute('href'))")
        assert addresses
        ids = set(page.locator("[id]").evaluate_all("nodes => nodes.map(node => node.id)"))
        for address in addresses:
            parts = urlsplit(address)
            if parts.scheme:
                assert parts.scheme == "https", address
            elif parts.path:
                assert parts.path in names, address
            else:
                assert unquote(parts.fragment) in ids, address


def test_formulas_are_drawn_by_the_pages_own_font(page, open_page):
    open_page("04_rope")
    assert "$" not in page.locator(".prose").evaluate_all("nodes => nodes.map(n => n.innerText).join('')")
    boxes = page.locator("math").evaluate_all("nodes => nodes.map(n => n.getBoundingClientRect().height)")
    assert len(boxes) > 30
    assert min(boxes) > 8
    page.evaluate("() => document.fonts.ready")
    assert page.evaluate("() => [...document.fonts].map(font => font.status)") == ["loaded"]
    assert page.locator(".formula").count() >= 2


def test_pictures_have_words_and_headings_anchors(page, open_page):
    open_page("04_rope")
    for panel in PANELS:
        if panel.__name__ in ("RopePlane", "RopeClocks"):
            expect(page.get_by_role("img", name=panel.alt, exact=True)).to_be_visible()
    contents = page.locator(".contents a").evaluate_all("nodes => nodes.map(node => node.textContent)")
    assert contents[:2] == ["Question", "Picture first"]
    assert "Interview card" in contents
    open_page("index")
    cards = page.locator(".card")
    assert cards.count() == len(NOTEBOOKS) - 1
    for image in page.locator(".card img").all():
        assert len(image.get_attribute("alt")) > 40


def explorers(stem: str) -> list[tuple[str, type]]:
    notebook = nbformat.read(PROJECT / "notebooks" / "en" / f"{stem}.ipynb", as_version=4)
    return [found for cell in notebook.cells if (found := shown(cell)) and found.kind in PANELS]


def shows(explorer: Locator, rows: list[Row]) -> None:
    """Wait until the table has these rows, with all digits."""
    cells = explorer.locator("td")
    expect(cells).to_have_count(len(rows))
    for cell, row in zip(cells.all(), rows, strict=True):
        expect(cell).to_have_attribute("data-full", row.value.replace(" %", "\xa0%"))


ALIVE = [(stem, name, panel) for stem in BUILT for name, panel in explorers(stem)]


@pytest.mark.parametrize(("stem", "name", "kind"), ALIVE, ids=[kind.__name__ for *_, kind in ALIVE])
def test_a_control_changes_picture_and_table_to_those_of_the_panel(page, open_page, stem, name, kind):
    open_page(stem)
    panel = kind()
    explorer = page.locator(f"[data-explorer={name}]")
    first = pixels(page, name)
    assert apart(first, still(panel)) < 1
    moved = 0
    for control, widget in panel.controls.items():
        panel.reset()
        node = explorer.locator(f":is(input, select)[data-control={control}]")
        if node.is_disabled():
            continue
        explorer.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
        if node.evaluate("node => node.type") == "range":
            node.press("End")
            label = node.get_attribute("aria-valuetext")
            expect(explorer.locator(f".tp-control:has([data-control={control}]) .tp-value")).to_have_text(label)
            value = dict(options(widget))[label]
        elif node.evaluate("node => node.type") == "checkbox":
            node.click()
            value = not widget.value
        else:
            label = node.locator("option").last.inner_text()
            node.select_option(label=label)
            value = dict(options(widget))[label]
        panel.put({control: value})
        wanted = still(panel)
        rows = panel.rows(panel.compute(**panel.state))
        shows(explorer, rows)
        page.wait_for_timeout(50)
        assert apart(pixels(page, name), wanted) < 1, control
        moved += apart(first, wanted) > 1
        explorer.get_by_role("button", name="Reset", exact=True).click()
    assert moved
    page.wait_for_timeout(50)
    assert apart(pixels(page, name), first) == 0


def test_presets_are_settings_and_the_other_controls_start_from_there(page, open_page):
    open_page("04_rope")
    panel = dict(explorers("04_rope"))["plane"]()
    explorer = page.locator("[data-explorer=plane]")
    for label, values in panel.presets.items():
        panel.reset()
        panel.set(**values)
        explorer.get_by_role("button", name=label, exact=True).click()
        rows = panel.rows(panel.compute(**panel.state))
        shows(explorer, rows)
        # A second control begins where the first was before it moved.
        explorer.locator("input[data-control=m]").press("End")
        explorer.locator("input[data-control=n]").press("Home")
        panel.put({"n": options(panel.controls["n"])[0][1]})
        rows = panel.rows(panel.compute(**panel.state))
        shows(explorer, rows)


def test_a_drag_by_mouse_and_the_play_button_move_the_picture(page, open_page):
    open_page("04_rope")
    explorer = page.locator("[data-explorer=plane]")
    slider = explorer.locator("input[data-control=shift]")
    slider.scroll_into_view_if_needed()
    before, box = pixels(page, "plane"), slider.bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()
    expect(explorer.locator(".tp-control:has([data-control=shift]) .tp-value")).to_have_text("64")
    page.wait_for_timeout(50)
    assert apart(before, pixels(page, "plane")) > 1
    slider.press("Home")
    page.wait_for_timeout(300)
    page.evaluate(
        """() => {
            const {explorer} = document.querySelector("[data-explorer=plane] .tp-body");
            const value = explorer.controls.shift.value;
            window.played = [];
            explorer.whole.addEventListener("tp-paint", ({detail: {key}}) =>
                window.played.push([key, value.textContent, explorer.body.querySelector("td").dataset.full]));
        }"""
    )
    play = explorer.get_by_role("button", name="Play: move both by")
    pause = explorer.get_by_role("button", name="Pause: move both by")
    play.press("Enter")
    expect(pause).to_be_visible()
    expect(play).to_be_visible(timeout=20_000)
    expect(explorer.locator(".tp-control:has([data-control=shift]) .tp-value")).to_have_text("64")
    # Each value once and none left out, and beside each the table of that value.
    played = list(dict.fromkeys(map(tuple, page.evaluate("() => window.played"))))
    panel = dict(explorers("04_rope"))["plane"]()
    values = dict(options(panel.controls["shift"]))
    assert [key for key, _value, _number in played] == list(range(1, len(played) + 1))
    for _key, value, number in played:
        panel.put({"shift": values[value]})
        assert number == panel.rows(panel.compute(**panel.state))[0].value


def test_numbers_are_announced_at_rest_only(page, open_page):
    open_page("04_rope")
    explorer = page.locator("[data-explorer=plane]")
    said = explorer.get_by_role("status")
    page.wait_for_timeout(700)
    expect(said).to_have_text("")
    page.evaluate(
        """() => {
            window.spoken = 0;
            const said = document.querySelector("[data-explorer=plane] .tp-spoken");
            new MutationObserver(() => (window.spoken += 1)).observe(said, {childList: true});
        }"""
    )
    for key in ("End", "Home", "ArrowRight", "PageUp", "End"):
        explorer.locator("input[data-control=m]").press(key)
    expect(said).to_contain_text("query turned")
    # What did not change is not said.
    expect(said).not_to_contain_text("before the turn")
    assert page.evaluate("() => window.spoken") == 1
    assert explorer.locator("input[data-control=m]").evaluate("node => getComputedStyle(node).outlineStyle") == "solid"


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("stem", [*BUILT, "index"])
def test_nothing_sticks_out(page, open_page, stem, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_page(stem)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width


def test_a_dark_screen_gets_a_dark_page(page, open_page):
    page.emulate_media(color_scheme="dark")
    open_page("04_rope")
    box = page.locator("[data-explorer=plane] canvas")
    shown = np.asarray(Image.open(io.BytesIO(box.screenshot())).convert("L"))
    assert np.percentile(shown, 20) < 40
    assert np.ptp(shown) > 150
