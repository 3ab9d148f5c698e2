"""Exercises of notebook 06: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import numpy as np
import pytest

from transformer_parts.learn import rope_layout as exercises

EXERCISES = {
    "PERMUTE_HEAD": exercises.PERMUTE_HEAD,
    "PERMUTE_HEADS": exercises.PERMUTE_HEADS,
    "CONVERT_LAYER": exercises.CONVERT_LAYER,
}
SEEDS = range(25)


def permute_head(w):
    return np.concatenate([w[0::2], w[1::2]])


def permute_heads(w, n_heads):
    return w.reshape(n_heads, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)


def convert_layer(w_q, w_k, w_v, head_dim, rotary_dim):
    out = []
    for w in (w_q, w_k):
        for head in range(len(w) // head_dim):
            rows = w[head * head_dim : (head + 1) * head_dim]
            out += [*rows[0:rotary_dim:2], *rows[1:rotary_dim:2], *rows[rotary_dim:]]
    return np.array([*out, *w_v])


ANSWERS = {"PERMUTE_HEAD": permute_head, "PERMUTE_HEADS": permute_heads, "CONVERT_LAYER": convert_layer}


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("seed", SEEDS)
def test_right_answers_pass(name, seed):
    exercise = EXERCISES[name]
    assert exercise.check(ANSWERS[name], seed=seed).passed
