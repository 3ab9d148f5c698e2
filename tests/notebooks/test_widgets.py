"""After a run, the widgets of a notebook hold no errors.

nbval does not compare widgets, and errors in the callbacks of `interact`, `interactive_output` and `Output` pass it
by; so each notebook is run once more with the state of its widgets kept, and that state is searched.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
import notebooks
import pytest
from nbclient import NotebookClient

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.interview import SHEETS

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
SECONDS_PER_CELL = 120


def execute(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=SECONDS_PER_CELL, store_widget_state=True, resources=resources)
    return client.execute()


def states(notebook: nbformat.NotebookNode) -> dict[str, dict]:
    """Return the state of each widget by the id of its model, the model's name among it."""
    stored = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    return {key: dict(widget["state"]) | {"model": widget["model_name"]} for key, widget in stored.items()}


def errors(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Yield what went wrong in widgets: alerts in the page, error outputs, and whatever wrote to stderr."""
    for state in states(notebook).values():
        if 'role="alert"' in str(state.get("value", "")):
            yield f"{state['model']} shows {state['value']}"
        for output in state.get("outputs", ()):
            if output["output_type"] == "error" or output.get("name") == "stderr":
                yield f"{state['model']} holds {output.get('evalue') or output.get('text')}"
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"{cell.id} holds {output.get('evalue') or output.get('text')}"


# ---------------------------------------------------------------- the notebooks


@pytest.fixture(scope="module", params=notebooks.notebooks(), ids=lambda path: path.stem)
def run(request):
    return execute(nbformat.read(request.param, as_version=4), request.param.parent)


def views(notebook):
    """Return the outputs of cells that show widgets."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output for output in outputs if VIEW in output.get("data", {})]


def test_no_widget_holds_an_error(run):
    assert list(errors(run)) == []


def test_explorers_are_shown_with_a_picture_and_its_words(run):
    explorers = [cell for cell in run.cells if notebooks.WIDGETS & set(cell.metadata.get("tags", []))]
    assert len(views(run)) == len(explorers)
    for output in views(run):
        assert output.data[VIEW]["model_id"] in states(run)
        words = output.data["text/plain"]
        assert words in [kind.alt for kind in (*PANELS, *LIVE_RUNS, *SHEETS)]
        assert ("image/png" in output.data) == (words not in [sheet.alt for sheet in SHEETS])


def test_no_output_widget_and_no_panel_beside_those_shown(run):
    """Cells that print into an ``Output`` hung front ends; each panel has one live picture."""
    models = [state["model"] for state in states(run).values()]
    assert "OutputModel" not in models
    assert models.count("ImageModel") == sum("image/png" in output.data for output in views(run))


def test_all_but_the_hidden_front_ends_are_widgets_of_ipywidgets(run):
    """Colab and VS Code fetch the script of a third-party widget from elsewhere: where it fails, nothing is missing.

    Such a widget stands alone in a box of the class "tp-front", which the style sheet hides until its script runs
    (tests/browser/test_front.py).
    """
    stored = run.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    core = {"@jupyter-widgets/base", "@jupyter-widgets/controls"}
    others = {f"IPY_MODEL_{name}" for name, widget in stored.items() if widget["model_module"] not in core}
    boxes = [widget["state"] for widget in stored.values() if others.intersection(widget["state"].get("children", ()))]
    assert sorted(child for box in boxes for child in box["children"]) == sorted(others)
    assert all("tp-front" in box["_dom_classes"] for box in boxes)
    assert {widget["model_module"] for widget in stored.values()} - core <= {"anywidget"}


# ---------------------------------------------------------------- the search can fail


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
OUTPUT = """
import ipywidgets as widgets

out = widgets.Output()
with out:
    {what}
out
"""


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (PANEL.replace("{m}", "4"), []),
        (PANEL.replace("{m}", "5"), ["HTMLModel shows", "holds Fragile could not show"]),
        (OUTPUT.replace("{what}", "1 / 0"), ["OutputModel holds division by zero"]),
        ("import sys\nprint('careful', file=sys.stderr)", ["holds careful"]),
    ],
)
def test_search_finds_what_is_there(code, found, tmp_path):
    cell = nbformat.v4.new_code_cell(code, id="cell")
    result = execute(nbformat.v4.new_notebook(cells=[cell]), tmp_path)
    complaints = list(errors(result))
    assert len(complaints) == len(found), json.dumps(complaints)
    assert all(any(words in complaint for complaint in complaints) for words in found)
