"""The sheets of the interview page, pressed as a reader presses them, without a browser."""

import re
import threading
from importlib.resources import files

import ipywidgets as widgets
import pytest

from transformer_parts.explore.interview import (
    PARTS,
    SHEETS,
    ClaimRound,
    CodingRound,
    DrillSheet,
    MockSheet,
    QuestionCards,
    Timer,
)
from transformer_parts.explore.interview import cards as cards_module
from transformer_parts.explore.prose import html, line
from transformer_parts.learn.coding_round import TASKS
from transformer_parts.learn.drills import DRILLS
from transformer_parts.learn.interview import Bank
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.ratings import RATINGS, Ratings

BANK = load_bank()
CONTROLS = (widgets.Button, widgets.Dropdown, widgets.Checkbox, widgets.Text, widgets.BoundedIntText, widgets.Textarea)


@pytest.fixture(autouse=True)
def ratings_file(tmp_path, monkeypatch):
    path = tmp_path / "ratings.json"
    monkeypatch.setenv("TRANSFORMER_PARTS_RATINGS", str(path))
    return path


def every(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from every(child)


def visible(widget):
    return widget.layout.display != "none"


def words(sheet):
    return re.sub(r"<[^>]+>", " ", sheet.status.value).split()


def press(sheet, button):
    assert not button.disabled
    button.click()
    assert sheet.error is None


# ---------------------------------------------------------------- what holds of every sheet


@pytest.mark.parametrize("kind", SHEETS)
def test_a_sheet_starts_nothing_and_writes_nothing(kind, ratings_file):
    threads = threading.active_count()
    sheet = kind()
    assert threading.active_count() == threads
    assert not ratings_file.exists()
    assert sheet.error is None


@pytest.mark.parametrize("kind", SHEETS)
def test_a_sheet_is_of_core_widgets_whose_controls_have_names(kind):
    for widget in every(kind().widget):
        assert widget._model_module in ("@jupyter-widgets/base", "@jupyter-widgets/controls")
        assert not isinstance(widget, widgets.Output)
        if isinstance(widget, CONTROLS):
            assert widget.description
        else:
            assert isinstance(widget, widgets.Box | widgets.HTML | widgets.HTMLMath)


@pytest.mark.parametrize("kind", SHEETS)
def test_where_no_widget_can_be_a_sheet_says_what_it_is(kind):
    data, _ = kind()._repr_mimebundle_()
    assert data["text/plain"] == kind.alt
    assert len(kind.alt) > 40
    assert "image/png" not in data


def test_what_a_button_raises_is_shown_and_the_sheet_goes_on(logged, monkeypatch):
    sheet = ClaimRound(seed=1)
    monkeypatch.setattr(type(sheet.claim), "settled", lambda self: 1 / 0)
    sheet.true.click()
    assert isinstance(sheet.error, ZeroDivisionError)
    assert 'role="alert"' in sheet.status.value
    logged.clear()
    monkeypatch.undo()
    press(sheet, sheet.true)
    assert "alert" not in sheet.status.value


# ---------------------------------------------------------------- the timer


def test_the_clock_counts_in_the_browser_and_the_kernel_notes_two_times():
    times = iter([10.0, 14.5, 20.0, 21.0])
    timer = Timer(now=lambda: next(times))
    assert timer.stop() is None
    timer.start(30)
    first = timer.widget.value
    assert "--tp-seconds: 30" in first
    assert 'role="timer"' in first
    assert timer.stop() == 4.5
    assert timer.widget.value == ""
    assert timer.stop() is None
    timer.start(30)
    assert timer.widget.value != first  # another animation, so that it begins anew
    timer.start(0)
    assert timer.widget.value == ""


def test_the_animations_that_the_clock_names_are_in_the_style_sheet():
    style = files("transformer_parts.explore").joinpath("interview.css").read_text("utf-8")
    for name in ("tp-count-a", "tp-count-b"):
        assert f"@keyframes {name} " in style
    selectors = re.findall(r"^(?!@|/\*)([^{]+)\{", style, re.MULTILINE)
    assert selectors
    assert all(part.strip().startswith(".tp-interview") for s in selectors for part in s.split(","))


# ---------------------------------------------------------------- questions


@pytest.fixture
def cards():
    return QuestionCards()


def test_a_card_shows_the_question_and_no_answer(cards):
    assert "Why does a Transformer need position information" in cards.card.value
    assert not any(visible(answer) or answer.value for answer in cards.answers.values())


def test_each_part_is_revealed_and_hidden_again(cards):
    for name in PARTS:
        button = cards.parts[name]
        assert button.description == f"Show {name}"
        press(cards, button)
        assert visible(cards.answers[name])
        assert button.description == f"Hide {name}"
        assert "&lt;&lt;" not in cards.answers[name].value
        press(cards, button)
        assert not visible(cards.answers[name])


def test_numbers_are_computed_at_the_first_reveal_of_a_question_alone(cards, monkeypatch):
    filled = []
    kind = type(cards.question)
    original = kind.filled
    monkeypatch.setattr(kind, "filled", lambda self: filled.append(self.id) or original(self))
    press(cards, cards.next)
    assert filled == []
    for name in PARTS:
        press(cards, cards.parts[name])
    assert filled == [cards.question.id]


def test_filters_choose_and_an_empty_choice_says_so(cards):
    cards.everybody.value = True
    assert len(cards.questions) == 10
    cards.topic.value = "RoPE"
    assert [question.id for question in cards.questions] == ["rope-relative"]
    cards.level.value = "depth"
    assert cards.question is None
    assert "No question" in cards.card.value
    assert all(button.disabled for button in (*cards.parts.values(), *cards.rate.values(), cards.next))
    cards.everybody.value, cards.level.value = False, "all levels"
    assert {question.topic for question in cards.questions} == {"RoPE"}
    assert not cards.next.disabled


def test_next_and_previous_go_round_and_hide_the_answers(cards):
    first = cards.question
    press(cards, cards.parts[PARTS[0]])
    press(cards, cards.previous)
    assert cards.question == cards.questions[-1]
    assert not any(map(visible, cards.answers.values()))
    press(cards, cards.next)
    assert cards.question == first


def test_rating_is_kept_says_when_and_brings_weak_ones_first(cards, ratings_file, monkeypatch):
    monkeypatch.setattr(cards_module, "TWICE", 0)
    order = [question.id for question in cards.questions]
    for rating in ("easy", "again"):
        press(cards, cards.rate[rating])
    assert "minute" in cards.status.value
    assert ratings_file.exists()
    again = QuestionCards()
    assert [question.id for question in again.questions][-2:] == [order[1], order[0]]
    again.order.value = "as in the bank"
    assert [question.id for question in again.questions] == order
    assert "expected recall 100%" in again.card.value


def test_a_double_click_rates_one_question(cards, monkeypatch):
    first, second, *_ = cards.questions
    now = cards_module.monotonic()
    monkeypatch.setattr(cards_module, "monotonic", lambda: now)
    press(cards, cards.rate["good"])
    press(cards, cards.rate["good"])
    assert cards.question == second
    assert cards.ratings.due(first.id) is not None
    assert cards.ratings.due(second.id) is None
    now += 1
    press(cards, cards.rate["good"])
    assert cards.ratings.due(second.id) is not None


def test_no_clock_runs_without_a_question(cards):
    cards.topic.value, cards.level.value, cards.everybody.value = "RoPE", "depth", True
    assert cards.question is None
    cards.time.value = 30
    assert cards._timing.widget.value == ""
    cards.level.value = "all levels"
    assert "tp-timer" in cards._timing.widget.value


def test_what_is_wrong_with_the_file_is_told_as_it_is(ratings_file):
    ratings_file.write_text('{"version": 1, "cards": null}')
    cards = QuestionCards()
    assert "AttributeError: 'NoneType' object" in cards.status.value
    cards.say("a < b")
    assert "a &lt; b" in cards.status.value


def test_a_broken_file_of_ratings_is_told_and_kept(ratings_file):
    ratings_file.write_text("{")
    cards = QuestionCards()
    assert "cannot be read" in cards.status.value
    press(cards, cards.rate["good"])
    assert "was kept as" in cards.status.value
    assert ratings_file.with_name("ratings.json.unreadable-1").read_text() == "{"


def test_a_rating_that_cannot_be_written_holds_and_the_next_question_comes(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr(cards_module, "monotonic", iter(range(0, 100, 10)).__next__)
    cards = QuestionCards(ratings=Ratings(tmp_path / "taken" / "ratings.json"))
    asked = []
    for told in (False, False):  # it was said when the cards were made, and is not said again
        asked.append(cards.question.id)
        press(cards, cards.rate["good"])
        assert cards.question.id not in asked
        assert cards.ratings.recall(asked[-1]) is not None
        assert "Noted" in cards.status.value
        assert ("TRANSFORMER_PARTS_RATINGS" in cards.status.value) == told


def test_a_disk_that_fills_up_is_named_once(tmp_path, monkeypatch):
    monkeypatch.setattr(cards_module, "monotonic", iter(range(0, 100, 10)).__next__)
    cards = QuestionCards(ratings=Ratings(tmp_path / "ratings.json"))
    (tmp_path / "ratings.json").mkdir()
    for told in (True, False):
        press(cards, cards.rate["good"])
        assert ("TRANSFORMER_PARTS_RATINGS" in cards.status.value) == told
    assert "Errno" not in cards.status.value


@pytest.mark.parametrize("kind", [QuestionCards, MockSheet, ClaimRound])
def test_an_empty_bank_gives_a_sentence_and_nothing_to_press(kind):
    sheet = kind(bank=Bank((), ()))
    parts = [part.value for part in every(sheet.widget) if isinstance(part, widgets.HTML | widgets.HTMLMath)]
    assert any("No question has" in text or "There are no" in text for text in parts)
    first = {QuestionCards: "next", MockSheet: "start", ClaimRound: "true"}[kind]
    assert getattr(sheet, first).disabled


def test_the_clock_stops_when_an_answer_is_shown(cards):
    cards.time.value = 30
    assert "tp-timer" in cards._timing.widget.value
    press(cards, cards.parts[PARTS[1]])
    assert cards._timing.widget.value == ""
    assert words(cards)[:3] == ["You", "took", "0"]
    press(cards, cards.next)
    assert "tp-timer" in cards._timing.widget.value
    cards.time.value = 0
    assert cards._timing.widget.value == ""


# ---------------------------------------------------------------- drills


def test_every_drill_is_shown_checked_and_worked():
    sheet = DrillSheet(seed=5)
    for number, drill in enumerate(DRILLS, 1):
        sheet.drill.value = drill
        assert sheet.case.drill is drill
        sheet.answer.value = sheet.case.shown.split(" bytes")[0]
        assert "tp-right" in sheet.status.value, sheet.status.value
        press(sheet, sheet.show_working)
        assert visible(sheet.working)
        assert f"{number} of {number} right" in sheet.tally.value


def test_a_slip_is_named_and_only_the_first_answer_counts():
    sheet = DrillSheet(seed=5)
    wrong = ", ".join(f"{float(number):.5f}" for number in sheet.case.slipped[0])
    sheet.answer.value = wrong
    assert "degrees" in sheet.status.value
    sheet.answer.value = sheet.case.shown
    assert "tp-right" in sheet.status.value
    assert "0 of 1 right" in sheet.tally.value
    press(sheet, sheet.check)
    assert "0 of 1 right" in sheet.tally.value


def test_an_answer_that_cannot_be_read_does_not_count():
    sheet = DrillSheet(seed=5)
    press(sheet, sheet.check)
    assert "Type your answer" in sheet.status.value
    sheet.answer.value = "one"
    assert "want 2 numbers" in sheet.status.value
    assert sheet.tally.value == ""


def test_new_numbers_clear_the_answer_and_a_seen_working_does_not_count():
    sheet = DrillSheet(seed=5)
    task = sheet.task.value
    press(sheet, sheet.show_working)
    sheet.answer.value = sheet.case.shown
    assert sheet.tally.value == ""
    press(sheet, sheet.new)
    assert sheet.task.value != task
    assert (sheet.answer.value, visible(sheet.working), sheet.status.value) == ("", False, "")


def test_without_a_seed_numbers_differ():
    assert len({DrillSheet().task.value for _ in range(6)}) > 1


# ---------------------------------------------------------------- claims


@pytest.mark.parametrize("choice", ["true", "false"])
def test_the_verdict_is_computed_after_the_choice(choice):
    sheet = ClaimRound(seed=2)
    for _ in range(6):
        claim = sheet.claim
        assert sheet.settled.value == ""
        press(sheet, getattr(sheet, choice))
        right = claim.holds == (choice == "true")
        assert f"tp-{'right' if right else 'wrong'}" in sheet.status.value
        assert claim.notebook[:2] in sheet.settled.value
        press(sheet, sheet.next)
    right = sum(claim.holds == (choice == "true") for claim in sheet.claims[:6])
    assert f"{right} of 6 right" in sheet.tally.value


def test_a_second_choice_does_not_count():
    sheet = ClaimRound(seed=2)
    for button in (sheet.true, sheet.false, sheet.true):
        press(sheet, button)
    assert "of 1 right" in sheet.tally.value


def test_each_claim_comes_once_before_any_comes_again():
    sheet = ClaimRound(seed=2)
    assert sorted(claim.id for claim in sheet.claims) == sorted(claim.id for claim in BANK.claims)
    seen = []
    for _ in sheet.claims:
        seen.append(sheet.claim.id)
        press(sheet, sheet.next)
    assert len(set(seen)) == len(BANK.claims)
    assert sheet.claim.id == seen[0]
    assert ClaimRound(seed=3).claims != sheet.claims


# ---------------------------------------------------------------- the mock interview


def stage(sheet):
    parts = {"settings": sheet.settings, "asking": sheet.asking, "result": sheet.result}
    (present,) = [name for name, part in parts.items() if visible(part)]
    return present


def test_an_interview_from_its_settings_to_the_sheet(ratings_file):
    sheet = MockSheet(seed=1)
    assert stage(sheet) == "settings"
    sheet.count.value, sheet.seconds.value = 3, 60
    press(sheet, sheet.start)
    for number, rating in enumerate(RATINGS[:3], 1):
        assert stage(sheet) == "asking"
        assert f"Question {number} of 3" in sheet.card.value
        assert not visible(sheet.rating)
        assert "--tp-seconds: 60" in sheet._timing.widget.value
        press(sheet, sheet.show)
        assert sheet._timing.widget.value == ""
        assert visible(sheet.rating)
        press(sheet, sheet.rate[rating])
    assert stage(sheet) == "result"
    assert "3 of 9" in sheet.sheet.value
    (day,) = re.findall(r"^# Mock interview, (\d{4}-\d\d-\d\d)$", sheet.text.value, re.MULTILINE)
    assert sheet.text.value == sheet.interview.markdown(date=day)
    assert 'download="mock-interview.md"' in sheet.sheet.value
    assert ratings_file.exists()
    press(sheet, sheet.again)
    assert stage(sheet) == "settings"


def test_another_interview_asks_other_questions():
    sheet = MockSheet(seed=1)
    drawn = []
    for _ in range(2):
        press(sheet, sheet.start)
        drawn.append(sheet.interview.questions)
        press(sheet, sheet.stop)
        press(sheet, sheet.again)
    assert drawn[0] != drawn[1]


def test_an_interview_may_end_early_and_be_smaller_than_asked():
    sheet = MockSheet(seed=1)
    sheet.everybody.value, sheet.count.value = True, 45
    press(sheet, sheet.start)
    assert len(sheet.interview.questions) == 10
    press(sheet, sheet.stop)
    assert stage(sheet) == "result"
    assert "before the first rating" in sheet.status.value


def test_settings_without_a_question_are_told():
    sheet = MockSheet(seed=1)
    sheet.everybody.value, sheet.level.value = True, "depth"
    press(sheet, sheet.start)
    assert stage(sheet) == "settings"
    assert "No question has these settings" in sheet.status.value


def test_the_answer_shown_by_a_double_click_can_be_rated():
    mock = MockSheet(seed=0)
    mock.count.value = 2
    press(mock, mock.start)
    for _ in range(2):  # the second click is on its way before the button rests
        mock.show.click()
        assert mock.error is None
    press(mock, mock.rate["good"])
    assert [item.rating for item in mock.interview.answered] == ["good"]


def test_an_interview_begins_at_core_level():
    sheet = MockSheet(seed=1)
    sheet.count.value = 20
    press(sheet, sheet.start)
    assert {question.level for question in sheet.interview.questions} == {"core"}


def test_both_follow_ups_are_asked_after_the_answer_with_a_clock_of_their_own():
    sheet = MockSheet(seed=1)
    sheet.seconds.value, sheet.follow_up_seconds.value = 90, 40
    press(sheet, sheet.start)
    assert not visible(sheet.further)
    press(sheet, sheet.show)
    question = sheet.interview.present.filled()
    for item in question.follow_ups:
        assert line(item.question) not in sheet.follow_ups.value
        sheet.ask.click()
        sheet.ask.click()  # the second half of a double click
        assert sheet.error is None
        assert sheet.follow_ups.value.count(line(item.question)) == 1
        assert "--tp-seconds: 40" in sheet._further_timing.widget.value
        assert html(item.answer) not in sheet.follow_ups.value
        for _ in range(2):
            sheet.show_further.click()
        assert html(item.answer) in sheet.follow_ups.value
        assert "of 40 s" in sheet.status.value
        assert sheet._further_timing.widget.value == ""
    assert sheet.ask.disabled
    press(sheet, sheet.rate["good"])
    (answered,) = sheet.interview.answered
    assert len(answered.follow_ups) == 2
    assert sheet.follow_ups.value == ""
    assert not visible(sheet.further)


def test_follow_ups_may_be_left_out():
    sheet = MockSheet(seed=1)
    press(sheet, sheet.start)
    press(sheet, sheet.show)
    press(sheet, sheet.ask)
    press(sheet, sheet.rate["hard"])
    assert sheet.interview.answered[0].follow_ups == ()
    assert sheet._further_timing.widget.value == ""
    press(sheet, sheet.show)
    assert not sheet.ask.disabled
    assert sheet.show_further.disabled


def test_a_rating_pressed_twice_counts_once():
    sheet = MockSheet(seed=1)
    sheet.count.value = 2
    press(sheet, sheet.start)
    press(sheet, sheet.show)
    press(sheet, sheet.rate["good"])
    press(sheet, sheet.rate["good"])
    assert len(sheet.interview.answered) == 1


# ---------------------------------------------------------------- the coding round


def test_every_task_is_shown_with_its_signature_and_passes_by_its_solution():
    sheet = CodingRound()
    for number, task in enumerate(TASKS, 1):
        sheet.task.value = task
        assert task.signature in sheet.card.value
        assert str(task.exercise.task).partition(": ")[2][:20] in sheet.card.value
        press(sheet, sheet.start)
        assert "--tp-seconds: 300" in sheet._timing.widget.value
        assert not sheet.check(lambda *arguments: None).passed
        assert sheet._timing.widget.value != ""
        assert sheet.check(task.exercise.solution).passed
        assert sheet._timing.widget.value == ""
        assert f"{task.title}, 0 s of 300 s, 2 checks" in sheet.status.value
        assert sheet.results.value.count("<tr>") == number


def test_what_passes_without_the_clock_is_no_result():
    sheet = CodingRound()
    assert sheet.check(sheet.task.value.exercise.solution).passed
    assert sheet.results.value == ""


def test_hints_come_one_by_one_and_another_task_begins_again():
    sheet = CodingRound()
    press(sheet, sheet.start)
    for hint in sheet.task.value.exercise.hints:
        assert not sheet.hint.disabled
        press(sheet, sheet.hint)
        assert html(hint) in sheet.status.value
    assert sheet.hint.disabled
    sheet.task.value = TASKS[1]
    assert not sheet.hint.disabled
    assert sheet._timing.widget.value == sheet.status.value == ""
