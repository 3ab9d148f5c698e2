"""Training a decoder in NumPy alone, one step at a time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.optimizer import AdamW, clip_to_norm, warmup_cosine
from transformer_parts.maths.stack import StackConfig, loss_and_gradients
from transformer_parts.maths.stack_tape import LayerNumbers, layer_numbers, norm_of
from transformer_parts.maths.training_task import repeated_segments

__all__ = ["AdamW", "Plan", "Record", "clip_to_norm", "repeated_segments", "train", "warmup_cosine"]

Batches = Callable[[int], tuple[NDArray, NDArray]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a decoder is trained.

    Parameters
    ----------
    steps : int
        How many steps.
    batch_size, length : int
        Sequences in a batch, and tokens in a sequence.
    peak, floor : float
        Highest and last learning rate.
    warmup_steps : int
        Steps in which the rate rises to its peak; 0: none.
    max_norm : float, optional
        Gradients are clipped to this global norm; ``None``: not at all.
    betas, eps, weight_decay
        AdamW's.
    seed : int
        Of the batches.

    Raises
    ------
    ValueError
        If a size is not a positive integer; the rates and AdamW's numbers are looked at when training starts.

    Examples
    --------
    >>> Plan(steps=100).warmup_steps
    20
    """

    steps: int = 350
    batch_size: int = 16
    length: int = 64
    peak: float = 3e-3
    floor: float = 3e-4
    warmup_steps: int = 20
    max_norm: float | None = 1.0
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "length"):
            require.integer(name, getattr(self, name))
        require.integer("seed", self.seed, minimum=0)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        Parameters
        ----------
        step : int
            From 0.

        Returns
        -------
        float
        """
        total = max(self.steps, self.warmup_steps + 1)
        schedule = {"peak": self.peak, "floor": self.floor, "warmup_steps": self.warmup_steps}
        return warmup_cosine(step, total_steps=total, **schedule)


class Record(NamedTuple):
    """One step of training.

    Attributes
    ----------
    step : int
        From 0.
    loss : float
        Of the step's batch, before the step, in nats.
    gradient_norm : float
        Global norm before clipping.
    learning_rate : float
        Of the step.
    layers : LayerNumbers or None
        Numbers by layer before the step, where they were asked for.
    weights : dict of str to ndarray
        The parameters after the step; the next step writes into these arrays.
    """

    step: int
    loss: float
    gradient_norm: float
    learning_rate: float
    layers: LayerNumbers | None
    weights: dict[str, NDArray]


def train(
    weights: Mapping[str, NDArray],
    config: StackConfig,
    plan: Plan | None = None,
    *,
    batches: Batches | None = None,
    watch_every: int = 0,
) -> Iterator[Record]:
    """Train a decoder, yielding a record after each step.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Where to begin, as `initialization.initial_weights` draws them; not changed.  float32 is twice as fast as
        float64.
    config : StackConfig
        Sizes and kinds.
    plan : Plan, optional
        The default one if not given.
    batches : function, optional
        From the step, counted from 0, to tokens and targets of shape (B, L).  If not given, `repeated_segments`
        drawn by the plan's seed: equal plans see equal batches.
    watch_every : int
        Every so many steps, and at the last, the record has the numbers by layer, which cost a little; 0: never.

    Yields
    ------
    Record

    Raises
    ------
    ValueError
        If an argument is out of its range, or if training has led to numbers that are no longer finite.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> from transformer_parts.maths.stack import shapes
    >>> weights = {name: np.full(shape, 0.1) for name, shape in shapes(config).items()}
    >>> plan = Plan(steps=3, batch_size=2, length=8, warmup_steps=2)
    >>> [f"{record.step} {record.learning_rate:.4f}" for record in train(weights, config, plan)]
    ['0 0.0015', '1 0.0030', '2 0.0030']
    """
    plan = Plan() if plan is None else plan
    watch_every = require.integer("watch_every", watch_every, minimum=0)
    optimizer = AdamW(weights, betas=plan.betas, eps=plan.eps, weight_decay=plan.weight_decay)
    batches = _segments(plan, config) if batches is None else batches
    for step in range(plan.steps):
        tokens, targets = batches(step)
        found = loss_and_gradients(optimizer.weights, tokens, targets, config)
        if plan.max_norm is None:
            gradients, norm = found.gradients, norm_of(list(found.gradients.values()))
        else:
            gradients, norm = clip_to_norm(found.gradients, plan.max_norm)
        watched = watch_every and (step % watch_every == 0 or step == plan.steps - 1)
        layers = layer_numbers(found) if watched else None
        rate = plan.rate(step)
        optimizer.step(gradients, rate)
        yield Record(step, found.loss, norm, rate, layers, optimizer.weights)


def _segments(plan: Plan, config: StackConfig) -> Batches:
    rng = np.random.default_rng(plan.seed)
    sizes = {"batch_size": plan.batch_size, "length": plan.length, "vocab_size": config.vocab_size}
    return lambda _step: repeated_segments(rng, **sizes)
