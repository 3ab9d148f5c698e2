"""The interview page in JupyterLab, by keyboard alone."""

import lab
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
NOTEBOOK = "notebooks/en/17_interview.ipynb"
MOST_TABS = 40


@pytest.fixture
def sheets(desk):
    page, log = desk.page(NOTEBOOK)
    page.set_viewport_size({"width": 1440, "height": 1000})
    lab.hide_sidebar(page)
    found = page.locator(".tp-interview")
    expect(found).to_have_count(5)
    log.clear()
    yield [found.nth(place) for place in range(5)]
    assert log == []


def focused(page):
    """Return what has the keyboard's focus: the kind of element, and its text or value."""
    return page.evaluate("() => (e => `${e.tagName} ${e.innerText || e.value || ''}`)(document.activeElement)")


def tab_to(page, words):
    for _ in range(MOST_TABS):
        if words in focused(page):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to {words}; it stands on {focused(page)}")


def test_a_card_is_chosen_revealed_timed_and_rated(sheets):
    cards, page = sheets[0], sheets[0].page
    cards.locator("select").last.focus()
    page.keyboard.press("Space")  # opens the list
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    clock = cards.locator(".tp-timer")
    expect(clock).to_be_visible()
    left = [clock.evaluate("e => Number(getComputedStyle(e).getPropertyValue('--tp-left'))")]
    page.wait_for_timeout(2500)
    left.append(clock.evaluate("e => Number(getComputedStyle(e).getPropertyValue('--tp-left'))"))
    assert 30 >= left[0] > left[1] > 20

    for part in ("30-second answer", "whiteboard answer", "follow-ups", "common wrong answer"):
        tab_to(page, f"Show {part}")
        page.keyboard.press("Enter")
        expect(cards.locator("section h4", has_text=part)).to_be_visible()
        assert f"Hide {part}" in focused(page) or f"Show {part}" in focused(page)
    expect(clock).to_have_count(0)
    expect(cards.locator("[role=status]")).to_contain_text("of 30 s")
    # Formulas are set, not shown as they are typed.
    expect(cards.locator("mjx-container").first).to_be_visible()
    assert "\\mathsf" not in cards.inner_text()

    question = cards.locator(".tp-question").inner_text()
    tab_to(page, "Good")
    page.keyboard.press("Enter")
    expect(cards.locator("[role=status]")).to_contain_text("comes again in")
    expect(cards.locator(".tp-question")).not_to_have_text(question)
    expect(cards.locator("section:visible")).to_have_count(0)
    page.wait_for_timeout(300)
    assert "Show 30-second answer" in focused(page)


def test_a_drill_is_answered_and_new_numbers_take_the_focus_back(sheets):
    drills, page = sheets[1], sheets[1].page
    drills.locator("input[type=text]").focus()
    page.keyboard.type("1000, 1000")
    page.keyboard.press("Enter")
    expect(drills.locator("[role=status]")).to_contain_text("Not yet")
    answer = lab.kernel(page, value="drills.case.shown")
    tab_to(page, "New numbers")
    page.keyboard.press("Enter")
    expect(drills.locator("input[type=text]")).to_have_value("")
    expect(drills.locator("input[type=text]")).to_be_focused()
    assert lab.kernel(page, value="drills.case.shown") != answer
    page.keyboard.type(lab.kernel(page, value="drills.case.shown"))
    page.keyboard.press("Enter")
    expect(drills.locator("[role=status]")).to_contain_text("Right")


def test_a_claim_is_judged_and_the_next_follows(sheets):
    claims, page = sheets[2], sheets[2].page
    statement = claims.locator(".tp-question").inner_text()
    claims.locator("button", has_text="True").focus()
    page.keyboard.press("Enter")
    expect(claims.locator("[role=status]")).to_contain_text("The statement is")
    expect(claims.locator("section")).to_contain_text("Shown in")
    expect(claims.locator("button", has_text="Next statement")).to_be_focused()
    page.keyboard.press("Enter")
    expect(claims.locator(".tp-question")).not_to_have_text(statement)


def test_an_interview_goes_from_start_to_a_file(sheets):
    mock, page = sheets[3], sheets[3].page
    mock.locator("input[type=number]").first.focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("2")
    tab_to(page, "Start the interview")
    page.keyboard.press("Enter")
    for number in (1, 2):
        expect(mock.locator(".tp-where").first).to_contain_text(f"Question {number} of 2")
        expect(mock.locator("button", has_text="Show the answer")).to_be_focused()
        page.keyboard.press("Enter")
        for follow_up in (1, 2):
            expect(mock.locator("button", has_text="Ask a follow-up")).to_be_focused()
            page.keyboard.press("Enter")
            expect(mock.locator(".tp-timer")).to_be_visible()
            expect(mock.locator(".tp-answer .tp-question")).to_have_count(follow_up)
            expect(mock.locator("button", has_text="Show its answer")).to_be_focused()
            page.keyboard.press("Enter")
            expect(mock.locator("section h4", has_text="Its answer")).to_have_count(follow_up)
        expect(mock.locator("button", has_text="Good")).to_be_focused()
        page.keyboard.press("Enter")
    expect(mock.locator("table.tp-sheet")).to_contain_text("4 of 6")
    expect(mock.locator("button", has_text="Another interview")).to_be_focused()
    with page.expect_download() as download:
        mock.locator("a[download]").focus()
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "mock-interview.md"
    assert "| All | 2 | 4 of 6 |" in download.value.path().read_text("utf-8")


def test_a_function_is_judged_and_stops_the_clock(sheets):
    coding, page = sheets[4], sheets[4].page
    coding.locator("select").focus()
    tab_to(page, "Start the clock")
    page.keyboard.press("Enter")
    expect(coding.locator(".tp-timer")).to_be_visible()
    assert lab.kernel(page, value="coding.check(lambda *arguments: None).passed") is False
    expect(coding.locator(".tp-timer")).to_be_visible()
    assert lab.kernel(page, value="coding.check(coding.task.value.exercise.solution).passed") is True
    expect(coding.locator("[role=status]")).to_contain_text("Passed: RoPE")
    expect(coding.locator(".tp-timer")).to_have_count(0)
    expect(coding.locator("section table")).to_contain_text("2 checks")


def test_a_narrow_page_needs_no_sideways_scrolling(sheets):
    page = sheets[0].page
    page.set_viewport_size({"width": 480, "height": 1000})
    page.wait_for_timeout(500)
    for sheet in sheets:
        client, scroll = sheet.evaluate("e => [e.clientWidth, e.scrollWidth]")
        assert 300 < client < 420
        assert scroll <= client + 1


def test_the_focus_can_be_seen(sheets):
    button, page = sheets[2].locator("button").first, sheets[2].page
    button.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert button.evaluate("e => parseFloat(getComputedStyle(e).outlineWidth)") >= 2
    assert button.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
