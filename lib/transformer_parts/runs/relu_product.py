"""How well plain ReLU layers learn the product of two inputs, with all of their weights trained.

``python -m transformer_parts.runs.relu_product`` trains layers of several widths from five seeds.  The target is
x₁x₂ on random points of the square from −1 to 1; what is recorded is the error, as a share of the target's length.
"""

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths.activations import relu
from transformer_parts.maths.training import AdamW, warmup_cosine
from transformer_parts.runs import recorded

NAME = "relu_product"
UNITS = (4, 8, 16)
SEEDS = (0, 1, 2, 3, 4)
STEPS = 6000
PEAK = 0.02
POINTS = 500


def points_of(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points of the square with a 1 beside them, shape (N, 3), and the product of each, shape (N,)."""
    points = np.random.default_rng([seed, 0]).uniform(-1, 1, (POINTS, 2))
    return np.column_stack([points, np.ones(POINTS)]), points.prod(axis=1)


def error_of(n_units: int, seed: int, steps: int = STEPS) -> float:
    """Train a layer of `n_units` ReLU units, and return its error on points that it was not trained on."""
    inputs, wanted = points_of(seed)
    rng = np.random.default_rng([seed, 1])
    begin = {"w_in": rng.standard_normal((3, n_units)), "w_out": rng.standard_normal(n_units) / n_units**0.5}
    adam = AdamW(begin, betas=(0.9, 0.999), weight_decay=0.0)
    for step in range(steps):
        weights = adam.weights
        hidden = relu(inputs @ weights["w_in"])
        off = 2 * (hidden @ weights["w_out"] - wanted) / len(wanted)
        into_units = np.outer(off, weights["w_out"]) * (hidden > 0)
        gradients = {"w_in": inputs.T @ into_units, "w_out": hidden.T @ off}
        adam.step(gradients, learning_rate=warmup_cosine(step, peak=PEAK, warmup_steps=0, total_steps=steps))
    inputs, wanted = points_of(seed + 1000)
    fitted = relu(inputs @ adam.weights["w_in"]) @ adam.weights["w_out"]
    return float(np.linalg.norm(fitted - wanted) / np.linalg.norm(wanted))


def record() -> tuple[dict, dict]:
    """Train all widths from all seeds; return arguments and series as `recorded.save` takes them."""
    arguments = {"units": UNITS, "seeds": SEEDS, "steps": STEPS, "peak": PEAK, "points": POINTS}
    return arguments, {f"{n} units": [error_of(n, seed) for seed in SEEDS] for n in UNITS}


if __name__ == "__main__":
    recorded.main(NAME, record, __doc__.splitlines()[0])
