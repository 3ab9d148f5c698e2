"""Exercises of notebook 07: right answers that have only the formulas pass, others' mistakes get their names.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import cache as exercises

SEEDS = range(25)


# Answers of a reader who has only the formulas: nothing here calls the library.


def chunk_positions(valid, new):
    return [sum(valid) + i for i in range(new)]


def turned(x, position, inv_freq):
    out = np.empty_like(x)
    for i, frequency in enumerate(inv_freq):
        a, b = x[2 * i], x[2 * i + 1]
        cos, sin = np.cos(position * frequency), np.sin(position * frequency)
        out[2 * i], out[2 * i + 1] = a * cos - b * sin, a * sin + b * cos
    return out


def attend_step(query, key, value, keys, values, inv_freq, position=None):
    position = len(keys) if position is None else position
    query, key = turned(query, position, inv_freq), turned(key, position, inv_freq)
    keys, values = np.vstack([keys, key]), np.vstack([values, value])
    powers = np.exp(keys @ query / np.sqrt(len(query)))
    return powers / powers.sum() @ values


def cache_bytes(n_layers, n_heads, n_kv_heads, head_dim, tokens, bits):
    return tokens * n_layers * n_kv_heads * head_dim * 2 * bits // 8


ANSWERS = [(exercises.POSITIONS, chunk_positions), (exercises.STEP, attend_step), (exercises.BYTES, cache_bytes)]


@pytest.mark.parametrize(("exercise", "answer"), ANSWERS)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        assert exercise.check(answer, seed=seed).passed


# Mistakes written by another hand than the library's.


@pytest.mark.parametrize(
    ("exercise", "answer", "mistake"),
    [
        (exercises.POSITIONS, lambda valid, new: list(range(new)), "restart at 0"),
        (exercises.POSITIONS, lambda valid, new: range(len(valid), len(valid) + new), "padding counted"),
        (exercises.POSITIONS, lambda valid, new: [list(valid).count(True)] * new, "one position for the whole chunk"),
        (exercises.STEP, lambda *given: attend_step(*given, position=0), "restart at 0"),
        (exercises.STEP, lambda q, k, v, ks, vs, f: attend_step(q, k, v, ks, vs, f, len(ks) + 1), "off by one"),
        (exercises.BYTES, lambda n, h, g, k, t, b: 2 * n * h * k * t * (b // 8), "query heads counted"),
        (exercises.BYTES, lambda n, h, g, k, t, b: 2 * n * g * k * t * b, "bits for bytes"),
        (exercises.BYTES, lambda n, h, g, k, t, b: n * g * k * t * b // 8, "keys alone"),
    ],
)
def test_what_readers_write_is_named(exercise, answer, mistake):
    for seed in SEEDS:
        assert exercise.check(answer, seed=seed).mistake == mistake
