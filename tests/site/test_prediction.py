"""Predictions on the site: the answer is in the page for its script, and is shown when the reader has committed."""

import nbformat
import pytest
from playwright.sync_api import expect
from publish.prediction import Asked, asked

QUESTION = """root = Prediction(
    "How long is it, "
    "and why?",
    answer=lambda: np.sqrt(4),
    unit="m",
)
root"""


def made(*cells: tuple[str, str]) -> nbformat.NotebookNode:
    cells = [
        nbformat.v4.new_code_cell(text, id=f"c{i}", metadata={"tags": [tag]}) for i, (text, tag) in enumerate(cells)
    ]
    return nbformat.v4.new_notebook(cells=cells)


def test_a_question_is_read_with_the_answer_that_is_asserted():
    notebook = made((QUESTION, "prediction"), ('assert root.answer_text() == "2 m"', "answers"))
    assert asked(notebook) == {"c0": Asked("root", "How long is it, and why?", (), "m", "2 m")}


@pytest.mark.parametrize("text", ['assert root.answer_text() != "2 m"', "assert root.answer() == 2", "root = 1"])
def test_what_asserts_no_answer_gives_none(text):
    assert asked(made((QUESTION, "prediction"), (text, "answers")))["c0"].answer == ""


@pytest.mark.browser
def test_a_number_is_committed_by_keyboard_and_the_fold_opens(open_page):
    page = open_page("04_rope")
    form = page.locator(".prediction").filter(has_text="What is the inner product now?")
    expect(form).to_be_visible()
    fold = page.locator(".prose details").first
    expect(fold).not_to_have_attribute("open", "")
    expect(form.get_by_role("status")).to_have_text("")
    field = form.get_by_label("I say")
    field.fill("three")
    field.press("Enter")
    expect(form.get_by_role("status")).to_have_text("")
    field.fill("3")
    field.press("Enter")
    expect(form.get_by_role("status")).to_have_text("You said 3; it is -3.")
    expect(fold).to_have_attribute("open", "")
    field.press("Enter")
    expect(form.get_by_role("status")).to_have_text("You said 3; it is -3.")


@pytest.mark.browser
def test_a_choice_is_committed_and_the_first_counts(open_page):
    page = open_page("04_rope")
    form = page.locator(".prediction").filter(has_text="Which one keeps its speed?")
    form.get_by_role("button", name="the last").press("Enter")
    expect(form.get_by_role("status")).to_have_text("You said the last; it is the first.")
    form.get_by_role("button", name="the first").press("Enter")
    expect(form.get_by_role("status")).to_have_text("You said the last; it is the first.")
    expect(form.get_by_role("button", name="the last")).to_have_attribute("aria-pressed", "true")


@pytest.mark.browser
def test_the_checks_of_the_answers_and_the_source_are_folded(open_page):
    page = open_page("04_rope")
    checks = page.get_by_text('counted_back.answer_text() == "-3"')
    expect(checks).to_be_hidden()
    page.get_by_text("The answers, as the notebook checks them").press("Enter")
    expect(checks).to_be_visible()
    source = page.locator(".output.source details")
    expect(source.locator("pre")).to_be_hidden()
    source.locator("summary").press("Enter")
    expect(source.locator("pre")).to_be_visible()
