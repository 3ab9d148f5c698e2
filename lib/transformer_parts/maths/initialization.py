"""The weights a decoder begins with."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import DTypeLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.initialization_widths import (
    SCHEMES,
    kaiming_std,
    narrowing,
    residual_factor,
    standard_deviations,
    xavier_std,
)
from transformer_parts.maths.stack_config import StackConfig, shapes

__all__ = [
    "SCHEMES",
    "initial_weights",
    "kaiming_std",
    "narrowed",
    "residual_factor",
    "standard_deviations",
    "standard_draws",
    "xavier_std",
]


def standard_draws(config: StackConfig, seed: int | np.random.Generator = 0) -> dict[str, NDArray[np.float64]]:
    """Draw every matrix of a decoder from N(0, 1).

    A deeper decoder of the same sizes and seed begins with the same draws.

    Parameters
    ----------
    config : StackConfig
        The decoder.
    seed : int or numpy Generator
        The same integer gives the same draws.

    Returns
    -------
    dict of str to ndarray
        By the names of `stack_config.shapes`, matrices only.

    Raises
    ------
    ValueError
        If `seed` is a negative number or no integer.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> standard_draws(config, seed=1)["layers.0.w_up"].shape
    (8, 16)
    """
    if not isinstance(seed, np.random.Generator):
        seed = np.random.default_rng(require.integer("seed", seed, minimum=0))
    return {name: seed.standard_normal(shape) for name, shape in shapes(config).items() if len(shape) == 2}


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
        The decoder.
    scheme, std, residual_scaling
        How wide each matrix is drawn, see `standard_deviations`.  Every scheme draws from a normal distribution.
    seed : int or numpy Generator
        The same integer gives the same weights.
    draws : mapping of str to ndarray, optional
        Take these `standard_draws` (of this depth or a greater one) instead of drawing.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    dict of str to ndarray
        By the names of `stack_config.shapes`; gains are 1, biases 0.

    Raises
    ------
    ValueError
        For an unknown scheme or dtype, a negative `std` or `seed`, a `residual_scaling` that is not a bool, or
        `draws` of other sizes.

    Examples
    --------
    >>> config = StackConfig(vocab_size=50, n_layers=2, d_model=64, n_heads=2, d_ff=160)
    >>> weights = initial_weights(config, seed=1)
    >>> f"{weights['layers.0.w_q'].std():.3f}, {weights['layers.0.w_o'].std():.3f}"
    '0.020, 0.010'
    """
    wide = standard_deviations(config, scheme=scheme, std=std, residual_scaling=residual_scaling)
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise require.refusal("dtype", str(dtype), "float32 or float64")
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


def narrowed(weights: Mapping[str, NDArray], config: StackConfig) -> dict[str, NDArray]:
    """Return weights drawn without `residual_scaling` as they are drawn with it.

    Parameters
    ----------
    weights : mapping of str to ndarray
        Of `initial_weights`.
    config : StackConfig
        The decoder.

    Returns
    -------
    dict of str to ndarray
        The same arrays, but for the narrower ones.

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
