"""Small decoders, each with one part exchanged or one mistake made, trained alike: their losses, shown and true.

The loss that training shows is compared with an honest loss: each true next token predicted from the preceding tokens
only.  For a causal decoder with shifted targets the two are the same.

``python -m transformer_parts.runs.decoder_layer`` rewrites the recording.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths.cross_entropy import log_softmax
from transformer_parts.maths.decoder import StackConfig, forward
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.training import Plan, repeated_segments, train
from transformer_parts.runs import recorded

NAME = "decoder_layer"
CONFIG = StackConfig(vocab_size=32, n_layers=2, d_model=64, n_heads=2, d_ff=128, tied=False)
PLAN = Plan(steps=200, batch_size=16, length=48, peak=1e-2, floor=1e-3, weight_decay=0.01)
#: Tokens of the segment that every sequence repeats, always as many: what was is what stood as far back.
SEGMENT = 12
SEEDS = (0, 1, 2, 3, 4)
#: Each change to the decoder; "targets not shifted" changes what it is trained on instead.
VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "usual": MappingProxyType({}),
        "no RoPE": MappingProxyType({"rope_base": None}),
        "LayerNorm": MappingProxyType({"norm": "layer"}),
        "plain FFN": MappingProxyType({"ffn": "relu", "d_ff": 192}),
        "Post": MappingProxyType({"placement": "post"}),
        "no mask": MappingProxyType({"causal": False}),
        "targets not shifted": MappingProxyType({}),
    }
)
#: Steps between two evaluations on held-out sequences; the training loss is averaged over as many.
EVERY = 10
HELD_OUT = 32


def held_out(config: StackConfig, length: int) -> NDArray[np.int64]:
    """Return sequences of length + 1 that no training has seen, each repeating a segment."""
    rng = np.random.default_rng(14)
    segments = rng.integers(0, config.vocab_size, (HELD_OUT, SEGMENT))
    return np.take(segments, np.arange(length + 1) % SEGMENT, axis=1)


def honest_loss(weights: Mapping[str, NDArray], tokens: NDArray, config: StackConfig) -> NDArray:
    """Return the mean loss of the true next token at each position, predicted from the tokens up to it alone."""
    if config.causal:
        logits, _ = forward(weights, tokens[:, :-1], config)
    else:  # as one would generate: what comes later isn't there
        ends = [forward(weights, tokens[:, : t + 1], config)[0][:, -1] for t in range(tokens.shape[1] - 1)]
        logits = np.stack(ends, axis=1)
    return _by_position(logits, tokens[:, 1:])


def seen_loss(weights: Mapping[str, NDArray], tokens: NDArray, config: StackConfig, variant: str) -> NDArray:
    """Return the mean loss at each position as training sees it: all tokens are there, the targets are its own."""
    logits, _ = forward(weights, tokens[:, :-1], config)
    return _by_position(logits, tokens[:, :-1] if variant == "targets not shifted" else tokens[:, 1:])


def _by_position(logits: NDArray, targets: NDArray) -> NDArray:
    return -np.take_along_axis(log_softmax(logits), targets[..., None], axis=-1)[..., 0].mean(axis=0)


def batches(variant: str, plan: Plan, config: StackConfig) -> Callable[[int], tuple[NDArray, NDArray]]:
    """Return the batches of a plan, with the variant's targets."""
    rng = np.random.default_rng(plan.seed)
    sizes = {"batch_size": plan.batch_size, "length": plan.length + 1, "vocab_size": config.vocab_size}

    def draw(_step: int) -> tuple[NDArray, NDArray]:
        # Every position counts, those too whose next token cannot be known: their best loss is ln V.
        tokens, _ = repeated_segments(rng, **sizes, shortest=SEGMENT, longest=SEGMENT)
        return tokens[:, :-1], tokens[:, :-1] if variant == "targets not shifted" else tokens[:, 1:]

    return draw


def run(variant: str, seed: int, *, steps: int = PLAN.steps) -> dict[str, NDArray]:
    """Train one variant and return its losses.

    ``training`` is the mean over each `EVERY` steps; ``honest`` and ``seen``, (evaluations, L), are taken on held-out
    sequences by position, before the first step and after every `EVERY`.
    """
    config, plan = replace(CONFIG, **VARIANTS[variant]), replace(PLAN, seed=seed)
    weights = initial_weights(config, seed=seed, dtype=np.float32)
    tokens = held_out(config, plan.length)
    training: list[float] = []
    honest, seen = [honest_loss(weights, tokens, config)], [seen_loss(weights, tokens, config, variant)]
    for record in train(weights, config, plan, batches=batches(variant, plan, config)):
        training.append(record.loss)
        if len(training) % EVERY == 0:
            honest.append(honest_loss(record.weights, tokens, config))
            seen.append(seen_loss(record.weights, tokens, config, variant))
        if len(training) == steps:
            break
    means = np.mean(np.reshape(training[: len(training) // EVERY * EVERY], (-1, EVERY)), axis=1)
    return {"training": means, "honest": np.array(honest), "seen": np.array(seen)}


def record() -> tuple[dict, dict]:
    """Train every variant with every seed; return arguments and series."""
    series: dict[str, dict] = {}
    for variant in VARIANTS:
        runs = [run(variant, seed) for seed in SEEDS]
        known = SEGMENT - 1  # from here on the next token has been seen before
        series[variant] = {
            "training": [found["training"] for found in runs],
            "honest": [found["honest"].mean(axis=1) for found in runs],
            "honest_where_known": [found["honest"][:, known:].mean(axis=1) for found in runs],
            "honest_by_position": runs[0]["honest"].round(3),
            "seen_by_position": runs[0]["seen"].round(3),
        }
    arguments = {
        "config": asdict(CONFIG),
        "plan": asdict(PLAN),
        "variants": {name: dict(change) for name, change in VARIANTS.items()},
        "segment": SEGMENT,
        "seeds": SEEDS,
        "every": EVERY,
        "held_out": HELD_OUT,
    }
    return arguments, series


if __name__ == "__main__":
    recorded.main(NAME, record, "Train small decoders with one part exchanged each and record their losses.")
