"""Exercises of notebook 01: the right answer passes, each known mistake has its own name, on every seed."""

import numpy as np
import pytest

from transformer_parts.learn import order as exercises

EXERCISES = {"GAP": exercises.GAP, "ATTEND": exercises.ATTEND, "STAYS": exercises.STAYS}
MISTAKES = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]
SEEDS = range(20)

exercise_of_each = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
mistake_of_each = pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{n}-{m.name}" for n, m in MISTAKES])


# Answers of a reader who has only the formulas: nothing here calls the library.


def gap(attend, x, order):
    matrix = np.zeros((len(order), len(order)))
    for place, token in enumerate(order):
        matrix[place, token] = 1
    return np.max(np.abs(attend(matrix @ x) - matrix @ attend(x)))


def attend(x, w_query, w_key, w_value):
    out = []
    for t in range(len(x)):
        query = x[t] @ w_query
        powers = [np.exp(query @ (x[s] @ w_key) / np.sqrt(len(query))) for s in range(t + 1)]
        out.append(sum(p * (x[s] @ w_value) for s, p in enumerate(powers)) / sum(powers))
    return np.array(out)


def stays(order):
    return [order[t] == t and set(order[: t + 1].tolist()) == set(range(t + 1)) for t in range(len(order))]


ANSWERS = [(exercises.GAP, gap), (exercises.ATTEND, attend), (exercises.STAYS, stays)]


@pytest.mark.parametrize(("exercise", "answer"), ANSWERS, ids=EXERCISES)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        assert exercise.check(answer, seed=seed).passed
        assert exercise.check(exercise.solution, seed=seed).passed


@mistake_of_each
def test_mistake_is_refused_by_its_name(name, mistake):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(mistake.function, seed=seed)
        assert not verdict.passed
        assert (verdict.mistake, verdict.message) == (mistake.name, mistake.message), seed


@exercise_of_each
def test_at_least_five_mistakes_with_messages_of_their_own(exercise):
    assert len({mistake.name for mistake in exercise.mistakes}) == len(exercise.mistakes) >= 5
    assert len({mistake.message for mistake in exercise.mistakes}) == len(exercise.mistakes)


@exercise_of_each
def test_hints_are_three_steps_that_differ(exercise):
    assert len({exercise.hint(step) for step in (1, 2, 3)}) == 3


@exercise_of_each
def test_single_cases_already_tell_right_from_wrong(exercise):
    for seed in SEEDS:
        for mistake in exercise.mistakes:
            assert not exercise.check(mistake.function, seed=seed, cases=1).passed, (seed, mistake.name)


# Mistakes written by another hand than the library's.


def attend_all(x, w_query, w_key, w_value):
    powers = np.exp((x @ w_query) @ (x @ w_key).T / np.sqrt(w_query.shape[1]))
    return powers / powers.sum(axis=1, keepdims=True) @ (x @ w_value)


@pytest.mark.parametrize(
    ("exercise", "answer", "mistake"),
    [
        (exercises.GAP, lambda f, x, order: abs(f(x[order]) - f(x)).max(), "invariance"),
        (exercises.GAP, lambda f, x, order: abs(f(x[order])[order] - f(x)).max(), "inverse permutation"),
        (exercises.GAP, lambda f, x, order: (f(x[order]) - f(x)[order]).max(), "signs left in"),
        (exercises.ATTEND, attend_all, "no mask"),
        (exercises.STAYS, lambda order: [token == place for place, token in enumerate(order)], "fixed tokens"),
        (exercises.STAYS, lambda order: [max(order[: t + 1]) == t for t in range(len(order))], "sets alone"),
    ],
)
def test_what_readers_write_is_named(exercise, answer, mistake):
    for seed in SEEDS:
        assert exercise.check(answer, seed=seed).mistake == mistake


def test_other_wrong_answers_are_refused():
    def in_place(x, w_query, w_key, w_value):
        x *= 2
        return x @ w_value

    assert exercises.ATTEND.check(in_place, seed=0).mistake == "input changed"
    assert exercises.ATTEND.check(lambda x, *_: x[:1], seed=0).mistake == "shape"
    assert exercises.ATTEND.check(lambda *given: attend(*given) + np.nan, seed=0).mistake == "not finite"
    assert exercises.ATTEND.check(lambda *given: attend(*given) + 1e-3, seed=0).mistake is None
    assert exercises.GAP.check(lambda f, x, order: f(x), seed=0).mistake == "shape"
    for exercise in EXERCISES.values():
        assert exercise.check(lambda *given: None, seed=0).mistake == "nothing returned"
        assert "stopped with" in exercise.check(lambda: 0, seed=0).message
