"""What holds of every exercise in the room: it is found here by itself, so a new one is tried without a new test."""

import ast
import inspect
import re

import numpy as np
import pytest
from exercises import EXERCISES, MODULES

pytestmark = pytest.mark.sweep

SEEDS = range(20)

MISTAKES = {
    f"{name}: {mistake.name}": (exercise, mistake)
    for name, exercise in EXERCISES.items()
    for mistake in exercise.mistakes
}
#: On a single case these may give what another mistake gives; more cases tell them apart.
COINCIDE = {
    "cache.BYTES: a single kv head",
    "cache.BYTES: bits for bytes",
    "cache.POSITIONS: off by one",
    "cache.POSITIONS: padding subtracted twice",
    "why_position.GAP: first token alone",
    "rope_scores.COMPLETE: exponent without the 2",
    "rope_scores.WAVELENGTH: counted from 1",
    "stability.CLIP: to norm 1",
}

every_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)


def test_every_exercise_is_found():
    """An exercise made inside a function or kept in a list would escape the tests below."""
    made = [
        node
        for module in MODULES
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "Exercise"
    ]
    assert len(EXERCISES) == len(made) > 0
    assert len(set(map(id, EXERCISES.values()))) == len(EXERCISES)


@every_exercise
def test_its_own_solution_passes(exercise):
    for seed in SEEDS:
        verdict = exercise.check(exercise.solution, seed=seed)
        assert (verdict.passed, verdict.mistake) == (True, None), (seed, verdict)


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_refused_under_its_own_name(exercise, mistake):
    for seed in SEEDS:
        verdict = exercise.check(mistake.function, seed=seed)
        assert (verdict.passed, verdict.mistake, verdict.message) == (False, mistake.name, mistake.message), seed


@pytest.mark.parametrize("name", MISTAKES)
def test_single_cases_already_tell_right_from_wrong(name):
    """No input is so special that a mistake gives the right result on it, and few so that it gives another's."""
    exercise, mistake = MISTAKES[name]
    verdicts = [exercise.check(mistake.function, seed=seed, cases=1) for seed in SEEDS]
    assert not any(verdict.passed for verdict in verdicts)
    assert (name in COINCIDE) == any(verdict.mistake != mistake.name for verdict in verdicts)


def test_every_coincidence_is_of_a_mistake_that_is_there():
    assert MISTAKES.keys() >= COINCIDE


@every_exercise
def test_at_least_five_mistakes_with_names_and_messages_of_their_own(exercise):
    names = {mistake.name.strip() for mistake in exercise.mistakes}
    messages = {mistake.message.strip() for mistake in exercise.mistakes}
    assert len(names) == len(messages) == len(exercise.mistakes) >= 5
    assert "" not in names | messages


@every_exercise
def test_hints_are_three_steps_that_differ(exercise):
    hints = [exercise.hint(step) for step in (1, 2, 3)]
    assert hints == list(exercise.hints)
    assert len({hint.strip() for hint in hints} - {""}) == 3
    with pytest.raises(ValueError, match="step: got 4, want"):
        exercise.hint(4)


@every_exercise
def test_task_begins_with_the_signature_of_the_inputs(exercise):
    signature = re.match(r"([a-z_]+)\(([^()]+)\): \S", exercise.task)
    parameters = signature[2].split(", ")
    assert all(name.isidentifier() for name in parameters)
    for seed in SEEDS:
        arguments = exercise.inputs(np.random.default_rng(seed))
        assert len(arguments) == len(set(parameters)) == len(parameters)
        inspect.signature(exercise.solution).bind(*arguments)


def right(exercise, change):
    """Return an answer that gives the right result, changed."""
    return lambda *arguments: change(np.asarray(exercise.solution(*arguments)))


@every_exercise
@pytest.mark.parametrize(
    ("change", "mistake"),
    [
        (lambda result: None, "nothing returned"),
        (lambda result: ..., "nothing returned"),
        (lambda result: "y", "no numbers"),
        (lambda result: result + 0j, "complex"),
        (lambda result: result[None], "shape"),
        (lambda result: np.atleast_1d(result)[:1], "shape"),
        (lambda result: result.ravel()[:-1], "shape"),
        (lambda result: np.append(result, 0.0), "shape"),
        (lambda result: result * np.nan, "not finite"),
        (lambda result: result + np.inf, "not finite"),
    ],
    ids=["None", "…", "text", "complex", "axis more", "first alone", "one fewer", "one more", "NaN", "infinity"],
)
def test_results_of_a_wrong_kind_are_refused(exercise, change, mistake):
    verdict = exercise.check(right(exercise, change), seed=1)
    assert (verdict.passed, verdict.mistake) == (False, mistake)


@every_exercise
@pytest.mark.parametrize("error", [1e-3, 1.03])
def test_unknown_wrong_numbers_are_refused_without_a_wrong_name(exercise, error):
    """The error is that share of the largest number, where this is above 1: no rounding makes it."""
    wrong = right(exercise, lambda result: result + error * max(1, np.abs(result).max()))
    for seed in (0, 1, 3):
        verdict = exercise.check(wrong, seed=seed)
        assert (verdict.passed, verdict.mistake) == (False, None)
        assert "largest difference" in verdict.message


@every_exercise
def test_exceptions_are_told(exercise):
    assert "stopped with ZeroDivisionError: division by zero" in exercise.check(lambda *_: 1 / 0, seed=1).message
    verdict = exercise.check(lambda: 0, seed=1)
    assert (verdict.passed, verdict.mistake) == (False, None)
    assert "stopped with TypeError" in verdict.message


@every_exercise
def test_a_changed_input_is_told_though_the_result_is_right(exercise):
    for place, argument in enumerate(exercise.inputs(np.random.default_rng(1))):
        if isinstance(argument, np.ndarray):

            def spoils(*arguments, place=place):
                result = exercise.solution(*arguments)
                arguments[place][...] = arguments[place] == 0
                return result

            assert exercise.check(spoils, seed=1).mistake == "input changed", place
