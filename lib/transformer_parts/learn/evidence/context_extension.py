"""Numbers about longer contexts: angles, frequencies, temperature, rounding of positions, and what length costs."""

import numpy as np

from transformer_parts.maths import budget, context_extension, precision, rope
from transformer_parts.maths.context_extension import angle_coverage, entropy_by_length
from transformer_parts.maths.precision import angle_errors
from transformer_parts.models.configs import PUBLISHED

__all__ = [
    "angles_beyond_training",
    "bfloat16_positions",
    "cost_of_length",
    "dynamic_ntk_returns",
    "float16_positions",
    "ntk_exponent",
    "pi_blurs_neighbours",
    "raising_the_base_alone",
    "yarn_ramps_and_temperature",
]


def _theta() -> np.ndarray:
    return rope.inv_freq(128, 10_000.0)


def angles_beyond_training() -> dict[str, float]:
    """Tell which pairs of a head of 128 meet new angles at twice the trained length of 4096."""
    theta = _theta()
    twice = angle_coverage(theta, theta, 4096, 8192)
    ntk = angle_coverage(theta, context_extension.ntk_aware(128, 8).inv_freq, 4096, 8 * 4096)
    turns = twice.seen / (2 * np.pi)
    beyond = np.flatnonzero(twice.beyond)
    return {
        "enough": _lowest_base(4096),
        "complete": int(twice.complete.sum()),
        "incomplete": int((~twice.complete).sum()),
        "first_turns": float(turns[0]),
        "last_turns": float(turns[-1]),
        "beyond": len(beyond),
        "fast_beyond": int((beyond < 46).sum()),
        "ntk_beyond": int(ntk.beyond.sum()),
        "ntk_worst": float(ntk.excess[~ntk.complete].max()),
        "holds": bool((beyond < 32).all()),
    }


def _lowest_base(length: int) -> float:
    """Return the base from which on the score of q = k, 128 equal channels, is nowhere negative up to a length."""
    bases, ones = np.logspace(4, 7, 61), np.ones(128)
    lowest = [rope.scores_by_offset(ones, ones, -np.arange(length), rope_base=base).min() for base in bases]
    return float(bases[np.flatnonzero(np.array(lowest) < 0)[-1] + 1])


def pi_blurs_neighbours() -> dict[str, float]:
    """Compare the first pair's turn from one token to the next, and the angle at position 3000, under PI and NTK."""
    theta = _theta()
    pi, ntk = (f(128, 8).inv_freq for f in (context_extension.position_interpolation, context_extension.ntk_aware))
    return {
        "plain": float(theta[0]),
        "pi_first": float(pi[0]),
        "ntk_first": float(ntk[0]),
        "pi_last": float(pi[-1] / theta[-1]),
        "ntk_last": float(ntk[-1] / theta[-1]),
        "ends": bool(np.isclose(ntk[0], theta[0]) and np.isclose(ntk[-1], theta[-1] / 8)),
        "holds": bool(np.isclose(pi[0], theta[0])),
    }


def ntk_exponent() -> dict[str, float]:
    """Compute the base of NTK-aware at s = 8, head_dim 128, and what the exponent 1 would give."""
    base = context_extension.ntk_base(128, 8)
    theta, plain = _theta(), rope.inv_freq(128, 80_000.0)
    ntk = context_extension.ntk_aware(128, 8).inv_freq
    coverage = angle_coverage(theta, ntk, 4096, 8 * 4096)
    return {
        "base": base,
        "exponent": 128 / 126,
        "last": float(theta[-1] / ntk[-1]),
        "last_by_8": float(theta[-1] / plain[-1]),
        "beyond": int(coverage.beyond.sum()),
        "incomplete": int((~coverage.complete).sum()),
        "worst": float(coverage.excess[~coverage.complete].max()),
        "stays_within": not coverage.beyond.any(),
        "holds": bool(np.isclose(theta[-1] / plain[-1], 8)),
    }


def yarn_ramps_and_temperature() -> dict[str, float]:
    """Compare YaRN's two ramps at s = 8 and L = 4096, and the entropy with the factor on q alone and on q and k."""
    theta = _theta()
    paper, code = (context_extension.yarn(128, 8, 4096, ramp=ramp) for ramp in ("rotations", "index"))
    ratios = [scaled.inv_freq / theta for scaled in (paper, code)]
    ones = np.ones(128)
    logits = rope.scores_by_offset(ones, ones, -np.arange(32_768), inv_freq=paper.inv_freq)
    factor = paper.attention_factor
    entropies = [float(entropy_by_length(scale * logits)[-1]) for scale in (1.0, factor, factor**2)]
    rotations = 4096 * theta / (2 * np.pi)
    return {
        "factor": factor,
        "squared": factor**2,
        "on_both": (on_both := float(((factor * ones) @ (factor * ones)) / (ones @ ones))),
        "is_squared": bool(np.isclose(on_both, factor**2)),
        "kept": int((rotations > 32).sum()),
        "divided": int((rotations < 1).sum()),
        "between": int(((rotations >= 1) & (rotations <= 32)).sum()),
        "paper_30": float(ratios[0][30]),
        "code_30": float(ratios[1][30]),
        "entropy_plain": entropies[0],
        "entropy_once": entropies[1],
        "entropy_twice": entropies[2],
        "holds": bool(np.allclose(*ratios)),
    }


def dynamic_ntk_returns() -> dict[str, float]:
    """Follow the slowest frequency of dynamic NTK over a short, a long and again a short input."""
    slowest = [float(context_extension.dynamic_ntk(128, length, 4096).inv_freq[-1]) for length in (100, 32_768, 100)]
    stale = context_extension.dynamic_ntk(128, 8192, 4096).inv_freq
    query = key = np.ones((1, 128))
    fresh = context_extension.dynamic_ntk(128, 16_384, 4096).inv_freq
    turned = rope.rotate(query, [16_383], inv_freq=fresh)
    right, old = (float((turned @ rope.rotate(key, [8000], inv_freq=f).T).item()) for f in (fresh, stale))
    return _stale_after_growth() | {
        "short": slowest[0],
        "long": slowest[1],
        "again": slowest[2],
        "ratio": slowest[0] / slowest[1],
        "right": right,
        "stale": old,
        "holds": bool(np.isclose(right, old)),
    }


def _stale_after_growth() -> dict[str, float]:
    """Return how far scores are off whose keys keep the rotation of an earlier length, as a share of their spread."""
    query, key = np.random.default_rng(5).standard_normal((2, 500, 128))

    def turned(x: np.ndarray, position: int, length: int) -> np.ndarray:
        return rope.rotate(
            x, np.full(len(x), position), inv_freq=context_extension.dynamic_ntk(128, length, 4096).inv_freq
        )

    numbers, query = {}, turned(query, 16_383, 16_384)
    for back in (1, 100):
        lengths = {"right": 16_384, "slow": 16_384 - back, "jump": 8192}
        scores = {name: (query * turned(key, 16_383 - back, length)).sum(axis=1) for name, length in lengths.items()}
        for name in ("slow", "jump"):
            numbers[f"{name}_{back}"] = float((scores[name] - scores["right"]).std() / scores["right"].std())
    return numbers


def raising_the_base_alone() -> dict[str, float]:
    """Count the pairs that meet a new angle one position beyond 4096: trained at a base, and raised to it after."""
    beyond, trained = {}, _theta()
    for base in (10_000, 500_000, 10_000_000):
        theta = rope.inv_freq(128, base)
        beyond[f"beyond_{base}"] = int(angle_coverage(theta, theta, 4096, 4097).beyond.sum())
        raised = angle_coverage(trained, theta, 4096, 4097)
        beyond[f"raised_{base}"] = int(raised.beyond.sum())
        beyond[f"first_raised_{base}"] = float((4096 / raised.ratio)[~raised.complete].min())
    moved_out = beyond["raised_500000"] == 0 and beyond["first_raised_500000"] > 10 * 4096
    return beyond | {"moved_out": moved_out, "holds": beyond["beyond_500000"] < beyond["beyond_10000"]}


def bfloat16_positions() -> dict[str, float]:
    """Count the positions below 4096 that bfloat16 tells apart, and what rounded frequencies do at 4095."""
    off = angle_errors([4095], _theta(), "bfloat16", rounded="frequencies")[0]
    rounded = precision.round_to(np.array([256.0, 257.0]), "bfloat16").astype(float)
    distinct = len(np.unique(precision.round_to(np.arange(4096), "bfloat16")))
    return _rounded_at_the_end() | {
        "distinct": distinct,
        "p256": float(rounded[0]),
        "p257": float(rounded[1]),
        "worst": float(off.max()),
        "pairs_off": int((off > 1).sum()),
        "holds": distinct == 4096,
    }


def _rounded_at_the_end() -> dict[str, float]:
    """Measure how far scores of random content are off if sines and cosines alone are rounded to bfloat16."""
    query, key = np.random.default_rng(8).standard_normal((2, 1000, 128)).view(complex)

    def scores(first: int, *, rounded: bool) -> np.ndarray:
        turns = np.exp(1j * np.multiply.outer([first, first - 10], _theta()))
        if rounded:
            turns = precision.round_to(turns.real, "bfloat16") + 1j * precision.round_to(turns.imag, "bfloat16")
        return ((query * turns[0]).conj() * (key * turns[1])).real.sum(axis=1) / np.sqrt(128)

    return {
        name: float(np.sqrt(np.mean((scores(first, rounded=True) - scores(first, rounded=False)) ** 2)))
        for name, first in (("early", 20), ("middle", 500), ("late", 131_071))
    }


def float16_positions() -> dict[str, float]:
    """Find the first position that float16 cannot hold."""
    positions = np.arange(4096)
    wrong = positions[precision.round_to(positions, "float16").astype(float) != positions]
    return {"first_wrong": int(wrong[0]), "exact_to": int(wrong[0]) - 1, "holds": int(wrong[0]) - 1 == 2048}


def cost_of_length() -> dict[str, float]:
    """Compare 4096 and 131 072 tokens of Llama 3 8B: cache, operations of the last token, of a whole prompt."""
    config = PUBLISHED["Llama 3 8B"].config
    numbers = {"growth": 131_072 / 4096}
    for name, length in (("4k", 4096), ("128k", 131_072)):
        last, mean = budget.flops_per_token(config, length), budget.flops_per_token(config, (length + 1) // 2)
        numbers |= {
            f"gib_{name}": budget.kv_cache_bytes(config, length) / 2**30,
            f"share_{name}": last.attention / last.forward,
            f"prompt_pflop_{name}": length * mean.forward / 1e15,
        }
    numbers["prompt_growth"] = numbers["prompt_pflop_128k"] / numbers["prompt_pflop_4k"]
    numbers["scores_gib"] = config.n_heads * 131_072**2 * 2 / 2**30
    theta = rope.inv_freq(config.head_dim, 500_000.0)
    numbers["incomplete"] = int((rope.wavelengths(theta) > 8192).sum())
    return numbers | {"attention_leads": numbers["share_128k"] > 0.5, "holds": numbers["prompt_growth"] > 32**2}
