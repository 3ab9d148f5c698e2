"""Numbers about attention, initialisation and the stability of training."""

import numpy as np

from transformer_parts.learn.evidence.context_extension import angles_beyond_training
from transformer_parts.maths import budget, precision
from transformer_parts.maths.attention import attention, attention_weights, causal_mask, entropy, scores, softmax
from transformer_parts.maths.cross_entropy import cross_entropy, cross_entropy_backward
from transformer_parts.maths.decoder import DecoderLayer, StackConfig, loss_and_gradients
from transformer_parts.maths.decoder.stack import layer_numbers
from transformer_parts.maths.feedforward import swiglu
from transformer_parts.maths.initialization import initial_weights, residual_factor
from transformer_parts.maths.stability import grown_attention, logit_bound
from transformer_parts.maths.training import AdamW
from transformer_parts.models.excerpt import load_excerpt

__all__ = [
    "cap_and_qk_norm",
    "causal_mask_of_a_step",
    "causality_of_a_layer",
    "clipping_keeps_the_direction",
    "gradient_of_the_loss",
    "gradients_by_depth",
    "half_precision_range",
    "logits_grow_with_the_square",
    "residual_scaling_at_the_start",
    "scaling_by_the_root",
    "several_heads",
    "softmax_and_shift",
    "weight_on_the_first_token",
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
    level = numbers["scaled_out"] < 2 * numbers["scaled_in"] < numbers["plain_out"]
    return numbers | {"level": level, "holds": numbers["plain_out"] < 1.1 * numbers["plain_in"]}


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
        "bounded": bool(normed.largest.max() <= logit_bound(64)),
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
    rng = np.random.default_rng(5)
    (w_gate, w_up), w_down = rng.standard_normal((2, 64, 176)) / 8, rng.standard_normal((176, 64)) / 8
    x = rng.standard_normal((100, 64))
    gated = np.std(swiglu(8 * x, w_gate, w_up, w_down)) / np.std(swiglu(x, w_gate, w_up, w_down))
    return _longest_steps_of_adam() | {
        "times": grown["times"],
        "entropy_1": grown["entropy_1"],
        "entropy_8": grown["entropy_8"],
        "entropy_normed": grown["entropy_normed"],
        "bound": grown["bound"],
        "last_ratio": depth["last_ratio"],
        "root_l": depth["root_l"],
        "gated": float(gated),
        "stuck": half_precision_range()["stuck"],
        "beyond": angles_beyond_training()["beyond"],
        "holds": depth["last_ratio"] < 1,
    }


def several_heads() -> dict[str, float]:
    """Let heads of four widths find one of 4096 random keys of RMS 1; cost of 32 heads of 128 and of 64 of 64."""
    rng, numbers = np.random.default_rng(10), {}
    for width in (16, 32, 64, 128):
        key = rng.standard_normal((4096, width))
        key /= np.sqrt(np.mean(key**2, axis=1, keepdims=True))
        numbers[f"found_{width}"] = float(attention_weights(key[None, :50], key[None])[0].diagonal().mean())
    parameters = [budget.attention_parameters(4096, heads, heads, 4096 // heads) for heads in (32, 64)]
    products = [4 * 8192 * heads * (4096 // heads) for heads in (32, 64)]
    alike = parameters[0] == parameters[1] and products[0] == products[1]
    return numbers | {"parameters": parameters[0], "mflop": products[0] / 1e6, "holds": alike}


def gradient_of_the_loss() -> dict[str, float]:
    """Compare the gradient of the loss at logits (1, 2, 4), target 1, with softmax minus one-hot and differences."""
    logits, step = np.array([[1.0, 2.0, 4.0]]), 1e-5
    gradient, wanted = cross_entropy_backward(logits, [1])[0], softmax(logits)[0] - [0, 1, 0]
    sides = [[cross_entropy(logits + sign * step * one, [1]) for one in np.eye(3)] for sign in (1, -1)]
    measured = np.subtract(*sides) / (2 * step)
    return {
        **{f"g_{i}": float(g) for i, g in enumerate(gradient)},
        "sum": abs(float(gradient.sum())),
        "measured": float(np.abs(measured - gradient).max()),
        "start": 1 / 49_152 - 1,
        "holds": bool(np.allclose(gradient, wanted) and abs(gradient.sum()) < 1e-12 and np.abs(gradient).max() < 1),
    }


def cap_and_qk_norm() -> dict[str, float]:
    """Cap logits of 20, 200 and 300 by 50·tanh(s/50), with the slope there; compare with QK-norm's bound."""
    logits = np.array([20.0, 200, 300])
    capped, slope = 50 * np.tanh(logits / 50), 1 - np.tanh(logits / 50) ** 2
    grown = logits_grow_with_the_square()
    return {
        **{f"capped_{s:.0f}": float(c) for s, c in zip(logits, capped, strict=True)},
        **{f"slope_{s:.0f}": float(c) for s, c in zip(logits, slope, strict=True)},
        "gap": float(capped[2] - capped[1]),
        "bound": grown["bound"],
        "normed_8": grown["normed_8"],
        "plain_8": grown["plain_8"],
        "holds": bool(slope[1] < 0.01),
    }


def weight_on_the_first_token() -> dict[str, float]:
    """Take the weight that SmolLM2-135M's heads give to token 0 of a passage, and what even attention would give."""
    excerpt = load_excerpt()
    weight, rms = excerpt.weight_on_first(), excerpt.residual_rms()
    length = rms.shape[1]
    return {
        "mean": float(weight.mean()),
        "even": float(np.mean(1 / np.arange(2, length + 1))),
        "heads": float(np.mean(weight > 0.5)),
        "first_rms": float(rms[:, 0].max()),
        "other_rms": float(np.median(rms[rms[:, 0].argmax(), 1:])),
        "length": length,
        "holds": bool(weight.mean() > 5 * np.mean(1 / np.arange(2, length + 1))),
    }
