"""The form of the notebooks: skeleton, short plain cells, names bound once, stills above explorers, clean outputs.

Each rule reads one notebook and yields complaints; further down, each is shown notebooks that it must refuse and one
that it must let pass.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
import notebooks
import pytest
from publish.prediction import asked

import transformer_parts
from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.interview import SHEETS
from transformer_parts.explore.prediction import Prediction

PROJECT = Path(__file__).parents[2]
MOST_LINES = 12
MOST_PANELS = 3
MOST_PLAIN_LINES = 6
#: The sections of a notebook, by language, that is by its folder.
HEADINGS = {
    "en": (
        "Question",
        "Picture first",
        "By hand",
        "In code",
        "Why",
        "Predict, then look",
        "Common wrong answers",
        "Your turn",
        "Interview card",
        "Sources",
    ),
}
# What stands in the code of a section, at the least, by its English heading.
CODE_OF_SECTION = (
    ("By hand", r"^assert "),
    ("In code", r"\bshow\("),
    ("Predict, then look", r"."),
    ("Common wrong answers", r"^ *(assert |print\()"),
    ("Your turn", r"\.check\("),
    ("Sources", r"^$"),
)
# The interview page teaches no concept of its own: it has sheets in place of explorers, and sections for them.
INTERVIEW = "17_interview"
INTERVIEW_HEADINGS = {
    "en": (
        "Question",
        "The questions",
        "Drills",
        "Spot the wrong claim",
        "Mock interview",
        "Coding round",
        "In code",
        "Sources",
    ),
}
CODE_OF_INTERVIEW = (
    ("The questions", r"\bQuestionCards\("),
    ("Drills", r"\bDrillSheet\("),
    ("Spot the wrong claim", r"\bClaimRound\("),
    ("Mock interview", r"\bMockSheet\("),
    ("Coding round", r"\bCodingRound\([\s\S]*\.check\("),
    ("In code", r"\bshow\("),
    ("Sources", r"^$"),
)
#: Notebooks that still lack plain code first, tasks that are shown, and predictions to commit to.  Whoever converts one
#: takes it off the list: an entry that is converted fails here.
UNCONVERTED = frozenset(
    """
    01_why_position 02_positions 03_relative_bias 06_rope_layout 08_context_extension 10_norm_placement
    14_decoder_layer 15_stability 16_long_context 18_real_model
    """.split()  # noqa: SIM905
)
EXPLORER_TAGS = ("explorer", "nbval-ignore-output")
# Questions, drills and interviews have no picture, so no still, and are driven by tests of their own.
SHEET_TAGS = ("nbval-ignore-output", "sheet")
# A prediction shows a question; what it computes when the reader has committed is asserted in a cell of answers.
PREDICTION_TAGS = ("nbval-ignore-output", "prediction")
ANSWER_TAGS = (notebooks.ANSWERS,)
# What the reader starts isn't started by a run of the notebook, and isn't driven as the explorers are.
LIVE_TAGS = ("live-run", "nbval-ignore-output")
# A cell that measures prints what no other run repeats; it is run and its output is not compared.
TIMING_TAGS = ("nbval-ignore-output", "timing")
# Cells of "By hand" that assert more than the prose beside them says.
MORE_IS_ASSERTED = frozenset(
    {
        ("02_positions", "hand-parameters-code"),
        ("03_relative_bias", "hand-bucket"),
        ("03_relative_bias", "hand-slopes-code"),
        ("03_relative_bias", "hand-t5-code"),
        ("03_relative_bias", "hand-weights-code"),
        ("06_rope_layout", "hand-right"),
        ("08_context_extension", "hand-llama3-code"),
        ("08_context_extension", "hand-yarn-code"),
        ("10_norm_placement", "hand-post"),
        ("11_activations", "hand"),
        ("11_activations", "hand-slope"),
        ("15_stability", "hand-matrix"),
        ("18_real_model", "hand-count-code"),
    }
)
# Modules that reach out of the notebook; the library's own way to the network is among them.
OUTSIDE = frozenset(
    {"ftplib", "http", "httpx", "huggingface_hub", "importlib", "pip", "requests", "shutil", "socket", "subprocess"}
    | {"urllib", "urllib3", "wget"}
)
OUTSIDE_OF_LIBRARY = ("transformer_parts.models.weights", "transformer_parts.models.make_excerpt")
OUTPUTS = frozenset({"text/plain", "text/html", "text/markdown", "text/latex"})


class Notebook(NamedTuple):
    """A notebook, its text, and where it stands."""

    path: Path
    text: str
    node: nbformat.NotebookNode

    @property
    def is_concept(self) -> bool:
        """Whether it teaches one concept; numbers below 01 lead through the others."""
        return not self.path.stem.startswith("00")

    @property
    def is_interview(self) -> bool:
        """Whether it is the interview page."""
        return self.path.stem == INTERVIEW

    @property
    def headings(self) -> dict[str, str]:
        """The headings it has to have in its language, by the English ones."""
        by_language = INTERVIEW_HEADINGS if self.is_interview else HEADINGS
        return dict(zip(by_language["en"], by_language[self.path.parent.name], strict=True))

    @property
    def code(self) -> list[nbformat.NotebookNode]:
        return [cell for cell in self.node.cells if cell.cell_type == "code"]

    @property
    def prose(self) -> list[nbformat.NotebookNode]:
        return [cell for cell in self.node.cells if cell.cell_type == "markdown"]


def read(path: Path, text: str | None = None) -> Notebook:
    text = text or path.read_text("utf-8")
    return Notebook(path, text, nbformat.reads(text, as_version=4))


NOTEBOOKS = tuple(read(path) for path in notebooks.notebooks())


def tree(cell: nbformat.NotebookNode) -> ast.Module:
    """Return the parsed code of a cell; of one that is not Python, nothing (another rule complains of it)."""
    try:
        return ast.parse(cell.source)
    except SyntaxError:
        return ast.Module([], [])


def sections(notebook: Notebook) -> dict[str, list[nbformat.NotebookNode]]:
    """Return the cells of each section, by the heading of the second level that opens it."""
    found = {}
    cells = []
    for cell in notebook.node.cells:
        heading = re.search(r"^## (.+)$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else None
        if heading:
            cells = found.setdefault(heading.group(1).strip(), [])
        cells.append(cell)
    return found


# ---------------------------------------------------------------- the rules


def skeleton_is_whole_and_in_order(notebook: Notebook) -> Iterator[str]:
    text = "\n".join(cell.source for cell in notebook.prose)
    titles = re.findall(r"^# (.+)$", text, re.MULTILINE)
    if len(titles) != 1:
        yield f"{len(titles)} titles, want one"
    if not notebook.is_concept:
        return
    if titles and not titles[0].startswith(f"{notebook.path.stem[:2]} · "):
        yield f"title {titles[0]!r}, want it to begin with the number of the file"
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    wanted = tuple(notebook.headings.values())
    if tuple(headings) != wanted:
        yield f"headings {', '.join(headings)}; want {', '.join(wanted)}"


def sections_hold_their_code(notebook: Notebook) -> Iterator[str]:
    if not notebook.is_concept:
        return
    written = sections(notebook)
    found = {english: written.get(heading, []) for english, heading in notebook.headings.items()}
    for heading, wanted in CODE_OF_INTERVIEW if notebook.is_interview else CODE_OF_SECTION:
        code = "\n".join(cell.source for cell in found[heading] if cell.cell_type == "code")
        if not re.search(wanted, code, re.MULTILINE):
            yield f"{heading}: no code that matches {wanted}"
    if notebook.is_interview:
        return
    if not any("explorer" in cell.metadata.get("tags", []) for cell in found["Picture first"]):
        yield "Picture first: no explorer"


def prose_comes_first(notebook: Notebook) -> Iterator[str]:
    if not notebook.node.cells or notebook.node.cells[0].cell_type != "markdown":
        yield "the first cell is no prose"
    for before, cell in zip(notebook.node.cells, notebook.node.cells[1:], strict=False):
        if notebooks.WIDGETS & set(cell.metadata.get("tags", [])) and before.cell_type != "markdown":
            yield f"{cell.id}: no prose above the explorer"


def cells_are_short(notebook: Notebook) -> Iterator[str]:
    for cell in notebook.code:
        lines = len(cell.source.splitlines())
        if not 0 < lines <= MOST_LINES:
            yield f"{cell.id}: {lines} lines, want 1 to {MOST_LINES}"


def code_is_plain_python(notebook: Notebook) -> Iterator[str]:
    """No magics, no shell, no stars, nothing silenced, nothing that only one front end knows."""
    for cell in notebook.code:
        try:
            parsed = ast.parse(cell.source)
        except SyntaxError as error:
            yield f"{cell.id}: no plain Python: {error}"
            continue
        if re.search(r";\s*$", cell.source, re.MULTILINE):
            yield f"{cell.id}: a semicolon at the end of a line"
        if re.search(r"#.*(NBVAL|PYTEST_VALIDATE)", cell.source):
            yield f"{cell.id}: a marker in a comment; markers are tags"
        for node in ast.walk(parsed):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                yield f"{cell.id}: import *"
            if isinstance(node, ast.Name) and node.id in ("get_ipython", "exec", "eval", "__import__"):
                yield f"{cell.id}: {node.id}"


def nothing_comes_from_outside(notebook: Notebook) -> Iterator[str]:
    for cell in notebook.code:
        for node in ast.walk(tree(cell)):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for module in modules:
                if module.split(".")[0] in OUTSIDE or module in (*OUTSIDE_OF_LIBRARY, "sys.path"):
                    yield f"{cell.id}: imports {module}"
            if isinstance(node, ast.Attribute):
                name = ast.unparse(node)
                if name in ("sys.path", "os.system", "os.popen") or node.attr in ("from_pretrained", "urlretrieve"):
                    yield f"{cell.id}: {name}"


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bindings(node: ast.AST, how: str = "assignment") -> Iterator[tuple[str, str]]:
    """Yield the names that code binds in the notebook, each with how it does so."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name, how
        case ast.For():
            yield from bindings(node.target, "loop")
            for child in (node.iter, *node.body, *node.orelse):
                yield from bindings(child)
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                yield name, f"import {getattr(node, 'module', '')} {alias.name if alias.asname else name}"
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name, "definition"
        case ast.Lambda():
            pass
        case node if isinstance(node, COMPREHENSIONS):
            # Only a walrus inside a comprehension binds in the notebook.
            yield from ((n.target.id, how) for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
        case _:
            for child in ast.iter_child_nodes(node):
                yield from bindings(child, how)


def names_are_bound_once(notebook: Notebook) -> Iterator[str]:
    """A name means one thing from the cell that binds it to the end, so that cells can be run again in any order.

    Loops may share a variable with other loops, and the same import may stand twice.
    """
    bound: dict[str, set[str]] = {}
    for cell in notebook.code:
        here: dict[str, set[str]] = {}
        for name, how in bindings(tree(cell)):
            here.setdefault(name, set()).add(how)
        for name, how in here.items():
            earlier = bound.setdefault(name, how)
            if earlier is how or name == "_":
                continue
            if not (earlier == how and all(h == "loop" or h.startswith("import") for h in how)):
                yield f"{cell.id}: binds {name} again"


def library_names() -> frozenset[str]:
    """Return the names of all public functions and classes of the library."""
    names = set()
    for path in Path(transformer_parts.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                names.add(node.name)
    return frozenset(names)


def definitions_are_the_readers_own(notebook: Notebook) -> Iterator[str]:
    """The library is shown, never typed again; an exercise's empty function may have the name that is to be written."""
    exported = library_names()
    for cell in notebook.code:
        for node in ast.walk(tree(cell)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name not in exported:
                continue
            empty = all(isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) for line in node.body)
            if not (empty and f".check({node.name})" in cell.source):
                yield f"{cell.id}: defines {node.name}, which the library has"


def section(notebook: Notebook, heading: str) -> list[nbformat.NotebookNode]:
    """Return the cells of a section by its English heading; none of a notebook that teaches no concept."""
    if not notebook.is_concept or notebook.is_interview:
        return []
    return sections(notebook).get(notebook.headings[heading], [])


def plain_code_comes_first(notebook: Notebook) -> Iterator[str]:
    """The first code of "In code" is a short function `plain_…`, asserted to agree with the library."""
    found = [cell for cell in section(notebook, "In code") if cell.cell_type == "code"]
    if not found:
        return
    first = tree(found[0])
    plain = [node for node in first.body if isinstance(node, ast.FunctionDef) and node.name.startswith("plain_")]
    if not plain:
        yield f"{found[0].id}: the section opens with no function plain_…"
        return
    lines = [line for line in ast.unparse(plain[0]).splitlines() if line.strip()]
    if max(len(lines), plain[0].end_lineno - plain[0].lineno + 1) > MOST_PLAIN_LINES:
        yield f"{found[0].id}: {plain[0].name} has more than {MOST_PLAIN_LINES} lines"
    asserted = [ast.unparse(node) for node in ast.walk(first) if isinstance(node, ast.Assert)]
    if not any(re.search(rf"\b{plain[0].name}\(", text) for text in asserted):
        yield f"{found[0].id}: nothing asserts that {plain[0].name} agrees with the library"


def exercises_show_their_task(notebook: Notebook) -> Iterator[str]:
    """The cell right above an exercise's function shows the exercise, that is its task and contract."""
    for above, cell in itertools.pairwise(section(notebook, "Your turn")):
        for exercise in re.findall(r"\b(\w+\.[A-Z_0-9]+)\.check\(", cell.source):
            if above.cell_type != "code" or above.source.strip() != exercise or not above.outputs:
                yield f"{cell.id}: the cell above does not show {exercise}"


def predictions_are_committed_first(notebook: Notebook) -> Iterator[str]:
    """Each question has its answer folded in the prose below and asserted after the last question, and not before."""
    cells = section(notebook, "Predict, then look")
    if not cells:
        return
    questions = asked(nbformat.from_dict({"cells": cells}))
    places = [index for index, cell in enumerate(cells) if cell.id in questions]
    if not places:
        yield "Predict, then look: no Prediction"
    for index in places:
        name, *_, answer = questions[cells[index].id]
        if not answer:
            yield f'{cells[index].id}: no cell of answers has the line assert {name}.answer_text() == "…"'
        below = cells[index + 1] if index + 1 < len(cells) else prose("")
        fold = re.match(r"<details>\s*<summary>.*?</summary>(.*?)</details>", below.source, re.DOTALL)
        if not fold or below.cell_type != "markdown":
            yield f"{cells[index].id}: the answer is not folded in the cell below: <details><summary>…"
        elif answer.partition(" ")[0] not in fold[1].replace("\N{MINUS SIGN}", "-"):
            yield f"{cells[index].id}: the fold below does not say {answer}"
    for cell in cells[: max(places, default=0)]:
        if cell.get("outputs") or notebooks.ANSWERS in cell.metadata.get("tags", []):
            yield f"{cell.id}: shows an answer before the last question"


def panels_of(notebook: Notebook) -> Iterator[tuple[int, nbformat.NotebookNode, type | None]]:
    """Yield index, cell and panel class of the cells that show a panel, and of those tagged as if they did."""
    for index, cell in enumerate(notebook.node.cells):
        found = notebooks.shown(cell)
        tags = set(cell.metadata.get("tags", []))
        if found or (set(EXPLORER_TAGS) & tags and tags != set(TIMING_TAGS)):
            yield index, cell, found and found.kind


def panels_are_shown_where_they_are_made(notebook: Notebook) -> Iterator[str]:
    """No panel is shown otherwise than by `name = Kind()` and `name`, which all that reads notebooks knows."""
    names = set()
    for cell in notebook.code:
        parsed = tree(cell)
        calls = [node for node in ast.walk(parsed) if isinstance(node, ast.Call)]
        made = [call for call in calls if ast.unparse(call.func).split(".")[-1] in notebooks.KINDS]
        names |= {ast.unparse(n.targets[0]) for n in parsed.body if isinstance(n, ast.Assign) and n.value in made}
        last = parsed.body[-1].value if parsed.body and isinstance(parsed.body[-1], ast.Expr) else None
        if notebooks.shown(cell) is None and (last in made or (isinstance(last, ast.Name) and last.id in names)):
            yield f"{cell.id}: shows a panel, and is not `name = Kind()` and `name`"


def explorers_are_tagged(notebook: Notebook) -> Iterator[str]:
    """Only explorers, and cells that measure time, are exempt from the comparison of outputs."""
    explorers = {cell.id: panel for _, cell, panel in panels_of(notebook)}
    for cell in notebook.node.cells:
        tags = cell.metadata.get("tags", [])
        kind = explorers.get(cell.id)
        tags_of_kind = LIVE_TAGS if kind in LIVE_RUNS else SHEET_TAGS if kind in SHEETS else EXPLORER_TAGS
        tags_of_kind = PREDICTION_TAGS if kind is Prediction else tags_of_kind
        wanted = list(tags_of_kind) if cell.id in explorers else []
        if cell.cell_type == "code" and cell.id not in explorers and sorted(tags) == sorted(TIMING_TAGS):
            if not re.search(r"\b(timeit|perf_counter)\(", cell.source):
                yield f"{cell.id}: tagged as timing and measures no time"
            continue
        if tags == list(ANSWER_TAGS) and "answer_text()" in cell.source:
            continue
        if sorted(tags) != sorted(wanted):
            yield f"{cell.id}: tags {tags}, want {wanted}"
        if explorers.get(cell.id, cell) is None:
            yield f"{cell.id}: tagged as explorer and shows none of the catalogue"
    count = sum(panel not in (*LIVE_RUNS, *SHEETS, Prediction) for panel in explorers.values())
    if count > MOST_PANELS:
        yield f"{count} explorers, want at most {MOST_PANELS}"


def explorers_stand_below_their_stills(notebook: Notebook) -> Iterator[str]:
    for index, cell, panel in panels_of(notebook):
        if panel is None or panel in (*SHEETS, Prediction):
            continue
        above = notebook.node.cells[index - 1] if index else None
        found = images(above) if above and above.cell_type == "markdown" else []
        stills = [source for _, source in found if source.endswith(panel.still)]
        if len(stills) != 1:
            yield f"{cell.id}: {len(stills)} times the still {panel.still} in the prose above, want one"
            continue
        if (notebook.path.parent / stills[0]).resolve() != PROJECT / panel.still:
            yield f"{cell.id}: {stills[0]} is not {panel.still}"


def images(cell: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Return words and address of the pictures in a cell of prose."""
    found = re.findall(r"!\[([^\]]*)\]\(([^)\s]+)[^)]*\)", cell.source)
    for tag in re.findall(r"<img\b[^>]*>", cell.source, re.IGNORECASE):
        words, source = (re.search(rf'\b{name}="([^"]*)"', tag) for name in ("alt", "src"))
        found.append((words.group(1) if words else "", source.group(1) if source else ""))
    return found


def pictures_have_words(notebook: Notebook) -> Iterator[str]:
    for cell in notebook.prose:
        yield from (f"{cell.id}: {source} has no words" for words, source in images(cell) if len(words.strip()) < 10)
        if "attachments" in cell:
            yield f"{cell.id}: a picture attached; pictures stand in figures/"


def links_lead_somewhere(notebook: Notebook) -> Iterator[str]:
    for cell in notebook.prose:
        links = [target for _, target in re.findall(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)[^)]*\)", cell.source)]
        links += re.findall(r'<a\b[^>]*\bhref="([^"]*)"', cell.source)
        for target in [*links, *(source for _, source in images(cell))]:
            if re.match(r"[a-z]+:", target):
                if not target.startswith("https://"):
                    yield f"{cell.id}: {target} is no https address"
                continue
            path, _, anchor = target.partition("#")
            if path and not (notebook.path.parent / path).exists():
                yield f"{cell.id}: {target} leads nowhere"
            if anchor and not path:
                headings = re.findall(r"^#+ (.+)$", "\n".join(c.source for c in notebook.prose), re.MULTILINE)
                if anchor not in [heading.strip().replace(" ", "-") for heading in headings]:
                    yield f"{cell.id}: no heading #{anchor}"


def papers_are_those_they_are_called(notebook: Notebook) -> Iterator[str]:
    for cell in notebook.prose:
        for text, address in re.findall(r"\[([^\]]*)\]\(https?://arxiv\.org/(?:abs|pdf)/([^)#]*)\)", cell.source):
            for called in re.findall(r"\b\d{4}\.\d{4,5}\b", text):
                if called != re.sub(r"v\d+$", "", address):
                    yield f"{cell.id}: {text} leads to {address}"


def what_is_asserted_by_hand_is_said(notebook: Notebook) -> Iterator[str]:
    """The numbers that "By hand" checks are those of the prose above or below."""
    section, text = "", ""
    cells = notebook.node.cells
    for before, cell, after in zip([None, *cells[:-1]], cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "markdown":
            headings = re.findall(r"^## (.+)", cell.source, re.MULTILINE)
            section = headings[-1] if headings else section
            text = (text if before is not None and before.cell_type == "markdown" else "") + cell.source
        elif section == notebook.headings.get("By hand") and (notebook.path.stem, cell.id) not in MORE_IS_ASSERTED:
            said = text + (after.source if after is not None and after.cell_type == "markdown" else "")
            if unsaid := asserted_numbers(cell.source) - numbers_said(said):
                yield f"{cell.id}: asserts {sorted(unsaid)}, which the prose beside it does not have"


def numbers_said(text: str) -> set[float]:
    text = re.sub(r"\\[td]?frac\s*(?:(\d)\s*(\d)|\{(\d+)\}\{(\d+)\})", r"\1\3 \2\4", text).replace("{,}", ",")
    return {
        float(re.sub("[,_]", "", found)) for found in re.findall(r"\d+(?:[,_]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?", text)
    }


def asserted_numbers(source: str) -> set[float]:
    """Return the numbers, but 0, that assertions compare something with."""

    def plain(node: ast.AST) -> Iterator[float]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield abs(float(node.value))
        elif isinstance(node, ast.List | ast.Tuple):
            for item in node.elts:
                yield from plain(item)
        elif isinstance(node, ast.UnaryOp):
            yield from plain(node.operand)

    found = set()
    for node in (
        node for check in ast.walk(ast.parse(source)) if isinstance(check, ast.Assert) for node in ast.walk(check)
    ):
        sides = []
        if isinstance(node, ast.Compare) and all(isinstance(operator, ast.Eq) for operator in node.ops):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("isclose", "allclose", "array_equal"):
            sides = node.args[:2]
        found.update(number for side in sides for number in plain(side))
    return found - {0.0}


def outputs_are_text_and_there(notebook: Notebook) -> Iterator[str]:
    for cell in notebook.code:
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        if kinds - OUTPUTS:
            yield f"{cell.id}: stores {', '.join(sorted(kinds - OUTPUTS))}"
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"{cell.id}: stores the error {output.ename}"
            if output.get("name") == "stderr":
                yield f"{cell.id}: stores a message to stderr"
        printed = any(output.get("name") == "stdout" and output.text.strip() for output in cell.outputs)
        calls = [node for node in ast.walk(tree(cell)) if isinstance(node, ast.Call)]
        if any(ast.unparse(call.func) == "print" for call in calls) != printed:
            yield f"{cell.id}: {'nothing calls print, and text is stored' if printed else 'what it prints is missing'}"


def form_is_the_committed_one(notebook: Notebook) -> Iterator[str]:
    try:
        nbformat.validate(notebook.node)
    except nbformat.ValidationError as error:
        yield f"not valid: {error.message}"
        return
    if "widgets" in notebook.node.metadata:
        yield "stores the state of widgets"
    again = nbformat.writes(notebooks.normalise(nbformat.reads(notebook.text, as_version=4), notebook.path.parent.name))
    if again.rstrip("\n") != notebook.text.rstrip("\n"):
        changed = [old for new, old in zip(again.splitlines(), notebook.text.splitlines(), strict=False) if new != old]
        yield f"`python tools/notebooks.py --form` changes it, first at {changed[0].strip() if changed else 'its end'}"


#: Rules that the notebooks of `UNCONVERTED` need not keep.
TEACHING_RULES = (plain_code_comes_first, exercises_show_their_task, predictions_are_committed_first)
RULES = (
    skeleton_is_whole_and_in_order,
    sections_hold_their_code,
    prose_comes_first,
    cells_are_short,
    code_is_plain_python,
    nothing_comes_from_outside,
    names_are_bound_once,
    definitions_are_the_readers_own,
    *TEACHING_RULES,
    panels_are_shown_where_they_are_made,
    explorers_are_tagged,
    explorers_stand_below_their_stills,
    pictures_have_words,
    links_lead_somewhere,
    papers_are_those_they_are_called,
    what_is_asserted_by_hand_is_said,
    outputs_are_text_and_there,
    form_is_the_committed_one,
)


# ---------------------------------------------------------------- the rules hold


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.path.stem)
def test_rule_holds_in_every_notebook(notebook, rule):
    if rule in TEACHING_RULES and notebook.path.stem in UNCONVERTED:
        pytest.skip("not converted yet")
    complaints = list(rule(notebook))
    assert not complaints, "\n".join(["", *complaints])


def test_the_notebooks_are_found():
    assert "00_start_here" in [notebook.path.stem for notebook in NOTEBOOKS]
    assert any(notebook.is_concept for notebook in NOTEBOOKS)


def test_the_list_of_the_unconverted_names_only_such():
    there = {notebook.path.stem: notebook for notebook in NOTEBOOKS}
    assert there.keys() >= UNCONVERTED
    for stem in UNCONVERTED:
        assert any(list(rule(there[stem])) for rule in TEACHING_RULES), f"{stem} is converted: take it off UNCONVERTED"


def test_start_page_leads_to_every_notebook():
    for start in (notebook for notebook in NOTEBOOKS if not notebook.is_concept):
        linked = set(re.findall(r"\]\(([^)]+\.ipynb)\)", start.text))
        assert linked == {n.path.name for n in NOTEBOOKS if n.path.parent == start.path.parent} - {start.path.name}


def test_notebooks_lead_on_in_the_order_of_the_start_page():
    start, *concepts = (notebook for notebook in NOTEBOOKS if notebook.path.parent.name == "en")
    table = next(cell.source for cell in start.prose if "| Notebook |" in cell.source)
    assert re.findall(r"\((\w+\.ipynb)\)", table) == [notebook.path.name for notebook in concepts]
    for notebook, following in itertools.pairwise(concepts):
        name, target = re.search(r"\*\*Next:\*\* \[(.*?)\]\((.*?)\)", notebook.prose[-1].source).groups()
        assert target == following.path.name
        assert following.prose[0].source.startswith(f"# {name}")


def test_notebooks_refer_to_notebooks_that_are_there():
    for notebook in NOTEBOOKS:
        there = {other.path.stem[:2] for other in NOTEBOOKS if other.path.parent == notebook.path.parent}
        told = re.findall(
            r"\bnotebooks? (\d+)(?: (?:and|or|to) (\d+))?", " ".join(cell.source for cell in notebook.prose)
        )
        assert {number for numbers in told for number in numbers if number} <= there, notebook.path.name


def test_every_panel_is_shown_in_the_notebook_of_its_concept():
    """The start page begins with one of them, too."""
    for folder in {notebook.path.parent for notebook in NOTEBOOKS}:
        concepts = [notebook for notebook in NOTEBOOKS if notebook.path.parent == folder and notebook.is_concept]
        shown = [panel for notebook in concepts for _, _, panel in panels_of(notebook) if panel]
        shown = [panel for panel in shown if panel is not Prediction]
        there = (*PANELS, *LIVE_RUNS, *SHEETS)
        assert sorted(panel.__name__ for panel in shown) == sorted(panel.__name__ for panel in there)


def test_the_still_of_the_readme_has_the_words_of_its_explorer():
    readme = (PROJECT / "README.md").read_text("utf-8")
    assert "](figures/" in readme
    assert notebooks.described(readme) == readme


# ---------------------------------------------------------------- the rules can fail


PANEL = PANELS[0]
STILL = f"![{PANEL.alt}](../../{PANEL.still})"


def prose(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text)


def code(text: str, *, tags: tuple[str, ...] = (), printed: str = "") -> nbformat.NotebookNode:
    outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
    metadata = {"tags": list(tags)} if tags else {}
    return nbformat.v4.new_code_cell(text, metadata=metadata, outputs=outputs)


def live_run(*, tags: tuple[str, ...] = LIVE_TAGS) -> nbformat.NotebookNode:
    return code(f"live = {LIVE_RUNS[0].__name__}()\nlive", tags=tags)


def sheet(kind: type = SHEETS[0], *, tags: tuple[str, ...] = SHEET_TAGS) -> nbformat.NotebookNode:
    return code(f"sheet = {kind.__name__}()\nsheet", tags=tags)


def interview(*cells: nbformat.NotebookNode) -> Notebook:
    return made(prose("# 17 · Made"), *cells, name=INTERVIEW)


def output(kind: str, **content) -> nbformat.NotebookNode:
    cell = code("1 + 1")
    cell.outputs = [nbformat.v4.new_output(kind, **content)]
    return cell


def explorer(text: str = "", *, tags: tuple[str, ...] = EXPLORER_TAGS) -> nbformat.NotebookNode:
    return code(text or f"panel = {PANEL.__name__}()\npanel", tags=tags)


def made(*cells: nbformat.NotebookNode, name: str = "04_made", committed: bool = True) -> Notebook:
    numbered = [nbformat.from_dict(cell | {"id": f"c{number}"}) for number, cell in enumerate(cells)]
    node = nbformat.v4.new_notebook(cells=numbered)
    if committed:
        notebooks.normalise(node)
    return read(PROJECT / f"notebooks/en/{name}.ipynb", nbformat.writes(node))


PLAIN = """def plain_sqrt(x):  # (T,)
    return x**0.5


assert plain_sqrt(4) == np.sqrt(4)"""
LONG = PLAIN.replace("    return", 5 * "    # longer\n" + "    return")


def question(fold: str = "<details><summary>Answer</summary>\n\n**2 m**.\n\n</details>") -> list[nbformat.NotebookNode]:
    text = 'length = Prediction(\n    "How long?",\n    answer=lambda: np.sqrt(4),\n    unit="m",\n)\nlength'
    return [code(text, tags=PREDICTION_TAGS), prose(fold)]


def answers(text: str = 'assert length.answer_text() == "2 m"', *, tags: tuple = ANSWER_TAGS) -> nbformat.NotebookNode:
    return code(text, tags=tags)


def task(text: str = "exercises.ROTATE") -> nbformat.NotebookNode:
    cell = code(text)
    cell.outputs = [nbformat.v4.new_output("execute_result", data={"text/plain": "Turn x."}, execution_count=1)]
    return cell


def whole(**changes: list) -> Notebook:
    """Return a small notebook of the right form, with some sections replaced or, with None, dropped."""
    body = {
        "Question": [],
        "Picture first": [prose(STILL), explorer()],
        "By hand": [prose("The root of 4 is 2."), code("import numpy as np\nassert np.sqrt(4) == 2")],
        "In code": [code(PLAIN), code("from transformer_parts.learn.source import show\nshow(np.sqrt)")],
        "Why": [
            code("print(timeit(np.sqrt))", tags=TIMING_TAGS, printed="1\n"),
            prose("Because $2^2=4$; see [the sources](#Sources) and [04](04_rope.ipynb)."),
        ],
        "Predict, then look": [code("panel.reset()"), prose("Why?"), *question(), answers()],
        "Common wrong answers": [code("for root in (2, -2):\n    print(root**2)", printed="4\n4\n")],
        "Your turn": [task(), code("def rotate(x):\n    ...\n\n\nexercises.ROTATE.check(rotate)")],
        "Interview card": [prose("[RoFormer](https://arxiv.org/abs/2104.09864)")],
        "Sources": [],
    } | changes
    cells = [prose("# 04 · Made")]
    for heading, content in body.items():
        if content is not None:
            cells += [prose(f"## {heading}"), *content]
    return made(*cells)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_lets_a_good_notebook_pass(rule):
    assert list(rule(whole())) == []


def test_headings_are_those_of_the_notebooks_language(monkeypatch):
    monkeypatch.setitem(HEADINGS, "de", [f"Zu {heading}" for heading in HEADINGS["en"]])
    english, folder = whole(), PROJECT / "notebooks/de/04_made.ipynb"
    german = read(folder, english.text.replace('"## ', '"## Zu '))
    for rule in (skeleton_is_whole_and_in_order, sections_hold_their_code):
        assert list(rule(german)) == []
        assert list(rule(english._replace(path=folder)))


START = "# 04 · Made"
REFUSED = [
    (skeleton_is_whole_and_in_order, whole(Why=None)),
    (skeleton_is_whole_and_in_order, whole(Extra=[])),
    (skeleton_is_whole_and_in_order, whole(Why=[prose("## Question")])),
    (skeleton_is_whole_and_in_order, whole(Why=[prose("# 04 · Again")])),
    (skeleton_is_whole_and_in_order, made(prose("# 05 · Made"), *whole().node.cells[1:])),
    (skeleton_is_whole_and_in_order, made(prose("No title"), name="00_start")),
    (sections_hold_their_code, whole(**{"By hand": [code("1 + 1")]})),
    (sections_hold_their_code, whole(**{"In code": []})),
    (sections_hold_their_code, whole(**{"Predict, then look": []})),
    (sections_hold_their_code, whole(**{"Common wrong answers": [code("x = 1")]})),
    (sections_hold_their_code, whole(**{"Your turn": [code("1 + 1")]})),
    (sections_hold_their_code, whole(**{"Picture first": [prose(STILL)]})),
    (prose_comes_first, made(code("1 + 1"), prose(START))),
    (prose_comes_first, made(prose(START), code("1 + 1"), explorer())),
    (cells_are_short, made(code("\n".join(["x = 1"] * 13)))),
    (cells_are_short, made(code(""))),
    (code_is_plain_python, made(code("%matplotlib inline"))),
    (code_is_plain_python, made(code("%run other.ipynb"))),
    (code_is_plain_python, made(code("!pip install numpy"))),
    (code_is_plain_python, made(code("np.sqrt?"))),
    (code_is_plain_python, made(code("from numpy import *"))),
    (code_is_plain_python, made(code("get_ipython().run_line_magic('time', 'f()')"))),
    (code_is_plain_python, made(code("x = 1;"))),
    (code_is_plain_python, made(code("# NBVAL_SKIP\nx = 1"))),
    (code_is_plain_python, made(code("exec('x = 1')"))),
    (nothing_comes_from_outside, made(code("import urllib.request"))),
    (nothing_comes_from_outside, made(code("from urllib import request"))),
    (nothing_comes_from_outside, made(code("def f():\n    import requests"))),
    (nothing_comes_from_outside, made(code("from huggingface_hub import hf_hub_download"))),
    (nothing_comes_from_outside, made(code("import subprocess as sp"))),
    (nothing_comes_from_outside, made(code("from transformer_parts.models import weights"))),
    (nothing_comes_from_outside, made(code("from transformer_parts.models.weights import fetch"))),
    (nothing_comes_from_outside, made(code("model = Model.from_pretrained('gpt2')"))),
    (nothing_comes_from_outside, made(code("import sys\nsys.path.append('..')"))),
    (nothing_comes_from_outside, made(code("from sys import path"))),
    (nothing_comes_from_outside, made(code("import os\nos.system('ls')"))),
    *(
        (
            names_are_bound_once,
            made(code("import numpy as np\nx = 1"), code("for i in (1, 2):\n    y = i"), code(again)),
        )
        for again in (
            "x = 2",
            "x += 1",
            "x: int = 2",
            "(a, [x, b]) = 1, (2, 3)",
            "np = 3",
            "import numpy as x",
            "import math as np",
            "def x():\n    ...",
            "class x:\n    ...",
            "for x in (1, 2):\n    print(x)",
            "i = 5",
            "for _ in (1, 2):\n    y = 3",
            "with open('a') as x:\n    ...",
            "[(x := 3) for _ in (1, 2)]",
            "if (x := 3):\n    ...",
            "del x",
        )
    ),
    (definitions_are_the_readers_own, made(code("def rms_norm(x):\n    return x"))),
    (definitions_are_the_readers_own, made(code("class Panel:\n    pass"))),
    (definitions_are_the_readers_own, made(code("def rotate(x):\n    ..."))),
    (definitions_are_the_readers_own, made(code("def rotate(x):\n    return x\n\n\nexercises.check(rotate)"))),
    (explorers_are_tagged, made(explorer(tags=()))),
    (explorers_are_tagged, made(explorer(tags=("explorer",)))),
    (explorers_are_tagged, made(explorer(tags=("nbval-ignore-output",)))),
    (explorers_are_tagged, made(explorer(tags=(*EXPLORER_TAGS, "raises-exception")))),
    (explorers_are_tagged, made(explorer("1 + 1"))),
    (explorers_are_tagged, made(code("1 + 1", tags=("nbval-skip",)))),
    (explorers_are_tagged, made(code("1 + 1", tags=("timing",)))),
    (explorers_are_tagged, made(explorer(tags=TIMING_TAGS))),
    (panels_are_shown_where_they_are_made, made(code(f"p = {PANEL.__name__}()"), code("p"))),
    (panels_are_shown_where_they_are_made, made(code(f"p = {PANEL.__name__}()\np.reset()\np"))),
    *(
        (plain_code_comes_first, whole(**{"In code": cells}))
        for cells in (
            [code("show(np.sqrt)"), code(PLAIN)],
            [code(LONG)],
            [code(PLAIN.replace("plain_sqrt", "my_sqrt"))],
            [code(PLAIN.partition("assert")[0])],
            [code(PLAIN.replace("assert plain_sqrt(4)", "assert 2"))],
        )
    ),
    *(
        (exercises_show_their_task, whole(**{"Your turn": [*cells, code("exercises.ROTATE.check(rotate)")]}))
        for cells in (
            [],
            [task("exercises.SCORE")],
            [code("exercises.ROTATE")],
            [task(), prose("Then")],
        )
    ),
    *(
        (predictions_are_committed_first, whole(**{"Predict, then look": cells}))
        for cells in (
            [code("panel.reset()"), answers()],
            question(),
            [*question(), answers("assert length.answer() == 2")],
            [*question(), answers(tags=())],
            [answers(), *question()],
            [code("print(np.sqrt(4))", printed="2.0\n"), *question(), answers()],
            [*question("2 m, because it is."), answers()],
            [*question("<details><summary>Answer</summary>\n\n3 m.\n\n</details>"), answers()],
            [question()[0], answers()],
        )
    ),
    (explorers_are_tagged, made(code(question()[0].source, tags=EXPLORER_TAGS))),
    (explorers_are_tagged, made(code("1 + 1", tags=PREDICTION_TAGS))),
    (explorers_are_tagged, made(code("1 + 1", tags=ANSWER_TAGS))),
    (panels_are_shown_where_they_are_made, made(explorer(), code("panel"))),
    (
        panels_are_shown_where_they_are_made,
        made(code(f"from transformer_parts.explore import rope\nrope.{PANEL.__name__}()")),
    ),
    (explorers_are_tagged, made(code("1 + 1", tags=TIMING_TAGS))),
    (explorers_are_tagged, made(*[explorer()] * 4)),
    (explorers_are_tagged, made(explorer(tags=LIVE_TAGS))),
    (explorers_are_tagged, made(live_run(tags=EXPLORER_TAGS))),
    (explorers_are_tagged, made(live_run(tags=()))),
    (prose_comes_first, made(prose(START), code("1 + 1"), live_run())),
    (explorers_are_tagged, made(sheet(tags=EXPLORER_TAGS))),
    (explorers_are_tagged, made(explorer(tags=SHEET_TAGS))),
    (explorers_are_tagged, made(code("1 + 1", tags=SHEET_TAGS))),
    (prose_comes_first, made(prose(START), code("1 + 1"), sheet())),
    (skeleton_is_whole_and_in_order, interview(*(prose(f"## {heading}") for heading in HEADINGS["en"]))),
    (sections_hold_their_code, interview(*(prose(f"## {heading}") for heading in INTERVIEW_HEADINGS["en"]))),
    (explorers_stand_below_their_stills, made(live_run())),
    (explorers_stand_below_their_stills, made(explorer())),
    (explorers_stand_below_their_stills, made(prose(STILL), code("1 + 1"), explorer())),
    (explorers_stand_below_their_stills, made(prose("No still"), explorer())),
    (explorers_stand_below_their_stills, made(prose(STILL + STILL), explorer())),
    (explorers_stand_below_their_stills, made(prose(f"![{PANEL.alt}](../{PANEL.still})"), explorer())),
    (explorers_stand_below_their_stills, made(prose(f"![{PANEL.alt}](../../{PANELS[1].still})"), explorer())),
    (pictures_have_words, made(prose(f"![](../../{PANEL.still})"), committed=False)),
    (pictures_have_words, made(prose(f'<img src="../../{PANEL.still}">'))),
    (pictures_have_words, made(prose(f'<img alt="" src="../../{PANEL.still}">'))),
    (links_lead_somewhere, made(prose("[05](05_not_there.ipynb)"))),
    (links_lead_somewhere, made(prose("[house](http://example.org)"))),
    (links_lead_somewhere, made(prose("[file](file:///etc/passwd)"))),
    (links_lead_somewhere, made(prose("[up](#Nowhere)"))),
    (links_lead_somewhere, made(prose("![Ten words or more](../../figures/not_there.png)"))),
    (links_lead_somewhere, made(prose('<a href="../nowhere.md">x</a>'))),
    (outputs_are_text_and_there, made(code("print(1)"))),
    (outputs_are_text_and_there, made(code("x = 1", printed="1\n"))),
    (outputs_are_text_and_there, made(output("error", ename="ValueError", evalue="x", traceback=[]))),
    (outputs_are_text_and_there, made(output("stream", name="stderr", text="Warning\n"))),
    (outputs_are_text_and_there, made(output("display_data", data={"image/png": "aaaa"}))),
    (
        what_is_asserted_by_hand_is_said,
        made(prose("## By hand\n\nIt was 4 and is now 2."), code("assert q == 4\nassert k == 3")),
    ),
    (
        what_is_asserted_by_hand_is_said,
        made(prose("## By hand\n\n$= 0.1$"), code("assert np.allclose(f(4), [1, 0.01])")),
    ),
    (papers_are_those_they_are_called, made(prose("[arXiv 2104.09864](https://arxiv.org/abs/2104.09846)"))),
    (form_is_the_committed_one, made(code("1 + 1"), committed=False)),
    (form_is_the_committed_one, whole()._replace(text=whole().text.replace(' "cells"', '  "cells"', 1))),
    (form_is_the_committed_one, whole()._replace(text=whole().text.replace(PANEL.alt, "Other words"))),
]


def stored_explorer() -> Notebook:
    cell = explorer()
    cell.outputs = [nbformat.v4.new_output("display_data", data={"text/plain": "Panel"})]
    notebook = made(prose(STILL), committed=False)
    notebook.node.cells.append(cell)
    return notebook._replace(text=nbformat.writes(notebook.node))


def stored_state() -> Notebook:
    notebook = whole()
    notebook.node.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    return notebook._replace(text=nbformat.writes(notebook.node))


REFUSED += [(form_is_the_committed_one, bad()) for bad in (stored_explorer, stored_state)]

PASSED = [
    (names_are_bound_once, made(code("for i in (1, 2):\n    print(i)"), code("for i in (3, 4):\n    print(i)"))),
    (names_are_bound_once, made(code("import numpy as np"), code("import numpy as np"))),
    (names_are_bound_once, made(code("_ = 1"), code("_ = 2"))),
    (names_are_bound_once, made(code("x = 1\nx = x + 1"), code("y = [x for x in (1, 2)]"))),
    (names_are_bound_once, made(code("x = {}"), code("x['a'] = 1\nx.b = 2"), code("def f():\n    x = 3"))),
    (names_are_bound_once, made(code("x = 1"), code("f = lambda x: x"), code("f(x=3)"))),
    (definitions_are_the_readers_own, made(code("def my_rotate(x):\n    return x"))),
    (definitions_are_the_readers_own, made(code('def rotate(x):\n    """Write."""\n    ...\nE.check(rotate)'))),
    (links_lead_somewhere, made(prose("$a[i](x)$".replace("](", "] (")), prose("[code](../../lib)"))),
    (panels_are_shown_where_they_are_made, made(code(f"p = {PANEL.__name__}()\np.reset()"))),
    (explorers_are_tagged, made(*[explorer()] * 3, live_run())),
    (explorers_are_tagged, interview(*(sheet(kind) for kind in SHEETS))),
    (explorers_stand_below_their_stills, interview(sheet())),
    (skeleton_is_whole_and_in_order, interview(*(prose(f"## {heading}") for heading in INTERVIEW_HEADINGS["en"]))),
    (skeleton_is_whole_and_in_order, made(prose("# Start here"), prose("## What there is"), name="00_start")),
]


def test_every_rule_is_shown_something_to_refuse():
    assert {rule for rule, _ in REFUSED} == set(RULES)


@pytest.mark.parametrize(("rule", "notebook"), REFUSED, ids=[rule.__name__ for rule, _ in REFUSED])
def test_rule_refuses(rule, notebook):
    assert list(rule(notebook))


@pytest.mark.parametrize(("rule", "notebook"), PASSED, ids=[rule.__name__ for rule, _ in PASSED])
def test_rule_lets_pass(rule, notebook):
    assert list(rule(notebook)) == []
