"""The recorded measurements of notebook 10: short pieces measured anew agree with the file."""

import numpy as np
import pytest

from transformer_parts.maths.decoder import PLACEMENTS
from transformer_parts.maths.training import Plan
from transformer_parts.runs import norm_placement, recorded


@pytest.fixture(scope="module")
def recording():
    return recorded.load(norm_placement.NAME)


def test_the_recording_is_of_the_present_settings(recording):
    arguments = recording.arguments
    assert dict(arguments["kind"]) == dict(norm_placement.KIND)
    assert dict(arguments["depth_sizes"]) == dict(norm_placement.DEPTH_SIZES)
    assert dict(arguments["run_sizes"]) == dict(norm_placement.RUN_SIZES)
    assert Plan(**arguments["plan"]) == norm_placement.PLAN
    for name, value in (
        ("depths", norm_placement.DEPTHS),
        ("depth_seeds", norm_placement.DEPTH_SEEDS),
        ("segment", norm_placement.SEGMENT),
        ("rates", norm_placement.RATES),
        ("warmups", norm_placement.WARMUPS),
        ("run_seeds", norm_placement.RUN_SEEDS),
    ):
        assert tuple(arguments[name]) == value
    assert len(recording.series["runs"]) == len(PLACEMENTS) * len(norm_placement.RATES) * len(norm_placement.WARMUPS)


@pytest.mark.parametrize("scheme", ["xavier", "gpt2"])
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_gradients_by_depth_measured_anew(recording, placement, scheme):
    """float64, so that machines differ in the last digits alone; the file keeps six."""
    file = recording.series["depth"][scheme][placement]
    for seed, depth in ((0, 1), (7, 4)):
        found, at = norm_placement.at_depth(placement, scheme, depth, seed), (seed, norm_placement.DEPTHS.index(depth))
        assert found.ffn_gradient[-1] == pytest.approx(file["last"][at], rel=2e-5)
        assert found.ffn_gradient[0] == pytest.approx(file["first"][at], rel=2e-5)
        assert found.activation_rms[-1] == pytest.approx(file["activation_rms"][at], rel=2e-5)


@pytest.mark.parametrize(("placement", "warmup"), [("pre", 0), ("deepnorm", 50)])
def test_the_first_steps_run_anew_are_the_recorded_ones(recording, placement, warmup):
    """float32 differs between machines in its last digits, which ten steps do not yet make large."""
    found = norm_placement.short_run(placement, 1e-2, warmup, 0, steps=norm_placement.EVERY)
    file = recording.series["runs"][norm_placement.run_name(placement, 1e-2, warmup)]
    np.testing.assert_allclose(found["loss"], file["loss"][0, :1], rtol=0, atol=2e-3)
    np.testing.assert_allclose(found["activation_rms"][0], file["activation_rms"][0], rtol=1e-4)
    np.testing.assert_allclose(found["gradient"][0], file["gradient"][0], rtol=1e-3)


def test_what_the_notebook_says_of_the_runs(recording):
    """At the larger rate Post needs its warm-up and the others do not; at the smaller one nobody does."""

    def end(placement, rate, warmup):
        return recording.series["runs"][norm_placement.run_name(placement, rate, warmup)]["loss"][:, -1]

    cold, warm = end("post", 1e-2, 0), end("post", 1e-2, 50)
    assert (cold > warm + 0.3).all()
    assert np.median(cold) > np.median(warm) + 0.5
    for placement, rate in (("pre", 1e-2), ("sandwich", 1e-2), ("deepnorm", 1e-2), *((p, 3e-3) for p in PLACEMENTS)):
        assert np.abs(end(placement, rate, 0) - end(placement, rate, 50)).max() < 0.3
