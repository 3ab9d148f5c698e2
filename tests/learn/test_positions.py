"""Exercises of notebook 02: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import math

import numpy as np
import pytest

from transformer_parts.learn import positions as exercises

EXERCISES = {"TABLE": exercises.TABLE, "SHIFT": exercises.SHIFT, "ADD": exercises.ADD}
SEEDS = range(12)


def table_as_readers_write_it(seq_len, d_model, base):
    rows = []
    for p in range(seq_len):
        angles = [p / base ** (2 * i / d_model) for i in range(d_model // 2)]
        rows.append([f(angle) for angle in angles for f in (math.sin, math.cos)])
    return rows


def shift_as_readers_write_it(k, d_model, base):
    """Solve for it, instead of writing it down: pairs of many positions, by least squares."""
    before = np.array(table_as_readers_write_it(300, d_model, base))
    places = np.arange(300) + k
    angles = places[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
    after = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(300, d_model)
    return np.linalg.lstsq(before, after, rcond=None)[0].T


def add_as_readers_write_it(x, table):
    return np.array([[token + table[p] for p, token in enumerate(sequence)] for sequence in x])


RIGHT = {
    "TABLE": table_as_readers_write_it,
    "SHIFT": shift_as_readers_write_it,
    "ADD": add_as_readers_write_it,
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict
