"""The recorded comparison of activations: its beginning is trained again, and what it rests on is checked."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.budget import count
from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.training import Plan
from transformer_parts.runs import activations, recorded


def test_the_file_is_of_this_module():
    run = recorded.load("activations")
    assert run.command == "python -m transformer_parts.runs.activations"
    assert run.arguments["steps"] == activations.PLAN.steps
    assert run.arguments["seeds"] == activations.SEEDS
    assert tuple(run.series["final"]) == tuple(run.series["curve"]) == activations.KINDS
    for losses in run.series["final"].values():
        assert losses.shape == (activations.SEEDS,)
        assert (losses > 0).all()


@pytest.mark.parametrize("kind", ["relu", "swiglu"])
def test_the_beginning_is_trained_again(kind):
    curve = recorded.load("activations").series["curve"][kind]
    again = [activations.losses_of(kind, seed, activations.PLAN, first=21) for seed in range(activations.SEEDS)]
    assert_allclose(np.mean(again, axis=0)[::20], curve[:2], rtol=1e-3)
    assert curve[0] == pytest.approx(np.log(activations.VOCABULARY), rel=0.05)
    assert curve[-1] < 0.6 * curve[0]


def test_all_kinds_have_equal_budgets():
    gated, plain = activations.WIDTHS
    sizes = {"vocab_size": 32, "n_layers": 1, "d_model": 64, "n_heads": 2}
    totals = {
        count(StackConfig(**sizes, ffn=kind, d_ff=plain if kind in activations.PLAIN else gated).budget).total
        for kind in activations.KINDS
    }
    assert len(totals) == 1


def test_targets_are_the_tables_for_a_token_and_the_one_before():
    plan = Plan(steps=1, batch_size=3, length=7)
    tokens, targets = activations.batches_of(5, plan)(0)
    table = activations.table_of(5)
    assert tokens.shape == targets.shape == (3, 7)
    assert (targets[:, 0] == -1).all()
    for row, wanted in zip(tokens, targets, strict=True):
        assert [table[a, b] for a, b in itertools.pairwise(row)] == list(wanted[1:])
    assert_array_equal(activations.batches_of(5, plan)(0)[0], tokens)


def test_recording_a_short_plan_has_the_shape_of_the_file():
    plan = Plan(steps=3, batch_size=2, length=8, warmup_steps=1)
    arguments, series = activations.record(plan, seeds=2, kinds=("silu",))
    assert arguments["steps"] == 3
    assert series["final"]["silu"].shape == (2,)
    assert series["curve"]["silu"].shape == (1,)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"^kind: got 'tanh', want one of 'relu'"):
        activations.losses_of("tanh", 0, activations.PLAN)
