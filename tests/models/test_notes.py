"""A file of our own is read as it was written, and refused once anything in it has changed."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from transformer_parts.models import notes

ENTRIES = {"seed": 3, "texts": ["a", "θ"], "deep": {"x": [1.5, -2e-7, None, True]}}
DATA = [
    file
    for room in ("models", "runs")
    for file in sorted(Path(str(files("transformer_parts") / room / "data")).glob("*.json"))
]


def test_it_comes_back(tmp_path):
    file = tmp_path / "made.json"
    file.write_text(notes.sealed(json.dumps(ENTRIES)), "utf-8")
    read = notes.read(file, "make it")
    assert read.pop("sha256") == notes.digest(ENTRIES)
    assert read == ENTRIES


def test_a_second_seal_takes_the_place_of_the_first():
    text = notes.sealed(json.dumps(ENTRIES, indent=1))
    changed = text.replace("-2e-07", "-3e-07")
    assert changed != text
    assert notes.sealed(changed).count("sha256") == 1
    assert notes.sealed(text) == text


@pytest.mark.parametrize("file", DATA, ids=lambda file: file.stem)
def test_a_committed_file_is_refused_once_a_digit_has_changed(file, tmp_path):
    text = file.read_text("utf-8")
    assert notes.read(file, "make it")["sha256"] in text
    copy = tmp_path / file.name
    digits = [place for place, letter in enumerate(text) if letter.isdecimal() and place > 100]
    for place in digits[:: len(digits) // 20]:
        other = "1" if text[place] != "1" else "2"
        copy.write_text(text[:place] + other + text[place + 1 :], "utf-8")
        with pytest.raises(ValueError, match=r"got a damaged file .*`make it`"):
            notes.read(copy, "make it")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"sha256": 3}', "[" * 100_000, '{"a":' * 100_000, '{"a": ' + "1" * 5000 + "}", "\udcff"],
)
def test_damage_of_every_kind_is_refused_in_words(tmp_path, text):
    file = tmp_path / "made.json"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=r"made\.json: got a damaged file .*want one that `make it` wrote"):
        notes.read(file, "make it")
