"""What is trained with and without each measure of stability: two arms that differ in one setting alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.precision import FORMATS
from transformer_parts.maths.stack import StackConfig
from transformer_parts.maths.training import repeated_segments

SHORTEST, LONGEST = 2, 5


@dataclass(frozen=True)
class Arm:
    """One way to train.

    Attributes
    ----------
    peak : float
        Highest learning rate.
    warmup_steps : int
        0: none.
    max_norm : float or None
        Of the gradients; ``None``: they are not clipped.
    std : float
        Of the initial weights, N(0, std²).
    residual_scaling : bool
        Draw the residual projections narrower.
    placement : str
        Of the norms.
    qk_norm : bool
        Norms over queries and keys.
    weights_in : str
        Format that the weights are rounded to after every step.
    optimizer : {"adamw", "sgd"}
        SGD has a momentum of 0.9 and the rate `peak` throughout.

    Raises
    ------
    ValueError
        If a setting of training is out of its range; those of the decoder are looked at by its config.
    """

    peak: float = 1e-2
    warmup_steps: int = 20
    max_norm: float | None = 1.0
    std: float = 0.18
    residual_scaling: bool = True
    placement: str = "pre"
    qk_norm: bool = False
    weights_in: str = "float32"
    optimizer: str = "adamw"

    def __post_init__(self) -> None:
        require.number("peak", self.peak, minimum=0)
        require.integer("warmup_steps", self.warmup_steps, minimum=0)
        if self.max_norm is not None:
            require.number("max_norm", self.max_norm, above=0)
        require.one_of("weights_in", self.weights_in, FORMATS)
        require.one_of("optimizer", self.optimizer, ("adamw", "sgd"))


class Comparison(NamedTuple):
    """Two arms that differ in one setting.

    Attributes
    ----------
    title : str
        The measure, in words.
    taken, left : Arm
        With the measure and without it.
    """

    title: str
    taken: Arm
    left: Arm


#: The measures, by name.
COMPARISONS: Mapping[str, Comparison] = MappingProxyType(
    {
        "init": Comparison("initial weights of std 0.18, not 1", Arm(), Arm(std=1.0)),
        "narrowing": Comparison("residual projections × 1/√(2L)", Arm(), Arm(residual_scaling=False)),
        "warm-up": Comparison(
            "warm-up (post-norm)", Arm(peak=2e-2, placement="post"), Arm(peak=2e-2, placement="post", warmup_steps=0)
        ),
        "clipping": Comparison(
            "clipping to norm 1 (SGD)", Arm(peak=0.3, optimizer="sgd"), Arm(peak=0.3, optimizer="sgd", max_norm=None)
        ),
        "clipping, AdamW": Comparison("clipping to norm 1 (AdamW)", Arm(peak=3e-2), Arm(peak=3e-2, max_norm=None)),
        "QK-norm": Comparison("QK-norm", Arm(peak=3e-2, qk_norm=True), Arm(peak=3e-2)),
        "float32": Comparison("weights kept in float32, not bfloat16", Arm(), Arm(weights_in="bfloat16")),
    }
)


@dataclass(frozen=True)
class Task:
    """Sizes of the decoder and of its batches.

    Attributes
    ----------
    vocab_size, n_layers, d_model, n_heads, d_ff
        As in `StackConfig`.
    batch_size, length : int
        Sequences and tokens.
    """

    vocab_size: int = 16
    n_layers: int = 4
    d_model: int = 32
    n_heads: int = 2
    d_ff: int = 80
    batch_size: int = 16
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
