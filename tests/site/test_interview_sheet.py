"""The sheets of the interview page: all of bank and drills, computed, usable by keyboard and on paper."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from publish.formulas import mathml
from publish.interview_sheet import SEED, Texts, sheet

from transformer_parts.explore.interview import ClaimRound
from transformer_parts.explore.prose import html
from transformer_parts.learn import evidence
from transformer_parts.learn.drills import DRILLS
from transformer_parts.learn.interview_files import load_bank

TITLES = {"04_rope": "04 · RoPE"}


def texts() -> Iterator[str]:
    bank = load_bank()
    for question in bank.questions:
        yield from (question.question, question.short, question.whiteboard, question.wrong, question.refuted)
        for item in question.follow_ups:
            yield from (item.question, item.answer)
    for claim in bank.claims:
        yield from (claim.statement, claim.shown)
    for drill in DRILLS:
        for case in map(drill.case, range(3)):
            yield from (case.task, case.working)


def test_every_formula_of_bank_and_drills_becomes_mathml():
    count = 0
    for text in texts():
        for latex in re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL) + re.findall(r"(?<!\$)\$([^$]+)\$(?!\$)", text):
            assert mathml(evidence.PLACE.sub("1", latex)).startswith("<math")
            count += 1
    assert count > 300


def test_formulas_are_set_and_the_rest_is_what_the_widgets_show():
    shown = Texts(TITLES)
    assert shown.html("So *much*.") == html("So *much*.")
    assert shown.line("costs `$5` and $x<1$.").startswith('costs <code>$5</code> and <span class="tie"><math')
    assert "&lt;" in shown.line("$x<1$")
    assert shown.html("$$a=b$$").startswith('<p><span class="formula" tabindex="0"><math display="block"')
    assert shown.link("04_rope") == '<a href="04_rope.html">04 · RoPE</a>'
    assert shown.link("99_none") == "notebook 99_none"


def test_a_claim_is_shown_with_its_computed_verdict():
    claims = sheet("ClaimRound", TITLES)["claims"]
    wanted = ClaimRound(seed=SEED).claims
    assert [claim["holds"] for claim in claims] == [claim.settled()[0] for claim in wanted]
    assert len(claims) == len(load_bank().claims)


def test_a_drill_shows_the_numbers_of_its_slips():
    drills = sheet("DrillSheet", TITLES)["drills"]
    for drill, shown in zip(DRILLS, drills, strict=True):
        case = drill.case(SEED)
        for number, name, _ in shown["slips"]:
            assert case.check(number.partition(" bytes")[0]).mistake == name


def test_an_unknown_sheet_is_refused():
    with pytest.raises(KeyError, match="Nothing"):
        sheet("Nothing", TITLES)


@pytest.fixture
def interview(open_page) -> Page:
    return open_page("17_interview")


@pytest.mark.browser
def test_every_question_has_its_answers_and_no_place_is_left_empty(interview):
    bank = load_bank()
    cards = interview.locator("[data-sheet=QuestionCards]")
    assert cards.locator(".question").count() == len(bank.questions)
    assert cards.get_by_text("Whiteboard answer").count() == len(bank.questions)
    assert cards.locator("h3").all_inner_texts() == list(bank.topics)
    words = interview.locator(".sheet").evaluate_all("nodes => nodes.map(node => node.textContent).join('')")
    assert "<<" not in words
    assert not re.search(r"\$[a-zA-Z\\]", words)


@pytest.mark.browser
def test_questions_are_filtered_by_keyboard(interview):
    bank = load_bank()
    cards = interview.locator("[data-sheet=QuestionCards]")
    cards.get_by_label("only the ten that everybody asks").press("Space")
    expect(cards.locator(".question:visible")).to_have_count(10)
    expect(cards.get_by_role("status")).to_have_text(f"10 of {len(bank.questions)} questions")
    cards.get_by_label("only the ten that everybody asks").press("Space")
    cards.get_by_label("Topic").press("r")
    expect(cards.locator(".topic:visible h3")).to_have_text(["RoPE"])
    cards.get_by_label("Level").select_option("depth")
    expect(cards.locator(".question:visible")).to_have_count(len(bank.select(topic="RoPE", level="depth")))


@pytest.mark.browser
def test_a_question_opens_by_keyboard(interview):
    question = load_bank().questions[0]
    card = interview.locator("[data-sheet=QuestionCards] .question").first
    words = re.sub(r"\W.*", "", question.short)
    expect(card.get_by_text(words).first).to_be_hidden()
    card.locator("summary").first.press("Enter")
    expect(card.get_by_text(words).first).to_be_visible()
    inner = card.locator("details").first
    expect(inner.locator(".inside")).to_be_hidden()
    inner.locator("summary").press("Space")
    expect(inner.locator(".inside")).to_be_visible()


@pytest.mark.browser
def test_claims_are_judged_by_keyboard_and_the_first_choice_counts(interview):
    sheet = interview.locator("[data-sheet=ClaimRound]")
    right = 0
    for place, claim in enumerate(ClaimRound(seed=SEED).claims[:4]):
        shown = sheet.locator(".claim:visible")
        expect(shown).to_have_count(1)
        expect(shown.locator(".verdict")).to_be_hidden()
        choice = place != 2
        shown.get_by_role("button", name="True" if choice else "False", exact=True).press("Enter")
        right += choice == claim.holds
        expect(sheet.locator(".tally")).to_have_text(f"{right} of {place + 1} right")
        expect(shown.locator(".verdict")).to_contain_text(f"The statement is {'true' if claim.holds else 'false'}.")
        expect(shown.locator(".verdict .inside")).to_be_visible()
        expect(sheet.get_by_role("status")).to_contain_text("Right." if choice == claim.holds else "Wrong.")
        # Another choice no longer counts.
        shown.get_by_role("button", name="False" if choice else "True", exact=True).click()
        expect(sheet.locator(".tally")).to_have_text(f"{right} of {place + 1} right")
        expect(sheet.get_by_role("button", name="Next statement")).to_be_focused()
        interview.keyboard.press("Enter")
    expect(sheet.locator(".claim:visible").get_by_role("button", name="True")).to_be_focused()


@pytest.mark.browser
def test_nothing_of_an_open_sheet_sticks_out_of_a_narrow_page(interview):
    interview.set_viewport_size({"width": 400, "height": 900})
    interview.locator("details").evaluate_all("nodes => nodes.forEach(node => { node.open = true; })")
    assert interview.evaluate("() => document.documentElement.scrollWidth") == 400


@pytest.mark.browser
def test_on_paper_everything_is_open(interview):
    interview.emulate_media(media="print")
    for text in (".inside", ".claim", ".verdict .inside"):
        heights = interview.locator(f".sheet {text}").evaluate_all(
            "nodes => nodes.map(node => node.checkVisibility({contentVisibilityAuto: true}) && node.clientHeight)"
        )
        assert len(heights) > 50
        assert min(heights) > 10
    expect(interview.locator(".filters")).to_be_hidden()
