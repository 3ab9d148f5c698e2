"""Norm placements measured: gradients at initialisation by depth, and short runs with and without warm-up.

``python -m transformer_parts.runs.norm_placement`` rewrites the recording.
"""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType

import numpy as np

from transformer_parts.maths.decoder import PLACEMENTS, StackConfig
from transformer_parts.maths.residual_stream import SCHEMES, FirstPass, first_pass, initialized
from transformer_parts.maths.training import Plan, repeated_segments, train
from transformer_parts.runs import recorded

NAME = "norm_placement"

#: As in the paper: LayerNorm and ReLU; the head is not tied, so that the embedding may begin at RMS 1.
KIND: Mapping = MappingProxyType({"norm": "layer", "ffn": "relu", "tied": False, "n_heads": 2})
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
DEPTH_SIZES: Mapping = MappingProxyType({"vocab_size": 64, "d_model": 64, "d_ff": 128})
DEPTH_SEEDS = (0, 1, 2, 3, 4, 5, 6, 7)

RUN_SIZES: Mapping = MappingProxyType({"vocab_size": 16, "n_layers": 6, "d_model": 32, "d_ff": 64})
PLAN = Plan(
    steps=160, batch_size=16, length=24, peak=1e-2, floor=1e-2, max_norm=None, betas=(0.9, 0.98), weight_decay=0.0
)
SEGMENT = (3, 6)
RATES = (3e-3, 1e-2)
WARMUPS = (0, 50)
RUN_SEEDS = (0, 1, 2, 3, 4)
#: Steps between two measurements of the numbers by layer; the loss is averaged over as many.
EVERY = 10


def at_depth(placement: str, scheme: str, n_layers: int, seed: int) -> FirstPass:
    """Return the numbers of a first pass at one depth."""
    config = StackConfig(**KIND, **DEPTH_SIZES, n_layers=n_layers, placement=placement)
    return first_pass(initialized(config, scheme=scheme, seed=seed), config, seed=seed)


def short_run(placement: str, peak: float, warmup_steps: int, seed: int, *, steps: int = PLAN.steps) -> dict:
    """Train one small decoder; return the mean ``loss`` over each `EVERY` steps, and two measures every `EVERY` steps.

    These are ``activation_rms``, (measurements, n_layers + 1), and ``gradient``, (measurements, n_layers), the norm of
    a layer's gradient, the first at step 0.
    """
    config = StackConfig(**KIND, **RUN_SIZES, placement=placement)
    plan = Plan(**(asdict(PLAN) | {"peak": peak, "floor": peak, "warmup_steps": warmup_steps, "seed": seed}))
    weights = {name: w.astype(np.float32) for name, w in initialized(config, seed=seed).items()}
    rng = np.random.default_rng(seed)
    sizes = {"batch_size": plan.batch_size, "length": plan.length, "vocab_size": config.vocab_size}
    losses, rms, gradients = [], [], []

    def batches(_step: int):
        return repeated_segments(rng, **sizes, shortest=SEGMENT[0], longest=SEGMENT[1])

    for record in train(weights, config, plan, batches=batches, watch_every=EVERY):
        losses.append(record.loss)
        if record.step % EVERY == 0:
            rms.append(record.layers.activation_rms)
            gradients.append(record.layers.weight_gradient)
        if len(losses) == steps:
            break
    means = np.reshape(losses[: len(losses) // EVERY * EVERY], (-1, EVERY)).mean(axis=1)
    return {"loss": means, "activation_rms": np.array(rms), "gradient": np.array(gradients)}


def record() -> tuple[dict, dict]:
    """Measure everything; return arguments and series."""
    depth: dict = {}
    for scheme in SCHEMES:
        depth[scheme] = {}
        for placement in PLACEMENTS:
            found = [[at_depth(placement, scheme, n, seed) for n in DEPTHS] for seed in DEPTH_SEEDS]
            depth[scheme][placement] = {
                "last": [[one.ffn_gradient[-1] for one in row] for row in found],
                "first": [[one.ffn_gradient[0] for one in row] for row in found],
                "activation_rms": [[one.activation_rms[-1] for one in row] for row in found],
            }
    runs: dict = {}
    for placement in PLACEMENTS:
        for rate in RATES:
            for warmup in WARMUPS:
                found = [short_run(placement, rate, warmup, seed) for seed in RUN_SEEDS]
                runs[run_name(placement, rate, warmup)] = {
                    "loss": [one["loss"] for one in found],
                    "activation_rms": found[0]["activation_rms"],
                    "gradient": found[0]["gradient"],
                }
    arguments = {
        "kind": dict(KIND),
        "depths": DEPTHS,
        "depth_sizes": dict(DEPTH_SIZES),
        "depth_seeds": DEPTH_SEEDS,
        "run_sizes": dict(RUN_SIZES),
        "plan": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(PLAN).items()},
        "segment": SEGMENT,
        "rates": RATES,
        "warmups": WARMUPS,
        "run_seeds": RUN_SEEDS,
        "every": EVERY,
    }
    return arguments, {"depth": depth, "runs": runs}


def run_name(placement: str, rate: float, warmup: int) -> str:
    """Return the name of a run in the recording.

    Examples
    --------
    >>> run_name("post", 3e-3, 0)
    'post, 0.003, 0'
    """
    return f"{placement}, {rate:g}, {warmup}"


if __name__ == "__main__":
    recorded.main(NAME, record, "Measure norm placements: gradients by depth, and short runs with and without warm-up.")
