"""Exercises of notebook 14: right answers that have only the formulas pass.

What holds of every exercise stands in test_every_exercise.py.
"""

import math

import numpy as np
import pytest

from transformer_parts.learn import decoder_layer, stack_and_loss
from transformer_parts.maths.decoder import DecoderLayer

EXERCISES = {
    "DECODER_LAYER": decoder_layer.DECODER_LAYER,
    "NEXT_TOKEN_LOSS": stack_and_loss.NEXT_TOKEN_LOSS,
    "CAUSAL_MASK": stack_and_loss.CAUSAL_MASK,
}


def layer_as_readers_write_it(x, w_q, w_k, w_v, w_o, w_gate, w_up, w_down):
    def norm(v):
        return v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-6)

    n = norm(x)
    scores = (n @ w_q) @ (n @ w_k).T / math.sqrt(x.shape[1])
    scores[np.triu_indices(len(x), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    u = x + weights / weights.sum(-1, keepdims=True) @ (n @ w_v) @ w_o
    n = norm(u)
    gate = n @ w_gate
    return u + (gate / (1 + np.exp(-gate)) * (n @ w_up)) @ w_down


def loss_as_readers_write_it(logits, tokens):
    total = 0.0
    for t in range(len(tokens) - 1):
        powers = [math.exp(z) for z in logits[t]]
        total -= math.log(powers[tokens[t + 1]] / sum(powers))
    return total / (len(tokens) - 1)


def mask_as_readers_write_it(n_queries, n_keys):
    return [[key <= query + n_keys - n_queries for key in range(n_keys)] for query in range(n_queries)]


RIGHT = {
    "DECODER_LAYER": layer_as_readers_write_it,
    "NEXT_TOKEN_LOSS": loss_as_readers_write_it,
    "CAUSAL_MASK": mask_as_readers_write_it,
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_pass(name):
    for seed in range(25):
        verdict = EXERCISES[name].check(RIGHT[name], seed=seed)
        assert verdict.passed, verdict


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("CAUSAL_MASK", lambda n, s: [[k >= q + s - n for k in range(s)] for q in range(n)], "the wrong way"),
        ("CAUSAL_MASK", lambda n, s: np.tri(s)[:n], "aligned at the first key"),
        ("NEXT_TOKEN_LOSS", lambda z, y: -(log_p(z)[:-1] * one_hot(z, y)[1:]).mean(), "mean over the vocabulary too"),
        (
            "NEXT_TOKEN_LOSS",
            lambda z, y: -np.sum(log_p(z) * one_hot(z, y), axis=1)[1:].mean(),
            "not shifted, first one left out",
        ),
    ],
)
def test_mistakes_written_differently_are_named(name, answer, mistake):
    for seed in range(25):
        verdict = EXERCISES[name].check(answer, seed=seed)
        assert (verdict.passed, verdict.mistake) == (False, mistake)


def log_p(logits):
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def one_hot(logits, tokens):
    return np.eye(logits.shape[1])[tokens]


def test_the_layer_is_the_librarys_where_all_tokens_stand_at_position_0(rng):
    x, w_q, w_k, w_v, w_o, *ffn = (
        rng.standard_normal(shape) for shape in ((5, 6), *[(6, 6)] * 4, *[(6, 7)] * 2, (7, 6))
    )
    layer = DecoderLayer(
        attn_norm=np.ones(6), ffn_norm=np.ones(6), w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o,
        **dict(zip(("w_gate", "w_up", "w_down"), ffn, strict=True)), n_heads=1, n_kv_heads=1,
    )  # fmt: skip
    wanted = layer(x, np.zeros(5))
    np.testing.assert_allclose(decoder_layer.DECODER_LAYER.solution(x, w_q, w_k, w_v, w_o, *ffn), wanted, atol=1e-11)
