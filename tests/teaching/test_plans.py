"""The plans of lessons: what they name is there, and their numbers are those of their notebooks."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import notebooks
import pytest
from exercises import EXERCISES

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.panel import Panel
from transformer_parts.learn.drills import DRILLS
from transformer_parts.learn.interview_files import load_bank

PROJECT = Path(__file__).parents[2]
PLANS = sorted((PROJECT / "docs" / "teaching" / "plans").glob("*.md"))
PATHS = {path.stem: path for path in notebooks.notebooks() if not path.stem.startswith("00")}
CLAIMS = {claim.id: claim for claim in load_bank().claims}
HEADINGS = ["45 minutes", "90 minutes", "Questions for the room", "Exit quiz", "Homework", "Collect"]
#: Numbers up to this are counts and turns of phrase; what a plan says of a notebook has more digits.
SMALL = 12
NUMBER = r"(?<![\w.,])[-−]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"


def parts(text: str) -> dict[str, str]:
    """Return the sections of a plan by heading, and what stands above them as ""."""
    pieces = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.strip().splitlines()[2:]]


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, written alike: no separators, a plain minus."""
    return {found.replace(",", "").replace("−", "-").rstrip(".") for found in re.findall(NUMBER, text)}


@cache
def prose(stem: str) -> str:
    return "\n".join(c.source for c in nbformat.read(PATHS[stem], as_version=4).cells if c.cell_type == "markdown")


@cache
def code(stem: str) -> str:
    return "\n".join(c.source for c in nbformat.read(PATHS[stem], as_version=4).cells if c.cell_type == "code")


@cache
def told(stem: str) -> set[str]:
    """Return the numbers of a notebook: its prose, code and outputs, and the names of its presets."""
    node = nbformat.read(PATHS[stem], as_version=4)
    pieces = [cell.source for cell in node.cells]
    for cell in node.cells:
        pieces += [str(output.get("text") or output.get("data")) for output in cell.get("outputs", [])]
    text = re.sub(r"(?<=\d)(\{,\}|_)(?=\d)", "", "\n".join([*pieces, *presets(stem)]))
    found = numbers(re.sub(r"[{}\\$]", " ", text))
    return found | {number.lstrip("-") for number in found}


@cache
def panels(stem: str) -> tuple[Panel, ...]:
    kinds = [found.kind for cell in nbformat.read(PATHS[stem], as_version=4).cells if (found := notebooks.shown(cell))]
    return tuple(kind() for kind in kinds if kind in PANELS)


def presets(stem: str) -> tuple[str, ...]:
    return tuple(str(label) for panel in panels(stem) for label in panel.presets)


def controls(stem: str) -> tuple[str, ...]:
    return tuple(control.description for panel in panels(stem) for control in panel.controls.values())


def complaints(stem: str, text: str) -> Iterator[str]:
    """Yield what is wrong with the plan of a notebook."""
    of, title = parts(text), re.match("# (.+)", prose(stem))[1]
    if not title.startswith(re.match("# (.+)", text)[1]):
        yield f"the title is not that of the notebook, {title!r}"
    if list(of)[1:] != HEADINGS:
        yield f"headings {list(of)[1:]}, want {HEADINGS}"
        return
    for minutes in (45, 90):
        at = 0
        for span, section, _what in rows(of[f"{minutes} minutes"]):
            begin, end = map(int, span.split("–"))
            if begin != at or end <= begin:
                yield f"{minutes} minutes: {span} does not follow {at}"
            at = end
            if f"## {section}\n" not in prose(stem):
                yield f"{minutes} minutes: the notebook has no section {section!r}"
        if at != minutes:
            yield f"{minutes} minutes: ends at {at}"
    questions = [line for line in of["Questions for the room"].splitlines() if line]
    if len(questions) != 3 or not all(re.fullmatch(r"\d\. \*\*.+\*\* Expect: .+ Settle: .+", q) for q in questions):
        yield "want three questions with what to expect and what settles it"
    quiz = re.findall(r"`([\w-]+)`", of["Exit quiz"])
    yield from (f"no claim {claim}" for claim in quiz if claim not in CLAIMS)
    own = {claim.id for claim in CLAIMS.values() if claim.notebook == stem}
    if not quiz or (own and not own & set(quiz)):
        yield "no claim of the notebook in the exit quiz"
    yield from homework(stem, of["Homework"])
    shown = {name.casefold() for name in (*presets(stem), *controls(stem))}
    for minutes in (45, 90):
        for name in re.findall(r"\*+([^*]+)\*+", of[f"{minutes} minutes"]):
            if name.casefold() not in shown:
                yield f"{minutes} minutes: no preset or control {name!r}"
    said = "\n".join(" ".join(cells[1:]) for m in (45, 90) for cells in rows(of[f"{m} minutes"]))
    said += of["Questions for the room"].replace("\n1. ", "").replace("\n2. ", "").replace("\n3. ", "") + of[""]
    for number in sorted(numbers(re.sub(r"`[^`]+`|\([^)]*ipynb\)|^# .*", " ", said)) - told(stem)):
        if "." in number or "e" in number or abs(int(number)) > SMALL:
            yield f"the notebook nowhere has the number {number}"


def homework(stem: str, text: str) -> Iterator[str]:
    exercises = re.search(r"Exercises: (.+)\.", text)
    named = re.findall(r"`(\w+)`", exercises[1]) if exercises else []
    checked = re.findall(r"\b\w+\.([A-Z_]+)\.check\(", code(stem))
    yield from (f"no exercise {name} in the notebook" for name in named if name not in checked)
    yield from (f"no exercise {name}" for name in named if name not in {key.split(".")[1] for key in EXERCISES})
    if checked and not named:
        yield "the notebook has exercises and the homework has none"
    drills = {drill.name: drill for drill in DRILLS}
    for name, seeds in re.findall(r"`(\w+)` seeds? ([\d, ]+)", text):
        if name not in drills:
            yield f"no drill {name}"
        else:
            for seed in seeds.split(","):
                drills[name].case(int(seed))
    own = {drill.name for drill in DRILLS if drill.notebook == stem}
    yield from (f"the notebook's drill {name} is no homework" for name in own if f"`{name}`" not in text)


def test_every_notebook_has_a_plan():
    assert [plan.stem for plan in PLANS] == list(PATHS)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_a_plan_names_what_is_there_and_its_numbers_are_the_notebooks(plan):
    found = list(complaints(plan.stem, plan.read_text("utf-8")))
    assert not found, "\n".join(["", *found])


ROPE = (PROJECT / "docs" / "teaching" / "plans" / "04_rope.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# 04 · RoPE", "# 05 · RoPE"),
        ("| 0–5 |", "| 0–6 |"),
        ("| Why |", "| Because |"),
        ("## Collect", "## Gather"),
        ("`shift-both`", "`shift-none`"),
        ("`ROTATE`", "`ROTATES`"),
        ("`rotate` seeds", "`rotates` seeds"),
        ("*By hand: m=1, n=2*", "*By hand: m=1, n=3*"),
        ("2.1213", "2.1214"),
        ("656", "657"),
        ("Expect: ", "Say: "),
    ],
)
def test_a_plan_that_names_what_is_not_there_is_refused(old, new):
    assert old in ROPE
    assert list(complaints("04_rope", ROPE.replace(old, new)))
