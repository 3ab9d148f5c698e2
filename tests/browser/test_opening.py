"""What a reader sees who opens a notebook and has not run anything."""

import re

import lab
import nbformat
import pytest
from explorer_page import PROJECT
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

WRONG = re.compile("error displaying|model not found|traceback|error loading|[A-Z]\\w+Error:", re.IGNORECASE)


@pytest.mark.of_opened_notebooks
@pytest.mark.parametrize("trusted", [False, True], ids=["untrusted", "trusted"])
def test_opens_without_an_error_and_with_every_still(desk, notebook, trusted):
    page, log = desk.open(notebook, trusted=trusted)
    for number, text in enumerate(lab.cell_texts(page)):
        assert not WRONG.search(text), f"cell {number}: {text}"
    stills = page.locator(".jp-MarkdownOutput img")
    cells = nbformat.read(PROJECT / notebook, as_version=4).cells
    shown = sum(bool({"explorer", "live-run"} & set(cell.metadata.get("tags", ()))) for cell in cells)
    expect(stills).to_have_count(shown)
    for still in stills.all():
        still.scroll_into_view_if_needed()
        still.evaluate("image => image.decode()")
        assert still.bounding_box()["width"] > 300
        assert len(still.get_attribute("alt")) > 40
    assert log == []
