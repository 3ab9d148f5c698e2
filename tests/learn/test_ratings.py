"""Ratings last, weak questions come back sooner, and no file is lost."""

import errno
import json
import os
import socket
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from transformer_parts.learn import kept_file, ratings
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


def left_in(folder):
    """Return the names of what is in a folder, without the empty file that sessions lock."""
    locks = [item for item in folder.iterdir() if item.name.endswith(".transformer-parts-lock")]
    assert all(item.stat().st_size == 0 for item in locks)
    return {item.name for item in folder.iterdir() if item not in locks}


CARD = {
    "card_id": 0, "state": 1, "step": 1, "stability": 2.3, "difficulty": 2.1,
    "due": "2026-01-01T00:10:00+00:00", "last_review": "2026-01-01T00:00:00+00:00",
}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
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
                {"stability": 10**400},
                {"card_id": "x", "due": 3},
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
    assert left_in(path.parent) == {path.name, aside.name}


def test_a_second_unreadable_file_gets_a_name_of_its_own(path, clock):
    for number in (1, 2):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"broken {number}")
        Ratings(path, now=clock).rate(IDS[0], "good")
        assert path.with_name(f"interview.json.unreadable-{number}").read_text() == f"broken {number}"


def rated(path, clock, count=3):
    """Rate some questions where nothing can be kept, and return the ratings."""
    kept = Ratings(path, now=clock)
    for name in IDS[:count]:
        assert kept.rate(name, "good") > START
        assert str(path) in kept.problem
        assert "TRANSFORMER_PARTS_RATINGS" in kept.problem
        assert "Errno" not in kept.problem
    assert all(kept.recall(name) for name in IDS[:count])
    assert kept.in_order(QUESTIONS)[0] not in QUESTIONS[:count]
    return kept


def test_a_stop_while_writing_leaves_the_old_file_whole_and_the_rating_holds(path, clock, monkeypatch):
    kept = Ratings(path, now=clock)
    kept.rate(IDS[0], "good")
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        patch.setattr(kept_file.os, "fsync", lambda _: (_ for _ in ()).throw(full))
        kept.rate(IDS[1], "good")
    assert path.read_bytes() == before
    assert left_in(path.parent) == {path.name}
    assert os.strerror(errno.ENOSPC) in kept.problem
    assert kept.due(IDS[1]) is not None
    # There is room again: the rating that was held is written with the next one.
    kept.rate(IDS[2], "good")
    assert kept.problem == ""
    assert sorted(json.loads(path.read_text())["cards"]) == sorted(IDS[:3])


def test_an_interrupt_while_writing_leaves_the_old_file_whole(path, clock, monkeypatch):
    kept = Ratings(path, now=clock)
    kept.rate(IDS[0], "good")
    before = path.read_bytes()
    monkeypatch.setattr(kept_file.os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        kept.rate(IDS[1], "good")
    assert (path.read_bytes(), left_in(path.parent)) == (before, {path.name})


def test_a_folder_stays_where_it_is(tmp_path, clock):
    folder = tmp_path / "mine.json"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    rated(folder, clock)
    assert (folder / "thesis.tex").read_text() == "mine"
    assert [item.name for item in tmp_path.iterdir()] == [folder.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes and sockets with names here")
@pytest.mark.parametrize("behind_a_link", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_no_regular_file_is_neither_opened_nor_moved(tmp_path, clock, kind, behind_a_link, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    special = tmp_path / "special.json"
    if kind == "pipe":
        os.mkfifo(special)
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(special.name)
    mode, path = special.stat().st_mode, special
    if behind_a_link:
        path = tmp_path / "link.json"
        path.symlink_to(special)
    rated(path, clock)
    assert special.stat().st_mode == mode
    assert path.is_symlink() == behind_a_link
    assert {item.name for item in tmp_path.iterdir()} == {special.name, path.name}


OTHERS = {
    "notes.json": b"[]",
    "settings.json": b'{"version": 1}',
    "later.json": b'{"version": 2, "cards": {}}',
    "huge-version.json": b'{"version": 1e999, "cards": {}}',
    "thesis.tex": b"\\documentclass{article}",
    "picture.png": b"\x89PNG\r\n\x1a\n\x00",
    "large.json": b" " * (kept_file.MOST_BYTES + 1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_kind_is_left_alone(tmp_path, clock, name):
    path = tmp_path / name
    path.write_bytes(OTHERS[name])
    rated(path, clock)
    assert path.read_bytes() == OTHERS[name]
    assert left_in(tmp_path) == {name}


def test_a_file_in_the_place_of_the_lock_is_left_alone(path, clock):
    path.parent.mkdir()
    lock = path.with_name(f".{path.name}.transformer-parts-lock")
    lock.write_text("mine")
    rated(path, clock)
    assert lock.read_text() == "mine"
    assert not path.exists()


def test_a_write_protected_file_is_read_and_left_alone(path, clock):
    Ratings(path, now=clock).rate(IDS[5], "good")
    before = path.read_bytes()
    path.chmod(stat.S_IREAD)
    kept = rated(path, clock)
    assert kept.due(IDS[5]) is not None
    assert path.read_bytes() == before


def test_a_file_where_a_folder_is_needed_is_left_alone(tmp_path, clock):
    (tmp_path / "taken").write_text("mine")
    rated(tmp_path / "taken" / "interview.json", clock)
    assert (tmp_path / "taken").read_text() == "mine"


def test_links_in_a_circle_stop_nothing(tmp_path, clock):
    path = tmp_path / "a.json"
    path.symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(path)
    rated(path, clock)
    assert path.is_symlink()


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path, clock, there):
    target, link = tmp_path / "synced" / "ratings.json", tmp_path / "interview.json"
    target.parent.mkdir()
    if there:
        Ratings(target, now=clock).rate(IDS[0], "good")
        target.chmod(0o640)
    link.symlink_to(target)
    Ratings(link, now=clock).rate(IDS[1], "good")
    assert link.is_symlink()
    assert sorted(json.loads(target.read_text())["cards"]) == sorted(IDS[0 if there else 1 : 2])
    if there and os.name == "posix":
        assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert left_in(tmp_path) == {"synced", link.name}


def test_a_damaged_file_behind_a_link_is_put_aside_beside_it(tmp_path, clock):
    target, link = tmp_path / "synced" / "ratings.json", tmp_path / "interview.json"
    target.parent.mkdir()
    target.write_text("{")
    link.symlink_to(target)
    Ratings(link, now=clock).rate(IDS[1], "good")
    assert link.is_symlink()
    assert left_in(target.parent) == {"ratings.json", "ratings.json.unreadable-1"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_no_damage(path, clock, encoding):
    due = Ratings(path, now=clock).rate(IDS[0], "good")
    path.write_text(path.read_text("utf-8"), encoding)
    kept = Ratings(path, now=clock)
    assert (kept.due(IDS[0]), kept.problem) == (due, "")
    kept.rate(IDS[1], "good")
    assert left_in(path.parent) == {path.name}
    assert sorted(json.loads(path.read_text("utf-8"))["cards"]) == sorted(IDS[:2])


def test_a_deleted_file_stays_deleted(path, clock):
    kept = Ratings(path, now=clock)
    kept.rate(IDS[0], "good")
    path.unlink()
    kept.rate(IDS[1], "good")
    assert list(json.loads(path.read_text())["cards"]) == [IDS[1]]
    assert kept.due(IDS[0]) is None
    assert "deleted" in kept.problem


def test_a_file_that_is_damaged_during_a_session_costs_no_rating(path, clock):
    kept = Ratings(path, now=clock)
    kept.rate(IDS[0], "good")
    path.write_text("{")
    kept.rate(IDS[1], "good")
    assert sorted(json.loads(path.read_text())["cards"]) == sorted(IDS[:2])
    assert path.with_name(f"{path.name}.unreadable-1").read_text() == "{"


WRITER = """
import sys
from pathlib import Path
from transformer_parts.learn.ratings import Ratings
kept = Ratings(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(20):
    kept.rate(f"{sys.argv[2]}-{number}", "good")
    assert kept.problem == "", kept.problem
"""


def test_four_kernels_at_once_keep_all_ratings(path):
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, text=True) for n in range(4)]
    for writer in writers:  # all have started before one begins
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
    assert [writer.returncode for writer in writers] == [0] * 4
    assert sorted(json.loads(path.read_text())["cards"]) == sorted(f"{n}-{k}" for n in range(4) for k in range(20))


def test_a_lock_that_is_not_given_back_stops_nothing(path, clock, monkeypatch):
    monkeypatch.setattr(kept_file, "PATIENCE", 0.05)
    path.parent.mkdir()
    with kept_file.FileLock(path.with_name(f".{path.name}.transformer-parts-lock")):
        kept = rated(path, clock, 1)
        assert "another session" in kept.problem
    kept.rate(IDS[1], "good")
    assert sorted(json.loads(path.read_text())["cards"]) == sorted(IDS[:2])


def test_a_file_system_without_locks_keeps_ratings_all_the_same(path, clock, monkeypatch):
    monkeypatch.setattr(kept_file, "FileLock", lambda *_, **__: (_ for _ in ()).throw(NotImplementedError))
    Ratings(path, now=clock).rate(IDS[0], "good")
    assert list(json.loads(path.read_text())["cards"]) == [IDS[0]]


def test_a_reader_who_has_the_file_open_on_windows_delays_a_rating_only(path, clock, monkeypatch):
    tries, replace = [], os.replace

    def refuses_twice(*names):
        tries.append(names)
        if len(tries) < 3:
            raise PermissionError
        replace(*names)

    monkeypatch.setattr(kept_file.os, "replace", refuses_twice)
    kept = Ratings(path, now=clock)
    kept.rate(IDS[0], "good")
    assert (len(tries), kept.problem) == (3, "")


def test_a_problem_is_news_once(tmp_path, clock):
    kept = Ratings(tmp_path, now=clock)
    assert kept.news() == kept.problem != ""
    kept.rate(IDS[0], "good")
    assert kept.news() == ""


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
    monkeypatch.setenv("TRANSFORMER_PARTS_RATINGS", os.path.join("~", "mine.json"))
    assert Ratings().path == Path.home() / "mine.json"
