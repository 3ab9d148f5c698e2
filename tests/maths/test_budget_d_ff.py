"""budget_d_ff: widths of gated layers, and the budget they keep or leave."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer_parts.maths.budget_d_ff import equal_budget_d_ff, ffn_parameters, llama_d_ff, match_budget


def test_equal_budget_by_hand():
    assert equal_budget_d_ff(24) == 16.0
    assert ffn_parameters("mlp", 8, 24) == ffn_parameters("gated", 8, 16) == 384
    assert equal_budget_d_ff(4 * 512) == pytest.approx(1365.3333, abs=1e-4)


def test_parameters_equal_torch_linears(torch):
    def linears(*shapes, bias):
        layers = [torch.nn.Linear(i, o, bias=bias, device="meta") for i, o in shapes]
        return sum(p.numel() for layer in layers for p in layer.parameters())

    for bias in (False, True):
        assert ffn_parameters("mlp", 7, 13, bias) == linears((7, 13), (13, 7), bias=bias)
        assert ffn_parameters("gated", 7, 13, bias) == linears((7, 13), (7, 13), (13, 7), bias=bias)


@pytest.mark.parametrize(
    ("d_model", "multiple_of", "multiplier", "steps"),
    [
        (4096, 256, 1.0, (16384, 10922, 10922, 11008)),  # Llama 1 and 2 7B
        (5120, 256, 1.0, (20480, 13653, 13653, 13824)),  # Llama 2 13B
        (4096, 1024, 1.3, (16384, 10922, 14198, 14336)),  # Llama 3 8B
        (8192, 4096, 1.3, (32768, 21845, 28398, 28672)),  # Llama 2 and 3 70B
        (16384, 4096, 1.2, (65536, 43690, 52428, 53248)),  # Llama 3 405B
    ],
)
def test_published_widths(d_model, multiple_of, multiplier, steps):
    width = llama_d_ff(d_model, multiple_of=multiple_of, multiplier=multiplier)
    assert (width.plain, width.two_thirds, width.multiplied, width.d_ff) == steps
    assert width.ratio == steps[-1] / d_model


def test_llama_3_is_three_and_a_half_times_as_wide():
    assert llama_d_ff(4096, multiple_of=1024, multiplier=1.3).ratio == 3.5
    assert llama_d_ff(4096, multiple_of=1024).d_ff == 11264  # alignment alone gets nowhere near 14336


@given(st.integers(1, 20000), st.integers(1, 5000))
def test_without_multiplier_the_width_is_within_a_multiple_of_the_equal_one(d_model, multiple_of):
    width = llama_d_ff(d_model, multiple_of=multiple_of)
    assert width.d_ff % multiple_of == 0
    assert width.two_thirds == int(2 * (4 * d_model) / 3)  # as the published code writes it
    match = match_budget("gated", d_model, width.d_ff, multiple_of=multiple_of)
    small = 20 * abs(match.parameters - match.reference) <= match.reference  # 5 %, in whole numbers
    assert match.verdict == ("equal" if match.ratio == 1 else "rounded" if small else "different")
    assert abs(width.d_ff - equal_budget_d_ff(4 * d_model)) < multiple_of


def test_matches_of_published_models():
    llama_1 = match_budget("gated", 4096, 11008, multiple_of=256)
    assert (llama_1.verdict, round(llama_1.ratio, 4)) == ("rounded", 1.0078)
    assert llama_1.difference == 3 * 4096 * 11008 - 8 * 4096**2
    llama_3 = match_budget("gated", 4096, 14336, multiple_of=1024)
    assert (llama_3.verdict, llama_3.ratio) == ("different", 1.3125)
    assert match_budget("gated", 8, 16, reference_d_ff=24).verdict == "equal"
    assert match_budget("mlp", 8, 32).verdict == "equal"
    assert match_budget("gated", 8, 15, reference_d_ff=24).difference == -24


def test_numpy_integers_do_not_overflow():
    assert match_budget("mlp", np.int8(100), np.int16(400)) == match_budget("mlp", 100, 400)
    assert ffn_parameters("gated", np.int8(100), np.int8(100)) == 30_000


def test_the_boundary_of_rounding():
    """Widths around the equal one, 160: less than one multiple away, and at most 5 % (8 units)."""
    for width, multiple_of, verdict in (
        (166, 7, "rounded"),
        (167, 7, "different"),
        (153, 7, "different"),
        (154, 7, "rounded"),
        (168, 64, "rounded"),
        (169, 64, "different"),
        (152, 64, "rounded"),
        (151, 64, "different"),
    ):
        match = match_budget("gated", 5, width, reference_d_ff=240, multiple_of=multiple_of)
        assert match.verdict == verdict, (width, multiple_of)


@pytest.mark.parametrize(("d_model", "d_ff", "reference", "ratio"), [(8, 1024, 8, 192.0), (512, 4096, 2048, 3.0)])
def test_a_multiple_larger_than_the_width_matches_no_budget(d_model, d_ff, reference, ratio):
    match = match_budget("gated", d_model, d_ff, reference_d_ff=reference, multiple_of=d_ff)
    assert (match.verdict, match.ratio) == ("different", ratio)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ffn_parameters("glu", 8, 16), "kind"),
        (lambda: ffn_parameters("mlp", 0, 16), "d_model"),
        (lambda: ffn_parameters("mlp", 8, 1.5), "d_ff"),
        (lambda: ffn_parameters("mlp", 8, 16, bias=1), "bias"),
        (lambda: equal_budget_d_ff(0), "d_ff"),
        (lambda: llama_d_ff(0), "d_model"),
        (lambda: llama_d_ff(8, multiple_of=0), "multiple_of"),
        (lambda: llama_d_ff(8, multiplier=0), "multiplier"),
        (lambda: llama_d_ff(8, multiplier=float("nan")), "multiplier"),
        (lambda: llama_d_ff(8, multiplier=0.01), "multiplier"),
        (lambda: match_budget("gated", 8, 16, multiple_of=0), "multiple_of"),
        (lambda: match_budget("gated", 8, 16, reference_d_ff=0), "reference_d_ff"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        call()
