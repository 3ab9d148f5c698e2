"""How well small decoders learn a table, by the activation of their feed-forward layer, at one budget of parameters.

``python -m transformer_parts.runs.activations`` trains each kind from several seeds and records its losses.  The task
needs the feed-forward layer: the target is looked up in a random table by a token and the one before it together.
Attention can fetch the token before; what the pair means must be remembered by the layer.
"""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.cross_entropy import NOT_COUNTED
from transformer_parts.maths.decoder import StackConfig
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.training import Plan, train
from transformer_parts.runs import recorded

NAME = "activations"
# GELU by tanh, and no GEGLU: the exact GELU takes ten times as long in NumPy as all the rest of a step.
PLAIN = ("relu", "gelu_tanh", "silu")
KINDS = (*PLAIN, "glu", "bilinear", "reglu", "swiglu")
SEEDS = 5

VOCABULARY = 32
PLAN = Plan(steps=500, batch_size=8, length=64, peak=3e-3, floor=3e-5, weight_decay=0.0)
WIDTHS = (128, 192)  # d_ff of a gated layer, of a plain one: three matrices of 128 are two of 192


def table_of(seed: int) -> NDArray[np.int64]:
    """Return the table: the target by the token before and the token itself, shape (V, V)."""
    return np.random.default_rng([seed, 0]).integers(0, VOCABULARY, (VOCABULARY, VOCABULARY))


def batches_of(seed: int, plan: Plan) -> Callable[[int], tuple[NDArray, NDArray]]:
    """Return a function that draws batches of random tokens and what the table has for each and the one before it."""
    table, rng = table_of(seed), np.random.default_rng([seed, 1])

    def draw(_step: int) -> tuple[NDArray, NDArray]:
        tokens = rng.integers(0, VOCABULARY, (plan.batch_size, plan.length))
        targets = np.full_like(tokens, NOT_COUNTED)  # the first token has no pair
        targets[:, 1:] = table[tokens[:, :-1], tokens[:, 1:]]
        return tokens, targets

    return draw


def losses_of(kind: str, seed: int, plan: Plan, first: int | None = None) -> NDArray[np.float64]:
    """Train one decoder and return its loss at each step, or at the `first` few alone.

    Seeds set the table, the batches and the initial weights; kinds of one seed see the same batches.
    """
    require.one_of("kind", kind, KINDS)
    gated, plain = WIDTHS
    config = StackConfig(
        vocab_size=VOCABULARY, n_layers=1, d_model=64, n_heads=2, ffn=kind,
        d_ff=plain if kind in PLAIN else gated,
    )  # fmt: skip
    weights = {name: w.astype(np.float32) for name, w in initial_weights(config, seed=seed).items()}
    steps = islice(train(weights, config, plan, batches=batches_of(seed, plan)), first)
    return np.array([step.loss for step in steps])


def record(plan: Plan = PLAN, seeds: int = SEEDS, kinds: tuple[str, ...] = KINDS) -> tuple[Mapping, Mapping]:
    """Train every kind from every seed; return arguments and series of the recording.

    Recorded are, by kind, the mean loss over the last fiftieth of the steps for each seed, and the mean over the
    seeds of the loss at every twentieth step.
    """
    last = max(1, plan.steps // 50)
    final: dict[str, Any] = {}
    curve: dict[str, Any] = {}
    for kind in kinds:
        losses = np.array([losses_of(kind, seed, plan) for seed in range(seeds)])
        final[kind] = losses[:, -last:].mean(1)
        curve[kind] = losses.mean(0)[::20]
    arguments = {
        "vocabulary": VOCABULARY, "d_ff": list(WIDTHS), "seeds": seeds, "steps": plan.steps,
        "batch_size": plan.batch_size, "length": plan.length, "peak": plan.peak, "floor": plan.floor,
        "weight_decay": plan.weight_decay,
    }  # fmt: skip
    return arguments, {"final": final, "curve": curve}


if __name__ == "__main__":
    recorded.main(NAME, record, __doc__.splitlines()[0])
