"""Numbers about positions that are added or biased: order, tables, T5's buckets, ALiBi's slopes."""

import numpy as np

from transformer_parts.maths import budget, positions, precision, relative_bias, rope, why_position
from transformer_parts.maths.attention import attention_weights
from transformer_parts.maths.context_extension import angle_coverage
from transformer_parts.models.configs import PUBLISHED

__all__ = [
    "alibi_and_values_before",
    "alibi_slopes_of_12_heads",
    "causal_mask_shows_order",
    "cost_of_a_bias",
    "order_is_not_seen",
    "sinusoidal_beyond_training",
    "sinusoidal_is_shifted_by_one_matrix",
    "sinusoidal_through_a_matrix",
    "t5_buckets",
    "t5_uses_31_buckets",
]

_WORDS = ("the", "small", "dog", "bites", "a", "very", "tall", "man", "today")


def _largest(x: np.ndarray) -> float:
    return float(np.abs(x).max())


def order_is_not_seen() -> dict[str, float]:
    """Reverse nine words before self-attention without a mask."""
    tokens, back = why_position.embed(_WORDS, 16), np.arange(9)[::-1]
    attend = why_position.SelfAttention.random(16, 4)
    moved, stood = (
        _largest(f(attend, tokens, back)) for f in (why_position.equivariance_gap, why_position.invariance_gap)
    )
    masked = why_position.SelfAttention.random(16, 4, causal=True)
    masked_gap = _largest(why_position.equivariance_gap(masked, tokens, back))
    return {"equivariance": moved, "invariance": stood, "masked": masked_gap, "holds": stood < 1e-12}


def causal_mask_shows_order() -> dict[str, float]:
    """Reverse nine words under a causal mask, then shuffle all but the last; round 1/n to 16 bits."""
    tokens, back = why_position.embed(_WORDS, 16), np.arange(9)[::-1]
    shuffled = np.append(why_position.reorder("shuffle", 8, seed=3), 8)
    numbers = {}
    for depth in (1, 2):
        attend = why_position.SelfAttention.random(16, 4, causal=True, n_layers=depth)
        numbers[f"reversed_{depth}"] = _largest(why_position.equivariance_gap(attend, tokens, back))
        numbers[f"last_{depth}"] = _largest(why_position.equivariance_gap(attend, tokens, shuffled)[-1])
    counts = np.arange(1, 4097)
    rounded = precision.round_to(1 / counts, "bfloat16").astype(float)
    first = int(counts[:-1][rounded[1:] == rounded[:-1]][0])
    return numbers | {
        "alike": first,
        "next": first + 1,
        "distinct": len(np.unique(rounded)),
        "holds": numbers["reversed_1"] < 1e-12,
    }


def sinusoidal_is_shifted_by_one_matrix() -> dict[str, float]:
    """Move a whole table on by 5 with one matrix, and count what a learned table costs."""
    table = positions.sinusoidal(512, 64)
    shifted = table[:-5] @ positions.shift_matrix(5, 64).T
    error = _largest(shifted - table[5:])
    gpt2 = budget.count(PUBLISHED["GPT-2 small"].config).model.parts["positions"]
    neighbours = float(table[0] @ table[1])
    beyond, theta = sinusoidal_beyond_training(), rope.inv_freq(64)
    return beyond | {
        "bucket_511": int(relative_bias.t5_bucket(-511, bidirectional=False)),
        "bucket_600": int(relative_bias.t5_bucket(-600, bidirectional=False)),
        "rope_unseen": int(angle_coverage(theta, theta, 512, 600).beyond.sum()),
        "error": error,
        "gpt2": gpt2,
        "bert": 512 * 768,
        "neighbours": neighbours,
        "later": float(table[300] @ table[301]),
        "holds": error < 1e-12,
    }


def sinusoidal_beyond_training() -> dict[str, float]:
    """Compare the vector of position 600 with all those of a training up to 512."""
    table = positions.sinusoidal(512, 64)
    step = float(np.linalg.norm(table[1] - table[0]))
    nearest = float(np.linalg.norm(positions.sinusoidal_at(600, 64) - table, axis=1).min())
    return {"step": step, "nearest": nearest, "steps": nearest / step, "holds": nearest < step}


def sinusoidal_through_a_matrix() -> dict[str, float]:
    """Take the term of two positions in a score, 8 apart, with and without a matrix between."""
    table = positions.sinusoidal(520, 64)
    between = np.random.default_rng(2).standard_normal((64, 64)) / 8
    bare = (table[:512] * table[8:]).sum(axis=1)
    through = ((table[:512] @ between) * table[8:]).sum(axis=1)
    return {
        "bare": float(bare[0]),
        "spread": float(np.ptp(bare)),
        "lowest": float(through.min()),
        "highest": float(through.max()),
        "holds": bool(np.ptp(through) < 1e-9),
    }


def t5_buckets() -> dict[str, float]:
    """Look where T5's buckets begin, with 32 of them and a maximum distance of 128."""
    both, one = relative_bias.t5_bucket_starts(), relative_bias.t5_bucket_starts(bidirectional=False)
    last = int(both[-1])
    return {
        "last_both": last,
        "last_one": int(one[-1]),
        "at_91": int(relative_bias.t5_bucket(-91)),
        "at_128": int(relative_bias.t5_bucket(-128)),
        "before": int(relative_bias.t5_bucket(-1)),
        "after": int(relative_bias.t5_bucket(1)),
        "parameters": 32 * 12,
        "holds": last == 128,
    }


def t5_uses_31_buckets() -> dict[str, float]:
    """Count the buckets that occur in a bidirectional T5."""
    seen = set(relative_bias.t5_bucket(np.arange(-1000, 1001)).tolist())
    (missing,) = set(range(32)) - seen
    return {"used": len(seen), "missing": missing, "holds": len(seen) == 31}


def alibi_slopes_of_12_heads() -> dict[str, float]:
    """Compare the published slopes of 12 heads with a single geometric sequence."""
    slopes, single = relative_bias.alibi_slopes(12), relative_bias.single_sequence_slopes(12)
    by_size = np.sort(slopes)[::-1]
    ratios = by_size[1:] / by_size[:-1]
    halves = relative_bias.half_distance(relative_bias.alibi_slopes(8))
    return {
        "published": float(slopes[8]),
        "single": float(single[8]),
        "smallest": float(ratios.min()),
        "largest": float(ratios.max()),
        "half_first": float(halves[0]),
        "half_last": float(halves[-1]),
        "holds": bool(np.ptp(ratios) < 1e-12),
    }


def alibi_and_values_before() -> dict[str, float]:
    """Bias by -m|i - j| and by m·j, under a causal mask and without."""
    query, key = np.random.default_rng(3).standard_normal((2, 4, 40, 16))
    slopes = relative_bias.alibi_slopes(4)
    by_distance, by_key = relative_bias.alibi_bias(slopes, 40), slopes[:, None, None] * np.arange(40.0)
    gaps = {}
    for name, causal in (("causal", True), ("free", False)):
        both = [attention_weights(query, key, bias=bias, causal=causal) for bias in (by_distance, by_key)]
        gaps[name] = _largest(both[0] - both[1])
    return gaps | {"holds": gaps["causal"] < 1e-12}


def cost_of_a_bias() -> dict[str, float]:
    """Count the bytes of a bias held as an array, 32 heads, 8192 tokens, 2 bytes; and what schemes learn."""
    return {
        "gib": 32 * 8192**2 * 2 / 2**30,
        "learned": why_position.SelfAttention.random(768, 12, scheme="learned", max_positions=1024).position_parameters,
        "t5": why_position.SelfAttention.random(768, 12, scheme="t5").position_parameters,
        "rope": why_position.SelfAttention.random(768, 12, scheme="rope").position_parameters,
    }
