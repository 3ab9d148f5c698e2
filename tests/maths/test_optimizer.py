import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.optimizer import AdamW, clip_to_norm, warmup_cosine


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
