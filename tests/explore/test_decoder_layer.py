"""The explorers of notebook 14: worked sizes stand on the screen, zeros are exact, recorded runs say what they saw."""

import numpy as np
import pytest
from panel_table import after, shown

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.decoder_layer import NAMES, STD, VARIANTS, DecoderCausality, DecoderTraining, DecoderWalk
from transformer_parts.maths.decoder import DecoderLayer, layer_shapes, random_layer
from transformer_parts.runs import recorded


def test_all_are_in_the_catalogue():
    assert {DecoderWalk, DecoderCausality, DecoderTraining} <= set(PANELS)


# ---------------------------------------------------------------- walk


@pytest.fixture(scope="module")
def walk():
    return DecoderWalk()


def test_the_worked_sizes_stand_on_the_screen(walk):
    after(walk, "Worked sizes")
    assert [shown(walk, f"parameters: {part}") for part in ("attention", "FFN", "norms")] == ["256", "384", "16"]
    assert shown(walk, "parameters of the layer") == "656"
    assert shown(walk, "parameters of this step, so far") == "0, 656"
    assert shown(walk, "shape") == "2 × 3 × 8"
    # 2·640 for each of 6 tokens, and 4·3·8 for the scores and mixing of each
    assert shown(walk, "FLOPs of the layer's products") == f"{6 * (2 * 640 + 4 * 3 * 8):,}"
    assert shown(walk, "largest change of Y against the usual layer") == "0.0000"


@pytest.mark.parametrize(
    ("step", "name", "axes", "shape", "weights"),
    [
        (1, "norm1", "B × L × D", "2 × 3 × 8", "attn_norm 8"),
        (2, "q", "B × H × L × K", "2 × 2 × 3 × 4", "w_q 8 × 8"),
        (5, "q_rotated", "B × H × L × K", "2 × 2 × 3 × 4", "none"),
        (8, "weights", "B × H × L × S", "2 × 2 × 3 × 3", "none"),
        (13, "gate", "B × L × F", "2 × 3 × 16", "w_gate 8 × 16"),
        (16, "ffn", "B × L × D", "2 × 3 × 8", "w_down 16 × 8"),
    ],
)
def test_each_step_says_its_name_shape_and_weights(walk, step, name, axes, shape, weights):
    after(walk, "Worked sizes").set(step=step)
    assert shown(walk, f"step {step} of 17") == NAMES[name]
    assert (shown(walk, "axes"), shown(walk, "shape")) == (axes, shape)
    assert shown(walk, "weights of this step") == weights


@pytest.mark.parametrize(
    ("preset", "total", "moves"),
    [
        ("One kv head", "592", False),
        ("No RoPE", "656", True),
        ("LayerNorm", "672", True),
        ("Plain FFN", "528", True),
        ("Plain FFN, same budget", "656", True),
        ("No mask", "656", True),
        ("Post", "656", True),
    ],
)
def test_presets_exchange_one_part_and_say_what_it_changes(walk, preset, total, moves):
    after(walk, preset)
    assert shown(walk, "parameters of the layer") == total
    assert (float(shown(walk, "largest change of Y against the usual layer")) > 0.01) == moves
    assert shown(walk, "shape").startswith("2 × ")


def test_the_last_tensor_is_the_decoder_layers(walk):
    after(walk, "Worked sizes")
    walk.set(G=1, T=5, seed=3)
    data = walk.compute(**walk.state)
    for step in data.steps:
        assert step.parameters == sum(int(np.prod(layer_shapes(data.config)[name])) for name in step.uses)
    weights = random_layer(data.config, std=STD, seed=3)
    layer = DecoderLayer(**weights, n_heads=2, n_kv_heads=1)
    np.testing.assert_allclose(layer(data.steps[0].value), data.now.value, atol=1e-13)


def test_sliders_are_kept_consistent():
    panel = DecoderWalk()
    panel.controls["h"].value = 4
    assert panel.controls["head"].max == 3
    panel.set(head=3, G=4)
    panel.controls["h"].value = 1
    assert (panel.controls["G"].value, panel.controls["head"].value, panel.controls["head"].max) == (1, 0, 0)
    panel.controls["G"].value = 2
    assert panel.controls["h"].value == 2
    panel.controls["B"].value = 1
    assert panel.controls["entry"].max == 0
    panel.controls["step"].value = 17
    panel.controls["rope"].value = False
    assert panel.controls["step"].max == 15
    assert shown(panel, "step 15 of 15") == NAMES["Y"]
    panel.controls["ffn"].value = "relu"
    assert shown(panel, "step 13 of 13") == NAMES["Y"]
    panel.reset()
    assert panel.controls["step"].max == 17
    assert panel.error is None


# ---------------------------------------------------------------- causality


@pytest.fixture(scope="module")
def causality():
    return DecoderCausality()


@pytest.mark.parametrize("preset", ["One layer", "A stack of four"])
@pytest.mark.parametrize("token", [1, 4, 7])
def test_with_the_causal_mask_nothing_before_moves(causality, preset, token):
    panel = after(causality, preset)
    panel.set(token=token)
    assert shown(panel, "largest change before t") == "exactly 0"
    assert shown(panel, "does a token see the future?") == "not from this one"
    moved = ", ".join(str(position) for position in range(token, 8))
    assert shown(panel, "positions that moved") == f"{8 - token} of 8: {moved}"


@pytest.mark.parametrize(
    ("preset", "moved"),
    [
        ("No mask", "8 of 8: 0, 1, 2, 3, 4, 5, 6, 7"),
        ("One diagonal too far", "6 of 8: 2, 3, 4, 5, 6, 7"),
        ("Wrong way round", "4 of 8: 0, 1, 2, 3"),
    ],
)
def test_wrong_masks_leak_and_say_so(causality, preset, moved):
    panel = after(causality, preset)
    assert float(shown(panel, "largest change before t")) > 1e-5
    assert shown(panel, "does a token see the future?") == "yes: it leaks"
    assert shown(panel, "positions that moved") == moved
    panel.controls["token"].value = 0
    assert shown(panel, "largest change before t") == "none before it"


def test_token_and_layer_stay_within_what_there_is(causality):
    panel = causality
    panel.reset()
    panel.controls["token"].value = 7
    panel.controls["T"].value = 3
    assert (panel.controls["token"].value, panel.controls["token"].max) == (2, 2)
    panel.controls["n_layers"].value = 1
    assert (panel.controls["layer"].value, panel.error) == (1, None)
    assert shown(panel, "largest change after t") == "none after it"


# ---------------------------------------------------------------- training


@pytest.fixture(scope="module")
def training():
    return DecoderTraining()


def test_before_training_the_loss_is_about_that_of_a_uniform_guess(training):
    panel = after(training, "Before training")
    assert shown(panel, "ln V, the loss of a uniform guess") == "3.4657"
    assert shown(panel, "least possible here") == "0.7942"
    assert abs(float(shown(panel, "usual decoder")) - np.log(32)) < 0.1


def test_the_usual_decoder_learns_what_can_be_known_and_no_more(training):
    panel = after(training, "After training")
    assert float(shown(panel, "after that: this decoder")) < 0.05
    assert 3.4 < float(shown(panel, "first time round: this decoder")) < 3.7
    assert 0.79 < float(shown(panel, "this decoder")) < 0.85


@pytest.mark.parametrize("preset", ["No mask", "Targets not shifted"])
def test_mistakes_look_wonderful_and_are_worse_than_guessing(training, preset):
    panel = after(training, preset)
    for when in ("first time round", "after that"):
        assert float(shown(panel, f"{when}: as its training sees it")) < 0.01
    assert float(shown(panel, "first time round: this decoder")) > 2 * np.log(32)
    assert float(shown(panel, "this decoder")) > 2
    assert panel.compute(**panel.state).differs


@pytest.mark.parametrize("variant", ["usual", "no RoPE", "LayerNorm", "plain FFN", "Post"])
def test_elsewhere_training_sees_the_honest_loss(training, variant):
    for step in (0, 100, 200):
        training.set(variant=variant, step=step)
        assert not training.compute(**training.state).differs


def test_every_variant_of_the_recording_can_be_chosen_and_every_seed(training):
    panel, recording = training, recorded.load("decoder_layer")
    assert set(VARIANTS.values()) == set(recording.series)
    for variant in VARIANTS.values():
        finals = []
        for seed in recording.arguments["seeds"]:
            panel.set(variant=variant, step=200, seed=seed)
            finals.append(shown(panel, "this decoder"))
        wanted = recording.series[variant]["honest"][:, -1]
        assert [float(final) for final in finals] == pytest.approx(wanted.tolist(), abs=6e-5)
        each = shown(panel, "after training, each seed: all positions").split(", ")
        assert [float(loss) for loss in each] == pytest.approx(wanted.tolist(), abs=6e-4)


def test_curves_by_position_belong_to_the_first_seed_and_their_mean_is_its_curve(training):
    training.set(variant="no RoPE", step=120, seed=0)
    data = training.compute(**training.state)
    assert data.honest_at.mean() == pytest.approx(data.honest[data.look], abs=1e-3)
    training.set(seed=1)
    other = training.compute(**training.state)
    np.testing.assert_array_equal(other.honest_at, data.honest_at)
    assert not np.array_equal(other.honest, data.honest)


@pytest.mark.parametrize(
    ("tensor", "change", "kept"),
    [
        ("weights", {"rope": False}, "weights"),
        ("weights", {"placement": "post"}, "weights"),
        ("ffn", {"ffn": "relu"}, "ffn"),
        ("Y", {"ffn": "relu 3/2"}, "Y"),
        ("q_rotated", {"rope": False}, "q"),
        ("norm2", {"placement": "post"}, "U"),
        ("up", {"ffn": "relu"}, "hidden"),
    ],
)
def test_a_switched_part_leaves_the_tensor_that_is_shown(tensor, change, kept):
    panel = DecoderWalk()
    names = [step.name for step in panel.compute(**panel.state).steps]
    panel.set(step=names.index(tensor))
    ((name, value),) = change.items()
    panel.controls[name].value = value
    assert panel.compute(**panel.state).now.name == kept
    panel.controls[name].value = panel.initial[name]
    if tensor == kept:
        assert panel.compute(**panel.state).now.name == tensor
