"""Extremes of activations: mpmath's Lambert function, published figures, functions with a known difference."""

import mpmath
import numpy as np
import pytest

from transformer_parts.maths.activations import gelu, gelu_derivative, gelu_tanh, relu, silu, silu_derivative, swish
from transformer_parts.maths.activations_extremes import largest_difference, swish_minimum


def test_the_minimum_of_silu_is_lamberts():
    w = float(mpmath.lambertw(1 / mpmath.e))
    assert swish_minimum() == pytest.approx((-1 - w, -w), abs=1e-16)
    assert swish_minimum() == pytest.approx((-1.2785, -0.2785), abs=5e-5)


@pytest.mark.parametrize("beta", [0.25, 1, 1.702, 9.0, 1000])
def test_the_minimum_of_swish_is_nowhere_undercut(beta):
    x, value = swish_minimum(beta)
    assert swish(x, beta) == pytest.approx(value, rel=1e-14)
    assert abs(silu_derivative(beta * x)) < 1e-15
    assert (swish(np.linspace(-20 / beta, 1, 10_001), beta) >= value).all()


@pytest.mark.parametrize("beta", [0, -1, 1001, None])
def test_swish_minimum_refuses_a_beta_without_one(beta):
    with pytest.raises(ValueError, match=r"^beta: got .* above 0 and at most 1000"):
        swish_minimum(beta)


def test_the_two_gelus_differ_most_at_2_699():
    x, value = largest_difference(gelu, gelu_tanh)
    assert x == pytest.approx(2.699, abs=5e-4)  # the difference is even: of the two places the right one counts
    assert value == pytest.approx(-4.73e-4, abs=5e-7)
    assert largest_difference(gelu_tanh, gelu).value == -value
    with mpmath.workdps(30):
        places = [mpmath.findroot(lambda t: mpmath.diff(_gap, t), 2.7)]
        assert x == pytest.approx(float(places[0]), abs=4e-5)
        assert value == pytest.approx(float(_gap(places[0])), rel=1e-9)


def _gap(t):
    tanh = mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (t + mpmath.mpf("0.044715") * t**3))
    return t * mpmath.ncdf(t) - t / 2 * (1 + tanh)


def test_swish_of_1_702_is_within_0_0204_of_gelu():
    x, value = largest_difference(gelu, lambda t: swish(t, 1.702))
    assert abs(value) == pytest.approx(0.0203, abs=5e-5)
    assert abs(x) == pytest.approx(2.27, abs=0.01)
    grid = np.linspace(-8, 8, 50_001)
    assert np.abs(gelu(grid) - swish(grid, 1.702)).max() == pytest.approx(abs(value), rel=1e-6)


def test_the_range_and_the_ends_count():
    assert largest_difference(relu, silu, low=-8, high=-3).x == -3
    x, value = largest_difference(lambda t: t, lambda t: 0 * t, low=-1, high=3)
    assert (x, value) == (3, 3)
    assert largest_difference(gelu_derivative, gelu_derivative).value == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"first": None}, "first: got None, want a function"),
        ({"second": "relu"}, "second: got 'relu', want a function"),
        ({"first": lambda x: x * np.nan}, "first - second: got nan"),
        ({"low": np.nan}, "low: got nan"),
        ({"low": -1e308, "high": 1e308}, "low: got -1e"),
        ({"low": 1.0, "high": 1.0}, "high: got 1.0, want a finite number above 1"),
    ],
)
def test_refuses_what_is_no_function_or_range(changed, message):
    with pytest.raises(ValueError, match=r"^" + message):
        largest_difference(**{"first": relu, "second": silu} | changed)
