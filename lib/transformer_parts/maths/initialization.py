"""The weights a decoder begins with."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transformer_parts.maths import norm_placement, require
from transformer_parts.maths.decoder.config import RESIDUAL_PROJECTIONS, StackConfig, shapes

__all__ = [
    "SCHEMES",
    "initial_weights",
    "kaiming_std",
    "narrowed",
    "narrowing",
    "residual_factor",
    "standard_deviations",
    "standard_draws",
    "xavier_std",
]


@require.door
def standard_draws(config: StackConfig, seed: int | np.random.Generator = 0) -> dict[str, NDArray[np.float64]]:
    """Draw every matrix of a decoder from N(0, 1).

    A deeper decoder of the same sizes and seed begins with the same draws.

    Parameters
    ----------
    config : StackConfig
    seed : int or numpy Generator; the same integer gives the same draws

    Returns
    -------
    dict of str to ndarray; by the names of `decoder.shapes`, matrices only

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> standard_draws(config, seed=1)["layers.0.w_up"].shape
    (8, 16)
    """
    if not isinstance(seed, np.random.Generator):
        seed = np.random.default_rng(require.integer("seed", seed, minimum=0))
    return {name: seed.standard_normal(shape) for name, shape in shapes(config).items() if len(shape) == 2}


@require.door
def initial_weights(
    config: StackConfig,
    *,
    scheme: str = "normal",
    std: float = 0.02,
    residual_scaling: bool = True,
    seed: int | np.random.Generator = 0,
    draws: Mapping[str, NDArray] | None = None,
    dtype: DTypeLike = np.float64,
) -> dict[str, NDArray]:
    """Draw the weights of a decoder.

    The draw itself depends on the shapes and the seed alone, so that two sets that differ in `scheme`, `std` or
    `residual_scaling` differ by one factor in each matrix.

    Parameters
    ----------
    config : StackConfig
    scheme, std, residual_scaling
        How wide each matrix is drawn, see `standard_deviations`.  Every scheme draws from a normal distribution.
    seed : int or numpy Generator; the same integer gives the same weights
    draws : mapping of str to ndarray, optional
        Take these `standard_draws` (of this depth or a greater one) instead of drawing.
    dtype : dtype; float32 or float64

    Returns
    -------
    dict of str to ndarray; by the names of `decoder.shapes`; gains are 1, biases 0

    Examples
    --------
    >>> config = StackConfig(vocab_size=50, n_layers=2, d_model=64, n_heads=2, d_ff=160)
    >>> weights = initial_weights(config, seed=1)
    >>> f"{weights['layers.0.w_q'].std():.3f}, {weights['layers.0.w_o'].std():.3f}"
    '0.020, 0.010'
    """
    wide = standard_deviations(config, scheme=scheme, std=std, residual_scaling=residual_scaling)
    dtype = require.dtype("dtype", dtype, least_bits=32)
    draws = standard_draws(config, seed) if draws is None else draws
    weights = {}
    for name, shape in shapes(config).items():
        if name not in wide:
            weights[name] = np.full(shape, 0.0 if name.endswith("_bias") else 1.0, dtype)
            continue
        if name not in draws:
            raise require.refusal("draws", f"no {name}", "every matrix of the config")
        require.shape(f"draws[{name!r}]", draws[name], shape, "as shapes(config) has it")
        weights[name] = (wide[name] * draws[name]).astype(dtype, copy=False)
    return weights


@require.door
def narrowed(weights: Mapping[str, NDArray], config: StackConfig) -> dict[str, NDArray]:
    """Return weights drawn without `residual_scaling` as they are drawn with it.

    Parameters
    ----------
    weights : mapping of str to ndarray; of `initial_weights`
    config : StackConfig

    Returns
    -------
    dict of str to ndarray; the same arrays, but for the narrower ones

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=8, d_model=8, n_heads=2, d_ff=16)
    >>> weights = initial_weights(config, residual_scaling=False)
    >>> (narrowed(weights, config)["layers.3.w_o"] / weights["layers.3.w_o"]).mean().round(6).item()
    0.25
    """
    factors = narrowing(config)
    return {
        name: w * w.dtype.type(factors[matrix]) if "." in name and (matrix := name.split(".")[-1]) in factors else w
        for name, w in weights.items()
    }


#: DeepNorm narrows what carries values through a layer, and leaves what only decides where to look.
_NOT_NARROWED_BY_DEEPNORM = ("w_q", "w_k")


def xavier_std(fan_in: int, fan_out: int) -> float:
    r"""Return Xavier's standard deviation, which keeps signals going forward and gradients going back alike.

    .. math:: \sigma = \sqrt{2 / (n_\text{in} + n_\text{out})}

    Parameters
    ----------
    fan_in, fan_out : int; inputs and outputs of the matrix

    Returns
    -------
    float

    References
    ----------
    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010,
    §4.2.1, equation 12.  (Equation 16 is a uniform distribution of the same variance.)

    Examples
    --------
    >>> xavier_std(64, 64), xavier_std(2, 6)
    (0.125, 0.5)
    """
    return math.sqrt(2 / (require.integer("fan_in", fan_in) + require.integer("fan_out", fan_out)))


def kaiming_std(fan_in: int, gain: float = math.sqrt(2)) -> float:
    r"""Return Kaiming's standard deviation, which keeps the size of signals going forward.

    .. math:: \sigma = g / \sqrt{n_\text{in}}

    Parameters
    ----------
    fan_in : int; inputs of the matrix
    gain : float; g: √2 makes up for a ReLU, which takes away half of the mean square; 1 is right where nothing does

    Returns
    -------
    float

    Source: He et al., "Delving Deep into Rectifiers", arXiv:1502.01852, §2.2, equation 10.

    Examples
    --------
    >>> f"{kaiming_std(64):.6f}", kaiming_std(64, gain=1)
    ('0.176777', 0.125)
    """
    return require.number("gain", gain, above=0) / math.sqrt(require.integer("fan_in", fan_in))


#: Scheme → standard deviation of a matrix, from its inputs, its outputs and `std`.
SCHEMES: Mapping[str, Callable[[int, int, float], float]] = MappingProxyType(
    {
        "normal": lambda fan_in, fan_out, std: std,
        "xavier": lambda fan_in, fan_out, std: xavier_std(fan_in, fan_out),
        "kaiming": lambda fan_in, fan_out, std: kaiming_std(fan_in),
    }
)


def residual_factor(n_layers: int) -> float:
    r"""Return GPT-2's factor for the initial weights of the residual projections.

    A pre-norm decoder of L layers adds 2L branches to the residual stream.  If they are independent and of one
    variance, the stream's variance grows 2L times as much as by one branch; with every branch multiplied by this
    factor it grows as much as by one.

    .. math:: 1 / \sqrt{2L}

    Parameters
    ----------
    n_layers : int; L

    Returns
    -------
    float

    References
    ----------
    Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, §2.3: 1/√N for N residual layers,
    each branch being one.

    Examples
    --------
    >>> f"{residual_factor(12):.6f}"
    '0.204124'
    """
    return 1 / math.sqrt(2 * require.integer("n_layers", n_layers))


@require.door
def standard_deviations(
    config: StackConfig, *, scheme: str = "normal", std: float = 0.02, residual_scaling: bool = True
) -> dict[str, float]:
    """Return the standard deviation that each matrix of a decoder is drawn with.

    Parameters
    ----------
    config : StackConfig
    scheme : {"normal", "xavier", "kaiming"}; N(0, std²), Xavier or Kaiming for the matrices of the layers
    std : float; of the scheme "normal"; also of the embedding and the head in every scheme (a lookup has no fan-in,
        and a tied head is the embedding)
    residual_scaling : bool
        Narrow for depth.  Pre-norm, post-norm and sandwich: `residual_factor` on the last matrix of each branch.
        DeepNorm: its β = (8L)^(−1/4) on the values, the output projection and the feed-forward matrices.

    Returns
    -------
    dict of str to float; by the names of `decoder.shapes`, matrices only

    Source: β: Wang et al., "DeepNet", arXiv:2203.00555, §2, figure 2, decoder-only.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=8, d_model=8, n_heads=2, d_ff=16)
    >>> found = standard_deviations(config)
    >>> found["layers.0.w_q"], found["layers.0.w_o"], found["layers.7.w_down"]
    (0.02, 0.005, 0.005)
    """
    of_scheme = SCHEMES[require.one_of("scheme", scheme, SCHEMES)]
    std = require.number("std", std, minimum=0)
    factors = narrowing(config) if require.boolean("residual_scaling", residual_scaling) else {}
    found = {}
    for name, shape in shapes(config).items():
        if len(shape) == 2:
            matrix = name.split(".")[-1]
            outside = name in ("embedding", "head")
            found[name] = (std if outside else of_scheme(*shape, std)) * factors.get(matrix, 1.0)
    return found


@require.door
def narrowing(config: StackConfig) -> dict[str, float]:
    """Return the factors by which depth narrows the draw, by the last part of a matrix's name; 1 for all others."""
    if config.placement != "deepnorm":
        return dict.fromkeys(RESIDUAL_PROJECTIONS, residual_factor(config.n_layers))
    _, beta = norm_placement.deepnorm_alpha_beta(config.n_layers)
    matrices = {name.split(".")[-1] for name, shape in shapes(config).items() if len(shape) == 2 and "." in name}
    return dict.fromkeys(matrices.difference(_NOT_NARROWED_BY_DEEPNORM), beta)
