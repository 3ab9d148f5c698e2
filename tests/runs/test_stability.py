"""The recorded runs of notebook 15 are those that the code makes, and they show what the notebook says they show."""

import dataclasses
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from transformer_parts.maths.precision import round_to
from transformer_parts.runs import recorded, stability
from transformer_parts.runs.stability import COMPARISONS, Arm, Comparison, Task

#: Another processor sums in another order, and training carries the difference on.
TOLERANCE = 0.03


@pytest.fixture(scope="module")
def recording():
    return recorded.load(stability.NAME)


def ends(recording, comparison, kind):
    """Return the loss of the last 20 steps, one a seed."""
    series = (stability.arm_series(recording, comparison, kind, seed) for seed in stability.SEEDS)
    return np.array([s["loss"][-5:].mean() for s in series])


# ---------------------------------------------------------------- the file


def test_the_file_says_what_was_run(recording):
    task = dataclasses.asdict(Task())
    assert {name: recording.arguments["task"][name] for name in task} == task
    assert recording.arguments["steps"] == stability.STEPS
    assert recording.arguments["seeds"] == stability.SEEDS
    for name, comparison in COMPARISONS.items():
        for kind in ("taken", "left"):
            (arm,) = [v for k, v in recording.arguments["arms"].items() if f"{name}, {kind}" in k.split(" | ")]
            assert dict(arm) == dataclasses.asdict(getattr(comparison, kind))
    assert recording.provenance["cpu_seconds"] < 300


@pytest.mark.parametrize(
    ("comparison", "kind"), [("init", "taken"), ("warm-up", "left"), ("clipping", "left"), ("float32", "left")]
)
def test_a_short_piece_run_again_gives_the_recorded_numbers(recording, comparison, kind):
    arm = getattr(COMPARISONS[comparison], kind)
    again = stability.series(list(stability.run(arm, seed=1, steps=12)))
    kept = stability.arm_series(recording, comparison, kind, 1)
    for name in stability.Watched._fields:
        assert len(again[name]) == 3
        assert_allclose(again[name], kept[name][:3], rtol=TOLERANCE, err_msg=name)


def test_tolerance_tells_arms_apart(recording):
    """What the short piece is compared by would not pass for another arm."""
    one, other = (stability.arm_series(recording, "init", kind, 1) for kind in ("taken", "left"))
    assert not np.allclose(one["loss"][:3], other["loss"][:3], rtol=10 * TOLERANCE)


# ---------------------------------------------------------------- what the notebook says of them


@pytest.mark.parametrize("comparison", ["init", "warm-up", "clipping", "QK-norm", "float32"])
def test_on_all_seeds_the_measure_helps(recording, comparison):
    assert (ends(recording, comparison, "taken") < ends(recording, comparison, "left")).all()


def test_narrowing_does_not_help_four_layers(recording):
    assert (ends(recording, "narrowing", "taken") > ends(recording, "narrowing", "left")).all()


def test_with_adamw_clipping_makes_no_clear_difference(recording):
    difference = ends(recording, "clipping, AdamW", "taken") - ends(recording, "clipping, AdamW", "left")
    assert difference.min() < 0 < difference.max()
    assert np.abs(difference).max() < 0.1


def test_two_of_five_seeds_diverge_under_sgd_without_clipping(recording):
    guess = np.log(Task().vocab_size)
    assert (ends(recording, "clipping", "left") > guess).sum() == 2
    assert (ends(recording, "clipping", "taken") < guess).all()


def test_qk_norm_keeps_logits_low(recording):
    for seed in stability.SEEDS:
        taken, left = (stability.arm_series(recording, "QK-norm", kind, seed) for kind in ("taken", "left"))
        assert taken["largest_logit"].max() < 16 < 60 < left["largest_logit"].max()
        assert taken["entropy"][24] > left["entropy"][24]


# ---------------------------------------------------------------- the code


def test_arms_of_a_comparison_differ_in_one_setting():
    for name, (taken, left) in COMPARISONS.items():
        differ = [f.name for f in dataclasses.fields(Arm) if getattr(taken, f.name) != getattr(left, f.name)]
        assert len(differ) == 1, name
    assert all(isinstance(comparison, Comparison) for comparison in COMPARISONS.values())


def test_points_gather_their_steps():
    single = list(stability.run(Arm(), seed=2, steps=8, every=1))
    gathered = list(stability.run(Arm(), seed=2, steps=8, every=4))
    assert [p.loss for p in gathered] == pytest.approx([np.mean([s.loss for s in single[i : i + 4]]) for i in (0, 4)])
    assert [p.gradient_norm for p in gathered] == [max(s.gradient_norm for s in single[i : i + 4]) for i in (0, 4)]
    assert [p.quantiles for p in gathered] == [single[3].quantiles, single[7].quantiles]


def test_weights_are_kept_in_the_format_of_the_arm():
    """With bfloat16 the first step is the same and the loss of the second is that of the rounded weights."""
    exact, rounded = (
        [p.loss for p in stability.run(Arm(weights_in=w), steps=2, every=1)] for w in ("float32", "bfloat16")
    )
    assert exact[0] == rounded[0]
    assert exact[1] != rounded[1]
    assert exact[1] == pytest.approx(rounded[1], rel=0.01)
    assert round_to(0.18, "bfloat16") != 0.18


def test_quantiles_are_of_single_sequences_in_order():
    for point in stability.run(Arm(), steps=4, every=2):
        low, middle, high = point.quantiles
        assert low < middle < high


def test_a_run_that_overflows_ends_early_and_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points = list(stability.run(Arm(peak=1e4, optimizer="sgd", max_norm=None), steps=40, every=1))
    assert 0 < len(points) < 40
    assert np.isfinite([p.loss for p in points]).all()


@pytest.mark.parametrize(
    ("setting", "bad"),
    [
        ("peak", -1.0),
        ("warmup_steps", -1),
        ("max_norm", 0.0),
        ("weights_in", "float8"),
        ("optimizer", "adam"),
    ],
)
def test_an_arm_that_cannot_be_trained_is_refused(setting, bad):
    with pytest.raises(ValueError, match=f"^{setting}: got "):
        Arm(**{setting: bad})


@pytest.mark.parametrize(("argument", "bad"), [("steps", 0), ("steps", 201), ("every", 0), ("seed", -1)])
def test_a_run_of_no_length_is_refused(argument, bad):
    with pytest.raises(ValueError, match=f"^{argument}: got "):
        next(stability.run(Arm(), **{argument: bad}))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("x", "taken", 0), "comparison"), (("init", "with", 0), "kind"), (("init", "taken", 9), "seed")],
)
def test_what_was_not_recorded_is_named(recording, arguments, named):
    with pytest.raises(ValueError, match=f"^{named}: got "):
        stability.arm_series(recording, *arguments)


def test_the_callers_warnings_stay_as_they_are():
    points = stability.run(Arm(), steps=2, every=1)
    with np.errstate(over="raise", invalid="warn"):
        before = np.geterr()
        for _point in points:
            assert np.geterr() == before
