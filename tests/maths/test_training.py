"""The task, the loop, and that a small decoder learns by it (what it takes to learn it well is in `make bench`)."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.optimizer import AdamW, clip_to_norm
from transformer_parts.maths.stack import StackConfig, loss_and_gradients
from transformer_parts.maths.stack_tape import layer_numbers, norm_of, rms
from transformer_parts.maths.training import Plan, train
from transformer_parts.maths.training_task import repeated_segments

CONFIG = StackConfig(vocab_size=7, n_layers=2, d_model=12, n_heads=2, d_ff=17)
PLAN = Plan(steps=5, batch_size=3, length=11, warmup_steps=2)


def test_a_sequence_repeats_its_segment(rng):
    tokens, targets = repeated_segments(rng, batch_size=200, length=31, vocab_size=97, shortest=3, longest=11)
    assert tokens.shape == targets.shape == (200, 31)
    periods = set()
    for row, target in zip(tokens, targets, strict=True):
        first = int(np.argmax(target >= 0)) + 1  # the first target that counts repeats the first token
        periods.add(first)
        assert_array_equal(row[first:], row[:-first])
        assert_array_equal(target[first - 1 : -1], row[first:])
        assert target[-1] == row[31 % first if first < 31 else 0]
        assert (target[: first - 1] == -1).all()
        assert (target[first - 1 :] >= 0).all()
    assert periods == set(range(3, 12))
    assert tokens.min() == 0
    assert tokens.max() == 96


def test_segments_are_seeded_and_have_default_lengths():
    one, two = (repeated_segments(np.random.default_rng(3), batch_size=64, length=16, vocab_size=5) for _ in range(2))
    assert_array_equal(one, two)
    first = (one[1] >= 0).argmax(1) + 1
    assert (first.min(), first.max()) == (4, 8)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"length": 1}, "length"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"shortest": 0}, "shortest"),
        ({"shortest": 6}, "shortest"),
        ({"longest": 12}, "longest"),
    ],
)
def test_a_bad_task_is_refused(rng, change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        repeated_segments(rng, **({"batch_size": 2, "length": 11, "vocab_size": 5} | change))


def test_the_loop_is_the_steps_written_out():
    weights = initial_weights(CONFIG, seed=3)
    records = list(train(weights, CONFIG, PLAN, watch_every=3))
    rng, adam = np.random.default_rng(PLAN.seed), AdamW(weights)
    for record in records:
        batch = repeated_segments(rng, batch_size=3, length=11, vocab_size=7)
        found = loss_and_gradients(adam.weights, *batch, CONFIG)
        clipped, norm = clip_to_norm(found.gradients, 1.0)
        assert (record.loss, record.gradient_norm) == (found.loss, norm)
        assert (record.layers is not None) == (record.step in (0, 3, 4))
        if record.layers is not None:
            for got, wanted in zip(record.layers, layer_numbers(found), strict=True):
                assert_array_equal(got, wanted)
        adam.step(clipped, record.learning_rate)
    assert [record.step for record in records] == list(range(5))
    assert_allclose([r.learning_rate for r in records[:3]], [1.5e-3, 3e-3, 3e-3])
    for name, w in adam.weights.items():
        assert_array_equal(records[-1].weights[name], w)


def test_equal_plans_give_equal_runs_and_other_seeds_others():
    weights = initial_weights(CONFIG)

    def losses(plan, config=CONFIG):
        return [record.loss for record in train(weights, config, plan)]

    assert losses(PLAN) == losses(PLAN)
    other = Plan(steps=5, batch_size=3, length=11, warmup_steps=2, seed=1)
    assert losses(other) != losses(PLAN)


def test_batches_may_be_given_and_clipping_left_out(rng):
    tokens, targets = rng.integers(0, 7, (2, 5)), rng.integers(0, 7, (2, 5))
    asked = []

    def batches(step):
        asked.append(step)
        return tokens, targets

    weights = initial_weights(CONFIG, std=0.5)
    free = list(train(weights, CONFIG, Plan(steps=3, max_norm=None), batches=batches))
    assert asked == [0, 1, 2]
    assert free[0].gradient_norm == norm_of(
        list(loss_and_gradients(weights, tokens, targets, CONFIG).gradients.values())
    )
    held = list(train(weights, CONFIG, Plan(steps=3, max_norm=1e-9), batches=batches))
    # Adam undoes a common factor of its gradients, down to ε
    assert held[1].loss == pytest.approx(free[0].loss, rel=0.05)


def test_a_small_decoder_learns_by_heart():
    """One batch over and over: the loss falls far below chance within a second."""
    rng = np.random.default_rng(0)
    batch = repeated_segments(rng, batch_size=4, length=11, vocab_size=7)
    plan = Plan(steps=100, peak=3e-2, warmup_steps=5)
    losses = [r.loss for r in train(initial_weights(CONFIG), CONFIG, plan, batches=lambda _: batch)]
    assert losses[0] == pytest.approx(math.log(7), abs=0.05)
    assert losses[-1] < 0.2


def test_the_weights_given_are_not_changed():
    weights = initial_weights(CONFIG)
    before = {name: w.copy() for name, w in weights.items()}
    list(train(weights, CONFIG, PLAN))
    for name, w in weights.items():
        assert_array_equal(w, before[name])


def test_a_run_that_leaves_the_range_says_so():
    weights = {name: w.astype(np.float32) for name, w in initial_weights(CONFIG).items()}
    plan = Plan(steps=20, peak=1e30, floor=0.0, warmup_steps=0, max_norm=None)
    with pytest.raises(ValueError, match=r": got .*, want "), np.errstate(all="ignore"):
        list(train(weights, CONFIG, plan))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Plan(steps=0), "steps"),
        (lambda: Plan(batch_size=1.5), "batch_size"),
        (lambda: Plan(seed=-1), "seed"),
        (lambda: next(train({}, CONFIG)), "weights"),
        (lambda: next(train(initial_weights(CONFIG), CONFIG, watch_every=-1)), "watch_every"),
        (lambda: next(train(initial_weights(CONFIG), CONFIG, Plan(peak=-1.0))), "peak"),
        (lambda: next(train(initial_weights(CONFIG), CONFIG, Plan(max_norm=0.0))), "max_norm"),
    ],
)
def test_bad_plans_are_refused(make, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        make()


def test_numbers_by_layer_are_what_they_are_called(rng):
    weights = {name: w * 5 for name, w in initial_weights(CONFIG).items()}
    tokens, targets = rng.integers(0, 7, (2, 5)), rng.integers(0, 7, (2, 5))
    found = loss_and_gradients(weights, tokens, targets, CONFIG)
    got = layer_numbers(found)
    for i, kept in enumerate(found.tape.layers):
        query, key, mixing = kept["query"], kept["key"], kept["weights"]
        logits = [
            query[b, h, t] @ key[b, h, s] / math.sqrt(6)
            for b, h, t, s in itertools.product(range(2), range(2), range(5), range(5))
            if s <= t
        ]
        assert got.largest_score[i] == pytest.approx(np.abs(logits).max(), rel=1e-12)
        terms = [-(p * np.log(p, where=p > 0, out=np.zeros_like(p))).sum() for p in mixing.reshape(-1, 5)]
        assert got.entropy[i] == pytest.approx(np.mean(terms), rel=1e-12)
        parts = [g.ravel() for name, g in found.gradients.items() if name.startswith(f"layers.{i}.")]
        assert got.weight_gradient[i] == pytest.approx(np.linalg.norm(np.concatenate(parts)), rel=1e-12)
    assert_allclose(got.activation_rms, [np.sqrt(np.mean(x**2)) for x in found.tape.streams], rtol=1e-12)
    assert_allclose(got.stream_gradient, [np.linalg.norm(g) for g in found.stream_gradients], rtol=1e-12)
    assert rms(np.full((3, 5), -2.0)) == pytest.approx(2.0, rel=1e-15)
