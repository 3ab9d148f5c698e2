"""A run that the reader starts, on its page: it moves, is stopped, and leaves the kernel free meanwhile."""

import re

import lab
import nbformat
import notebooks
import pytest
from explorer_page import PROJECT
from playwright.sync_api import expect

from transformer_parts.explore.catalogue import LIVE_RUNS

pytestmark = pytest.mark.browser

SHOWN = "img => img.decode().then(() => img.src)"


def live_cells():
    """Yield notebook, index of the cell, its name in the kernel and its class, for each live run."""
    for path in notebooks.notebooks():
        for index, cell in enumerate(nbformat.read(path, as_version=4).cells):
            if "live-run" in cell.metadata.get("tags", ()):
                name, kind = re.fullmatch(r"(\w+) = (\w+)\(\)\n\1", cell.source).groups()
                yield pytest.param(path.relative_to(PROJECT).as_posix(), index, name, kind, id=f"{path.stem}-{name}")


@pytest.mark.parametrize(("notebook", "index", "name", "kind"), list(live_cells()))
def test_start_moves_the_picture_and_stop_ends_it(desk, notebook, index, name, kind):
    page, log = desk.page(notebook)
    log.clear()
    panel = lab.cell(page, index).locator(".tp-live")
    picture, status = panel.locator("img.widget-image"), panel.get_by_role("status").first
    bar = panel.get_by_role("progressbar", name="steps done")
    start, stop = (panel.get_by_role("button", name=words, exact=True) for words in ("Start", "Stop"))
    expect(stop).to_be_disabled()
    expect(bar).to_have_js_property("value", 0)
    assert picture.get_attribute("title") == {live.__name__: live for live in LIVE_RUNS}[kind].alt
    before = picture.evaluate(SHOWN)

    start.click()
    expect(stop).to_be_enabled()
    expect(bar).not_to_have_js_property("value", 0)
    # The kernel answers while the run goes on.
    assert lab.kernel(page, value=f"[{name}.running, len({name}.records) > 0]") == [True, True]
    assert picture.evaluate(SHOWN) != before
    start.click(force=True)  # it rests: nothing is started twice
    stop.click()
    expect(panel).to_contain_text("Stopped after")
    expect(start).to_be_enabled()
    expect(stop).to_be_disabled()
    assert lab.kernel(page, value=f"{name}.running") is False
    assert status.is_visible()
    assert log == []


def test_live_runs_are_found():
    assert len(list(live_cells())) >= len(LIVE_RUNS)
