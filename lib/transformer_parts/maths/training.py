"""Training a decoder in NumPy alone, one step at a time."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.cross_entropy import NOT_COUNTED
from transformer_parts.maths.decoder import StackConfig, loss_and_gradients
from transformer_parts.maths.decoder.stack import LayerNumbers, layer_numbers, norm_of

__all__ = ["AdamW", "Plan", "Record", "clip_to_norm", "repeated_segments", "train", "warmup_cosine"]

Batches = Callable[[int], tuple[NDArray, NDArray]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a decoder is trained; rates and AdamW's numbers are checked when training starts.

    Parameters
    ----------
    steps : int
    batch_size, length : int; sequences in a batch, and tokens in a sequence
    peak, floor : float; highest and last learning rate
    warmup_steps : int; steps in which the rate rises to its peak; 0: none
    max_norm : float, optional; gradients are clipped to this global norm; ``None``: not at all
    betas, eps, weight_decay : AdamW's
    seed : int; of the batches

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
        require.integer("warmup_steps", self.warmup_steps, minimum=0)
        for name in ("floor", "weight_decay"):
            require.number(name, getattr(self, name), minimum=0)
        require.number("eps", self.eps, above=0)
        if self.max_norm is not None:
            require.number("max_norm", self.max_norm, above=0)
        _betas(self.betas)
        self.rate(0)  # checks the rest

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        Parameters
        ----------
        step : int; from 0

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
    step : int; from 0
    loss : float; of the step's batch, before the step, in nats
    gradient_norm : float; global norm before clipping
    learning_rate : float; of the step
    layers : LayerNumbers or None; numbers by layer before the step, where they were asked for
    weights : dict of str to ndarray; the parameters after the step; the next step writes into these arrays
    """

    step: int
    loss: float
    gradient_norm: float
    learning_rate: float
    layers: LayerNumbers | None
    weights: dict[str, NDArray]


@require.door
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
        Initial weights, such as `initialization.initial_weights`; not changed.  float32 is twice as fast as float64.
    config : StackConfig; sizes and kinds
    plan : Plan, optional; the default one if not given
    batches : function, optional
        From the step, counted from 0, to tokens and targets of shape (B, L).  If not given, `repeated_segments` drawn
        by the plan's seed: equal plans see equal batches.
    watch_every : int
        Every so many steps, and at the last, the record has the numbers by layer, which cost a little; 0: never.

    Yields
    ------
    Record

    Raises
    ------
    ValueError
        If training has led to numbers that are no longer finite.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> from transformer_parts.maths.decoder import shapes
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
        batch = batches(step)
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise require.refusal("batches' result", f"a {type(batch).__name__}", "tokens and targets")
        tokens, targets = batch
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


@require.door
def repeated_segments(
    rng: np.random.Generator,
    *,
    batch_size: int,
    length: int,
    vocab_size: int,
    shortest: int | None = None,
    longest: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sequences that each repeat a random segment, and the target to predict at each position.

    Parameters
    ----------
    rng : numpy Generator; draws segments and their lengths, each evenly
    batch_size : int; B
    length : int; L, tokens that are read; at least 2
    vocab_size : int; V
    shortest, longest : int, optional; lengths of a segment, inclusive; L/4 and L/2 if not given (at least 1)

    Returns
    -------
    tokens : ndarray of int, shape (B, L)
    targets : ndarray of int, shape (B, L); the next token; −1 where it is of the first segment and cannot be known

    References
    ----------
    Olsson et al., "In-context Learning and Induction Heads", arXiv:2209.11895, "Model analysis table" and the
    definition of induction heads on repeated random tokens.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> tokens, targets = repeated_segments(rng, batch_size=1, length=8, vocab_size=10, shortest=3, longest=3)
    >>> tokens.tolist(), targets.tolist()
    ([[8, 6, 5, 8, 6, 5, 8, 6]], [[-1, -1, 8, 6, 5, 8, 6, 5]])
    """
    batch_size, length = require.integer("batch_size", batch_size), require.integer("length", length, minimum=2)
    vocab_size = require.integer("vocab_size", vocab_size)
    shortest = max(1, length // 4) if shortest is None else shortest
    longest = max(1, length // 2) if longest is None else longest
    longest = require.integer("longest", longest, maximum=length)
    require.sizes(batch_size=batch_size, length=length)
    shortest = require.integer("shortest", shortest, maximum=longest)
    sizes = rng.integers(shortest, longest + 1, batch_size)
    segments = rng.integers(0, vocab_size, (batch_size, longest))
    at = np.arange(length + 1)
    tokens = np.take_along_axis(segments, at % sizes[:, None], axis=1)  # (B, L + 1)
    targets = np.where(at[1:] >= sizes[:, None], tokens[:, 1:], NOT_COUNTED)
    return tokens[:, :-1], targets


Named = Mapping[str, NDArray]


class AdamW:
    r"""Adam with decoupled weight decay, over parameters by name.

    .. math::
        m &\leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        w &\leftarrow (1 - \eta\lambda) w - \eta\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    The divisors undo that m and v began at 0.  λ acts on the weight itself, not through m and v, and on matrices
    alone: gains and biases do not decay.

    Parameters
    ----------
    weights : mapping of str to ndarray; the parameters to begin with; copied
    betas : tuple of two floats; β₁ and β₂, each at least 0 and below 1
    eps : float; ε > 0
    weight_decay : float; λ ≥ 0

    Attributes
    ----------
    weights : dict of str to ndarray; the parameters; `step` writes into these arrays
    steps : int; t, how many steps have been taken

    References
    ----------
    Loshchilov & Hutter, "Decoupled Weight Decay Regularization", arXiv:1711.05101, §2, algorithm 2;
    Kingma & Ba, "Adam", arXiv:1412.6980, §2, algorithm 1, and §3 (the bias correction).

    Examples
    --------
    >>> adam = AdamW({"w": np.array([1.0])}, weight_decay=0.0)
    >>> adam.step({"w": np.array([0.3])}, learning_rate=0.1)
    >>> adam.weights["w"].round(6).tolist()  # the first step has the size of the learning rate, whatever the gradient
    [0.9]
    """

    @require.door
    def __init__(
        self,
        weights: Named,
        *,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        weight_decay: float = 0.1,
    ) -> None:
        self.betas = _betas(betas)
        self.eps = require.number("eps", eps, above=0)
        self.weight_decay = require.number("weight_decay", weight_decay, minimum=0)
        for name, w in weights.items():
            if not isinstance(w, np.ndarray) or w.dtype not in (np.float32, np.float64):
                got = str(getattr(w, "dtype", type(w).__name__))
                raise require.refusal(f"weights[{name!r}]", got, "an array of float32 or float64")
        self.weights = {name: w.copy() for name, w in weights.items()}
        self.steps = 0
        self._mean = {name: np.zeros_like(w) for name, w in weights.items()}
        self._square = {name: np.zeros_like(w) for name, w in weights.items()}

    @require.door
    def step(self, gradients: Named, learning_rate: float) -> None:
        """Take one step down the gradients.

        Parameters
        ----------
        gradients : mapping of str to array_like; by the names and of the shapes of the weights
        learning_rate : float; η ≥ 0
        """
        rate = require.number("learning_rate", learning_rate, minimum=0)
        if gradients.keys() != self.weights.keys():
            odd = ", ".join(sorted(gradients.keys() ^ self.weights.keys()))
            raise require.refusal("gradients", f"other names than the weights ({odd})", "one gradient for each weight")
        gradients = {name: require.array(f"gradients[{name!r}]", g, min_ndim=0) for name, g in gradients.items()}
        for name, g in gradients.items():
            require.shape(f"gradients[{name!r}]", g, self.weights[name].shape, "that of the weight")
        self.steps += 1
        first, second = self.betas
        size = rate / (1 - first**self.steps)
        unbias = 1 / math.sqrt(1 - second**self.steps)
        for name, w in self.weights.items():
            mean, square, g = self._mean[name], self._square[name], gradients[name]
            mean *= first
            mean += (1 - first) * g
            square *= second
            square += (1 - second) * g * g
            if w.ndim > 1 and self.weight_decay:
                w *= 1 - rate * self.weight_decay
            root = np.sqrt(square)
            root *= unbias
            root += self.eps
            np.divide(mean, root, out=root)
            root *= size
            w -= root


@require.door
def warmup_cosine(step: int, *, peak: float, warmup_steps: int, total_steps: int, floor: float = 0.0) -> float:
    r"""Return the learning rate of step t, from 0: straight up over n_w steps, then half a cosine down to `floor`.

    .. math::
        \eta_t = \eta_\text{peak} \frac{t + 1}{n_w} \ (t < n_w), \qquad
        \eta_\text{floor} + \frac{\eta_\text{peak} - \eta_\text{floor}}{2}
        \Bigl(1 + \cos \pi \frac{t - n_w}{n - n_w}\Bigr)

    From `total_steps` n on it stays at `floor`.

    Parameters
    ----------
    step : int; t
    peak, floor : float; the largest and the last rate
    warmup_steps, total_steps : int; n_w and n

    Returns
    -------
    float

    References
    ----------
    Loshchilov & Hutter, "SGDR", arXiv:1608.03983, §3, eq. 5 (one cycle of it); warm-up: Vaswani et al.,
    arXiv:1706.03762, §5.3.

    Examples
    --------
    >>> [warmup_cosine(step, peak=1.0, warmup_steps=2, total_steps=4) for step in range(5)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    step = require.integer("step", step, minimum=0)
    warmup_steps = require.integer("warmup_steps", warmup_steps, minimum=0)
    total_steps = require.integer("total_steps", total_steps, minimum=warmup_steps + 1)
    peak = require.number("peak", peak, minimum=0)
    floor = require.number("floor", floor, minimum=0, maximum=peak)
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    done = min(1.0, (step - warmup_steps) / (total_steps - warmup_steps))
    return floor + (peak - floor) / 2 * (1 + math.cos(math.pi * done))


def clip_to_norm(gradients: Named, max_norm: float) -> tuple[dict[str, NDArray], float]:
    r"""Scale all gradients by one factor so that their norm, taken as one vector, is at most `max_norm`.

    .. math:: g \leftarrow g \cdot \min(1,\ c / \lVert g \rVert), \qquad
              \lVert g \rVert^2 = \sum_\text{parameters} \sum g_i^2

    The direction is kept; clipping each parameter separately would turn it.

    Parameters
    ----------
    gradients : mapping of str to array_like; by name; integers become float64
    max_norm : float; c > 0

    Returns
    -------
    clipped : dict of str to ndarray
        The same arrays where nothing had to be clipped, or where the norm is not finite and no factor would help.
    norm : float; the global norm before clipping

    References
    ----------
    Pascanu, Mikolov & Bengio, "On the difficulty of training Recurrent Neural Networks", arXiv:1211.5063, §3.2,
    algorithm 1.

    Examples
    --------
    >>> clipped, norm = clip_to_norm({"a": np.array([3.0]), "b": np.array([4.0])}, max_norm=1.0)
    >>> norm, clipped["a"].round(6).item(), clipped["b"].round(6).item()
    (5.0, 0.6, 0.8)
    """
    max_norm = require.number("max_norm", max_norm, above=0)
    require.instance("gradients", gradients, Mapping)
    gradients = {name: require.floating(f"gradients[{name!r}]", g, min_ndim=0) for name, g in gradients.items()}
    with np.errstate(over="ignore"):
        norm = norm_of(list(gradients.values()))
    if not max_norm < norm < math.inf:
        return gradients, norm
    return {name: g * g.dtype.type(max_norm / norm) for name, g in gradients.items()}, norm


def _betas(betas: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise require.refusal("betas", repr(betas), "two numbers")
    for i, beta in enumerate(betas):
        if require.number(f"betas[{i}]", beta, minimum=0) >= 1:
            raise require.refusal(f"betas[{i}]", repr(beta), "a number below 1")
    return float(betas[0]), float(betas[1])
