"""The run of `make test` over the notebooks is strict: a changed number, a false assert, a widget's error fails it."""

import subprocess
import sys
from pathlib import Path

import nbformat

PROJECT = Path(__file__).parents[2]
# As in the Makefile, beside the number of workers.
OPTIONS = ("-p", "widget_scan", "--nbval", "--nbval-cell-timeout=120")


def validate(notebook: nbformat.NotebookNode, folder: Path) -> subprocess.CompletedProcess:
    path = folder / "made.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", PROJECT / "pyproject.toml", *OPTIONS]
    return subprocess.run([*command, path], capture_output=True, text=True, timeout=120, cwd=folder)


def cell(code: str, *outputs: nbformat.NotebookNode, tags: tuple[str, ...] = ()) -> nbformat.NotebookNode:
    metadata = {"tags": list(tags)} if tags else {}
    return nbformat.v4.new_code_cell(code, execution_count=1, outputs=list(outputs), metadata=metadata)


def printed(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def result(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("execute_result", data={"text/plain": text}, execution_count=1)


GOOD = (cell("print(2**0.5)", printed("1.4142135623730951\n")), cell("1 + 1", result("2")))
BAD = {
    "changed print": cell("print(2**0.5)", printed("1.4142135623730950\n")),
    "changed result": cell("1 + 1", result("3")),
    "missing output": cell("print(1)"),
    "false assert": cell("assert 1 + 1 == 3"),
    "error in an explorer": cell("1 / 0", tags=("explorer", "nbval-ignore-output")),
    "warning": cell("import warnings\nwarnings.warn('careful')"),
}


def test_good_notebook_passes(tmp_path):
    run = validate(nbformat.v4.new_notebook(cells=list(GOOD)), tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


def test_each_fault_fails_and_the_rest_still_runs(tmp_path):
    run = validate(nbformat.v4.new_notebook(cells=[*BAD.values(), *GOOD]), tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"{len(BAD)} failed, {len(GOOD)} passed" in run.stdout, run.stdout


# ---------------------------------------------------------------- widgets, which nbval does not compare

EXPLORER = ("explorer", "nbval-ignore-output")
PANEL = """
from transformer_parts.explore.rope import RopePlane

class Fragile(RopePlane):
    still = ""

    def compute(self, **state):
        if state["m"] == 5:
            raise ValueError("m: got 5")
        return super().compute(**state)

panel = Fragile()
panel.controls["m"].value = {m}
panel
"""
FOREIGN = """
import anywidget

class Foreign(anywidget.AnyWidget):
    _esm = "export default {}"

foreign = Foreign()
"""
IGNORED = EXPLORER[1:]
FAULTY = (
    cell(PANEL.replace("{m}", "5"), tags=EXPLORER),
    cell("panel.widget", tags=EXPLORER),
    cell("panel", tags=IGNORED),
    cell("import ipywidgets as widgets\nout, others = widgets.Output(), (Fragile(), Fragile())", tags=IGNORED),
    cell(FOREIGN, tags=IGNORED),
    cell("import sys\nprint('careful', file=sys.stderr)", tags=IGNORED),
)
FOUND = (
    "HTMLModel shows <p",
    "Cell 0 holds Fragile failed",
    "Cell 5 holds careful",
    "3 cells show widgets, 2 are tagged so",
    "a widget has not the words of an explorer",
    "an Output is there",
    "more or fewer pictures than panels",
    "is not alone in its box",
)


def test_a_sound_panel_passes_the_search_of_widgets(tmp_path):
    run = validate(nbformat.v4.new_notebook(cells=[cell(PANEL.replace("{m}", "4"), tags=EXPLORER)]), tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_search_of_widgets_finds_what_is_there(tmp_path):
    run = validate(nbformat.v4.new_notebook(cells=list(FAULTY)), tmp_path)
    assert f"{len(FAULTY)} passed, 1 error" in run.stdout, run.stdout + run.stderr
    assert [words for words in FOUND if words not in run.stdout] == [], run.stdout


def test_makefile_runs_it_so():
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    (line,) = [line for line in makefile.splitlines() if "--nbval" in line]
    assert " ".join(OPTIONS) in line
    assert "--dist loadfile" in line, "other distributions split a notebook's cells over workers"
