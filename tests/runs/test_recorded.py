"""A recording comes back as it was written, says how to make it again, and is refused where it is damaged."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from transformer_parts.models.notes import sealed
from transformer_parts.runs import recorded

ARGUMENTS = {"seeds": [3, 5], "learning_rate": 1e-3, "kinds": ["a", "b"], "clip": None, "quick": False}
SERIES = {
    "plain": {"loss": [4.1588831, 3.25, 0.1], "norm": np.array([[1.0, np.inf], [np.nan, -np.inf]])},
    "last": 0.25,
    "worst": np.float64("inf"),
    "names": ["first", "second"],
    "ragged": [[1.5, 2.0], [3.0]],
}


@pytest.fixture
def path(tmp_path) -> Path:
    return recorded.save("made", arguments=ARGUMENTS, series=SERIES, cpu_seconds=1.25, folder=tmp_path)


def test_it_comes_back(path):
    found = recorded.load("made", path.parent)
    assert found.name == "made"
    assert found.command == "python -m transformer_parts.runs.made"
    assert dict(found.arguments) == ARGUMENTS | {"seeds": (3, 5), "kinds": ("a", "b")}
    assert_array_equal(found.series["plain"]["loss"], [4.15888, 3.25, 0.1])
    assert_array_equal(found.series["plain"]["norm"], [[1, np.inf], [np.nan, -np.inf]])
    assert (found.series["last"], found.series["names"]) == (0.25, ("first", "second"))
    assert found.series["worst"] == np.inf
    assert [row.tolist() for row in found.series["ragged"]] == [[1.5, 2.0], [3.0]]
    assert set(found.provenance) == {"date", "machine", "python", "numpy", "cpu_seconds"}
    assert found.provenance["numpy"] == np.__version__


def test_what_was_read_cannot_be_changed(path):
    found = recorded.load("made", path.parent)
    with pytest.raises(ValueError, match="read-only"):
        found.series["plain"]["loss"][0] = 1
    with pytest.raises(TypeError):
        found.series["plain"]["loss"] = 1
    with pytest.raises(TypeError):
        found.arguments["clip"] = 1


def test_the_file_is_small_strict_json_with_one_series_a_line(path):
    text = path.read_text("utf-8")
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert '   "loss": [4.15888,3.25,0.1],' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("number", [0.0, -0.0, 1 / 3, 123456.0, 1234567.0, 1e-30, -2.5e17, 7])
def test_six_digits_are_kept(tmp_path, number):
    recorded.save("made", arguments={}, series={"x": [number]}, cpu_seconds=0, folder=tmp_path)
    (read,) = recorded.load("made", tmp_path).series["x"]
    assert read == pytest.approx(number, rel=5e-6, abs=0)


@pytest.mark.parametrize(
    ("series", "named"),
    [
        ({"a": {1: [2.0]}}, "series['a']"),
        ({"a": object()}, "series['a']"),
        ({"a": [1.0, object()]}, "series['a'][1]"),
        ({"a": 1j}, "series['a']"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(tmp_path, series, named):
    with pytest.raises(ValueError, match=f"^{re.escape(named)}: got "):
        recorded.save("made", arguments={}, series=series, cpu_seconds=0, folder=tmp_path)
    assert not list(tmp_path.iterdir())


HUGE = f'{{"name": 1, "command": "", "arguments": {{}}, "series": {{"x": [1{"0" * 400}]}}, "provenance": {{}}}}'


@pytest.mark.parametrize(
    "text", ["", "[]", '{"name": "made"}', '{"name": 1, "series": {}', "[" * 100_000, HUGE, sealed(HUGE)]
)
def test_a_damaged_file_is_refused_with_the_command_that_writes_it(tmp_path, text):
    (tmp_path / "made.json").write_text(text)
    with pytest.raises(ValueError, match=re.escape("python -m transformer_parts.runs.made")):
        recorded.load("made", tmp_path)


@pytest.mark.parametrize(("was", "now"), [("4.15888", "4.15889"), ("0.25", "0.52"), ('"a"', '"c"'), ("3.25", "NaN")])
def test_an_edited_number_or_argument_is_refused(path, was, now):
    text = path.read_text("utf-8")
    assert text.count(was) == 1
    path.write_text(text.replace(was, now), "utf-8")
    with pytest.raises(ValueError, match=r"got a damaged file \(SHA-256"):
        recorded.load("made", path.parent)


def test_another_layout_of_the_same_numbers_is_no_damage(path):
    entries = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(dict(reversed(entries.items()))), "utf-8")
    assert recorded.load("made", path.parent).series["last"] == 0.25


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"made\.json"):
        recorded.load("made", tmp_path)


def test_command_line_measures_and_writes(tmp_path):
    code = (
        "from transformer_parts.runs import recorded\n"
        "recorded.main('made', lambda: ({'seed': 1}, {'x': [1, 2]}), 'Measure nothing.')"
    )
    command = [sys.executable, "-c", code, "--folder", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert_array_equal(recorded.load("made", tmp_path).series["x"], [1, 2])
    assert recorded.load("made", tmp_path).provenance["cpu_seconds"] < 30


def test_every_committed_file_is_that_of_a_module_of_its_name_and_small():
    room = Path(recorded.__file__).parent
    for file in (room / "data").glob("*"):
        assert file.suffix == ".json"
        assert (room / file.name).with_suffix(".py").exists()
        assert file.stat().st_size < 150_000
        assert recorded.load(file.stem).command == recorded.command(file.stem)
