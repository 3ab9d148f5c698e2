"""A run that the reader starts, on its page: it moves, is stopped, and leaves the kernel free meanwhile."""

import lab
import pytest
from explorer_page import places
from playwright.sync_api import expect

from transformer_parts.explore.catalogue import LIVE_RUNS

pytestmark = pytest.mark.browser

SHOWN = "img => img.decode().then(() => img.src)"


@pytest.mark.parametrize("place", places(LIVE_RUNS), ids=str)
def test_start_moves_the_picture_and_stop_ends_it(desk, place):
    page, log = desk.page(place.notebook)
    log.clear()
    panel = lab.cell(page, place.cell).locator(".tp-live")
    picture, status = panel.locator("img.widget-image"), panel.get_by_role("status").first
    bar = panel.get_by_role("progressbar", name="steps done")
    start, stop = (panel.get_by_role("button", name=words, exact=True) for words in ("Start", "Stop"))
    expect(stop).to_be_disabled()
    expect(bar).to_have_js_property("value", 0)
    assert picture.get_attribute("title") == place.panel_class.alt
    before = picture.evaluate(SHOWN)

    start.click()
    expect(stop).to_be_enabled()
    expect(bar).not_to_have_js_property("value", 0)
    # The kernel answers while the run goes on.
    assert lab.kernel(page, value=f"[{place.name}.running, len({place.name}.records) > 0]") == [True, True]
    assert picture.evaluate(SHOWN) != before
    start.click(force=True)  # it rests: nothing is started twice
    stop.click()
    expect(panel).to_contain_text("Stopped after")
    expect(start).to_be_enabled()
    expect(stop).to_be_disabled()
    assert lab.kernel(page, value=f"{place.name}.running") is False
    assert status.is_visible()
    assert log == []


def test_live_runs_are_found():
    assert len(places(LIVE_RUNS)) >= len(LIVE_RUNS)
