"""Standard deviations against PyTorch's and the papers', draws against the widths they were asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.decoder import FFN_KINDS, PLACEMENTS, StackConfig, shapes
from transformer_parts.maths.initialization import (
    SCHEMES,
    initial_weights,
    kaiming_std,
    narrowed,
    residual_factor,
    standard_deviations,
    standard_draws,
    xavier_std,
)

SIZES = {"vocab_size": 101, "n_layers": 3, "d_model": 62, "n_heads": 2, "d_ff": 113, "head_dim": 34}


def config(**changes) -> StackConfig:
    return StackConfig(**SIZES | changes)


# ---------------------------------------------------------------- one matrix


@pytest.mark.parametrize(("fan_in", "fan_out"), [(1, 1), (64, 64), (31, 97), (97, 31)])
def test_formulas_of_the_papers(fan_in, fan_out):
    # Glorot's uniform distribution on ±√6/√(n_in + n_out) has variance (2√6)²/12 of that root's square.
    assert xavier_std(fan_in, fan_out) ** 2 == pytest.approx((2 * 6**0.5) ** 2 / 12 / (fan_in + fan_out))
    # He: half of n·Var(w) is 1.
    assert 0.5 * fan_in * kaiming_std(fan_in) ** 2 == pytest.approx(1)


@pytest.mark.oracle
def test_widths_agree_with_pytorch(torch):
    torch.manual_seed(0)
    weight = torch.empty(509, 1021)  # (out, in) there
    torch.nn.init.xavier_normal_(weight)
    assert float(weight.std()) == pytest.approx(xavier_std(1021, 509), rel=5e-3)
    torch.nn.init.kaiming_normal_(weight, nonlinearity="relu")
    assert float(weight.std()) == pytest.approx(kaiming_std(1021), rel=5e-3)
    torch.nn.init.kaiming_normal_(weight, nonlinearity="linear")
    assert float(weight.std()) == pytest.approx(kaiming_std(1021, gain=1), rel=5e-3)


def test_kaiming_keeps_the_mean_square_through_relus_and_xavier_halves_it(rng):
    x = rng.standard_normal((64, 1024))
    kept, halved = x, x
    for _ in range(6):
        draw = rng.standard_normal((1024, 1024))
        kept = np.maximum(kept, 0) @ (kaiming_std(1024) * draw)
        halved = np.maximum(halved, 0) @ (xavier_std(1024, 1024) * draw)
    assert np.mean(kept**2) == pytest.approx(1, rel=0.15)
    assert np.mean(halved**2) == pytest.approx(2**-6, rel=0.15)


def test_residual_factor_of_gpt_2():
    """GPT-2 small has 12 layers: 24 branches."""
    assert residual_factor(12) == pytest.approx(24**-0.5)
    # As many independent branches, each narrowed so, add up to the variance of one.
    for n_layers in (1, 5, 96):
        assert 2 * n_layers * residual_factor(n_layers) ** 2 == pytest.approx(1)


# ---------------------------------------------------------------- a decoder


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("ffn", ["relu", "swiglu"])
def test_every_matrix_has_a_width_and_nothing_else_has(placement, ffn):
    c = config(placement=placement, ffn=ffn, norm="layer", qk_norm=True, tied=False)
    found = standard_deviations(c)
    assert set(found) == {name for name, shape in shapes(c).items() if len(shape) == 2}


@pytest.mark.parametrize("ffn", FFN_KINDS)
def test_residual_scaling_narrows_the_last_matrix_of_each_branch_alone(ffn):
    c = config(ffn=ffn, tied=False)
    with_it, without = standard_deviations(c), standard_deviations(c, residual_scaling=False)
    narrowed = {name for name in with_it if with_it[name] != without[name]}
    last = "w_down" if c.gated else "w_out"
    assert narrowed == {f"layers.{i}.{name}" for i in range(3) for name in ("w_o", last)}
    for name in narrowed:
        assert with_it[name] == pytest.approx(without[name] / 6**0.5)
    assert set(without.values()) == {0.02}


def test_deepnorm_has_beta_in_place_of_it():
    """DeepNet, figure 2, decoder-only: β = (8M)^(−1/4) on everything but queries and keys."""
    c = config(placement="deepnorm", n_layers=18)
    with_it, without = (standard_deviations(c, scheme="xavier", residual_scaling=s) for s in (True, False))
    beta = {name.split(".")[-1]: with_it[name] / without[name] for name in with_it}
    narrowed = dict.fromkeys(("w_v", "w_o", "w_gate", "w_up", "w_down"), 144**-0.25)
    assert beta == pytest.approx({"embedding": 1, "w_q": 1, "w_k": 1} | narrowed)


def test_schemes_read_inputs_and_outputs_the_right_way_round():
    c = config(n_kv_heads=1)
    kaiming, xavier = (standard_deviations(c, scheme=s, residual_scaling=False) for s in ("kaiming", "xavier"))
    fans = {"w_q": (62, 68), "w_k": (62, 34), "w_o": (68, 62), "w_up": (62, 113), "w_down": (113, 62)}
    for name, (fan_in, fan_out) in fans.items():
        assert kaiming[f"layers.2.{name}"] == pytest.approx((2 / fan_in) ** 0.5)
        assert xavier[f"layers.2.{name}"] == pytest.approx((2 / (fan_in + fan_out)) ** 0.5)
    assert kaiming["embedding"] == xavier["embedding"] == 0.02


# ---------------------------------------------------------------- draws


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("placement", ["pre", "deepnorm"])
def test_draws_have_the_widths_asked_for(scheme, placement):
    c = config(placement=placement, norm="layer", d_model=122, head_dim=62, tied=False)
    weights = initial_weights(c, scheme=scheme, std=0.05, seed=3)
    wide = standard_deviations(c, scheme=scheme, std=0.05)
    assert {name: w.shape for name, w in weights.items()} == shapes(c)
    for name, w in weights.items():
        if name in wide:
            # The standard error of a standard deviation is σ/√(2n); of a mean σ/√n.
            assert w.std() == pytest.approx(wide[name], rel=5 / np.sqrt(2 * w.size))
            assert abs(w.mean()) < 5 * wide[name] / np.sqrt(w.size)
            assert np.abs(w).max() > 2.5 * wide[name], "normal, not uniform"
        else:
            assert_array_equal(w, 0 if name.endswith("_bias") else 1)


def test_the_draw_depends_on_seed_and_shapes_alone():
    c = config()
    one, narrow = initial_weights(c, seed=7), initial_weights(c, seed=7, residual_scaling=False)
    kaiming, other = initial_weights(c, scheme="kaiming", seed=7), initial_weights(c, seed=8)
    wide = {name: standard_deviations(c, scheme="kaiming")[name] for name in standard_deviations(c)}
    for name, std in standard_deviations(c).items():
        assert_allclose(kaiming[name] / wide[name], one[name] / std, rtol=1e-12)
        assert not np.allclose(one[name], other[name])
    assert_allclose(narrow["layers.1.w_o"], one["layers.1.w_o"] * 6**0.5)
    assert_array_equal(initial_weights(c, seed=7)["layers.2.w_up"], one["layers.2.w_up"])
    assert_array_equal(initial_weights(c, seed=np.random.default_rng(7))["embedding"], one["embedding"])


def test_a_deeper_decoder_begins_with_the_draws_of_a_shallower_one():
    deep, shallow = config(n_layers=5), config(n_layers=2)
    draws = standard_draws(deep, seed=4)
    assert set(standard_draws(shallow)) < set(draws)
    for name, w in initial_weights(shallow, scheme="xavier", draws=draws).items():
        assert_array_equal(w, initial_weights(shallow, scheme="xavier", seed=4)[name])
    assert_array_equal(standard_draws(deep, np.random.default_rng(4))["layers.4.w_down"], draws["layers.4.w_down"])


def test_draws_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match=r"^draws: got no layers\.3\."):
        initial_weights(config(n_layers=4), draws=standard_draws(config()))
    with pytest.raises(ValueError, match=r"^draws\['embedding'\]: got shape"):
        initial_weights(config(vocab_size=7), draws=standard_draws(config()))


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("ffn", ["gelu", "swiglu"])
def test_weights_narrowed_later_are_those_drawn_narrow(placement, ffn):
    c = config(placement=placement, ffn=ffn, tied=False, norm="layer")
    drawn = initial_weights(c, seed=3)
    for name, w in narrowed(initial_weights(c, seed=3, residual_scaling=False), c).items():
        assert_allclose(w, drawn[name], rtol=1e-13)


def test_no_two_matrices_are_alike():
    weights = initial_weights(config())
    assert not np.allclose(weights["layers.0.w_gate"], weights["layers.0.w_up"])
    assert not np.allclose(weights["layers.0.w_q"], weights["layers.1.w_q"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_the_one_asked_for(dtype):
    assert {w.dtype for w in initial_weights(config(norm="layer"), dtype=dtype).values()} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (xavier_std, {"fan_in": 0, "fan_out": 1}, "fan_in"),
        (xavier_std, {"fan_in": 1, "fan_out": 1.5}, "fan_out"),
        (kaiming_std, {"fan_in": True}, "fan_in"),
        (kaiming_std, {"fan_in": 3, "gain": 0}, "gain"),
        (residual_factor, {"n_layers": 0}, "n_layers"),
        (standard_deviations, {"config": config(), "scheme": "glorot"}, "scheme"),
        (standard_deviations, {"config": config(), "std": -0.1}, "std"),
        (standard_deviations, {"config": config(), "residual_scaling": 1}, "residual_scaling"),
        (initial_weights, {"config": config(), "scheme": None}, "scheme"),
        (initial_weights, {"config": config(), "std": np.nan}, "std"),
        (initial_weights, {"config": config(), "seed": -1}, "seed"),
        (initial_weights, {"config": config(), "dtype": np.float16}, "dtype"),
        (initial_weights, {"config": config(), "dtype": int}, "dtype"),
    ],
)
def test_bad_input_is_named(function, arguments, named):
    with pytest.raises(ValueError, match=f"^{named}: got "):
        function(**arguments)
