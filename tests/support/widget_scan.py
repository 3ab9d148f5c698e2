"""A plugin of pytest: after nbval has run a notebook, the widgets that its kernel holds are searched for errors.

    python -m pytest -p widget_scan --nbval notebooks

nbval does not compare widgets, nor the outputs of cells that show them, and errors in the callbacks of `interact` and
`interactive_output` pass it by.  What is found fails the notebook's last cell.
"""

import ast
import json
from collections.abc import Iterator, Sequence

import nbval.plugin
import notebooks
import pytest
from nbformat import NotebookNode
from nbval.kernel import RunningKernel

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.interview import SHEETS

VIEW = "application/vnd.jupyter.widget-view+json"
CORE = frozenset({"@jupyter-widgets/base", "@jupyter-widgets/controls"})
#: All widgets by the id of their model, in the kernel; none if the notebook has imported no widgets.
STATES = (
    '__import__("json").dumps(getattr(__import__("sys").modules.get("ipywidgets"), "Widget").get_manager_state()'
    '["state"] if "ipywidgets" in __import__("sys").modules else {}, default=str)'
)

#: Starts of a kernel before it counts as broken.
STARTS = 3


class Kernel(RunningKernel):
    """A kernel that is started again if it ends at once: another worker's may have taken one of its ports."""

    def __init__(self, *arguments, **options):
        for left in reversed(range(STARTS)):
            try:
                super().__init__(*arguments, **options)
            except RuntimeError:
                if not left:
                    raise
            else:
                return


def pytest_configure() -> None:
    """Have nbval start its kernels so."""
    nbval.plugin.RunningKernel = Kernel


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Search the widgets while the kernel still lives, and let it end whatever is found."""
    found = []
    if getattr(item.parent, "kernel", None) and (nextitem is None or nextitem.parent is not item.parent):
        ran = [cell for cell in item.session.items if cell.parent is item.parent and cell.test_outputs is not None]
        found = list(complaints(states(item.parent.kernel), ran))
    yield
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def states(kernel) -> dict[str, dict]:
    """Return the state of each widget in nbval's kernel by the id of its model."""
    request = kernel.kc.execute("", silent=True, store_history=False, user_expressions={"states": STATES})
    while (message := kernel.get_message("shell", timeout=30))["parent_header"].get("msg_id") != request:
        pass
    answer = message["content"]["user_expressions"]["states"]
    if answer["status"] != "ok":
        raise RuntimeError(f"{answer['ename']}: {answer['evalue']}")
    return json.loads(ast.literal_eval(answer["data"]["text/plain"]))


def complaints(states: dict[str, dict], cells: Sequence) -> Iterator[str]:
    """Yield what is wrong with the widgets of a notebook and with the outputs of the cells that nbval has run."""
    models = {key: dict(widget["state"]) | {"model": widget["model_name"]} for key, widget in states.items()}
    for state in models.values():
        if 'role="alert"' in str(state.get("value", "")):
            yield f"{state['model']} shows {state['value']}"
    for cell in cells:
        for output in cell.test_outputs:
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"Cell {cell.cell_num} holds {output.get('evalue') or output.get('text')}"
    asked = [cell for cell in cells if "prediction" in cell.cell.metadata.get("tags", ())]
    others = [cell for cell in cells if cell not in asked]
    for cell in asked:
        (output,) = _shown([cell]) or [None]
        if output is None or "text/html" not in output.data or output.data[VIEW]["model_id"] not in models:
            yield f"Cell {cell.cell_num} shows no prediction"
    yield from _panels(models, others, _shown(others))
    yield from _third_parties(states)


def _shown(cells: Sequence) -> list[NotebookNode]:
    """Return the outputs that show widgets."""
    return [output for cell in cells for output in cell.test_outputs if VIEW in output.get("data", {})]


def _panels(models: dict[str, dict], cells: Sequence, shown: Sequence[NotebookNode]) -> Iterator[str]:
    """Each explorer is shown with a picture and its words; no other picture lives beside them, and no `Output`."""
    tagged = [cell for cell in cells if notebooks.WIDGETS & set(cell.cell.metadata.get("tags", ()))]
    if len(shown) != len(tagged):
        yield f"{len(shown)} cells show widgets, {len(tagged)} are tagged so"
    for output in shown:
        words = output.data["text/plain"]
        if tagged and words not in [kind.alt for kind in (*PANELS, *LIVE_RUNS, *SHEETS)]:
            yield f"a widget has not the words of an explorer: {words}"
        if ("image/png" in output.data) == (words in [sheet.alt for sheet in SHEETS]):
            yield f"a panel without its picture, or a sheet with one: {words}"
        if output.data[VIEW]["model_id"] not in models:
            yield f"a widget that is shown is gone: {words}"
    names = [state["model"] for state in models.values()]
    # Cells that print into an ``Output`` hung front ends.
    if "OutputModel" in names:
        yield "an Output is there"
    if names.count("ImageModel") != sum("image/png" in output.data for output in shown):
        yield "more or fewer pictures than panels"


def _third_parties(states: dict[str, dict]) -> Iterator[str]:
    """Colab and VS Code fetch the script of a third-party widget from elsewhere: where it fails, nothing is missing.

    Such a widget is alone in a box of the class "tp-front", which the style sheet hides until its script runs
    (tests/browser/test_front.py).
    """
    others = {f"IPY_MODEL_{key}" for key, widget in states.items() if widget["model_module"] not in CORE}
    boxes = [widget["state"] for widget in states.values() if others.intersection(widget["state"].get("children", ()))]
    if sorted(child for box in boxes for child in box["children"]) != sorted(others):
        yield "a widget that is not of ipywidgets is not alone in its box"
    if not all("tp-front" in box["_dom_classes"] for box in boxes):
        yield "a widget that is not of ipywidgets is not hidden where its script is missing"
    if (
        strange := {widget["model_module"] for widget in states.values()}
        - CORE
        - {"anywidget", "@jupyter-widgets/output"}
    ):
        yield f"widgets of {', '.join(sorted(strange))}"
