"""What explorers, exercises, drills and the question bank show is what was read and committed, entry by entry.

`make goldens` writes the files again and prints what changes.
"""

import math
import re
from itertools import starmap

import goldens
import ipywidgets as widgets
import matplotlib
import pytest

from transformer_parts.explore.catalogue import PANELS

LOCK = (goldens.PROJECT / "requirements.lock").read_text("utf-8")
COMMITTED = {file: goldens.committed(file) for file in goldens.FILES}
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
# What is left over by rounding, which differs from processor to processor.
LEFT_OVER = 1e-9
EXACT_OR_NEARLY = re.compile(r"exactly 0|10\^-1\d\.\d")
#: Of a picture's coordinates and colours, in pixels and hundredths.
PIXELS = 2e-3


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


def alike(now: object, before: object, apart: float = LEFT_OVER) -> bool:
    """Tell whether two entries are the same: texts by their words, numbers as numbers."""
    if isinstance(now, int | float) and isinstance(before, int | float):
        return math.isclose(now, before, rel_tol=1e-6, abs_tol=apart)
    if isinstance(now, list) and isinstance(before, list):
        return len(now) == len(before) and all(alike(one, other, apart) for one, other in zip(now, before, strict=True))
    if not isinstance(now, str) or not isinstance(before, str):
        return now == before
    now, before = (EXACT_OR_NEARLY.sub("0.0", text) for text in (now, before))
    numbers = zip(NUMBER.findall(now), NUMBER.findall(before), strict=False)
    return NUMBER.sub("#", now) == NUMBER.sub("#", before) and all(starmap(close, numbers))


@pytest.mark.parametrize("file", goldens.FILES)
def test_every_group_has_its_entries(file):
    assert list(COMMITTED[file]) == list(goldens.things(file))


def test_files_are_small():
    assert sum(path.stat().st_size for path in goldens.FOLDER.iterdir()) < 400_000


def differing(file: str, name: str) -> str:
    """Return the entries of a group that differ, in words."""
    now = goldens.FILES[file](goldens.things(file)[name])
    same = (lambda one, other: alike(one, other, PIXELS)) if file == "pictures" else alike
    return "\n".join(goldens.differences(now, COMMITTED[file].get(name, {}), same))


def check(file: str, name: str) -> None:
    found = differing(file, name)
    assert not found, f"{name} differs from tests/goldens/{file}.json (`make goldens` writes it again):\n{found}"


TEXTS = [(file, name) for file in goldens.FILES if file != "pictures" for name in goldens.things(file)]


@pytest.mark.parametrize(("file", "name"), TEXTS, ids=lambda part: part)
def test_what_is_shown_is_what_was_read(file, name):
    check(file, name)


@pytest.mark.skipif(
    f"\nmatplotlib=={matplotlib.__version__} " not in LOCK,
    reason="pictures are those of requirements.lock's matplotlib",
)
@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", goldens.things("pictures"))
def test_pictures_are_those_that_were_seen(name):
    """At the beginning and after each preset; stills show the beginning only."""
    check("pictures", name)


@pytest.mark.parametrize("kind", PANELS, ids=lambda kind: kind.__name__)
def test_the_play_button_moves_what_the_file_says(begun, kind):
    panel, says = begun(kind), COMMITTED["tables"][kind.__name__].get("play")
    found = {
        (type(link.source[0]).__name__, name)
        for link in getattr(panel, "_links", ())
        for name, control in panel.controls.items()
        if link.target == (control, "value")
    }
    assert found == (set() if says is None else {(widgets.Play.__name__, says.partition(":")[0])})


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ("3.000000 rad", "3.000000 degrees"),
        ("(-2.0, 1.0)", "(-2.0, -1.0)"),
        ("1,024", "1,025"),
        ("2.20e-07", "2.23e-07"),
        ("40.00 %", "60.00 %"),
        (["1"], ["1", "2"]),
        ("n 511", "n 512"),
        ([0.5], [0.500001]),
        ([1.0, None], [1.0, "1"]),
    ],
)
def test_what_differs_is_seen(now, before):
    assert not alike(now, before)
    assert alike(now, now)


def test_what_is_left_over_by_rounding_may_differ():
    assert alike("error 2.2204e-16, 10^-15.7", "error 0.0000, exactly 0")
    assert alike("(2.236068, -5.476787e-16)", "(2.236067, 0.000000)")
    assert alike([1e-12, 1.0], [0, 1.0 + 1e-9])


def test_a_difference_is_named():
    (found,) = goldens.differences({"row: score": ["1", "2"]}, {"row: score": ["1", "3"]}, alike)
    assert found == "row: score:\n    before ['1', '3']\n    now    ['1', '2']"
