"""Exercises of notebook 03: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import math

import numpy as np
import pytest

from transformer_parts.learn import relative_bias as exercises

EXERCISES = {"BUCKET": exercises.BUCKET, "SLOPES": exercises.SLOPES, "ATTEND": exercises.ATTEND}
SEEDS = range(12)


def bucket_as_readers_write_it(relative_position, num_buckets, max_distance):
    n = num_buckets // 2
    e = n // 2
    out = []
    for offset in relative_position:
        d = abs(int(offset))
        b = d if d < e else min(n - 1, e + int(math.log(d / e) / math.log(max_distance / e) * (n - e)))
        out.append(b + n if offset > 0 else b)
    return out


def slopes_as_readers_write_it(n):
    p = 2 ** math.floor(math.log2(n))
    return [2 ** (-8 * h / p) for h in range(1, p + 1)] + [2 ** (-4 * (2 * h + 1) / p) for h in range(n - p)]


def attend_as_readers_write_it(query, key, value, bias):
    logits = np.where(np.tri(query.shape[1], dtype=bool), query @ key.transpose(0, 2, 1) + bias, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


RIGHT = {
    "BUCKET": bucket_as_readers_write_it,
    "SLOPES": slopes_as_readers_write_it,
    "ATTEND": attend_as_readers_write_it,
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in SEEDS:
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict
