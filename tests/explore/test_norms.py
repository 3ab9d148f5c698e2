"""The explorers of notebook 09: the worked numbers stand on the screen, real vectors beside random ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from panel_table import after, shown

from transformer_parts.explore.catalogue import PANELS
from transformer_parts.explore.norms import NormBars, NormResidual, NormSphere
from transformer_parts.models.excerpt import load_excerpt


def test_all_are_in_the_catalogue():
    assert {NormBars, NormSphere, NormResidual} <= set(PANELS)


# ---------------------------------------------------------------- bars


@pytest.mark.parametrize(
    ("preset", "rms", "layer"),
    [
        ("By hand: (1, 3)", "(0.447214, 1.341641)", "(-1.000000, 1.000000)"),
        ("x + 1", "(0.632456, 1.264911)", "(-1.000000, 1.000000)"),
        ("(1, 0, 0, 0)", "(2.000000, 0.000000, 0.000000, 0.000000)", "(1.732051, -0.577350, -0.577350, -0.577350)"),
    ],
)
def test_hand_calculations_stand_on_the_screen(preset, rms, layer):
    panel = after(NormBars(), preset)
    assert shown(panel, "RMSNorm(x)") == rms
    assert shown(panel, "LayerNorm(x)") == layer
    assert shown(panel, "RMS of the two outputs") == "1.000000, 1.000000"


def test_moments_stand_on_the_screen():
    panel = NormBars()
    labels = ("mean μ", "RMS", "standard deviation σ, with 1/D", "|μ| / RMS")
    assert [shown(panel, label) for label in labels] == ["2.000000", "2.236068", "1.000000", "0.894427"]
    assert shown(panel, "largest difference of the outputs") == "1.447214"


@pytest.mark.parametrize(("eps", "rms"), [("1e-5", "0.3015"), ("1e-6", "0.7071"), ("1e-8", "0.9950")])
def test_epsilon_presets_show_how_small_inputs_come_out(eps, rms):
    panel = after(NormBars(), f"σ = 0.001, ε = {eps}")
    assert shown(panel, "standard deviation σ, with 1/D") == "0.001000"
    for output in shown(panel, "RMS of the two outputs").split(", "):
        assert f"{float(output):.4f}" == rms


def test_beta_moves_layer_norm_alone_and_gamma_both():
    panel = NormBars()
    rms = shown(panel, "RMSNorm(x)")
    panel.set(beta=0.5)
    assert (shown(panel, "RMSNorm(x)"), shown(panel, "LayerNorm(x)")) == (rms, "(-0.500000, 1.500000)")
    panel.set(gamma=2.0)
    assert shown(panel, "RMSNorm(x)") == "(0.894427, 2.683282)"
    assert shown(panel, "LayerNorm(x)") == "(-1.500000, 2.500000)"


def test_a_vector_is_first_multiplied_and_then_shifted():
    """10·(1, 3) + 2 = (12, 32): mean 22, σ = 10, RMS = √584; not 10·((1, 3) + 2) = (30, 50)."""
    panel = NormBars()
    panel.set(scale=10.0, shift=2.0)
    assert shown(panel, "x") == "(12.000000, 32.000000)"
    assert shown(panel, "mean μ") == "22.000000"
    assert shown(panel, "standard deviation σ, with 1/D") == "10.000000"
    assert shown(panel, "RMS") == f"{584**0.5:.6f}"
    assert shown(panel, "RMSNorm(x)") == f"({12 / 584**0.5:.6f}, {32 / 584**0.5:.6f})"


def test_sliders_are_shown_for_the_channels_there_are():
    panel = NormBars()
    hidden = {d: [] for d in (2, 3, 4)}
    for d, names in hidden.items():
        panel.controls["d"].value = d
        names += [name for name in ("x1", "x2", "x3", "x4") if panel.controls[name].layout.display == "none"]
    assert hidden == {2: ["x3", "x4"], 3: ["x4"], 4: []}
    panel.reset()
    assert panel.controls["x3"].layout.display == "none"


def test_a_vector_of_zeros_is_shown_without_a_ratio():
    panel = NormBars()
    panel.set(x1=0.0, x2=0.0)
    assert shown(panel, "|μ| / RMS") == "—"
    assert shown(panel, "RMSNorm(x)") == "(0.000000, 0.000000)"


# ---------------------------------------------------------------- sphere


def test_shift_moves_rms_norm_along_the_sphere_and_leaves_layer_norm():
    panel = NormSphere()
    layer, rms = shown(panel, "LayerNorm(x), on the circle"), shown(panel, "RMSNorm(x), on the sphere")
    assert layer == "(1.224745, 0.000000, -1.224745)"
    assert rms == "(1.549193, 0.774597, 0.000000)"
    after(panel, "x + 0.5")
    assert shown(panel, "LayerNorm(x), on the circle") == layer
    assert shown(panel, "RMSNorm(x), on the sphere") != rms
    assert shown(panel, "length of the two outputs") == "1.732051, 1.732051"
    after(panel, "x / 4")
    assert (shown(panel, "LayerNorm(x), on the circle"), shown(panel, "RMSNorm(x), on the sphere")) == (layer, rms)
    after(panel, "Mean 0")
    assert shown(panel, "RMSNorm(x), on the sphere") == layer
    assert shown(panel, "angle between them: arcsin(|μ| / RMS)") == "0.0000°"


def test_epsilon_keeps_both_outputs_inside_the_sphere():
    panel = after(NormSphere(), "ε = 1")
    assert all(float(length) < 1.7 for length in shown(panel, "length of the two outputs").split(", "))


def test_blue_curve_is_where_the_shift_slider_takes_rms_norm():
    panel = NormSphere()
    curve = panel.compute(**panel.state).shifted
    for shift in (-3.0, -0.5, 1.0, 3.0):
        point = panel.compute(**panel.state | {"shift": shift}).pair.rms_norm
        assert np.linalg.norm(curve - point, axis=1).min() < 0.06
    assert_allclose(curve[[0, -1]], [[-1, -1, -1], [1, 1, 1]], atol=0.02)


def test_equal_entries_have_no_angle():
    panel = NormSphere()
    panel.set(x1=1.0, x2=1.0, x3=1.0)
    assert shown(panel, "LayerNorm(x), on the circle") == "(0.000000, 0.000000, 0.000000)"
    assert shown(panel, "angle between them: arcsin(|μ| / RMS)") == "—"


# ---------------------------------------------------------------- residual


def test_the_massive_activation_is_found_where_it_appears():
    panel = NormResidual()
    assert shown(panel, "largest channel, its input") == "507: 22560.00"
    assert shown(panel, "RMS").startswith("946.67")
    # One entry can be no larger than √D = 24.
    assert 23.8 < float(shown(panel, "its RMSNorm output")) < 24
    after(panel, "Half a block earlier")
    assert shown(panel, "largest channel, its input") == "507: 52.34"
    assert float(shown(panel, "RMS")) < 7


def test_numbers_are_those_of_the_excerpt():
    panel, excerpt = NormResidual(), load_excerpt()
    for name in excerpt.residual_names:
        panel.set(source=name, token=17, learned=True)
        data = panel.compute(**panel.state)
        x, weight = excerpt.residual(name)[17], excerpt.norm_weight(name)
        assert_allclose(data.pair.x, x)
        assert_allclose(data.pair.rms_norm, x / np.sqrt(np.mean(x**2) + panel.state["eps"]) * weight, rtol=1e-12)
        centred = x - x.mean()
        expected = centred / np.sqrt(np.mean(centred**2) + panel.state["eps"]) * weight
        assert_allclose(data.pair.layer_norm, expected, rtol=1e-9)
        assert shown(panel, "token") == f"“{excerpt.token_texts[17]}”"
        i = np.abs(x).argmax()
        assert_allclose(float(shown(panel, "its LayerNorm output")), expected[i], atol=1e-4)
        rms_norm_output = x[i] / np.sqrt(np.mean(x**2) + panel.state["eps"]) * weight[i]
        assert_allclose(float(shown(panel, "its RMSNorm output")), rms_norm_output, atol=1e-4)


def test_random_vectors_have_the_seed_of_the_slider():
    panel = NormResidual()
    panel.set(source="random 64", token=3, learned=True)
    assert_allclose(panel.compute(**panel.state).pair.x, np.random.default_rng(3).standard_normal(64))
    assert shown(panel, "token") == "—"


def test_order_of_values_and_added_mean():
    panel = NormResidual()
    panel.set(source="random 576", ordered=True, added=1.0)
    data = panel.compute(**panel.state)
    assert (np.diff(data.pair.x[data.order]) >= 0).all()
    x = np.random.default_rng(0).standard_normal(576)
    assert_allclose(data.pair.x, x + np.sqrt(np.mean(x**2)))
    assert shown(panel, "|LayerNorm − RMSNorm| / |RMSNorm|").startswith("76.")


def test_menu_names_every_source_in_words():
    names = [name for name, _ in NormResidual().controls["source"].options]
    assert {"layer 12, before attention", "layer 11, before the FFN", "after the last layer", "random, D = 16"} <= set(
        names
    )
    assert len(names) == len(load_excerpt().residual_names) + 3
