"""A notebook's predictions as its text holds them, so that a page needs no kernel: questions, choices, answers."""

import ast
from typing import NamedTuple

import nbformat
from notebooks import ANSWERS, shown

from transformer_parts.explore.prediction import Prediction


class Asked(NamedTuple):
    """A prediction: its name in the notebook, what it asks, and the answer that the notebook asserts."""

    name: str
    question: str
    choices: tuple[str, ...]
    unit: str
    answer: str  # as it is shown; empty if no cell asserts it


def asked(notebook: nbformat.NotebookNode) -> dict[str, Asked]:
    """Return the predictions of a notebook by the ids of their cells, in order."""
    found = {}
    answers = _asserted(notebook)
    for cell in notebook.cells:
        name, kind = shown(cell) or ("", None)
        if kind is not Prediction:
            continue
        call = ast.parse(cell.source).body[0].value
        words = {item.arg: item.value for item in call.keywords if item.arg in ("choices", "unit")}
        words = {key: ast.literal_eval(value) for key, value in words.items()}
        question = ast.literal_eval(call.args[0])
        choices, unit = tuple(words.get("choices", ())), words.get("unit", "")
        found[cell.id] = Asked(name, question, choices, unit, answers.get(name, ""))
    return found


def _asserted(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Return the answers by name: what cells tagged as answers say by ``assert name.answer_text() == "…"``."""
    answers = {}
    for cell in notebook.cells:
        if ANSWERS not in cell.metadata.get("tags", []):
            continue
        for node in ast.parse(cell.source).body:
            match node:
                case ast.Assert(
                    test=ast.Compare(
                        left=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="answer_text")),
                        ops=[ast.Eq()],
                        comparators=[ast.Constant(value=str(answer))],
                    )
                ):
                    answers[name] = answer
    return answers
