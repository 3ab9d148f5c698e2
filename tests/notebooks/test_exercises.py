"""The exercises of all notebooks as one set: each shown once, with the signature of its task, a checker and hints."""

import ast
import re

import nbformat
import notebooks
import pytest
from exercises import EXERCISES

from transformer_parts.learn.coding_round import TASKS

NOTEBOOKS = {path.stem: nbformat.read(path, as_version=4) for path in notebooks.notebooks()}


def modules_of_learn(notebook):
    """Return the modules of the room that a notebook imports, by the names that it gives them."""
    found = {}
    for cell in notebook.cells:
        for line in re.findall(r"^from transformer_parts\.learn import (.+)$", cell.source, re.MULTILINE):
            for part in line.split(", "):
                name, _, alias = part.partition(" as ")
                found[alias or name] = name
    return found


def shown(notebook):
    """Yield exercise, the stub above its check, and the name of the module in the notebook."""
    modules = modules_of_learn(notebook)
    for cell in notebook.cells:
        for alias, name, checked in re.findall(r"\b(\w+)\.([A-Z_]+)\.check\((\w+)\)", cell.source):
            if cell.cell_type == "code" and alias in modules:
                (stub,) = [n for n in ast.parse(cell.source).body if isinstance(n, ast.FunctionDef)]
                assert stub.name == checked
                yield f"{modules[alias]}.{name}", stub, alias


def test_every_exercise_is_shown_in_one_notebook():
    """Those of the coding round are shown by its sheet."""
    found = [name for notebook in NOTEBOOKS.values() for name, *_ in shown(notebook)]
    own = {name: exercise for name, exercise in EXERCISES.items() if name.startswith("coding_round.")}
    assert all(any(exercise is task.exercise for task in TASKS) for exercise in own.values())
    found += own
    assert sorted(found) == sorted(EXERCISES)


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_stubs_have_the_signature_of_their_task(stem):
    for name, stub, _ in shown(NOTEBOOKS[stem]):
        assert EXERCISES[name].task.startswith(f"{stub.name}({ast.unparse(stub.args)}): "), name
        assert ast.unparse(stub.body[0]) == "..."


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_contracts_that_are_shown_name_every_argument_and_what_is_returned(stem):
    cells = [cell.source.strip() for cell in NOTEBOOKS[stem].cells]
    for name, stub, alias in shown(NOTEBOOKS[stem]):
        if f"{alias}.{name.split('.')[1]}" not in cells:
            continue  # test_form.py lists the notebooks that do not show their tasks yet
        exercise = EXERCISES[name]
        named = [word for line in exercise.takes for word in re.findall(r"`(\w+)`", line.partition(":")[0])]
        assert named == [argument.arg for argument in stub.args.args], name
        assert exercise.returns, name


@pytest.mark.parametrize("stem", [stem for stem, notebook in NOTEBOOKS.items() if list(shown(notebook))])
def test_the_first_exercise_tells_of_the_checker_and_of_the_hints(stem):
    name, _, alias = next(shown(NOTEBOOKS[stem]))
    (text,) = [cell.source for cell in NOTEBOOKS[stem].cells if cell.source.startswith("## Your turn")]
    assert f"`{alias}.{name.split('.')[1]}.hint(1)` gives a first hint, up to `hint(3)`." in text
    assert re.search(r"checker (tries|runs) .* you have not seen", text)
    assert re.search(r"names the mistake|says which mistake gives your result", text)
