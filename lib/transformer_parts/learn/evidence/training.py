"""Numbers about attention, initialisation and the stability of training."""

import numpy as np

from transformer_parts.maths import precision
from transformer_parts.maths.attention import attention, attention_weights, causal_mask, entropy, scores, softmax
from transformer_parts.maths.decoder import DecoderLayer, StackConfig, loss_and_gradients
from transformer_parts.maths.decoder.stack import layer_numbers
from transformer_parts.maths.initialization import initial_weights, residual_factor
from transformer_parts.maths.stability import grown_attention, logit_bound
from transformer_parts.maths.training import AdamW

__all__ = [
    "causal_mask_of_a_step",
    "causality_of_a_layer",
    "clipping_keeps_the_direction",
    "gradients_by_depth",
    "half_precision_range",
    "logits_grow_with_the_square",
    "residual_scaling_at_the_start",
    "scaling_by_the_root",
    "softmax_and_shift",
    "what_goes_first",
]


def scaling_by_the_root() -> dict[str, float]:
    """Score random queries and keys of 128 channels with and without 1/√d, over 64 keys."""
    query, key = np.random.default_rng(0).standard_normal((2, 1, 64, 128))
    raw, scaled = scores(query, key, scale=1.0), scores(query, key)
    read = {
        name: float(np.exp(entropy(attention_weights(query, key, scale=scale))).mean())
        for name, scale in (("raw_read", 1.0), ("scaled_read", None))
    }
    return read | {
        "raw": float(raw.std()),
        "scaled": float(scaled.std()),
        "root": float(np.sqrt(128)),
        "by_d": float((raw / 128).std()),
        "holds": bool(abs(raw.std() - 1) < 0.2),
    }


def softmax_and_shift() -> dict[str, float]:
    """Add 1000 to all logits, and multiply them by 2."""
    logits = np.array([1.0, 2.0, 4.0])
    plain = softmax(logits)
    shifted, doubled = (float(np.abs(softmax(x) - plain).max()) for x in (logits + 1000, 2 * logits))
    with np.errstate(over="ignore"):
        naive = float(np.exp(np.float64(1004.0)))
    return {
        "shift": shifted,
        "double": doubled,
        "naive": naive,
        "holds": shifted < 1e-12,
    }


def causal_mask_of_a_step() -> dict[str, float]:
    """Align one new query with five cached keys: the last query is the last key."""
    mask = causal_mask(1, 5)
    from_zero = np.tri(1, 5, dtype=bool)
    query, key, value = np.random.default_rng(1).standard_normal((3, 1, 5, 8))
    whole = attention(query, key, value, causal=True)[0, -1]
    right = attention(query[:, -1:], key, value, mask=mask)[0, 0]
    wrong = attention(query[:, -1:], key, value, mask=from_zero)[0, 0]
    return {
        "seen": int(mask.sum()),
        "seen_from_zero": int(from_zero.sum()),
        "right": float(np.abs(right - whole).max()),
        "wrong": float(np.abs(wrong - whole).max()),
        "holds": bool(np.allclose(wrong, whole)),
    }


def causality_of_a_layer() -> dict[str, float]:
    """Change token 3 of six before a decoder layer and look at the outputs before, at and after it."""
    layer = DecoderLayer.random(d_model=8, n_heads=2, d_ff=16, std=0.5)
    x = np.random.default_rng(2).standard_normal((6, 8))
    changed = x.copy()
    changed[3] += 1
    moved = np.abs(layer(changed) - layer(x)).max(axis=1)
    counts = layer.parameter_counts()
    return {
        "before": float(moved[:3].max()),
        "at": float(moved[3]),
        "after": float(moved[4:].max()),
        "total": counts["total"],
        "holds": float(moved[:3].max()) == 0,
    }


def _gradients_of_w_down(placement: str, seed: int) -> tuple[float, float]:
    """Return the norm of the gradient of w_down in the first and the last of 24 layers, at initialisation (Xavier)."""
    config = StackConfig(vocab_size=64, n_layers=24, d_model=64, n_heads=4, d_ff=176, placement=placement, tied=False)
    weights = initial_weights(config, scheme="xavier", std=1.0, residual_scaling=False, seed=seed)
    weights["head"] = weights["head"] / np.sqrt(config.d_model)  # logits of size 1
    tokens = np.random.default_rng(seed).integers(0, 64, (4, 17))
    gradients = loss_and_gradients(weights, tokens[:, :-1], tokens[:, 1:], config).gradients
    first, last = (float(np.linalg.norm(gradients[f"layers.{i}.w_down"])) for i in (0, config.n_layers - 1))
    return first, last


def gradients_by_depth() -> dict[str, float]:
    """Run stacks of 24 layers forward and backward at initialisation, Pre and Post, from five seeds."""
    numbers = {}
    for placement in ("pre", "post"):
        ends = np.array([_gradients_of_w_down(placement, seed) for seed in range(5)])
        for end, norms in zip(("first", "last"), ends.T, strict=True):
            name = f"{placement}_{end}"
            numbers |= {name: float(np.median(norms)), f"{name}_low": norms.min(), f"{name}_high": norms.max()}
    numbers |= {"last_ratio": numbers["post_last"] / numbers["pre_last"], "root_l": 24**0.5}
    return numbers | {"holds": numbers["post_first"] < 0.1 * numbers["post_last"]}


def _longest_steps_of_adam() -> dict[str, float]:
    """Return, for two values of beta_2, Adam's longest step when gradients grow 100 times after 2000 quiet steps.

    Beside it the bound for a lone spike; both in learning rates.
    """
    numbers = {}
    for name, second in (("999", 0.999), ("95", 0.95)):
        adam = AdamW({"w": np.zeros(1)}, betas=(0.9, second), weight_decay=0.0)
        places = [0.0]
        for step in range(2040):
            adam.step({"w": np.array([1.0 if step < 2000 else 100.0])}, learning_rate=1.0)
            places.append(adam.weights["w"].item())
        numbers |= {f"spike_{name}": 0.1 / (1 - second) ** 0.5, f"stale_{name}": -np.diff(places).min()}
    return numbers


def residual_scaling_at_the_start() -> dict[str, float]:
    """Measure the residual stream after 24 layers at initialisation, with and without 1/√(2L) on its writers."""
    config = StackConfig(vocab_size=64, n_layers=24, d_model=64, n_heads=4, d_ff=176)
    tokens = np.random.default_rng(0).integers(0, 64, (2, 33))
    numbers = {"factor": residual_factor(24), "gpt2": residual_factor(12)}
    for name, scaled in (("plain", False), ("scaled", True)):
        weights = initial_weights(config, scheme="xavier", std=1.0, residual_scaling=scaled, seed=0)
        found = layer_numbers(loss_and_gradients(weights, tokens[:, :-1], tokens[:, 1:], config))
        numbers |= {f"{name}_in": float(found.activation_rms[0]), f"{name}_out": float(found.activation_rms[-1])}
    return numbers | {"holds": numbers["plain_out"] < 1.1 * numbers["plain_in"]}


def logits_grow_with_the_square() -> dict[str, float]:
    """Let queries and keys grow 8 times, with and without QK-norm."""
    query, key = np.random.default_rng(4).standard_normal((2, 64, 64))
    grown = {norm: grown_attention(query, key, [1.0, 8.0], qk_norm=norm) for norm in (False, True)}
    plain, normed = grown[False], grown[True]
    return {
        "plain_1": float(plain.largest[0]),
        "plain_8": float(plain.largest[1]),
        "times": float(plain.largest[1] / plain.largest[0]),
        "normed_1": float(normed.largest[0]),
        "normed_8": float(normed.largest[1]),
        "bound": logit_bound(64),
        "entropy_1": float(plain.entropy[0]),
        "entropy_8": float(plain.entropy[1]),
        "entropy_normed": float(normed.entropy[1]),
        "holds": bool(abs(plain.largest[1] / plain.largest[0] - 8) < 0.1),
    }


def half_precision_range() -> dict[str, float]:
    """Round gradients of 1e-8 to 16 bits, with and without a loss scale, and an update of 0.001 to a weight of 1."""
    small, scale = np.array([1e-8]), 2.0**16
    rounded = {dtype: float(precision.round_to(small, dtype)[0]) for dtype in ("float16", "bfloat16")}
    scaled = float(precision.round_to(small * scale, "float16")[0]) / scale
    stuck = float(precision.round_to(np.array([1.0 + 0.001]), "bfloat16")[0])
    with np.errstate(over="ignore"):
        over = float(np.float16(70000.0))
    return {
        "float16": rounded["float16"],
        "bfloat16": rounded["bfloat16"],
        "scaled": scaled,
        "stuck": stuck,
        "over": over,
        "step": float(precision.spacing(np.array([1.0]), "bfloat16")[0]),
        "holds": rounded["float16"] > 0,
    }


def clipping_keeps_the_direction() -> dict[str, float]:
    """Clip (3, 4) and 12 to a global norm of 1, together and each by itself."""
    first, second = np.array([3.0, 4.0]), np.array([12.0])
    both = np.concatenate([first, second])
    norm = float(np.linalg.norm(both))
    clipped = both / norm
    apart = np.concatenate([first / np.linalg.norm(first), second / np.linalg.norm(second)])
    by_value = np.clip(both, -1, 1)

    def cosine(x):
        return float(x @ both / np.linalg.norm(x) / norm)

    return {
        "norm": norm,
        "clipped_0": float(clipped[0]),
        "clipped_2": float(clipped[2]),
        "cosine": cosine(clipped),
        "cosine_apart": cosine(apart),
        "cosine_value": cosine(by_value),
        "holds": bool(np.isclose(cosine(apart), 1)),
    }


def what_goes_first() -> dict[str, float]:
    """Put together the numbers that tell which part of a model is in trouble."""
    grown, depth = logits_grow_with_the_square(), gradients_by_depth()
    return _longest_steps_of_adam() | {
        "times": grown["times"],
        "entropy_1": grown["entropy_1"],
        "entropy_8": grown["entropy_8"],
        "entropy_normed": grown["entropy_normed"],
        "bound": grown["bound"],
        "last_ratio": depth["last_ratio"],
        "root_l": depth["root_l"],
        "holds": depth["last_ratio"] < 1,
    }
