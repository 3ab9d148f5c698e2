"""What a reader has passed is recorded, lasts, is exported as one file, and is read by a teacher."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from exercises import EXERCISES

from transformer_parts.explore.interview import ClaimRound, DrillSheet
from transformer_parts.learn import results, rope
from transformer_parts.learn.drills import DRILLS
from transformer_parts.learn.results import Results

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROJECT = Path(__file__).resolve().parents[2]


class Clock:
    """A clock that moves on by a minute whenever it is asked."""

    def __init__(self):
        self.time = START

    def __call__(self):
        self.time += timedelta(minutes=1)
        return self.time


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_PARTS_RATINGS", str(tmp_path / "deep" / "mine.json"))
    return tmp_path / "deep" / "mine-results.json"


@pytest.fixture
def kept(path):
    return Results(path, now=Clock())


def rotate(x, position, rope_base):
    return rope.ROTATE.solution(x, position, rope_base)


def of_the_reader(function):
    """Return a function as a notebook would define it."""

    def mine(x, position, rope_base):
        return function(x, position, rope_base)

    mine.__module__ = "__main__"
    return mine


def test_results_are_kept_beside_the_ratings(path, monkeypatch):
    assert results.default_path() == path == results.own().path
    assert results.own() is results.own()
    monkeypatch.delenv("TRANSFORMER_PARTS_RATINGS")
    assert results.default_path().name == "interview-results.json"


def test_every_exercise_knows_its_name():
    assert {exercise.name for exercise in EXERCISES.values()} == set(EXERCISES)


def test_a_pass_of_the_readers_own_function_is_recorded(path):
    assert rope.ROTATE.check(rotate).passed
    assert rope.ROTATE.check(rope.ROTATE.solution).passed
    assert not rope.ROTATE.check(of_the_reader(lambda x, position, rope_base: x)).passed
    assert not path.exists()
    for _ in range(2):
        assert rope.ROTATE.check(of_the_reader(rotate)).passed
    found = Results(path).of("exercise")
    assert list(found) == ["rope.ROTATE"]
    assert (found["rope.ROTATE"].tries, found["rope.ROTATE"].right) == (2, 2)
    assert found["rope.ROTATE"].passed < found["rope.ROTATE"].last


def test_where_nothing_can_be_kept_the_pass_counts_and_the_verdict_says_so_once(path):
    path.mkdir(parents=True)
    solution = of_the_reader(rotate)
    verdicts = [rope.ROTATE.check(solution) for _ in range(2)]
    assert [verdict.passed for verdict in verdicts] == [True, True]
    assert [str(path) in verdict.message for verdict in verdicts] == [True, False]
    assert results.own().of("exercise")["rope.ROTATE"].tries == 2
    path.rmdir()
    rope.ROTATE.check(solution)
    assert Results(path).of("exercise")["rope.ROTATE"].tries == 3


def test_the_first_answer_to_a_claim_and_to_a_case_is_recorded(path):
    claims = ClaimRound(seed=0)
    first = claims.claim.id
    (claims.true if claims.claim.settled()[0] else claims.false).click()
    claims.true.click()
    claims.next.click()
    second = claims.claim.id
    (claims.false if claims.claim.settled()[0] else claims.true).click()
    found = Results(path).of("claim")
    assert {name: (result.right, result.tries) for name, result in found.items()} == {first: (1, 1), second: (0, 1)}
    drills = DrillSheet(seed=4)
    drills.answer.value = drills.case.shown
    drills.new.click()
    drills.answer.value = "123, 456"
    drills.answer.value = drills.case.shown
    (result,) = Results(path).of("drill").values()
    assert (result.right, result.tries, result.seeds) == (1, 2, (4,))


def test_sessions_add_up(path):
    one, other = Results(path, now=Clock()), Results(path, now=Clock())
    for session, right in ((one, False), (other, True), (one, True)):
        session.record("claim", "ln-biased", right=right)
    found = Results(path).of("claim")["ln-biased"]
    assert (found.right, found.tries) == (2, 3)
    assert found.passed == START + timedelta(minutes=1)


def test_what_was_held_is_added_to_what_others_wrote(path):
    one = Results(path)
    path.mkdir(parents=True)
    one.record("drill", "rotate", right=True, seed=1)
    assert str(path) in one.problem
    path.rmdir()
    Results(path).record("drill", "rotate", right=True, seed=2)
    one.record("drill", "rotate", right=False, seed=3)
    found = Results(path).of("drill")["rotate"]
    assert (one.problem, found.right, found.tries, sorted(found.seeds)) == ("", 2, 3, [1, 2])


@pytest.mark.parametrize(
    "plain",
    [
        {"tries": 1, "right": 2, "last": START.isoformat(), "passed": START.isoformat()},
        {"tries": 0, "right": 0, "last": START.isoformat()},
        {"tries": 1, "right": 1, "last": START.isoformat()},
        {"tries": 1, "right": 0, "last": "2026-01-01T00:00:00"},
        {"tries": "x", "right": 0, "last": START.isoformat()},
        3,
    ],
)
def test_a_damaged_file_is_moved_aside_and_kept(path, plain):
    path.parent.mkdir()
    content = json.dumps({"version": 1, "results": {"claim a": plain}})
    path.write_text(content)
    kept = Results(path)
    assert str(path) in kept.problem
    kept.record("claim", "b", right=True)
    assert path.with_name(f"{path.name}.unreadable-1").read_text() == content
    assert list(Results(path).of("claim")) == ["b"]


def test_unknown_kinds_are_refused(kept, path):
    with pytest.raises(ValueError, match="kind: got 'question', want one of 'exercise', 'claim', 'drill'"):
        kept.record("question", "x", right=True)
    with pytest.raises(ValueError, match="seed: got -1"):
        kept.record("drill", "rotate", right=True, seed=-1)
    assert not path.exists()


# ---------------------------------------------------------------- the exported file


@pytest.fixture
def filled(kept):
    kept.record("exercise", "rope.ROTATE", right=True)
    kept.record("claim", "ln-biased", right=False)
    kept.record("claim", "shift-both", right=True)
    kept.record("drill", "rotate", right=True, seed=4)
    return kept


def test_an_export_is_the_stated_format_and_is_read_again(filled, tmp_path):
    file = tmp_path / "anna.json"
    said = filled.export(file, "Anna Ångström")
    assert said.startswith(f"Written to {file}: 1 exercises, 2 claims, 1 drills.")
    content = json.loads(file.read_text("utf-8"))
    assert list(content) == ["format", "version", "name", "made", "exercises", "claims", "drills"]
    assert (content["format"], content["version"], content["name"]) == (results.FORMAT, 1, "Anna Ångström")
    assert content["drills"]["rotate"]["seeds"] == [4]
    assert content["claims"]["ln-biased"].keys() == {"tries", "right", "last"}
    export = results.read(file)
    assert (export.name, export.exercises) == ("Anna Ångström", filled.of("exercise"))
    assert (export.claims, export.drills) == (filled.of("claim"), filled.of("drill"))
    filled.export(file)  # an earlier export may be replaced
    assert results.read(file).name == ""


def test_the_example_in_the_docs_is_an_export(tmp_path):
    text = (PROJECT / "docs" / "teaching" / "results.md").read_text("utf-8")
    file = tmp_path / "example.json"
    file.write_text(text.split("```json\n")[1].split("```")[0], "utf-8")
    example = results.read(file)
    assert set(example.exercises) <= set(EXERCISES)
    assert set(example.drills) <= {drill.name for drill in DRILLS}
    assert all((example.name, example.exercises, example.claims, example.drills))


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"version": 1, "results": {}}', b"\\documentclass"])
def test_another_file_is_never_overwritten(filled, tmp_path, content):
    file = tmp_path / "thesis.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"path: got .*, want a new file, or an earlier export"):
        filled.export(file)
    assert file.read_bytes() == content
    with pytest.raises(ValueError, match=r"path: got .*, want a new file"):
        filled.export(tmp_path)
    with pytest.raises(ValueError, match="want a file in a folder that is there"):
        filled.export(tmp_path / "no" / "folder.json")


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"format": "other"},
        {"made": "yesterday"},
        {"claims": {"a": {"tries": 1, "right": 2}}},
        {"claims": 3},
        {"drills": {"rotate": {"tries": 1, "right": 1, "last": START.isoformat(), "seeds": ["x"]}}},
    ],
)
def test_a_file_that_no_export_writes_is_refused_by_name(filled, tmp_path, change):
    file = tmp_path / "anna.json"
    filled.export(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ValueError, match=r"anna\.json.*got|got.*anna\.json"):
        results.read(file)


def test_a_teacher_reads_a_class(filled, path, tmp_path, capsys):
    path.parent.mkdir(exist_ok=True)
    filled.export(tmp_path / "a.json", "Anna")
    Results(tmp_path / "none.json").export(tmp_path / "b.json", "Ben")
    results.main(["read", str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Anna: 1 exercises passed, 1 of 2 claims and 1 of 1 drills right"
    assert lines[1] == "Ben: 0 exercises passed, 0 of 0 claims and 0 of 0 drills right"
    assert "  1 / 2  exercises  rope.ROTATE" in lines
    assert "  0 / 2  claims     ln-biased" in lines
    with pytest.raises(SystemExit, match="want an exported file"):
        results.main(["read", str(tmp_path / "absent.json")])


def test_the_command_exports_the_users_own_results(filled, path, tmp_path):
    command = [sys.executable, "-m", "transformer_parts.learn.results", "export", "anna.json", "--name", "Anna"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert "Nothing was sent anywhere." in done.stdout
    assert results.read(tmp_path / "anna.json").exercises == filled.of("exercise")
