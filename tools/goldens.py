"""Write tests/goldens/: what explorers, exercises, drills and the question bank show.  Run by `make goldens`.

Each file has a group for each explorer, exercise, drill or entry of the bank, and a line for each text or list of
numbers.  What changes is printed and is to be read before it is committed.
"""

import dataclasses
import hashlib
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import nbformat
import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.text import Text
from matplotlib.transforms import Affine2D
from numpy.typing import ArrayLike, NDArray

from transformer_parts import learn
from transformer_parts.draw.settings import drawing
from transformer_parts.draw.view import View
from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.controls import range_of
from transformer_parts.explore.panel import Panel
from transformer_parts.learn.drills import DRILLS, Drill
from transformer_parts.learn.exercise import Exercise
from transformer_parts.learn.interview import Claim, Question
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.models import notes

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "tests/goldens"
#: A text of more letters is kept by its beginning and a digest.
LONGEST = 30

Group = dict[str, str | list]


def kept(text: str, longest: int = LONGEST) -> str:
    """Return a text as the files have it."""
    text = str(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return text if len(text) <= longest else f"{text[: longest - 10]}… {digest[:8]}"


def mean(values: ArrayLike) -> float:
    """Return a weighted mean of numbers, by which a change of one of them or of their order shows itself."""
    values = np.nan_to_num(np.array(values, float), nan=-1.5, posinf=1e9, neginf=-1e9)
    weights = 1 + 0.5 * np.sin(1 + np.arange(len(values)) ** 1.5)
    found = float(weights @ values / max(len(values), 1))
    return 0 if abs(found) < 1e-14 else float(f"{found:.9e}")


# ---------------------------------------------------------------- explorers


class NoPicture:
    """A view that draws nothing: tables come from the data."""

    size = (1, 1)
    shows: Mapping[str, tuple] = MappingProxyType({})

    def frame(self, data: object) -> bytes:
        return b""


class Listener(RendererBase):
    """A renderer that notes what it is told to draw, and makes no pixels."""

    def __init__(self):
        super().__init__()
        self.numbers: list[ArrayLike] = []
        self.words: list[str] = []

    def _colours(self, gc, face) -> None:
        colours = [100 * part for part in (*gc.get_rgb(), *([-1] if face is None else face), gc.get_alpha() or 0)]
        self.numbers.append([*colours, gc.get_linewidth()])

    def draw_path(self, gc, path, transform, rgbFace=None) -> None:
        self.numbers.append(transform.transform(path.vertices).ravel())
        self._colours(gc, rgbFace)

    def _iter_collection_raw_paths(self, *arguments):
        # Moved to their places afterwards, which an identity cannot be.
        for path, transform in super()._iter_collection_raw_paths(*arguments):
            yield path, Affine2D(transform.get_matrix())

    def draw_image(self, gc, x, y, im, transform=None) -> None:
        self.numbers += [[x, y], np.ravel(im)]

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None) -> None:
        self.words.append(s)
        self.numbers.append([x, y, angle])
        self._colours(gc, None)


@drawing
def picture(view: View, data: object) -> list:
    """Return the texts of a picture and a number for each moving artist and for the limits of all axes."""
    view.update(data)
    found, words = [], []
    for artist in view.moving_artists:
        listener = Listener()
        artist.draw(listener)
        found.append(float(f"{mean(np.concatenate([[], *listener.numbers])):.6g}"))
        words += listener.words
    limits = [value for axes in view.fig.axes for value in (*axes.get_xlim(), *axes.get_ylim())]
    still = [text.get_text() for text in view.fig.findobj(Text) if not text.get_animated()]
    return [
        kept(" ".join(words)),
        hashlib.sha256(" ".join(still).encode()).hexdigest()[:8],
        float(f"{mean(limits):.6g}"),
        *found,
    ]


def numbers_in(data: object) -> NDArray:
    """Return all numbers of a panel's data, in order."""
    if dataclasses.is_dataclass(data):
        data = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, tuple | list):
        return np.concatenate([[], *map(numbers_in, data)])
    if isinstance(data, str) or (array := np.asarray(data)).dtype.kind not in "biufcV":
        return np.empty(0)
    return (array.view(float) if array.dtype.kind == "c" else array.astype(float)).ravel()


def parts(data: object) -> list[float]:
    """Return a number for each part of a panel's data."""
    if dataclasses.is_dataclass(data):
        data = [getattr(data, field.name) for field in dataclasses.fields(data)]
    return [mean(numbers_in(part)) for part in (data if isinstance(data, tuple | list) else [data])]


def states(kind: type[Panel]) -> Iterator[tuple[str, Mapping, Panel]]:
    """Yield the beginning of an explorer and its presets, each with the panel brought there."""
    panel = type(kind.__name__, (kind,), {"make_view": lambda self: NoPicture()})()
    yield "start", panel.state, panel
    for label, values in panel.presets.items():
        panel.reset()
        panel.set(**values)
        yield str(label), values, panel


def table(kind: type[Panel]) -> Group:
    """Return an explorer's controls and presets, and for each row of its table the values in all states."""
    found, rows, names, order = {}, {}, [], []
    for state, values, panel in states(kind):
        if state == "start":
            for name, control in panel.controls.items():
                if type(control).__name__ == "SelectionSlider":
                    offered = f"{control.options[0][0]}, {control.options[-1][0]}"
                else:
                    offered = range_of(control)
                found[f"control {name}"] = kept(f"{control.description} [{offered}]")
            if panel.play is not None:
                label = panel.controls[panel.play].description
                found["play"] = f"{panel.play}: {label}, {panel.play_interval} ms"
        names.append(state)
        found[state] = [", ".join(f"{name} {value}" for name, value in values.items()), *parts(panel.shown)]
        labels = [str(row.label) for row in panel.rows(panel.shown)]
        order += ["", *labels]
        for place, row in enumerate(panel.rows(panel.shown)):
            label = f"row: {row.label}" + " again" * labels[:place].count(row.label)
            rows.setdefault(label, {})[state] = kept(row.value)
    found["order of rows"] = hashlib.sha256("\n".join(order).encode()).hexdigest()[:8]
    for label, values in rows.items():
        every = [values.get(state) for state in names]
        found[label] = every[0] if len(set(every)) == 1 else every
    return found


def pictures(kind: type[Panel]) -> Group:
    """Return what an explorer draws at the beginning and after its presets."""
    view = None
    found = {}
    for state, _values, panel in states(kind):
        view = view or kind.make_view(panel)
        found[state] = picture(view, panel.shown)
    return found


# ---------------------------------------------------------------- exercises, drills, the bank


def exercise(of: Exercise) -> Group:
    """Return an exercise's words, and what its solution and its mistakes give on one case."""
    case = of.inputs(np.random.default_rng(1))

    def gives(function) -> float:
        return mean(numbers_in(np.asarray(function(*case))))

    found = {"task": kept(of.task), "tolerance": [of.tolerance], "inputs": [mean(numbers_in(case))]}
    found |= {f"hint {step}": kept(hint) for step, hint in enumerate(of.hints, 1)}
    found["solution"] = [gives(of.solution)]
    for mistake in of.mistakes:
        found[f"mistake: {mistake.name}"] = [kept(mistake.message), gives(mistake.function)]
    return found


def drill(of: Drill) -> Group:
    """Return a drill's words, and two cases with their workings."""
    found = {"title": f"{of.title}; {of.notebook}; {of.kind}"}
    cases = [of.case(seed) for seed in range(2)]
    for seed, case in enumerate(cases):
        found |= {f"case {seed}": kept(case.task), f"case {seed}, working": case.working}
    for place, slip in enumerate(of.slips):
        found[f"slip: {slip.name}"] = [kept(slip.message), *(str(case.slipped_shown[place]) for case in cases)]
    return found


def entry(of: Question | Claim) -> Group:
    """Return where an entry of the bank leads, and those of its sentences that hold a number, the numbers filled in."""
    found = {"links": f"{of.topic}; {of.notebook}; {of.evidence}"}
    if isinstance(of, Claim):
        holds, shown = of.settled()
        texts = {"statement": of.statement, "shown": f"{holds}. {shown}"}
    else:
        filled = of.filled()
        found["links"] += f"; {of.level}; {'asked by everybody' if of.everybody_asks else ''}"
        texts = {name: getattr(filled, name) for name in ("question", "short", "whiteboard", "wrong", "refuted")}
        for place, item in enumerate(filled.follow_ups, 1):
            texts |= {f"follow-up {place}": item.question, f"answer {place}": item.answer}
    every = "\n".join(map(str, (*texts.values(), *getattr(of, "sources", ()))))
    found["words and sources"] = hashlib.sha256(every.encode()).hexdigest()[:8]
    for name, text in texts.items():
        sentences = re.split(r"(?<=[.?!:;])\s+", str(text))
        numbers = " ".join(sentence for sentence in sentences if re.search(r"\d", sentence))
        if numbers:
            found[name] = kept(numbers, 100)
    return found


def prose(path: Path) -> Group:
    """Return the numbers in each cell of a notebook's prose."""
    cells = nbformat.read(path, 4).cells
    numbers = {cell.id: re.findall(r"\d[\d.,]*", cell.source) for cell in cells if cell.cell_type == "markdown"}
    return {name: kept(" ".join(found)) for name, found in numbers.items() if found}


def data(of: Path) -> Group:
    """Return the digest of a recording or of an excerpt's notes."""
    return {"entries": notes.digest(json.loads(of.read_text("utf-8")))[:16]}


# ---------------------------------------------------------------- files


def exercises() -> dict[str, Exercise]:
    """Return every exercise by its module and name."""
    modules = [
        importlib.import_module(info.name) for info in pkgutil.walk_packages(learn.__path__, f"{learn.__name__}.")
    ]
    return {
        f"{module.__name__.removeprefix(f'{learn.__name__}.')}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Exercise)
    }


def things(file: str) -> dict[str, object]:
    """Return what a file has groups for, by the groups' names."""
    if file in ("tables", "pictures"):
        return {kind.__name__: kind for kind in PANELS}
    if file == "exercises":
        return exercises()
    if file == "drills":
        return {of.name: of for of in DRILLS}
    if file == "prose":
        return {path.stem: path for path in sorted((PROJECT / "notebooks/en").glob("*.ipynb"))}
    if file == "data":
        found = sorted((PROJECT / "lib/transformer_parts").glob("*/data/*.json"))
        return {f"{path.parent.parent.name}/{path.stem}": path for path in found}
    bank = load_bank()
    return {of.id: of for of in (*bank.questions, *bank.claims)}


#: File → what makes a group of it.
FILES = {
    "tables": table,
    "pictures": pictures,
    "exercises": exercise,
    "drills": drill,
    "bank": entry,
    "prose": prose,
    "data": data,
}


def written(groups: Mapping[str, Group]) -> str:
    """Return groups as a file has them, an entry a line."""
    lines = []
    for name, group in groups.items():
        entries = (
            f" {json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False, separators=(',', ':'))}"
            for k, v in group.items()
        )
        lines.append(f"{json.dumps(name, ensure_ascii=False)}: {{\n" + ",\n".join(entries) + "}")
    return "{\n" + ",\n".join(lines) + "}\n"


def committed(file: str) -> dict[str, Group]:
    """Return the groups of a file."""
    path = FOLDER / f"{file}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def differences(now: Group, before: Group, same=lambda one, other: one == other) -> list[str]:
    """Return which entries of a group differ, one a line."""
    missing = object()
    return [
        f"{name}:\n    before {before.get(name, 'nothing')}\n    now    {now.get(name, 'nothing')}"
        for name in {**before, **now}
        if not same(now.get(name, missing), before.get(name, missing))
    ]


def main() -> None:
    """Write the files and print what has changed."""
    FOLDER.mkdir(exist_ok=True)
    for file, make in FILES.items():
        before, now = committed(file), {name: make(of) for name, of in things(file).items()}
        for name in {**before, **now}:
            for line in differences(now.get(name, {}), before.get(name, {})):
                print(f"{file}.json, {name}, {line}")
        (FOLDER / f"{file}.json").write_text(written(now), "utf-8")


if __name__ == "__main__":
    main()
