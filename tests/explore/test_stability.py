"""The explorers of notebook 15: presets give the told numbers, and every picture is of what the maths computes."""

import numpy as np
import pytest
from panel_table import after, shown

from transformer_parts.explore.catalogue import LIVE_RUNS, PANELS
from transformer_parts.explore.stability import (
    LIKE_GPT2,
    QUANTITIES,
    LiveTraining,
    LogitGrowth,
    RecordedRuns,
    StreamDepth,
)
from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.stability import stream_variance
from transformer_parts.runs import recorded, stability
from transformer_parts.runs.stability import COMPARISONS, Arm


def test_all_are_in_the_catalogue():
    assert {StreamDepth, LogitGrowth, RecordedRuns} <= set(PANELS)
    assert LiveTraining in LIVE_RUNS


# ---------------------------------------------------------------- the stream


@pytest.mark.parametrize(
    ("preset", "factor", "narrowed"),
    [
        ("4 layers", "0.353553", "0.0317"),
        ("12 layers, like GPT-2 small", "0.204124", "0.0339"),
        ("16 layers", "0.176777", "0.0320"),
    ],
)
def test_worked_depths_stand_on_the_screen(preset, factor, narrowed):
    panel = after(StreamDepth(), preset)
    assert shown(panel, "1 / √(2L)") == factor
    assert shown(panel, "after L layers, narrowed").startswith(narrowed)


def test_the_panel_starts_with_the_product_of_gpt_2():
    assert shown(StreamDepth(), "std · √D of a matrix that reads the stream") == f"{0.02 * 768**0.5:.4f}"
    assert f"{LIKE_GPT2 * 8:.4f}" == "0.5543"


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("scheme", ["normal", "xavier", "kaiming"])
def test_the_stream_is_that_of_a_forward_pass(seed, scheme):
    panel = StreamDepth()
    panel.set(depth=5, scheme=scheme, std=0.1, seed=seed)
    data = panel.compute(**panel.state)
    config = StackConfig(vocab_size=64, n_layers=5, d_model=64, n_heads=2, d_ff=160, rope_base=None)
    tokens = np.random.default_rng(seed).integers(0, 64, 16)
    for run, scaling in ((data.scaled, True), (data.unscaled, False)):
        weights = initial_weights(config, scheme=scheme, std=0.1, seed=seed, residual_scaling=scaling)
        wanted = stream_variance(weights, tokens, config)
        np.testing.assert_allclose(run.stream, wanted.stream)
        np.testing.assert_allclose(run.branches, wanted.branches)


# ---------------------------------------------------------------- logits


def test_growth_by_ten_makes_the_logits_a_hundred_times_as_large():
    panel = LogitGrowth()
    first = float(shown(panel, "largest logit, plain"))
    normed = shown(panel, "largest logit, QK-norm")
    after(panel, "Grown by 10")
    assert float(shown(panel, "largest logit, plain")) == pytest.approx(100 * first, rel=1e-4)
    assert shown(panel, "largest logit, QK-norm") == normed
    assert shown(panel, "bound of QK-norm, γ²√K") == "8.0000"
    after(panel, "QK-norm, gain 3")
    assert shown(panel, "bound of QK-norm, γ²√K") == "72.0000"


def test_float16_overflow_is_told_and_bfloat16_rounds():
    panel = after(LogitGrowth(), "float16 overflows")
    assert shown(panel, "largest logit, plain") == "inf"
    assert shown(panel, "rows without a softmax (NaN), plain") == "2 of 16"
    assert shown(panel, "mean entropy, plain") == "—"
    panel.set(dtype="bfloat16")
    assert shown(panel, "rows without a softmax (NaN), plain") == "0 of 16"
    after(panel, "bfloat16 rounds")
    coarse = float(shown(panel, "largest change of a weight by rounding, plain"))
    panel.set(dtype="float16")
    assert 4 < coarse / float(shown(panel, "largest change of a weight by rounding, plain")) < 16


# ---------------------------------------------------------------- recorded runs


def test_recorded_numbers_stand_in_the_table():
    panel, recording = RecordedRuns(), recorded.load(stability.NAME)
    for name in COMPARISONS:
        panel.set(measure=name, quantity="gradient_norm", seed=1, step=100)
        for kind, words in (("taken", "with"), ("left", "without")):
            series = stability.arm_series(recording, name, kind, 1)
            assert float(shown(panel, f"loss, {words}")) == pytest.approx(series["loss"][24], rel=1e-3, abs=5e-4)
            ends = shown(panel, f"loss of the last 20 steps, each seed, {words}").split(", ")
            assert len(ends) == len(stability.SEEDS)
            assert float(ends[0]) == pytest.approx(series["loss"][-5:].mean(), rel=5e-3, abs=5e-4)


def test_every_measure_has_a_preset_and_every_quantity_a_curve():
    panel = RecordedRuns()
    assert {preset["measure"] for preset in panel.presets.values()} == set(COMPARISONS)
    for quantity in QUANTITIES:
        panel.set(quantity=quantity)
        data = panel.compute(**panel.state)
        assert (data.taken[0].band is not None) == (quantity == "quantiles")
        low, high = data.limits
        for run in data.taken + data.left:
            assert low <= run.watched.min() <= run.watched.max() <= high


def test_only_the_gradient_norm_has_the_line_of_the_clipping():
    panel = RecordedRuns()
    panel.set(measure="clipping", quantity="gradient_norm")
    assert panel.compute(**panel.state).line == 1.0
    panel.set(quantity="entropy")
    assert panel.compute(**panel.state).line is None


# ---------------------------------------------------------------- the live run


@pytest.fixture
def live(monkeypatch):
    monkeypatch.setattr(stability, "STEPS", 12)
    run = LiveTraining()
    yield run
    run.close()


def finished(live):
    live.start()
    assert live.wait(60)
    assert live.error is None
    return live


def test_before_it_is_started_the_recorded_run_is_shown():
    live = LiveTraining()
    series = stability.arm_series(recorded.load(stability.NAME), "init", "taken", 0)
    assert live.shown.taken == ()
    np.testing.assert_array_equal(live.shown.left[0].loss, series["loss"])


def test_the_live_run_begins_as_the_recorded_one(live):
    """Its schedule is of so many steps as there are here, so only the warm-up is the same."""
    (run,) = finished(live).shown.taken
    series = stability.arm_series(recorded.load(stability.NAME), "init", "taken", 0)
    np.testing.assert_allclose(run.loss, series["loss"][:3], rtol=0.03)
    np.testing.assert_allclose(run.watched, series["gradient_norm"][:3], rtol=0.03)
    assert run.steps.tolist() == [4, 8, 12]


def test_switches_reach_the_run_and_the_run_before_stays(live, monkeypatch):
    arms = []
    run = stability.run
    monkeypatch.setattr(stability, "run", lambda arm, seed, **options: arms.append(arm) or run(arm, seed, **options))
    finished(live)
    first = live.shown.taken[0].loss
    live.controls["warmup"].value = live.controls["clip"].value = live.controls["scaling"].value = False
    live.controls["qk_norm"].value, live.controls["placement"].value = True, "post"
    live.controls["peak"].value, live.controls["std"].value = 0.03, 0.02
    finished(live)
    assert arms == [
        Arm(),
        Arm(peak=0.03, warmup_steps=0, max_norm=None, std=0.02, residual_scaling=False, placement="post", qk_norm=True),
    ]
    np.testing.assert_array_equal(live.shown.left[0].loss, first)
    assert not np.allclose(live.shown.taken[0].loss, first)


def test_a_run_that_diverges_ends_and_says_so(live, monkeypatch):
    monkeypatch.setattr(stability, "STEPS", 40)
    live.controls["optimizer"].value, live.controls["peak"].value = "sgd", 1.0
    live.controls["std"].value, live.controls["clip"].value = 2.0, False
    finished(live)
    done = len(live.records)
    assert 0 < done < 40
    assert f"ended by itself, its numbers no longer finite, after {done} of 40 steps" in live.status.value
