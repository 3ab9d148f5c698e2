"""The task, the loop, and that a small decoder learns by it (what it takes to learn it well is in `make bench`)."""

import itertools
import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.decoder import StackConfig, loss_and_gradients
from transformer_parts.maths.decoder.stack import layer_numbers, norm_of, rms
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.training import AdamW, Plan, clip_to_norm, repeated_segments, train, warmup_cosine

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


def some_weights(rng, dtype=np.float64):
    return {"matrix": rng.normal(size=(3, 5)).astype(dtype), "gain": rng.normal(size=7).astype(dtype)}


def by_the_paper(w, gradients, rates, beta1, beta2, eps, decay):
    """Algorithm 2 of arXiv:1711.05101 for one number, in fifty digits."""
    with mpmath.workdps(50):
        w, mean, square = mpmath.mpf(w), mpmath.mpf(0), mpmath.mpf(0)
        for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
            mean = beta1 * mean + (1 - mpmath.mpf(beta1)) * g
            square = beta2 * square + (1 - mpmath.mpf(beta2)) * mpmath.mpf(g) ** 2
            unbiased, root = mean / (1 - mpmath.mpf(beta1) ** t), mpmath.sqrt(square / (1 - mpmath.mpf(beta2) ** t))
            w = w - rate * (unbiased / (root + eps) + decay * w)
        return float(w)


def test_adamw_is_the_papers_algorithm(rng):
    gradients, rates = rng.normal(size=13), rng.uniform(1e-3, 1e-1, 13)
    adam = AdamW({"w": np.array([[0.7]])}, betas=(0.8, 0.97), eps=1e-3, weight_decay=0.3)
    for g, rate in zip(gradients, rates, strict=True):
        adam.step({"w": np.array([[g]])}, rate)
    assert adam.steps == 13
    wanted = by_the_paper(0.7, gradients, rates, 0.8, 0.97, 1e-3, 0.3)
    assert adam.weights["w"].item() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.oracle
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_adamw_agrees_with_torch(rng, torch, decay):
    weights = some_weights(rng)
    leaves = {name: torch.tensor(w, requires_grad=True) for name, w in weights.items()}
    groups = [{"params": [leaves["matrix"]], "weight_decay": decay}, {"params": [leaves["gain"]], "weight_decay": 0}]
    theirs = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    ours = AdamW(weights, betas=(0.9, 0.95), eps=1e-8, weight_decay=decay)
    for _ in range(11):
        gradients = {name: rng.normal(size=w.shape) for name, w in weights.items()}
        for name, leaf in leaves.items():
            leaf.grad = torch.tensor(gradients[name])
        theirs.step()
        ours.step(gradients, 1e-2)
    for name, leaf in leaves.items():
        assert_allclose(ours.weights[name], leaf.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_the_first_step_has_the_size_of_the_rate(size):
    adam = AdamW({"w": np.zeros(1)}, eps=1e-12)
    adam.step({"w": np.array([size])}, 0.01)
    assert adam.weights["w"].item() == pytest.approx(-0.01, rel=1e-6)


def test_decay_acts_on_matrices_alone_and_without_any_gradient(rng):
    weights = some_weights(rng)
    adam = AdamW(weights, weight_decay=0.5)
    adam.step({name: np.zeros_like(w) for name, w in weights.items()}, 0.1)
    assert_allclose(adam.weights["matrix"], 0.95 * weights["matrix"], rtol=1e-15)
    assert_array_equal(adam.weights["gain"], weights["gain"])


def test_what_was_given_is_not_written_into(rng):
    weights = some_weights(rng, np.float32)
    before = {name: w.copy() for name, w in weights.items()}
    adam = AdamW(weights)
    gradients = {name: np.ones_like(w) for name, w in weights.items()}
    adam.step(gradients, 0.1)
    for name, w in weights.items():
        assert_array_equal(w, before[name])
        assert_array_equal(gradients[name], 1)
        assert adam.weights[name].dtype == np.float32
        assert (adam.weights[name] != w).all()


def test_a_refused_step_changes_nothing(rng):
    weights = some_weights(rng)
    adam = AdamW(weights)
    good = {name: np.ones_like(w) for name, w in weights.items()}
    for bad, message in (
        ({"matrix": good["matrix"]}, "gradients: got other names"),
        (good | {"gain": np.ones(3)}, r"gradients\['gain'\]: got shape"),
        (good | {"gain": np.full(7, np.nan)}, r"gradients\['gain'\]: got nan"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            adam.step(bad, 0.1)
    with pytest.raises(ValueError, match=r"^learning_rate: got -1"):
        adam.step(good, -1)
    assert adam.steps == 0
    for name, w in weights.items():
        assert_array_equal(adam.weights[name], w)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"betas": (1.0, 0.9)}, r"betas\[0\]"),
        ({"betas": (0.9, -0.1)}, r"betas\[1\]"),
        ({"betas": (0.9,)}, "betas"),
        ({"betas": 0.9}, "betas"),
        ({"eps": 0.0}, "eps"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"weights": {"w": [1.0]}}, r"weights\['w'\]"),
        ({"weights": {"w": np.ones(3, np.float16)}}, r"weights\['w'\]"),
    ],
)
def test_bad_settings_are_refused(change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        AdamW(**({"weights": {"w": np.ones(3)}} | change))


def test_the_schedule_by_hand():
    rates = [warmup_cosine(t, peak=2.0, floor=0.2, warmup_steps=4, total_steps=10) for t in range(12)]
    assert_allclose(rates[:5], [0.5, 1.0, 1.5, 2.0, 2.0])
    assert rates[7] == pytest.approx(1.1)  # half-way down
    assert rates[5] == pytest.approx(0.2 + 0.9 * (1 + math.cos(math.pi / 6)))
    assert rates[10] == rates[11] == pytest.approx(0.2)
    assert warmup_cosine(0, peak=2.0, warmup_steps=0, total_steps=10) == 2.0


@pytest.mark.oracle
def test_the_cosine_agrees_with_torch(torch):
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(torch.optim.SGD([torch.zeros(1)], lr=0.3), 20, eta_min=0.01)
    for t in range(20):
        got = warmup_cosine(t, peak=0.3, floor=0.01, warmup_steps=0, total_steps=20)
        assert got == pytest.approx(theirs.get_last_lr()[0], rel=1e-9)
        theirs.optimizer.step()
        theirs.step()


@given(st.integers(0, 30), st.integers(1, 50), st.floats(1e-6, 10), st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_the_rate_rises_then_falls_between_its_bounds(warmup, more, peak, part):
    total, floor = warmup + more, part * peak
    rates = [warmup_cosine(t, peak=peak, floor=floor, warmup_steps=warmup, total_steps=total) for t in range(total + 1)]
    assert all(b >= a for a, b in pairwise(rates[:warmup]))
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(rates[warmup:]))
    assert max(rates) == pytest.approx(peak)
    assert rates[-1] == pytest.approx(floor)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"step": -1}, "step"),
        ({"peak": -1.0}, "peak"),
        ({"floor": 2.0}, "floor"),
        ({"warmup_steps": -1}, "warmup_steps"),
        ({"total_steps": 4}, "total_steps"),
    ],
)
def test_a_bad_schedule_is_refused(change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        warmup_cosine(**({"step": 0, "peak": 1.0, "warmup_steps": 4, "total_steps": 10} | change))


def test_clipping_keeps_the_direction_and_leaves_small_gradients(rng):
    gradients = {"a": rng.normal(size=(3, 5)), "b": rng.normal(size=7)}
    flat = np.concatenate([g.ravel() for g in gradients.values()])
    clipped, norm = clip_to_norm(gradients, 0.5)
    assert norm == pytest.approx(np.linalg.norm(flat), rel=1e-14)
    got = np.concatenate([g.ravel() for g in clipped.values()])
    assert_allclose(got, flat * 0.5 / norm, rtol=1e-14)
    same, _ = clip_to_norm(gradients, 100.0)
    assert all(same[name] is g for name, g in gradients.items())


@pytest.mark.oracle
def test_clipping_agrees_with_torch(rng, torch):
    gradients = {"a": rng.normal(size=(3, 5)), "b": rng.normal(size=7)}
    leaves = {name: torch.zeros(g.shape, dtype=torch.float64, requires_grad=True) for name, g in gradients.items()}
    for name, leaf in leaves.items():
        leaf.grad = torch.tensor(gradients[name])
    norm = torch.nn.utils.clip_grad_norm_(list(leaves.values()), 0.5)
    clipped, got = clip_to_norm(gradients, 0.5)
    assert got == pytest.approx(norm.item(), rel=1e-13)
    for name, leaf in leaves.items():
        assert_allclose(clipped[name], leaf.grad.numpy(), rtol=1e-5)  # torch divides by norm + 1e-6


def test_clipping_float32_does_not_overflow():
    clipped, norm = clip_to_norm({"a": np.full(4, 1e30, np.float32)}, 1.0)
    assert norm == pytest.approx(2e30, rel=1e-6)
    assert_allclose(clipped["a"], 0.5, rtol=1e-6)
    assert clipped["a"].dtype == np.float32


def test_whole_numbers_are_clipped_as_floats():
    clipped, norm = clip_to_norm({"a": np.array([3, 4]), "b": [0, 12]}, 1.0)
    assert norm == 13
    assert_allclose(np.concatenate([clipped["a"], clipped["b"]]), np.array([3, 4, 0, 12]) / 13)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_norm_that_is_not_finite_clips_nothing(bad):
    gradients = {"a": np.array([3.0, bad]), "b": np.ones(2)}
    clipped, norm = clip_to_norm(gradients, 1.0)
    assert not np.isfinite(norm)
    for name, g in gradients.items():
        assert_array_equal(clipped[name], g)


def test_what_holds_no_numbers_is_not_clipped():
    with pytest.raises(ValueError, match=r"^gradients\['a'\]: got"):
        clip_to_norm({"a": np.array(["x"])}, 1.0)


def test_a_bad_bound_is_refused():
    for bad in (0.0, -1.0, np.nan, None):
        with pytest.raises(ValueError, match=r"^max_norm: got"):
            clip_to_norm({"a": np.ones(3)}, bad)
