"""Every row of every explorer's table, its controls, presets and play button, as they were read and committed.

`make goldens` writes the file again and prints what changes.
"""

import json
import math
import re

import goldens
import ipywidgets as widgets
import pytest

from transformer_parts.explore.catalogue import PANELS

GOLDEN = json.loads(goldens.FILE.read_text("utf-8"))
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
# What is left over by rounding, which differs from processor to processor.
LEFT_OVER = 1e-9
EXACT_OR_NEARLY = re.compile(r"exactly 0|10\^-1\d\.\d")


def close(now: str, before: str) -> bool:
    """Tell whether two numbers are the same to one unit of the last digit shown; whole numbers exactly."""
    a, b = (float(x.replace(",", "")) for x in (now, before))
    if now == before or abs(a) < LEFT_OVER > abs(b):
        return True
    if "." not in before:
        return False
    digits, _, power = before.partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.split(".")[1]))
    return abs(a - b) <= 1.01 * unit + 1e-5 * abs(b)


def alike(now: object, before: object) -> bool:
    """Tell whether two trees of texts and numbers are the same: texts by their words, numbers as numbers."""
    if type(now) is not type(before):
        return isinstance(now, int | float) and isinstance(before, int | float) and math.isclose(now, before)
    if isinstance(now, dict):
        return list(now) == list(before) and all(alike(now[name], before[name]) for name in now)
    if isinstance(now, list):
        return len(now) == len(before) and all(map(alike, now, before))
    if isinstance(now, float):
        return math.isclose(now, before, rel_tol=1e-12)
    if not isinstance(now, str):
        return now == before
    now, before = (EXACT_OR_NEARLY.sub("0.0", text) for text in (now, before))
    return NUMBER.sub("#", now) == NUMBER.sub("#", before) and all(
        map(close, NUMBER.findall(now), NUMBER.findall(before))
    )


def test_every_explorer_has_its_tables():
    assert list(GOLDEN) == [kind.__name__ for kind in PANELS]


@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_words_and_numbers_are_those_that_were_read(kind):
    now, before = goldens.tables(kind), GOLDEN[kind.__name__]
    for part, found in now.items():
        for name, value in found.items():
            assert alike(value, before[part][name]), f"{part}, {name}: `make goldens` shows what has changed"
    assert alike(now, before)


@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_the_play_button_moves_what_the_file_says(begun, kind):
    panel, moves = begun(kind), GOLDEN[kind.__name__]["play"]["control"]
    found = {
        (type(link.source[0]).__name__, name)
        for link in getattr(panel, "_links", ())
        for name, control in panel.controls.items()
        if link.target == (control, "value")
    }
    assert found == (set() if moves is None else {(widgets.Play.__name__, moves)})


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ("turned apart | 3.000000 rad", "turned apart | 3.000000 degrees"),
        ("key turned | (-2.0, 1.0)", "key turned | (-2.0, -1.0)"),
        ("heads | 1,024", "heads | 1,025"),
        ("error | 2.20e-07", "error | 2.23e-07"),
        ("share | 40.00 %", "share | 60.00 %"),
        (["a | 1"], ["a | 1", "b | 2"]),
        ({"n": 511}, {"n": 512}),
        ({"n": 0.5}, {"n": 0.51}),
    ],
)
def test_what_differs_is_seen(now, before):
    assert not alike(now, before)
    assert alike(now, now)


def test_what_is_left_over_by_rounding_may_differ():
    assert alike("error | 2.2204e-16, 10^-15.7", "error | 0.0000, exactly 0")
    assert alike("(2.236068, -5.476787e-16)", "(2.236067, 0.000000)")
