"""The norm placements and their backward passes, on branches and norms simple enough to be done by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from transformer_parts.maths.gradients import layer_norm_backward, rms_norm_backward
from transformer_parts.maths.norm_placement import (
    deep_norm,
    deep_norm_backward,
    deepnorm_alpha_beta,
    post_norm,
    post_norm_backward,
    pre_norm,
    pre_norm_backward,
    sandwich_norm,
    sandwich_norm_backward,
)
from transformer_parts.maths.norms import layer_norm, rms_norm


def test_each_is_its_formula(rng):
    x, w = rng.normal(size=(2, 3, 7)), rng.normal(size=(7, 7))
    norm, out, branch = layer_norm, (lambda t: layer_norm(t, np.full(7, 0.3))), (lambda t: np.tanh(t @ w))
    assert_allclose(pre_norm(x, branch, norm), x + np.tanh(layer_norm(x) @ w), rtol=1e-13)
    assert_allclose(post_norm(x, branch, norm), layer_norm(x + np.tanh(x @ w)), rtol=1e-13)
    wanted = x + 0.3 * layer_norm(np.tanh(layer_norm(x) @ w))
    assert_allclose(sandwich_norm(x, branch, norm, out), wanted, rtol=1e-13)
    assert_allclose(deep_norm(x, branch, norm, 2.5), layer_norm(2.5 * x + np.tanh(x @ w)), rtol=1e-13)


def test_deepnorm_is_not_alpha_times_x_plus_the_norm_of_the_branch(rng):
    x, w = rng.normal(size=(3, 7)), rng.normal(size=(7, 7))
    got = deep_norm(x, lambda t: t @ w, layer_norm, 2.0)
    assert np.abs(got - (2 * x + layer_norm(x @ w))).max() > 0.5
    assert_allclose(np.mean(got**2, -1), 1, rtol=1e-4)  # all of it is normalised


@pytest.mark.parametrize("norms", [(layer_norm, layer_norm_backward), (rms_norm, rms_norm_backward)])
@pytest.mark.parametrize("placement", ["pre", "post", "sandwich", "deepnorm"])
def test_backward_by_differences(rng, differences, norms, placement):
    x, grad, w = rng.normal(size=(2, 5)), rng.normal(size=(2, 5)), rng.normal(size=(5, 5))
    norm, norm_gradients = norms
    seen = {}

    def keep(name, part):
        def run(t):
            seen[name] = t
            return part(t)

        return run

    def out(t):
        return norm(t, np.full(5, 0.7))

    def forward(x):
        branch, first = keep("branch", lambda t: np.tanh(t @ w)), keep("norm", norm)
        if placement == "pre":
            return pre_norm(x, branch, first)
        if placement == "post":
            return post_norm(x, branch, first)
        if placement == "deepnorm":
            return deep_norm(x, branch, first, 1.9)
        return sandwich_norm(x, branch, first, keep("out", out))

    wanted = differences(lambda x: np.vdot(grad, forward(x)), x)
    forward(x)

    def branch_backward(g):
        return (g * (1 - np.tanh(seen["branch"] @ w) ** 2)) @ w.T

    def norm_backward(g):
        return norm_gradients(g, seen["norm"])[0]

    if placement == "pre":
        got = pre_norm_backward(grad, branch_backward, norm_backward)
    elif placement == "post":
        got = post_norm_backward(grad, branch_backward, norm_backward)
    elif placement == "deepnorm":
        got = deep_norm_backward(grad, branch_backward, norm_backward, 1.9)
    else:

        def out_backward(g):
            return norm_gradients(g, seen["out"], np.full(5, 0.7))[0]

        got = sandwich_norm_backward(grad, branch_backward, norm_backward, out_backward)
    assert_allclose(got, wanted, rtol=1e-8, atol=1e-9)


def test_a_branch_of_zero_leaves_pre_norm_the_identity_and_post_norm_a_norm(rng):
    x = rng.normal(size=(3, 7))
    nothing = np.zeros_like
    assert_allclose(pre_norm(x, nothing, layer_norm), x)
    assert_allclose(post_norm(x, nothing, layer_norm), layer_norm(x))
    assert_allclose(pre_norm_backward(x, nothing, nothing), x)


def test_deepnorm_factors():
    # figure 2 of the paper: (2M)^¼ and (8M)^-¼; §5's 100-layer and the 1000-layer model
    for n_layers, alpha, beta in ((2, 2**0.5, 0.5), (8, 2.0, 8**-0.5), (128, 4.0, 2**-2.5)):
        got = deepnorm_alpha_beta(n_layers)
        assert got.alpha == pytest.approx(alpha, rel=1e-12)
        assert got.beta == pytest.approx(beta, rel=1e-12)


@pytest.mark.parametrize("function", [pre_norm, post_norm, pre_norm_backward, post_norm_backward])
def test_what_does_not_fit_is_refused(function):
    x, same = np.ones(3), np.copy
    name = "grad" if function.__name__.endswith("backward") else "x"
    with pytest.raises(ValueError, match=f"^{name}: got an array of bool"):
        function([True], same, same)
    end = "_backward" if name == "grad" else ""
    with pytest.raises(ValueError, match=f"^branch{end}: got 3, want a function"):
        function(x, 3, same)
    with pytest.raises(ValueError, match=rf"^norm{end}'s result: got shape \(2,\), want shape \(3,\)"):
        function(x, same, lambda t: t[:2])


def test_bad_factors_are_refused():
    for alpha in (0.0, -1.0, np.inf, None):
        with pytest.raises(ValueError, match=r"^alpha: got"):
            deep_norm([1.0], np.copy, np.copy, alpha)
        with pytest.raises(ValueError, match=r"^alpha: got"):
            deep_norm_backward([1.0], np.copy, np.copy, alpha)
    for n_layers in (0, 2.5, True):
        with pytest.raises(ValueError, match=r"^n_layers: got"):
            deepnorm_alpha_beta(n_layers)
