"""A prediction asks, waits for an answer, and computes its own only then."""

import re

import ipywidgets as widgets
import pytest

from transformer_parts.explore.prediction import Prediction


class Answer:
    """An answer that counts how often it is computed."""

    def __init__(self, value):
        self.value, self.calls = value, 0

    def __call__(self):
        self.calls += 1
        return self.value


def number(value=47.04, **options):
    return Prediction("How many times?", answer=Answer(value), **{"unit": "times", "form": ".1f"} | options)


def choice(value=0, **options):
    return Prediction("Which one?", answer=Answer(value), choices=("the first", "the last"), **options)


def said(prediction):
    return re.sub(r"<[^>]+>", "", prediction.status.value)


def every(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from every(child)


@pytest.mark.parametrize("make", [number, choice])
def test_a_question_is_shown_and_no_answer_computed(make):
    prediction = make()
    bundle = prediction._repr_mimebundle_()[0]
    assert prediction.answer.calls == 0
    assert prediction.question in bundle["text/plain"]
    assert prediction.question in bundle["text/html"]
    assert said(prediction) == ""


@pytest.mark.parametrize("make", [number, choice])
def test_it_is_of_core_widgets_whose_controls_have_names(make):
    for widget in every(make().widget):
        assert widget._model_module in ("@jupyter-widgets/base", "@jupyter-widgets/controls")
        if isinstance(widget, widgets.Button | widgets.Text):
            assert widget.description


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("50", "✓ You said 50 times; it is 47.0 times."),
        ("50 times", "✓ You said 50 times; it is 47.0 times."),
        ("1e2", "You said 1e2 times; it is 47.0 times."),
        ("−47", "You said −47 times; it is 47.0 times."),
    ],
)
def test_a_number_is_committed_and_the_answer_stands_beside_it(typed, words):
    prediction = number()
    prediction.number.value = typed
    assert said(prediction) == words
    assert prediction.answer.calls > 0
    assert prediction.number.disabled
    assert prediction.commit.disabled


def test_what_is_no_number_commits_to_nothing():
    prediction = number()
    prediction.commit.click()
    assert said(prediction) == "Type a number first."
    prediction.number.value = "many"
    assert said(prediction).startswith("Got 'many', want numbers")
    assert prediction.error is None
    assert prediction.answer.calls == 0
    assert not prediction.number.disabled


@pytest.mark.parametrize(("place", "mark"), [(0, "✓"), (1, "✗")])
def test_a_choice_is_committed_once(place, mark):
    prediction = choice()
    prediction.buttons[place].click()
    assert said(prediction) == f"{mark} You said “{prediction.choices[place]}”; it is “the first”."
    assert all(button.disabled for button in prediction.buttons)
    prediction.again.click()
    assert said(prediction) == ""
    assert not any(button.disabled for button in prediction.buttons)
    prediction.buttons[1 - place].click()
    assert f"You said “{prediction.choices[1 - place]}”" in said(prediction)


def test_a_bool_chooses_of_two():
    prediction = Prediction("Is it?", answer=lambda: 3 > 2, choices=("no", "yes"))
    assert prediction.answer_text() == "yes"


def test_hands_are_counted_and_the_answer_shown():
    prediction = choice()
    prediction.ask_class.click()
    assert prediction.class_row.layout.display is None
    prediction.votes.value = "12, 9"
    assert said(prediction) == "12 of 21 said so: it is “the first”."
    assert re.findall(r"<td>(\d+)</td>", prediction.tally.value) == ["12", "9"]
    assert re.findall(r"✓ <span[^>]*>([^<]*)", prediction.tally.value) == ["the first"]
    prediction.again.click()
    assert prediction.tally.value == prediction.votes.value == ""


@pytest.mark.parametrize("typed", ["12", "1 2 3", "-1 2", "1.5 2"])
def test_hands_that_do_not_fit_the_choices_are_refused(typed):
    prediction = choice()
    prediction.votes.value = typed
    assert said(prediction) == f"Got “{typed}”, want 2 counts of hands, one for each choice."
    assert prediction.tally.value == ""
    assert not prediction.votes.disabled


def test_the_numbers_of_a_class_are_summed_up():
    prediction = number()
    prediction.votes.value = "50 2 10 100 50"
    assert said(prediction) == "5 numbers from 2 to 100, median 50; it is 47.0 times."


def test_an_answer_that_fails_is_reported(logged):
    prediction = Prediction("Which?", answer=lambda: 1 / 0, choices=("a", "b"))
    prediction.buttons[0].click()
    assert "division by zero" in prediction.status.value
    assert not prediction.buttons[0].disabled
    logged.clear()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"answer": 3}, "answer"),
        ({"answer": len, "choices": "ab"}, "choices"),
        ({"answer": len, "choices": ("one",)}, "choices"),
        ({"answer": len, "choices": ("one", "one")}, "choices"),
    ],
)
def test_bad_input_is_refused(options, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        Prediction("What?", **options)


@pytest.mark.parametrize("index", [-1, 2])
def test_an_answer_beyond_the_choices_is_refused(index):
    with pytest.raises(ValueError, match=r"^answer: got .*, want an integer"):
        choice(index).answer_text()
