"""A mock interview: what is drawn, what is counted, what the sheet says."""

import pytest

from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.mock_interview import MockInterview, draw

QUESTIONS = load_bank().questions
TOPICS = len(load_bank().topics)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 5, 8, 11, len(QUESTIONS)])
def test_drawn_questions_differ_and_spread_over_topics(count, seed):
    drawn = draw(QUESTIONS, count, seed=seed)
    assert len(set(drawn)) == count
    assert len({question.topic for question in drawn}) == min(count, TOPICS)
    assert draw(QUESTIONS, count, seed=seed) == drawn


def test_other_seeds_draw_other_questions():
    assert len({draw(QUESTIONS, 5, seed=seed) for seed in range(10)}) == 10


def test_follow_ups_count_by_their_own_time(interview):
    interview.answer("good", 59, [61, 12.4])
    interview.answer("good", 1)
    assert [row.over for row in interview.sheet()] == [1, 0, 1]
    assert interview.sheet()[-1].seconds == 30
    assert "| good | 59 s | 61 s, 12 s |" in interview.markdown()
    assert "| good | 1 s |  |" in interview.markdown()
    with pytest.raises(ValueError, match="follow_ups: got -1"):
        interview.answer("good", 1, [-1])


@pytest.mark.parametrize("count", [0, len(QUESTIONS) + 1, 2.5])
def test_a_count_that_cannot_be_is_refused(count):
    with pytest.raises(ValueError, match="count"):
        draw(QUESTIONS, count)


@pytest.fixture
def interview():
    by_topic = {topic: load_bank().select(topic=topic) for topic in ("RoPE", "Norms")}
    return MockInterview((by_topic["RoPE"][0], by_topic["Norms"][0], by_topic["RoPE"][1]), seconds=60)


def test_the_sheet_counts_by_topic(interview):
    assert interview.sheet() == []
    for rating, seconds in (("easy", 30), ("again", 90), ("hard", 61)):
        assert interview.present is interview.questions[len(interview.answered)]
        interview.answer(rating, seconds)
    assert interview.present is None
    rope, norms, every = interview.sheet()
    assert (rope.name, rope.questions, rope.points, rope.most, rope.seconds, rope.over) == ("RoPE", 2, 4, 6, 45.5, 1)
    assert (norms.name, norms.points, norms.over) == ("Norms", 0, 1)
    assert (every.name, every.questions, every.points, every.most, every.over) == ("All", 3, 4, 9, 2)
    assert every.seconds == pytest.approx(181 / 3)


def test_the_sheet_as_markdown(interview):
    interview.answer("easy", 30)
    interview.answer("hard", 61)
    text = interview.markdown(date="2026-11-30")
    assert text.startswith("# Mock interview, 2026-11-30\n\n2 of 3 questions, 60 s each.\n")
    assert "| RoPE | 1 | 3 of 3 | 30 s | 0 |" in text
    assert "| All | 2 | 4 of 6 | 46 s | 1 |" in text
    assert f"- {interview.questions[1].question} (09_norms)" in text
    assert interview.questions[0].question not in text.split("Read again:")[1]
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in tables} == {6, 5}


def test_what_cannot_be_answered_is_refused(interview):
    for rating, seconds, message in (("fine", 1, "rating"), ("good", -1, "seconds"), ("good", float("nan"), "seconds")):
        with pytest.raises(ValueError, match=message):
            interview.answer(rating, seconds)
    assert interview.answered == []
    for _ in range(3):
        interview.answer("good", 1)
    with pytest.raises(ValueError, match="want none after the last question"):
        interview.answer("good", 1)
