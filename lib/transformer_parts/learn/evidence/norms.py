"""Numbers about LayerNorm and RMSNorm, and about where the norm is placed."""

import numpy as np

from transformer_parts.maths import budget, norm_placement, norms, precision
from transformer_parts.maths.gradients import layer_norm_backward, rms_norm_backward
from transformer_parts.maths.norms import center, layer_norm, moments, rms_norm
from transformer_parts.models.configs import PUBLISHED
from transformer_parts.models.excerpt import load_excerpt

__all__ = [
    "batch_norm_sees_the_future",
    "centred_matrix",
    "epsilon_is_felt",
    "gradient_along_the_input",
    "layer_norm_without_bias",
    "length_of_a_normalised_vector",
    "order_of_rounding",
    "post_norm_shrinks_the_skip",
    "pre_norm_grows",
    "rms_norm_and_shift",
    "squares_in_float16",
    "token_alone",
    "unbiased_variance",
]

_TINY = 1e-12


def layer_norm_without_bias() -> dict[str, float]:
    """Normalise (1, 3) by both norms, and (2, 4); count the norms' share; look at real residual vectors."""
    x = np.array([1.0, 3.0])
    layer, rms = layer_norm(x, weight=[1, 1], eps=_TINY), rms_norm(x, weight=[1, 1], eps=_TINY)
    shifted = rms_norm(x + 1, eps=_TINY)
    excerpt = load_excerpt()
    shares = [moments(excerpt.residual(place)).mean_over_rms for place in excerpt.residual_names]
    chance = moments(np.random.default_rng(5).standard_normal((1000, excerpt.residual("blk.0.attn_norm").shape[-1])))
    config = PUBLISHED["SmolLM2 135M"].config
    counted = budget.count(config).model
    return {
        "layer_0": float(layer[0]),
        "layer_1": float(layer[1]),
        "rms_0": float(rms[0]),
        "rms_1": float(rms[1]),
        "shifted_0": float(shifted[0]),
        "shifted_1": float(shifted[1]),
        "rms": float(moments(x).rms),
        "square": float((x @ x) / 2),
        "mean": float(x.mean()),
        "variance": float((x @ x) / 2 - x.mean() ** 2),
        "mean_share": float(np.median(shares)),
        "chance": float(np.median(chance.mean_over_rms)),
        "norm_share": counted.parts["norms"] / counted.total,
        "holds": bool(np.allclose(layer, rms)),
    }


def rms_norm_and_shift() -> dict[str, float]:
    """Add 1 to (1, 3): what RMSNorm and LayerNorm give before and after."""
    x = np.array([1.0, 3.0])
    by_rms = [rms_norm(v, eps=_TINY) for v in (x, x + 1)]
    by_layer = [layer_norm(v, eps=_TINY) for v in (x, x + 1)]
    return {
        "before": float(by_rms[0][0]),
        "after": float(by_rms[1][0]),
        "layer_change": float(np.abs(by_layer[1] - by_layer[0]).max()),
        "holds": bool(np.allclose(*by_rms)),
    }


def length_of_a_normalised_vector() -> dict[str, float]:
    """Measure the lengths of real residual vectors after RMSNorm."""
    excerpt = load_excerpt()
    out = rms_norm(excerpt.residual("blk.16.attn_norm"), eps=excerpt.eps)
    length = float(np.linalg.norm(out, axis=-1).mean())
    return {
        "length": length,
        "width": out.shape[-1],
        "root": out.shape[-1] ** 0.5,
        "holds": bool(np.isclose(length, 1)),
    }


def unbiased_variance() -> dict[str, float]:
    """Normalise (1, 0, 0, 0) with 1/D and with 1/(D - 1)."""
    x = np.array([1.0, 0, 0, 0])
    right = float(layer_norm(x, eps=_TINY)[0])
    wrong = float(((x - x.mean()) / x.std(ddof=1))[0])
    return {"right": right, "wrong": wrong, "ratio": float(np.sqrt(575 / 576)), "holds": bool(np.isclose(right, wrong))}


def token_alone() -> dict[str, float]:
    """Change one token of a batch: what LayerNorm and BatchNorm give for another token."""
    batch = np.random.default_rng(4).standard_normal((8, 64))
    changed = batch.copy()
    changed[7] += 5
    by_layer = float(np.abs(layer_norm(batch)[0] - layer_norm(changed)[0]).max())
    by_batch = [(b - b.mean(axis=0)) / b.std(axis=0) for b in (batch, changed)]
    change = float(np.abs(by_batch[1][0] - by_batch[0][0]).max())
    return {"layer": by_layer, "batch": change, "holds": by_layer == 0}


def epsilon_is_felt() -> dict[str, float]:
    """Take channels of ±0.001 through RMSNorm with three values of ε."""
    small = 1e-3 * np.array([1.0, -1, 1, -1])
    rms = [float(moments(rms_norm(small, eps=eps)).rms) for eps in (1e-5, 1e-6, 1e-8)]
    excerpt = load_excerpt()
    smallest = float(moments(excerpt.residual("blk.0.attn_norm")).rms.min())
    return {
        "at_5": rms[0],
        "at_6": rms[1],
        "at_8": rms[2],
        "smallest": smallest,
        "root": float(np.sqrt(excerpt.eps)),
        "holds": bool(np.allclose(rms, 1, atol=0.01)),
    }


def squares_in_float16() -> dict[str, float]:
    """Take the mean square of (300, 300) and of 4096 ones in 16 bits."""
    numbers = {"largest": float(np.finfo(np.float16).max)}
    for dtype in ("float16", "bfloat16"):
        numbers |= {
            f"square_{dtype}": float(norms.mean_square_in([300.0, 300.0], dtype)),
            f"out_{dtype}": float(norms.rms_norm_in([300.0, 300.0], dtype)[0]),
            f"ones_{dtype}": float(norms.mean_square_in(np.ones(4096), dtype)),
        }
    sums_stop = numbers["ones_bfloat16"] == 256 / 4096
    return numbers | {"sums_stop": sums_stop, "holds": bool(np.isfinite(numbers["square_float16"]))}


def order_of_rounding() -> dict[str, float]:
    """Put the same real vectors and gains through Llama's and Gemma's order of rounding."""
    excerpt = load_excerpt()
    stream = excerpt.residual("blk.16.attn_norm")
    gains = 1 + np.random.default_rng(0).integers(0, 128, stream.shape[-1]) / 128
    exact = rms_norm(precision.round_to(stream, "bfloat16"), gains, excerpt.eps)
    first = norms.rms_norm_cast_first(stream, gains, excerpt.eps)
    last = norms.rms_norm_cast_last(stream, gains - 1, excerpt.eps)
    steps = [float(np.max(np.abs(y - exact) / precision.spacing(exact, "bfloat16"))) for y in (first, last)]
    share = float(np.mean(first != last))
    return {"first": steps[0], "last": steps[1], "differ": share, "holds": share == 0}


def centred_matrix() -> dict[str, float]:
    """Normalise x·w by LayerNorm, and x·(w with its rows centred) by RMSNorm."""
    w = np.random.default_rng(2).standard_normal((16, 64))
    x = np.random.default_rng(3).standard_normal((100, 16))
    layer = layer_norm(x @ w, eps=1e-5)
    gap = float(np.abs(layer - rms_norm(x @ center(w), eps=1e-5)).max())
    plain = float(np.abs(layer - rms_norm(x @ w, eps=1e-5)).max())
    return {"gap": gap, "plain": plain, "holds": gap < 1e-12}


def gradient_along_the_input() -> dict[str, float]:
    """Send a gradient through both norms at x = (1, 3), and look at its part along x."""
    x, grad = np.array([1.0, 3.0]), np.array([1.0, 0.0])
    by_rms = np.asarray(rms_norm_backward(grad, x, None, _TINY)[0])
    by_layer = np.asarray(layer_norm_backward(grad, x, None, _TINY)[0])
    without = grad / moments(x).rms
    along = float(by_rms @ x)
    return {
        "d_0": float(by_rms[0]),
        "d_1": float(by_rms[1]),
        "naive_0": float(without[0]),
        "naive_1": float(without[1]),
        "along": abs(along),
        "naive_along": float(without @ x),
        "layer_sum": float(abs(by_layer.sum())),
        "half": float(np.abs(np.asarray(rms_norm_backward(grad, 2 * x, None, _TINY)[0]) / by_rms).mean()),
        "holds": abs(along) < 1e-9,
    }


def _branch(seed: int, width: int):
    w = np.random.default_rng(seed).standard_normal((width, width)) / np.sqrt(width)
    return lambda x: x @ w


def pre_norm_grows() -> dict[str, float]:
    """Send random vectors through 64 random layers, Pre and Post, with branches that keep the RMS."""
    width, depth = 128, 64
    start = rms_norm(np.random.default_rng(0).standard_normal((256, width)))
    pre, post, first = start, start, start
    for layer in range(depth):
        branch = _branch(layer + 1, width)
        pre, post = norm_placement.pre_norm(pre, branch, rms_norm), norm_placement.post_norm(post, branch, rms_norm)
        if layer == 0:
            first = pre
    sizes = {"pre": moments(pre).rms.mean(), "post": moments(post).rms.mean(), "first": moments(first).rms.mean()}
    numbers = {name: float(size) for name, size in sizes.items()}
    return numbers | {"root": float(np.sqrt(1 + depth)), "last_share": 1 / (1 + depth), "holds": numbers["pre"] < 2}


def post_norm_shrinks_the_skip() -> dict[str, float]:
    """Measure what is left of a layer's input on the skip path after 12 Post layers, and DeepNorm's factors."""
    width, depth = 128, 12
    start = rms_norm(np.random.default_rng(0).standard_normal((256, width)))
    x, left = start, 1.0
    for layer in range(depth):
        total = x + _branch(layer + 1, width)(x)
        left /= float(moments(total).rms.mean())
        x = rms_norm(total)
    factors = norm_placement.deepnorm_alpha_beta(depth)
    alpha, beta = (float(v) for v in factors)
    return {"left": left, "each": left ** (1 / depth), "alpha": alpha, "beta": beta, "holds": bool(np.isclose(left, 1))}


def batch_norm_sees_the_future() -> dict[str, float]:
    """Change the last token of one of four sequences before BatchNorm; then normalise a single token by itself."""
    x = np.random.default_rng(6).standard_normal((4, 16, 32))
    changed = x.copy()
    changed[0, -1] += 5

    def batch_norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(axis=(0, 1))) / np.sqrt(x.var(axis=(0, 1)) + 1e-5)

    moved = np.abs(batch_norm(changed) - batch_norm(x)).max(axis=-1)
    by_layer = float(np.abs(layer_norm(changed) - layer_norm(x))[0, 0].max())
    earlier, other = float(moved[0, 0]), float(moved[1].max())
    alone = float(np.abs(batch_norm(x[:1, :1])).max())
    return {"earlier": earlier, "other": other, "alone": alone, "layer": by_layer, "holds": earlier > 0}
