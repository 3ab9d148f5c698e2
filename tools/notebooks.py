"""Run the notebooks and write them back in the form they are committed in.

    python tools/notebooks.py [--form] [notebook ...]

Without names all of notebooks/ is taken; --form writes them back without running them.

The committed form: outputs of text are kept, so that they can be read on GitHub and compared by nbval; the outputs of
cells that show widgets (`WIDGETS`) are dropped, because a widget without its state shows an error, and a still stands
above them, whose alt text is that of the explorer; nothing that changes from run to run (times, widget state) is
stored, and every cell has the same number.
"""

import argparse
import re
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import nbformat
from nbclient import NotebookClient

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.interview import SHEETS
from transformer_parts.explore.prediction import Prediction
from transformer_parts.language import language

PROJECT = Path(__file__).resolve().parents[1]
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
#: Tags of the cells that show widgets.
WIDGETS = frozenset({"explorer", "live-run", "prediction", "sheet"})
#: Tag of the cells with the facts behind the predictions, which are folded until the reader opens them.
ANSWERS = "answers"
#: What a cell can show, by the names of the classes.
KINDS = MappingProxyType({kind.__name__: kind for kind in (*PANELS, *LIVE_RUNS, *SHEETS, Prediction)})
#: What has a still, by the path of the still.
STILLS = MappingProxyType({kind.still: kind for kind in (*PANELS, *LIVE_RUNS)})
#: nbval refuses outputs of a cell without a number; one that counts would change with every cell added above.
EXECUTION_COUNT = 1


class Shown(NamedTuple):
    """An explorer, live run, sheet or prediction that a cell shows: its name in the kernel, and its class."""

    name: str
    kind: type


def shown(cell: nbformat.NotebookNode) -> Shown | None:
    """Return what a cell shows, whose source is ``name = Kind(...)`` and ``name``; None if it is another cell.

    The first explorer of a notebook has its import in its cell, so that it needs no other.  A prediction has its
    question, answers and a function between the brackets, over several lines.
    """
    found = re.fullmatch(r"(?:from \S+ import \w+\n\n)?(\w+) = (\w+)\((.*)\)\n\1", cell.source.strip(), re.DOTALL)
    if cell.cell_type != "code" or found is None or found[2] not in KINDS:
        return None
    if KINDS[found[2]] is not Prediction and not re.fullmatch(r"[\w.]*", found[3]):
        return None
    return Shown(found[1], KINDS[found[2]])


def notebooks() -> list[Path]:
    """Return the paths of all notebooks, in order."""
    return sorted(p for p in (PROJECT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)


def described(prose: str, spoken: str = "en") -> str:
    """Return Markdown in which each still has the alt text of its explorer, in a language by name."""

    def put(found: re.Match) -> str:
        kind = STILLS.get(found[2])
        return f"![{language(spoken).text(kind.alt)}]({found[1]}{found[2]})" if kind else found[0]

    return re.sub(r"!\[[^\]]*\]\(((?:\.\./)*)(figures/\w+\.png)\)", put, prose)


def normalise(notebook: nbformat.NotebookNode, spoken: str = "en") -> nbformat.NotebookNode:
    """Bring a notebook, written in a language by name, into the committed form, in place, and return it."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        folded = {"jupyter": {"source_hidden": True}} if ANSWERS in tags else {}
        cell.metadata = nbformat.from_dict(folded | ({"tags": tags} if tags else {}))
        if cell.cell_type == "code":
            cell.execution_count = EXECUTION_COUNT
            cell.outputs = [] if WIDGETS & set(tags) else [_bare(output) for output in cell.outputs]
        else:
            cell.source = described(cell.source, spoken)
    return notebook


def _bare(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if "execution_count" in output:
        output.execution_count = EXECUTION_COUNT
    if "metadata" in output:
        output.metadata = nbformat.from_dict({})
    return output


def run(path: Path) -> None:
    """Run a notebook in a fresh kernel, in its own folder, and write it back in the committed form."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, coalesce_streams=True, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    nbformat.write(normalise(notebook, path.resolve().parent.name), path)


def main() -> None:
    """Run the notebooks named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--form", action="store_true", help="do not run, only bring into the committed form")
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args()
    for path in arguments.notebooks or notebooks():
        if arguments.form:
            nbformat.write(normalise(nbformat.read(path, as_version=4), path.resolve().parent.name), path)
        else:
            run(path)


if __name__ == "__main__":
    main()
