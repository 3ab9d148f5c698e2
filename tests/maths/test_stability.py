"""The stream's variance against a loop over the layers, attention's growth against formulas, formats against loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.attention import attention_weights, entropy
from transformer_parts.maths.decoder import StackConfig, layer_weights
from transformer_parts.maths.decoder.layer_gradients import layer_forward
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.norms import rms_norm
from transformer_parts.maths.precision import round_to
from transformer_parts.maths.stability import grown_attention, logit_bound, stream_variance


def config(**changes) -> StackConfig:
    return StackConfig(**{"vocab_size": 53, "n_layers": 16, "d_model": 62, "n_heads": 1, "d_ff": 101} | changes)


def drawn(c: StackConfig, **options):
    tokens = np.random.default_rng(1).integers(0, c.vocab_size, (2, 19))
    return stream_variance(initial_weights(c, **{"std": 0.07} | options), tokens, c)


# ---------------------------------------------------------------- the stream


def test_variances_are_those_of_a_walk_through_the_layers():
    c = config(n_layers=3)
    weights = initial_weights(c, std=0.1, seed=2)
    tokens = np.arange(17)
    found = stream_variance(weights, tokens, c)
    x = weights["embedding"][tokens]
    wanted = [np.mean(x**2)]
    added = []
    for i in range(3):
        y, kept = layer_forward(layer_weights(weights, i), x, c)
        added += [np.mean((kept["U"] - x) ** 2), np.mean((y - kept["U"]) ** 2)]
        wanted += [np.mean(kept["U"] ** 2), np.mean(y**2)]
        x = y
    assert_allclose(found.stream, wanted)
    assert_allclose(found.branches, added)
    assert_allclose(np.diff(found.independent), added)
    assert found.independent[0] == found.stream[0]


def mean_growth(n_layers: int, *, residual_scaling: bool) -> float:
    runs = (
        drawn(config(n_layers=n_layers), std=0.125, residual_scaling=residual_scaling, seed=seed) for seed in range(6)
    )
    return float(np.mean([run.stream[-1] - run.stream[0] for run in runs]))


@pytest.mark.parametrize("residual_scaling", [False, True])
def test_branches_are_all_but_independent(residual_scaling):
    found = drawn(config(), std=0.125, residual_scaling=residual_scaling)
    assert_allclose(found.stream, found.independent, rtol=0.2)


def test_without_scaling_the_variance_grows_with_the_number_of_branches():
    grown = {n: mean_growth(n, residual_scaling=False) for n in (12, 24)}
    assert grown[24] / grown[12] == pytest.approx(2, rel=0.2)


def test_with_scaling_it_grows_alike_at_every_depth_by_about_one_unscaled_branch():
    grown = {n: mean_growth(n, residual_scaling=True) for n in (6, 24)}
    assert grown[24] / grown[6] == pytest.approx(1, rel=0.2)
    one_branch = drawn(config(n_layers=6), std=0.125, residual_scaling=False).branches.mean()
    assert grown[6] == pytest.approx(one_branch, rel=0.3)


def test_a_stream_that_is_no_plain_sum_is_refused():
    for placement in ("post", "deepnorm"):
        with pytest.raises(ValueError, match=r"^the placement of config: got "):
            drawn(config(placement=placement))
    assert len(drawn(config(placement="sandwich", n_layers=2)).stream) == 5


# ---------------------------------------------------------------- attention


@pytest.fixture
def pair(rng):
    return rng.standard_normal((2, 23, 31))


def test_at_factor_one_it_is_the_librarys_attention(pair):
    q, k = pair
    found = grown_attention(q, k, [1.0])
    wanted = attention_weights(q[None], k[None], causal=True)[0]
    assert_allclose(found.weights[0], wanted, atol=1e-6)
    assert found.entropy[0] == pytest.approx(entropy(wanted)[1:].mean(), abs=1e-6)
    logits = q @ k.T / 31**0.5
    assert found.largest[0] == pytest.approx(np.abs(np.tril(logits)).max(), rel=1e-6)
    assert found.lost[0] == 0


def test_logits_grow_with_the_square_and_entropy_falls_to_zero(pair):
    found = grown_attention(*pair, [1.0, 3.0, 100.0])
    assert_allclose(found.largest, found.largest[0] * np.array([1, 9, 1e4]), rtol=1e-5)
    assert found.entropy[0] > 1
    assert (np.diff(found.entropy) < 0).all()
    assert found.entropy[-1] < 0.01


def test_qk_norm_forgets_the_factor_and_keeps_its_bound(pair):
    q, k = pair
    found = grown_attention(q, k, [1e-2, 1.0, 1e4], qk_norm=True, gain=1.5)
    assert_allclose(found.weights, np.broadcast_to(found.weights[:1], found.weights.shape), atol=1e-5)
    wanted = attention_weights(1.5 * rms_norm(q, eps=1e-12)[None], 1.5 * rms_norm(k, eps=1e-12)[None], causal=True)[0]
    assert_allclose(found.weights[1], wanted, atol=1e-6)
    assert (found.largest <= logit_bound(31, 1.5) * (1 + 1e-6)).all()
    equal = grown_attention(q, q, [1.0], qk_norm=True)
    assert equal.largest[0] == pytest.approx(logit_bound(31), rel=1e-6)


def test_float16_overflows_where_bfloat16_rounds(pair):
    q, k = pair
    product = np.abs(np.tril(q @ k.T)).max()
    below, above = (np.sqrt(65504 * factor / product) for factor in (0.98, 1.02))
    half = grown_attention(q, k, [below, above], dtype="float16")
    assert half.lost[0] == 0
    assert half.largest[1] == np.inf
    brain = grown_attention(q, k, [below, above], dtype="bfloat16")
    assert np.isfinite(brain.largest).all()
    assert_array_equal(brain.lost, 0)


def test_rows_are_lost_where_plus_infinity_is_the_largest_logit():
    q = np.ones((3, 4))
    k = np.array([[1.0] * 4, [-1.0] * 4, [-1.0] * 4])
    found = grown_attention(q, k, [1.0, 300.0], dtype="float16")
    assert_array_equal(found.lost, [0, 3])  # 4 · 300² is beyond 65504, and every row sees key 0
    assert np.isnan(found.weights[1]).any(axis=-1).all()
    assert np.isnan(found.entropy[1])


def test_rounding_is_done_at_each_step(pair):
    q, k = pair
    found = grown_attention(q, k, [4.0], dtype="bfloat16")
    q, k = (round_to(np.float32(4.0 * x), "bfloat16") for x in (q, k))
    product = round_to(q.astype(float) @ k.astype(float).T, "bfloat16")
    logits = round_to(product / 31**0.5, "bfloat16")
    assert found.largest[0] == np.abs(np.tril(logits)).max()


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (logit_bound, (0,), "head_dim"),
        (logit_bound, (4, -1.0), "gain"),
        (grown_attention, (np.ones(3), np.ones(3), [1.0]), "query"),
        (grown_attention, (np.ones((1, 3)), np.ones((1, 3)), [1.0]), "query"),
        (grown_attention, (np.ones((2, 3)), np.ones((3, 3)), [1.0]), "key"),
        (grown_attention, (np.ones((2, 3)), np.full((2, 3), np.nan), [1.0]), "key"),
        (grown_attention, (np.ones((2, 3)), np.ones((2, 3)), [1.0, 0.0]), "growth"),
        (grown_attention, (np.ones((2, 3)), np.ones((2, 3)), [[1.0]]), "growth"),
    ],
)
def test_bad_input_is_named(function, arguments, named):
    with pytest.raises(ValueError, match=f"^{named}: got "):
        function(*arguments)


@pytest.mark.parametrize(("option", "value"), [("qk_norm", 1), ("gain", -1), ("dtype", "float8")])
def test_bad_options_are_named(option, value):
    with pytest.raises(ValueError, match=f"^{option}: got "):
        grown_attention(np.ones((2, 3)), np.ones((2, 3)), [1.0], **{option: value})
