"""Predictions in JupyterLab: a run shows the questions, and an answer only after the reader's, by keyboard alone."""

import lab
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
NOTEBOOK = "notebooks/en/04_rope.ipynb"
QUESTION, CHOICE = 0, 2


@pytest.fixture
def predictions(desk):
    page, log = desk.page(NOTEBOOK)
    page.set_viewport_size({"width": 1280, "height": 800})
    names = [name for name, kind in lab.kernel(page, value="[(k, type(v).__name__) for k, v in globals().items()]")
             if kind == "Prediction" and not name.startswith("_")]  # fmt: skip
    for name in names:
        lab.kernel(page, f"{name}.again.click()")
    cells = page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.sharedModel.source)"
    )
    log.clear()
    yield lambda place: lab.cell(page, next(i for i, text in enumerate(cells) if text.startswith(f"{names[place]} = ")))
    assert log == []


def test_a_number_is_committed_and_another_time_asked(predictions):
    cell = predictions(QUESTION)
    expect(cell.locator("[role=status]")).to_have_count(0)
    cell.get_by_label("I say").focus()
    cell.page.keyboard.type("3")
    cell.page.keyboard.press("Enter")
    expect(cell.locator("[role=status]")).to_have_text("You said 3; it is -3.")
    again = cell.get_by_role("button", name="Ask again")
    expect(again).to_be_focused()
    cell.page.keyboard.press("Enter")
    expect(cell.locator("[role=status]")).to_have_count(0)
    expect(again).to_be_hidden()
    expect(cell.get_by_label("I say")).to_be_focused()


def test_a_class_votes_by_hands(predictions):
    cell = predictions(CHOICE)
    cell.get_by_role("button", name="Ask a class").focus()
    cell.page.keyboard.press("Enter")
    expect(cell.get_by_label("Class")).to_be_focused()
    cell.page.keyboard.type("12 3 9")
    cell.page.keyboard.press("Enter")
    expect(cell.locator("[role=status]")).to_have_text("12 of 24 said so: it is “the first”.")
    expect(cell.locator("td")).to_have_text(["12", "3", "9"])
