import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.decoder import PLACEMENTS, StackConfig, loss_and_gradients
from transformer_parts.maths.initialization import standard_draws
from transformer_parts.maths.residual_stream import first_pass, initialized, random_tokens


def a_config(placement="pre", n_layers=4, **change):
    sizes = {"vocab_size": 61, "d_model": 32, "n_heads": 2, "d_ff": 64, "norm": "layer", "ffn": "relu", "tied": False}
    return StackConfig(**(sizes | change), n_layers=n_layers, placement=placement)


def last_gradients(placement, n_layers, scheme="xavier"):
    """Mean over four seeds of the last layer's gradient."""
    config = a_config(placement, n_layers)
    passes = [first_pass(initialized(config, scheme=scheme, seed=seed), config, seed=seed) for seed in range(4)]
    return np.mean([found.ffn_gradient[-1] for found in passes])


def test_the_claim_of_xiong_et_al():
    """Theorem 1: the last layer's gradient falls as 1/√L in Pre and does not in Post."""
    pre, post = ([last_gradients(placement, n) for n in (2, 18)] for placement in ("pre", "post"))
    assert pre[1] / pre[0] == pytest.approx(1 / 3, rel=0.35)
    assert post[1] / post[0] == pytest.approx(1, rel=0.35)
    # and it is about this initialisation
    gpt2 = [last_gradients("pre", n, "gpt2") for n in (2, 18)]
    assert gpt2[1] / gpt2[0] > 0.7


@pytest.mark.parametrize("placement", ["post", "deepnorm"])
def test_a_normalised_stream_has_rms_1(placement):
    config = a_config(placement)
    assert_allclose(first_pass(initialized(config), config).activation_rms[1:], 1, rtol=1e-4)


def test_pres_stream_grows_as_the_root_of_the_depth():
    config = a_config(n_layers=16)
    squares = np.mean([first_pass(initialized(config, seed=s), config).activation_rms ** 2 for s in range(4)], axis=0)
    growth = np.diff(squares)
    assert (growth > 0).all()
    assert growth[8:].mean() == pytest.approx(growth[:8].mean(), rel=0.4)  # the variance by as much in each layer


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_numbers_are_those_of_the_pass(placement):
    config = a_config(placement, ffn="swiglu")
    weights = initialized(config, branch_scale=2.0)
    got = first_pass(weights, config, length=7, seed=3)
    found = loss_and_gradients(weights, *random_tokens(61, 7, 3), config)
    assert got.loss == found.loss
    norms = [np.linalg.norm(found.gradients[f"layers.{i}.w_down"]) for i in range(4)]
    assert_allclose(got.ffn_gradient, norms, rtol=1e-12)
    assert_allclose(got.activation_rms, [np.sqrt(np.mean(x**2)) for x in found.tape.streams], rtol=1e-12)
    assert_allclose(got.stream_gradient, [np.linalg.norm(g) for g in found.stream_gradients], rtol=1e-12)


def test_weights_by_scheme():
    config = a_config(vocab_size=997)
    xavier, gpt2 = initialized(config), initialized(config, scheme="gpt2")
    assert xavier["embedding"].std() == pytest.approx(1, rel=0.03)
    assert xavier["head"].std() == pytest.approx(32**-0.5, rel=0.03)
    assert xavier["layers.0.w_out"].std() == pytest.approx((2 / 96) ** 0.5, rel=0.1)
    assert gpt2["embedding"].std() == pytest.approx(0.02, rel=0.03)
    assert gpt2["layers.0.w_out"].std() == pytest.approx(0.02 / 8**0.5, rel=0.1)
    wide = initialized(config, branch_scale=3.0)
    for name, w in xavier.items():
        assert_allclose(wide[name], w * (3.0 if name.endswith(("w_o", "w_out")) else 1.0), rtol=1e-15)


def test_deepnorm_begins_with_its_beta():
    deep, post = initialized(a_config("deepnorm", 8)), initialized(a_config("post", 8))
    for name, factor in (("w_q", 1), ("w_k", 1), ("w_v", 8**-0.5), ("w_o", 8**-0.5), ("w_in", 8**-0.5)):
        assert_allclose(deep[f"layers.3.{name}"], factor * post[f"layers.3.{name}"], rtol=1e-13)


def test_draws_of_a_deeper_decoder_serve():
    draws = standard_draws(a_config(n_layers=9))
    got = initialized(a_config(n_layers=4), draws=draws)
    assert_array_equal(got["layers.3.w_q"], initialized(a_config(n_layers=9))["layers.3.w_q"])


def test_tokens_are_followed_by_their_targets():
    tokens, targets = random_tokens(7, 31, 2)
    assert tokens.shape == targets.shape == (1, 31)
    assert_array_equal(tokens[0, 1:], targets[0, :-1])
    assert (random_tokens(7, 31, 3)[0] != tokens).any()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: initialized(a_config(), scheme="zero"), "scheme"),
        (lambda: initialized(a_config(), branch_scale=0.0), "branch_scale"),
        (lambda: initialized(a_config(tied=True)), "config"),
        (lambda: random_tokens(0, 3), "vocab_size"),
        (lambda: random_tokens(3, 0), "length"),
        (lambda: random_tokens(3, 3, seed=1.5), "seed"),
    ],
)
def test_what_does_not_fit_is_refused(call, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        call()
