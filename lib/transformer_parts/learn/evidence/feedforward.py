"""Numbers about activations and gated feed-forward layers."""

import numpy as np

from transformer_parts.maths import budget
from transformer_parts.maths.activations import (
    dead_probability,
    dead_units,
    gelu,
    gelu_tanh,
    largest_difference,
    random_units,
    relu,
    relu_derivative,
    sigmoid,
    silu,
    silu_derivative,
    slope_rms,
    swish_minimum,
)
from transformer_parts.maths.feedforward import count_gates, ffn, swiglu

__all__ = [
    "dead_relu_units",
    "feed_forward_is_within_a_token",
    "gates_are_no_probabilities",
    "gelu_and_its_approximation",
    "silu_is_not_monotone",
    "swiglu_budget",
    "without_activation_it_is_linear",
]


def swiglu_budget() -> dict[str, float]:
    """Count plain and gated feed-forward layers of width 512 and 4096, and Llama's rounding."""
    plain = budget.ffn_parameters("mlp", 4096, 4 * 4096)
    as_wide = budget.ffn_parameters("gated", 4096, 4 * 4096)
    llama_2, llama_3 = (
        budget.llama_d_ff(4096, multiple_of=256),
        budget.llama_d_ff(4096, multiple_of=1024, multiplier=1.3),
    )
    return {
        "thirds_512": budget.equal_budget_d_ff(4 * 512),
        "thirds_4096": budget.equal_budget_d_ff(4 * 4096),
        "as_wide": as_wide / plain,
        "llama_2": llama_2.d_ff,
        "llama_3": llama_3.d_ff,
        "ratio_2": budget.ffn_parameters("gated", 4096, llama_2.d_ff) / plain,
        "ratio_3": budget.ffn_parameters("gated", 4096, llama_3.d_ff) / plain,
        "small": budget.ffn_parameters("gated", 8, 16),
        "small_plain": budget.ffn_parameters("mlp", 8, 24),
        "equal": budget.ffn_parameters("gated", 768, 2048) == budget.ffn_parameters("mlp", 768, 4 * 768),
        "gated_768": budget.ffn_parameters("gated", 768, 2048),
        "plain_768": budget.ffn_parameters("mlp", 768, 4 * 768),
        "holds": llama_3.d_ff == round(budget.equal_budget_d_ff(4 * 4096)),
    }


def gates_are_no_probabilities() -> dict[str, float]:
    """Work out x = (1, 2) by hand, and count gates of random pre-activations outside 0 to 1."""
    x = np.array([1.0, 2.0])
    w_gate, w_up = np.array([[1.0, -1], [0, 0]]), np.array([[2.0, 1], [0, 1]])
    gate, up = silu(x @ w_gate), x @ w_up
    out = swiglu(x, w_gate, w_up, np.eye(2))
    counts = count_gates(silu(np.random.default_rng(0).standard_normal(100_000) * 2))
    return {
        "gate_0": float(gate[0]),
        "gate_1": float(gate[1]),
        "up_0": float(up[0]),
        "up_1": float(up[1]),
        "out_0": float(out[0]),
        "out_1": float(out[1]),
        "negative": counts.negative,
        "above_one": counts.above_one,
        "highest": counts.highest,
        "lowest": counts.lowest,
        "holds": counts.negative == 0 and counts.above_one == 0,
    }


def without_activation_it_is_linear() -> dict[str, float]:
    """Add two inputs before and after a feed-forward layer, with and without an activation."""
    rng = np.random.default_rng(1)
    w_in, w_out = rng.standard_normal((32, 128)) / np.sqrt(32), rng.standard_normal((128, 32)) / np.sqrt(128)
    x, y = rng.standard_normal((2, 100, 32))

    def gap(activation):
        together, apart = (
            ffn(x + y, w_in, w_out, activation=activation),
            ffn(x, w_in, w_out, activation=activation) + ffn(y, w_in, w_out, activation=activation),
        )
        return float(np.abs(together - apart).max())

    merged = x @ (w_in @ w_out)
    return {
        "linear": gap(lambda h: h),
        "relu": gap(relu),
        "silu": gap(silu),
        "merged": float(np.abs(ffn(x, w_in, w_out, activation=lambda h: h) - merged).max()),
        "parameters": 2 * 32 * 128,
        "merged_parameters": 32 * 32,
        "smooth": abs(largest_difference(gelu, silu)[1]),
        "additive": gap(lambda h: h) < 1e-9,
        "holds": gap(lambda h: h) > 1e-9,
    }


def dead_relu_units() -> dict[str, float]:
    """Count the units that no input of a batch reaches, at bias −3, and their slopes under ReLU and SiLU."""
    pre = random_units(2000, 256, seed=0) - 3.0
    dead = dead_units(pre)
    relu_slopes, silu_slopes = slope_rms(pre[:, dead], relu_derivative), slope_rms(pre[:, dead], silu_derivative)
    return {
        "dead": float(dead.mean()),
        "expected": float(dead_probability(-3.0, 256)),
        "relu_slope": float(relu_slopes.max()),
        "silu_slope": float(silu_slopes.mean()),
        "comes_back": bool(silu_slopes.min() > 0),
        "holds": bool(silu_slopes.max() == 0),
    }


def gelu_and_its_approximation() -> dict[str, float]:
    """Find where GELU by erf and by tanh are furthest apart, and where GELU and SiLU are."""
    at, value = largest_difference(gelu, gelu_tanh)
    return {
        "at": abs(at),
        "difference": abs(value),
        "at_one": float(abs(gelu(np.array(1.0)) - gelu_tanh(np.array(1.0)))),
        "gelu_one": float(gelu(np.array(1.0))),
        "silu_one": float(silu(np.array(1.0))),
        "silu_gap": abs(largest_difference(gelu, silu)[1]),
        "holds": abs(value) < 1e-12,
    }


def silu_is_not_monotone() -> dict[str, float]:
    """Find SiLU's lowest point, and look at both sides of it."""
    x, value = swish_minimum()
    left, right = float(silu(np.array(-4.0))), float(silu(np.array(x)))
    return {"x": x, "value": value, "at_minus_4": left, "sigmoid": float(sigmoid(np.array(x))), "holds": left < right}


def feed_forward_is_within_a_token() -> dict[str, float]:
    """Change one token before a SwiGLU layer and look at the others."""
    rng = np.random.default_rng(3)
    (w_gate, w_up), w_down = rng.standard_normal((2, 16, 40)), rng.standard_normal((40, 16))
    x = rng.standard_normal((7, 16))
    changed = x.copy()
    changed[3] += 1
    moved = np.abs(swiglu(x, w_gate, w_up, w_down) - swiglu(changed, w_gate, w_up, w_down)).max(axis=1)
    others = float(np.delete(moved, 3).max())
    return {"own": float(moved[3]), "others": others, "holds": others > 0}
