"""Exercises of notebook 04: right answers that have only the formulas pass, others' mistakes get their names.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import rope as exercises

SEEDS = range(100)


# Answers of a reader who has only the formulas: nothing here calls the library.


def rotate(x, position, rope_base):
    turned = np.empty_like(x)
    for i in range(len(x) // 2):
        angle = position * rope_base ** (-2 * i / len(x))
        a, b = x[2 * i], x[2 * i + 1]
        turned[2 * i] = a * np.cos(angle) - b * np.sin(angle)
        turned[2 * i + 1] = a * np.sin(angle) + b * np.cos(angle)
    return turned


def turned(vector, angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ vector


def score(query, key, m, n, theta):
    return turned(query, m * theta) @ turned(key, n * theta) / np.sqrt(2)


def score_from_the_offset(query, key, m, n, theta):
    return query @ turned(key, (n - m) * theta) / 2**0.5


def attend(query, key, value, inv_freq):
    length, head_dim = query.shape

    def at(x, position):
        return np.concatenate([turned(x[2 * i : 2 * i + 2], position * f) for i, f in enumerate(inv_freq)])

    rows = []
    for m in range(length):
        logits = np.array([at(query[m], m) @ at(key[n], n) for n in range(m + 1)]) / np.sqrt(head_dim)
        weights = np.exp(logits - logits.max())
        rows.append(weights / weights.sum() @ value[: m + 1])
    return np.array(rows)


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (exercises.ROTATE, rotate),
        (exercises.SCORE, score),
        (exercises.SCORE, score_from_the_offset),
        (exercises.ATTEND, attend),
    ],
)
def test_right_answers_pass(exercise, answer):
    for seed in SEEDS:
        verdict = exercise.check(answer, seed=seed)
        assert verdict.passed, (seed, verdict)


# Mistakes written by another hand than the library's: the names must fit what readers really write.


def clockwise(x, position, rope_base):
    return rotate(x, -position, rope_base)


def halves(x, position, rope_base):
    half = len(x) // 2
    interleaved = np.stack([x[:half], x[half:]], axis=1).reshape(-1)
    turned = rotate(interleaved, position, rope_base)
    return np.concatenate([turned[0::2], turned[1::2]])


def squared(x, position, rope_base):
    return rotate(x, position**2, rope_base)


def in_degrees(x, position, rope_base):
    angle = np.deg2rad(position * np.repeat(rope_base ** (-np.arange(0, len(x), 2) / len(x)), 2))
    partner = np.stack([-x[1::2], x[0::2]], axis=1).reshape(-1)
    return x * np.cos(angle) + partner * np.sin(angle)


def half_exponent(x, position, rope_base):
    return rotate(x, position, rope_base**0.5)


def unscaled(query, key, m, n, theta):
    return turned(query, m * theta) @ turned(key, n * theta)


def sum_of_positions(query, key, m, n, theta):
    return turned(query, m * theta) @ turned(key, -n * theta) / np.sqrt(2)


def values_turned(query, key, value, inv_freq):
    value = np.array([rotate_by(v, n, inv_freq) for n, v in enumerate(value)])
    return attend(query, key, value, inv_freq)


def rotate_by(x, position, inv_freq):
    return np.concatenate([turned(x[2 * i : 2 * i + 2], position * f) for i, f in enumerate(inv_freq)])


@pytest.mark.parametrize(
    ("exercise", "answer", "name"),
    [
        (exercises.ROTATE, lambda x, position, rope_base: x.copy(), "identity"),
        (exercises.ROTATE, clockwise, "negative angle"),
        (exercises.ROTATE, halves, "halves instead of neighbours"),
        (exercises.ROTATE, squared, "position squared"),
        (exercises.ROTATE, in_degrees, "degrees"),
        (exercises.ROTATE, half_exponent, "exponent without the 2"),
        (exercises.SCORE, unscaled, "missing scale"),
        (exercises.SCORE, lambda q, k, m, n, t: q @ k / np.sqrt(2), "no rotation"),
        (exercises.SCORE, sum_of_positions, "opposite senses"),
        (exercises.ATTEND, values_turned, "V rotated"),
        (exercises.ATTEND, lambda q, k, v, f: attend(q, k, v, 0 * f), "no rotation"),
    ],
)
def test_mistakes_of_another_hand_get_their_names(exercise, answer, name):
    for seed in range(25):
        assert exercise.check(answer, seed=seed).mistake == name, seed
