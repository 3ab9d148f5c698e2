"""The explorers of notebook 10: what they show is a real pass, or what was recorded."""

import re

import numpy as np
import pytest

from transformer_parts.explore.norm_placement import NAMES, PlacementDepth, PlacementLayers, PlacementRuns
from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.residual_stream import first_pass, initialized
from transformer_parts.runs import recorded


def page(panel) -> str:
    """The table as a reader sees it, one line a row."""
    text = re.sub(r"</tr>", "\n", panel.readout.value)
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"<[^>]*>", " ", text)).replace("  ", " ")


def value(panel, label: str) -> str:
    (line,) = [row.value for row in panel.rows(panel.compute(**panel.state)) if label in row.label]
    assert line in page(panel)
    return line


@pytest.fixture(scope="module")
def layers():
    return PlacementLayers()


@pytest.fixture(autouse=True)
def rested(layers):
    layers.reset()


def test_the_numbers_of_the_worked_depth(layers):
    assert value(layers, "α and β for 8 layers") == "2.0000, 0.3536"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheme", ["xavier", "gpt2"])
def test_a_frame_is_a_pass_forward_and_back(layers, name, scheme):
    """A decoder built here, of its own draws where it is as deep as the panel's, has the panel's numbers."""
    state = layers.state | {"chosen": NAMES[name], "compared": "pre", "d_model": 16, "scheme": scheme, "norm": "rms"}
    got = layers.compute(**state).chosen
    config = StackConfig(
        vocab_size=64, n_layers=8, d_model=16, n_heads=2, d_ff=32, ffn="relu", norm="rms", placement=NAMES[name],
        rope_base=None, tied=False,
    )  # fmt: skip
    wanted = first_pass(initialized(config, scheme=scheme), config)
    assert got.placement == NAMES[name]
    for a, b in zip(got.numbers, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_post_rises_towards_the_output_and_pre_falls(layers):
    layers.set(**layers.presets["Pre and Post"])
    assert float(value(layers, "Pre: last over first")) < 0.6
    assert float(value(layers, "Post: last over first")) > 1.5
    assert value(layers, "Post: RMS of the stream").endswith(", 1.000")


def test_one_placement_beside_itself_is_computed_once(layers):
    data = layers.compute(**layers.state | {"chosen": "post", "compared": "post"})
    assert data.chosen is data.compared


def test_a_sandwich_bounds_its_branches(layers):
    layers.set(**layers.presets["Pre and Sandwich, wide branches"])
    wide = layers.compute(**layers.state)
    narrow = layers.compute(**layers.state | {"branch_scale": 1.0})
    pre, sandwich = (
        [data.numbers.activation_rms[-1] for data in pair]
        for pair in ((narrow.chosen, wide.chosen), (narrow.compared, wide.compared))
    )
    assert pre[1] > 3 * pre[0]
    assert sandwich[1] == pytest.approx(sandwich[0], rel=0.1)


def test_the_claim_stands_on_the_page():
    panel = PlacementDepth()
    series = recorded.load("norm_placement").series["depth"]["xavier"]
    panel.set(**panel.presets["The claim"])
    assert value(panel, "Pre, mean at L = 32").startswith(f"{series['pre']['last'][:, 5].mean():.4f}")
    assert float(value(panel, "Pre: grows as L to the power")) == pytest.approx(-0.5, abs=0.12)
    assert float(value(panel, "Post: grows as L to the power")) == pytest.approx(0, abs=0.12)
    panel.set(**panel.presets["Why: the stream"])
    assert float(value(panel, "Pre: grows as L to the power")) == pytest.approx(0.5, abs=0.12)
    assert value(panel, "Post, mean") == "1.0000 (1.0000 – 1.0000)"


def test_runs_are_the_recorded_ones():
    panel = PlacementRuns()
    series = recorded.load("norm_placement").series["runs"]
    for name, placement in NAMES.items():
        panel.set(placement=placement, rate=1e-2, step=150)
        for label, warmup in (("with warm-up", 50), ("without", 0)):
            found = series[f"{placement}, 0.01, {warmup}"]
            wanted = ", ".join(f"{loss:.3f}" for loss in found["loss"][:, -1])
            assert value(panel, f"{label}: loss at the end") == wanted, name
            first, last = found["gradient"][15][[0, -1]]
            assert value(panel, f"{label}: gradient of first and last") == f"{first:.4f}, {last:.4f}"
    assert value(panel, "chance") == "2.7726"
