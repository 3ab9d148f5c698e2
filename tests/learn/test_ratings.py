"""Ratings last, weak questions come back sooner, and no file is lost."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from transformer_parts.learn import ratings
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.ratings import RATINGS, Ratings

QUESTIONS = load_bank().questions[:6]
IDS = [question.id for question in QUESTIONS]
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.time = START

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "interview.json"


def test_nothing_is_written_before_the_first_rating(path, clock):
    kept = Ratings(path, now=clock)
    assert kept.in_order(QUESTIONS) == list(QUESTIONS)
    assert (kept.recall(IDS[0]), kept.due(IDS[0]), kept.problem) == (None, None, "")
    assert not path.parent.exists()


def test_worse_ratings_come_back_sooner(path, clock):
    kept = Ratings(path, now=clock)
    due = [kept.rate(name, rating) for name, rating in zip(IDS, RATINGS, strict=False)]
    assert due == sorted(due)
    assert len(set(due)) == 4
    assert due[0] <= START + timedelta(minutes=1) < START + timedelta(days=1) < due[3]


def test_ratings_last_in_a_new_session(path, clock):
    due = Ratings(path, now=clock).rate(IDS[2], "hard")
    clock.time += timedelta(days=3)
    again = Ratings(path, now=clock)
    assert again.due(IDS[2]) == due
    assert 0 < again.recall(IDS[2]) < 1


def test_order_is_due_and_least_known_then_new_then_the_rest(path, clock):
    kept = Ratings(path, now=clock)
    for name, rating in ((IDS[3], "good"), (IDS[1], "again"), (IDS[0], "easy"), (IDS[5], "easy")):
        kept.rate(name, rating)
    for later in (timedelta(hours=12), timedelta(days=3)):
        clock.time = START + later
        order = [question.id for question in kept.in_order(QUESTIONS)]
        assert order == [IDS[1], IDS[3], IDS[2], IDS[4], IDS[0], IDS[5]]
    assert kept.recall(IDS[1]) < kept.recall(IDS[3])


def test_repeated_good_answers_move_it_further_away(path, clock):
    kept = Ratings(path, now=clock)
    gaps = []
    for _ in range(5):
        due = kept.rate(IDS[0], "good")
        gaps.append(due - clock.time)
        clock.time = due
    assert gaps[-1] > gaps[-2] > timedelta(days=1)


def test_two_sessions_at_once_keep_each_others_ratings(path, clock):
    one, other = Ratings(path, now=clock), Ratings(path, now=clock)
    one.rate(IDS[0], "good")
    other.rate(IDS[1], "good")
    assert Ratings(path, now=clock).in_order(QUESTIONS)[-2:] == list(QUESTIONS[:2])


CARD = {
    "card_id": 0, "state": 1, "step": 1, "stability": 2.3, "difficulty": 2.1,
    "due": "2026-01-01T00:10:00+00:00", "last_review": "2026-01-01T00:00:00+00:00",
}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": 1}',
        b'{"version": 2, "cards": {}}',
        b'{"version": 1, "cards": {"a": 3}}',
        b"\xff",
        b"[" * 100_000,
        *(
            json.dumps({"version": 1, "cards": {"a": CARD | wrong}}).encode()
            for wrong in (
                {"due": "2026-01-01T00:00:00"},
                {"last_review": "2026-01-01T00:00:00"},
                {"last_review": None},
                {"stability": -1.0},
                {"state": 2, "step": None, "stability": None},
                {"step": -5},
                {"step": "x"},
            )
        ),
    ],
)
def test_an_unreadable_file_stops_nothing_and_is_kept(content, path, clock):
    path.parent.mkdir()
    path.write_bytes(content)
    kept = Ratings(path, now=clock)
    assert str(path) in kept.problem
    assert path.read_bytes() == content
    kept.rate(IDS[0], "good")
    kept.rate(IDS[1], "good")
    aside = path.with_name("interview.json.unreadable-1")
    assert aside.read_bytes() == content
    assert str(aside) in kept.problem
    assert sorted(json.loads(path.read_text())["cards"]) == sorted(IDS[:2])
    assert {item.name for item in path.parent.iterdir()} == {path.name, aside.name}


def test_a_second_unreadable_file_gets_a_name_of_its_own(path, clock):
    for number in (1, 2):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"broken {number}")
        Ratings(path, now=clock).rate(IDS[0], "good")
        assert path.with_name(f"interview.json.unreadable-{number}").read_text() == f"broken {number}"


def test_a_stop_while_writing_leaves_the_old_file_whole(path, clock, monkeypatch):
    kept = Ratings(path, now=clock)
    kept.rate(IDS[0], "good")
    before = path.read_bytes()
    monkeypatch.setattr(ratings.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        kept.rate(IDS[1], "good")
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    assert kept.due(IDS[1]) is not None


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path, clock):
    kept = Ratings(tmp_path, now=clock)
    assert "cannot be read" in kept.problem


def test_unknown_ratings_are_refused(path, clock):
    with pytest.raises(ValueError, match="rating: got 'fine', want one of 'again', 'hard', 'good', 'easy'"):
        Ratings(path, now=clock).rate(IDS[0], "fine")
    assert not path.exists()


def test_the_file_is_outside_the_project_or_where_the_user_says(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_PARTS_RATINGS", raising=False)
    assert ratings.default_path().name == "interview.json"
    assert "transformer-parts" in ratings.default_path().parts
    monkeypatch.setenv("TRANSFORMER_PARTS_RATINGS", str(tmp_path / "mine.json"))
    assert Ratings().path == tmp_path / "mine.json"
