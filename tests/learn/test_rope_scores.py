"""Exercises of notebook 05: right answers that have only the formulas pass, others' mistakes get their names.

What holds of every exercise stands in test_every_exercise.py.
"""

import math

import numpy as np
import pytest

from transformer_parts.learn import rope_scores as exercises

SEEDS = range(60)


# Answers of a reader who has only the formulas: nothing here calls the library.


def scores_by_turning_the_key(query, key, offsets, inv_freq):
    out = []
    for offset in offsets:
        total = 0.0
        for i, frequency in enumerate(inv_freq):
            (a, b), (c, d) = query[2 * i : 2 * i + 2], key[2 * i : 2 * i + 2]
            cos, sin = math.cos(offset * frequency), math.sin(offset * frequency)
            total += a * (c * cos - d * sin) + b * (c * sin + d * cos)
        out.append(total / math.sqrt(len(query)))
    return out


def scores_by_cosines(query, key, offsets, inv_freq):
    q, k = query.reshape(-1, 2), key.reshape(-1, 2)
    amplitude = np.hypot(*q.T) * np.hypot(*k.T)
    phase = np.arctan2(k[:, 1], k[:, 0]) - np.arctan2(q[:, 1], q[:, 0])
    return (amplitude * np.cos(np.outer(offsets, inv_freq) + phase)).sum(axis=1) / len(query) ** 0.5


def wavelength(pair, head_dim, rope_base):
    return math.tau / rope_base ** (-2 * pair / head_dim)


def complete(head_dim, rope_base, length):
    """The closed form: the largest i with 2π·base^(2i/d) ≤ L, and pair 0 with it."""
    return math.floor(head_dim / 2 * math.log(length / math.tau, rope_base)) + 1


RIGHT = [
    (exercises.SCORES, scores_by_turning_the_key),
    (exercises.SCORES, scores_by_cosines),
    (exercises.WAVELENGTH, wavelength),
    (exercises.COMPLETE, complete),
]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        verdict = exercise.check(answer, seed=seed)
        assert verdict.passed, (seed, verdict)


# Mistakes written by another hand than the library's: the names must fit what readers really write.


def turned_round(query, key, offsets, inv_freq):
    return scores_by_turning_the_key(query, key, -offsets, inv_freq)


def no_phase(query, key, offsets, inv_freq):
    lengths = np.linalg.norm(query.reshape(-1, 2), axis=1) * np.linalg.norm(key.reshape(-1, 2), axis=1)
    return [sum(lengths * np.cos(offset * inv_freq)) / len(query) ** 0.5 for offset in offsets]


def no_scale(query, key, offsets, inv_freq):
    return np.multiply(scores_by_turning_the_key(query, key, offsets, inv_freq), len(query) ** 0.5)


def halves(query, key, offsets, inv_freq):
    query, key = (x.reshape(2, -1).T.reshape(-1) for x in (query, key))
    return scores_by_turning_the_key(query, key, offsets, inv_freq)


@pytest.mark.parametrize(
    ("exercise", "answer", "name"),
    [
        (exercises.SCORES, turned_round, "offset turned round"),
        (exercises.SCORES, no_phase, "phases left out"),
        (exercises.SCORES, no_scale, "missing scale"),
        (exercises.SCORES, halves, "halves instead of neighbours"),
        (exercises.WAVELENGTH, lambda i, d, base: wavelength(i - 1, d, base), "counted from 1"),
        (exercises.WAVELENGTH, lambda i, d, base: 1 / base ** (-2 * i / d), "without 2π"),
        (
            exercises.WAVELENGTH,
            lambda i, d, base: 2 * np.pi * np.logspace(0, np.log10(base), d // 2)[i],
            "up to the base",
        ),
        (exercises.COMPLETE, lambda d, base, length: complete(d, base, length) - 1, "pair 0 left out"),
        (exercises.COMPLETE, lambda d, base, length: complete(d, base, 2 * length), "half a turn"),
    ],
)
def test_mistakes_of_readers_are_named(exercise, answer, name):
    for seed in range(20):
        assert exercise.check(answer, seed=seed).mistake == name
