"""Numbers about RoPE: rotation, score against offset, frequencies, layouts."""

import numpy as np

from transformer_parts.maths import attention, rope, rope_layout, rope_scores
from transformer_parts.maths.decoder import DecoderLayer

__all__ = [
    "base_and_wavelengths",
    "fastest_pair_and_base",
    "layouts_differ",
    "rope_has_no_parameters",
    "rotate_half_is_the_split_layout",
    "same_offset_other_content",
    "score_is_not_monotone",
    "shifted_and_turned_values",
    "shifting_both_changes_nothing",
]

_QUERY, _KEY = (1.0, 2.0, 3.0, 4.0), (2.0, 1.0, 0.0, 1.0)


def same_offset_other_content() -> dict[str, float]:
    """Score q = (1, 2) and k = (2, 1), a quarter turn per position, at offset 1; then with the key reversed."""
    quarter, query, key = [np.pi / 2], np.array([1.0, 2]), np.array([2.0, 1])
    turned = rope.rotate([query, key], [1, 2], inv_freq=quarter)
    score = float(rope.scores_by_offset(query, key, [1], inv_freq=quarter)[0])
    other = float(rope.scores_by_offset(query, -key, [1], inv_freq=quarter)[0])
    later = rope.rotate([query, key], [4, 5], inv_freq=quarter)
    return {
        "before": float(query @ key),
        "product": float(turned[0] @ turned[1]),
        "later": float(later[0] @ later[1]),
        "score": score,
        "other": other,
        "length_before": float(query @ query),
        "length": float(turned[0] @ turned[0]),
        "keeps_length": bool(np.isclose(turned[0] @ turned[0], query @ query)),
        "holds": bool(np.isclose(score, other)),
    }


def shifting_both_changes_nothing() -> dict[str, float]:
    """Score one pair at m = 1, n = 3 and 100 000 positions further on."""
    near, far = (rope.rotate([_QUERY, _KEY], [m, m + 2]) for m in (1, 100_001))
    scores = [float(pair[0] @ pair[1]) for pair in (near, far)]
    return {"near": scores[0], "far": scores[1], "holds": bool(np.isclose(*scores))}


def shifted_and_turned_values() -> dict[str, float]:
    """Move a text on by 100: what changes with the values turned, and without."""
    x, value = np.random.default_rng(4).standard_normal((2, 1, 5, 8))
    outputs = {}
    for start in (0, 100):
        places = np.arange(5) + start
        turned = rope.rotate(x, places)
        outputs["alone", start] = attention.attention(turned, turned, value)
        outputs["turned", start] = attention.attention(turned, turned, rope.rotate(value, places))
    changes = {name: float(np.abs(outputs[name, 100] - outputs[name, 0]).max()) for name in ("alone", "turned")}
    return changes | {"holds": changes["turned"] < 1e-9}


def rope_has_no_parameters() -> dict[str, float]:
    """Count the parameters of a layer with RoPE and of its matrices and norms."""
    total = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16).parameter_counts()["total"]
    parts = 4 * 8 * 8 + 3 * 8 * 16 + 2 * 8
    return {"total": total, "parts": parts, "rope": total - parts, "holds": total > parts}


def score_is_not_monotone() -> dict[str, float]:
    """Follow q = k = (1, …, 1), head_dim 128, over ±4096 positions; and random content much further."""
    ones, theta = np.ones(128), rope.inv_freq(128)
    curve = rope.scores_by_offset(ones, ones, np.arange(-4096, 4097))
    tally = rope_scores.distance_counts(curve)
    bound = rope_scores.decay_bound(ones, ones, [0, 70_508], theta)  # the second is its lowest up to 131 072
    query, key = np.random.default_rng(5).standard_normal((2, 400, 128))
    spread = {}
    for offset in (0, 100_000):
        turned = rope.rotate(key, np.full(len(key), offset))
        spread[f"spread_{offset}"] = float(((query * turned).sum(axis=1) / np.sqrt(128)).std())
    return spread | {
        "negative": tally.negative / tally.offsets,
        "rising": tally.rising / tally.steps,
        "bound_start": float(bound[0]),
        "bound_lowest": float(bound[1]),
        "constant": float(np.sqrt(128)),
        "holds": tally.rising == 0,
    }


def base_and_wavelengths() -> dict[str, float]:
    """Count the pairs of a head of 128 that complete a turn within 4096 positions, by base."""
    numbers = {}
    for base in (10_000, 500_000):
        waves = rope.wavelengths(rope.inv_freq(128, base))
        numbers |= {
            f"fastest_{base}": float(waves[0]),
            f"slowest_{base}": float(waves[-1]),
            f"complete_{base}": int((waves <= 4096).sum()),
            f"incomplete_{base}": int((waves > 4096).sum()),
        }
    more = numbers["complete_500000"] > numbers["complete_10000"]
    trained, raised = rope.inv_freq(128, 10_000), rope.inv_freq(128, 500_000)
    numbers["first_unseen"] = float((4096 * trained / raised)[rope.wavelengths(trained) > 4096].min())
    return numbers | {"turns": 4096 / numbers["fastest_10000"], "holds": more}


def fastest_pair_and_base() -> dict[str, float]:
    """Compare the first and last frequency at two bases."""
    small, large = rope.inv_freq(128, 10_000), rope.inv_freq(128, 500_000)
    return {
        "first_small": float(small[0]),
        "first_large": float(large[0]),
        "last_ratio": float(small[-1] / large[-1]),
        "holds": bool(small[0] != large[0]),
    }


def layouts_differ() -> dict[str, float]:
    """Score one pair of vectors in both layouts, at offsets 0 and 2; then with the channels permuted."""
    scores = {
        (layout, offset): float(rope.scores_by_offset(_QUERY, _KEY, [offset], layout=layout, scale=1.0)[0])
        for layout in ("interleaved", "split")
        for offset in (0, 2)
    }
    order = rope_layout.permutation(4, "split")
    moved = float(
        rope.scores_by_offset(np.take(_QUERY, order), np.take(_KEY, order), [2], layout="split", scale=1.0)[0]
    )
    right, wrong = scores["interleaved", 2], scores["split", 2]
    return {
        "right": right,
        "wrong": wrong,
        "at_zero": scores["split", 0],
        "right_at_zero": scores["interleaved", 0],
        "permuted": moved,
        "agree_permuted": bool(np.isclose(moved, right)),
        "holds": bool(np.isclose(right, wrong)),
    }


def rotate_half_is_the_split_layout() -> dict[str, float]:
    """Rotate 50 heads of 64 channels by x·cos + rotate_half(x)·sin, with the angles tiled and each one repeated."""
    x, theta = np.random.default_rng(6).standard_normal((50, 64)), rope.inv_freq(64)
    angles, half = np.outer(np.arange(50), theta), np.concatenate([-x[:, 32:], x[:, :32]], axis=1)
    right = rope.rotate(x, np.arange(50), layout="split")
    tiled, repeated = (
        float(np.abs(x * np.cos(table) + half * np.sin(table) - right).max())
        for table in (np.tile(angles, 2), np.repeat(angles, 2, axis=1))
    )
    mib = 2 * 131_072 * 128 * 4 / 2**20  # cosines and sines in float32
    return {"tiled": tiled, "repeated": repeated, "table_mib": mib, "holds": tiled < 1e-12}
