"""Small decoders trained with and without each measure of stability: ``python -m transformer_parts.runs.stability``.

Each measure has two arms that differ in one setting alone.  Seed by seed they see the same batches and begin with the
same draws, which the two measures of initialisation scale otherwise.  The decoders have four layers and learn to repeat
short segments; a run takes a few seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.cross_entropy import cross_entropy
from transformer_parts.maths.decoder.stack import StackConfig, Weights, forward, layer_numbers, loss_and_gradients
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.precision import FORMATS, round_to
from transformer_parts.maths.training import Batches, Plan, Record, clip_to_norm, repeated_segments, train
from transformer_parts.runs import recorded

SHORTEST, LONGEST = 2, 5


@dataclass(frozen=True)
class Arm:
    """One way to train."""

    peak: float = 1e-2  # highest learning rate
    warmup_steps: int = 20  # 0: none
    max_norm: float | None = 1.0  # of the gradients; ``None``: they are not clipped
    std: float = 0.18  # of the initial weights, N(0, std²)
    residual_scaling: bool = True  # draw the residual projections narrower
    placement: str = "pre"  # of the norms
    qk_norm: bool = False  # norms over queries and keys
    weights_in: str = "float32"  # format that the weights are rounded to after every step
    optimizer: str = "adamw"  # or "sgd", with a momentum of 0.9 and the rate `peak` throughout

    def __post_init__(self) -> None:
        require.number("peak", self.peak, minimum=0)
        require.integer("warmup_steps", self.warmup_steps, minimum=0)
        if self.max_norm is not None:
            require.number("max_norm", self.max_norm, above=0)
        require.one_of("weights_in", self.weights_in, FORMATS)
        require.one_of("optimizer", self.optimizer, ("adamw", "sgd"))


class Comparison(NamedTuple):
    """Two arms that differ in one setting."""

    taken: Arm  # with the measure
    left: Arm  # without it


#: The measures, by name.
COMPARISONS: Mapping[str, Comparison] = MappingProxyType(
    {
        "init": Comparison(Arm(), Arm(std=1.0)),
        "narrowing": Comparison(Arm(), Arm(residual_scaling=False)),
        "warm-up": Comparison(Arm(peak=2e-2, placement="post"), Arm(peak=2e-2, placement="post", warmup_steps=0)),
        "clipping": Comparison(Arm(peak=0.3, optimizer="sgd"), Arm(peak=0.3, optimizer="sgd", max_norm=None)),
        "clipping, AdamW": Comparison(Arm(peak=3e-2), Arm(peak=3e-2, max_norm=None)),
        "QK-norm": Comparison(Arm(peak=3e-2, qk_norm=True), Arm(peak=3e-2)),
        "float32": Comparison(Arm(), Arm(weights_in="bfloat16")),
    }
)


@dataclass(frozen=True)
class Task:
    """Sizes of the decoder and of its batches."""

    vocab_size: int = 16
    n_layers: int = 4
    d_model: int = 32
    n_heads: int = 2
    d_ff: int = 80
    batch_size: int = 16  # batch_size, length: sequences and tokens
    length: int = 24

    def config(self, arm: Arm) -> StackConfig:
        """Return the decoder of an arm."""
        return StackConfig(
            vocab_size=self.vocab_size,
            n_layers=self.n_layers,
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            placement=arm.placement,
            qk_norm=arm.qk_norm,
        )

    def batch(self, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
        """Draw tokens and targets."""
        return repeated_segments(
            rng,
            batch_size=self.batch_size,
            length=self.length,
            vocab_size=self.vocab_size,
            shortest=SHORTEST,
            longest=LONGEST,
        )


NAME = "stability"
STEPS = 200
SEEDS = (0, 1, 2, 3, 4)
#: The number of steps that a point of every series covers.
EVERY = 4
QUANTILES = (0.1, 0.5, 0.9)
MOMENTUM = 0.9


class Watched(NamedTuple):
    """What is watched of one step."""

    loss: float  # of the step's batch, in nats
    gradient_norm: float  # before clipping
    activation_rms: float  # of the residual stream after the last layer
    largest_logit: float  # the largest attention logit of all layers
    entropy: float  # of the attention weights, the mean over layers, in nats
    # of the losses of single sequences of a batch that is never trained on, at `QUANTILES`
    quantiles: tuple[float, ...]


QUANTITIES = Watched._fields[:-1]


def run(
    arm: Arm, seed: int = 0, *, steps: int | None = None, every: int = EVERY, task: Task | None = None
) -> Iterator[Watched]:
    """Train one decoder and yield what is watched, every so many steps.

    Parameters
    ----------
    arm : Arm; how
    seed : int; of weights and batches
    steps : int, optional; how many, at most `STEPS` (all of them if not given); the schedule is that of a run of
        `STEPS`, so that a shorter run is the beginning of a longer one
    every : int; steps for one point; its loss is their mean, its gradient norm their largest
    task : Task, optional

    Yields
    ------
    Watched : it ends early where the numbers are no longer finite
    """
    steps = STEPS if steps is None else require.integer("steps", steps, maximum=STEPS)
    every = require.integer("every", every)
    seed = require.integer("seed", seed, minimum=0)
    require.instance("arm", arm, Arm)
    task = Task() if task is None else task
    require.instance("task", task, Task)
    config, rng = task.config(arm), np.random.default_rng(seed)
    held_out = task.batch(np.random.default_rng(1000 + seed))
    weights = initial_weights(config, std=arm.std, residual_scaling=arm.residual_scaling, seed=seed, dtype=np.float32)
    records = _records(weights, config, arm, lambda _step: task.batch(rng), seed, every)
    for _point in range(steps // every):
        watched = None
        # Overflow yields non-finite numbers, which the passes reject; that ends the run.  Arguments were validated
        # above.  Nothing is yielded inside: the caller's own settings of warnings hold there.
        with np.errstate(over="ignore", invalid="ignore"), suppress(ValueError):
            watched = _watched([*_rounded(islice(records, every), arm)], held_out, config)
        if watched is None:
            return
        yield watched


def _rounded(records: Iterator[Record], arm: Arm) -> Iterator[Record]:
    """Yield each step's record, after rounding its weights to the format that they are held in."""
    for record in records:
        for w in record.weights.values():
            if arm.weights_in != "float32":
                w[...] = round_to(w, arm.weights_in)
        yield record


def _watched(records: Sequence[Record], held_out: tuple[NDArray, NDArray], config: StackConfig) -> Watched:
    layers = next(record.layers for record in reversed(records) if record.layers)
    of_sequences = _losses(records[-1].weights, held_out, config)
    return Watched(
        loss=float(np.mean([record.loss for record in records])),
        gradient_norm=float(np.max([record.gradient_norm for record in records])),
        activation_rms=float(layers.activation_rms[-1]),
        largest_logit=float(layers.largest_score.max()),
        entropy=float(layers.entropy.mean()),
        quantiles=tuple(np.quantile(of_sequences, QUANTILES).tolist()),
    )


def _records(
    weights: Weights, config: StackConfig, arm: Arm, batches: Batches, seed: int, every: int
) -> Iterator[Record]:
    if arm.optimizer == "adamw":
        plan = Plan(
            steps=STEPS, peak=arm.peak, floor=arm.peak / 10, warmup_steps=arm.warmup_steps, max_norm=arm.max_norm,
            seed=seed,
        )  # fmt: skip
        yield from train(weights, config, plan, batches=batches, watch_every=every)
        return
    momentum = {name: np.zeros_like(w) for name, w in weights.items()}
    for step in range(STEPS):
        found = loss_and_gradients(weights, *batches(step), config)
        gradients, norm = clip_to_norm(found.gradients, arm.max_norm or np.finfo(np.float64).max)
        for name, w in weights.items():
            momentum[name] = MOMENTUM * momentum[name] + gradients[name]
            w -= np.float32(arm.peak) * momentum[name]
        layers = layer_numbers(found) if step % every == 0 else None
        yield Record(step, found.loss, norm, arm.peak, layers, weights)


def _losses(weights: Weights, held_out: tuple[NDArray, NDArray], config: StackConfig) -> NDArray:
    logits, _ = forward(weights, held_out[0], config)
    return np.array([cross_entropy(z, y) for z, y in zip(logits, held_out[1], strict=True)])


def series(watched: Sequence[Watched]) -> dict[str, NDArray]:
    """Return what was watched as arrays by name, shape (N,); the quantiles as (N, 3)."""
    return {name: np.array([getattr(point, name) for point in watched]) for name in Watched._fields}


def record() -> tuple[recorded.Tree, recorded.Tree]:
    """Train every arm with every seed and return arguments and series."""
    task, arms = Task(), {}
    for name, comparison in COMPARISONS.items():
        for kind, arm in (("taken", comparison.taken), ("left", comparison.left)):
            arms.setdefault(arm, []).append(f"{name}, {kind}")
    measured = {
        " | ".join(names): {str(s): _short(series(list(run(arm, s)))) for s in SEEDS} for arm, names in arms.items()
    }
    arguments = {
        "task": asdict(task) | {"shortest": SHORTEST, "longest": LONGEST},
        "steps": STEPS,
        "every": EVERY,
        "seeds": list(SEEDS),
        "quantiles": list(QUANTILES),
        "arms": {" | ".join(names): asdict(arm) for arm, names in arms.items()},
    }
    return arguments, measured


def _short(found: dict[str, NDArray]) -> dict[str, NDArray]:
    """Keep three significant digits, of the loss four: curves on a page show no more."""
    digits = {name: 4 if name == "loss" else 3 for name in found}
    return {name: np.vectorize(lambda x, n=digits[name]: float(f"{x:.{n}g}"))(x) for name, x in found.items()}


def arm_series(recording: recorded.RecordedRun, comparison: str, kind: str, seed: int) -> Mapping[str, NDArray]:
    """Return the recorded series of one arm of a comparison: `kind` "taken" is with the measure, "left" without it."""
    require.one_of("comparison", comparison, COMPARISONS)
    require.one_of("kind", kind, ("taken", "left"))
    require.one_of("seed", str(seed), [str(s) for s in recording.arguments["seeds"]])
    (found,) = [runs for names, runs in recording.series.items() if f"{comparison}, {kind}" in names.split(" | ")]
    return found[str(seed)]


if __name__ == "__main__":
    recorded.main(NAME, record, __doc__)
