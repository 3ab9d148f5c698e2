"""Exercises of notebook 01: right answers that have only the formulas pass, others' mistakes get their names.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import why_position as exercises

EXERCISES = {"GAP": exercises.GAP, "ATTEND": exercises.ATTEND, "STAYS": exercises.STAYS}
SEEDS = range(20)


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
