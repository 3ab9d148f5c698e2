"""The weights of one decoder layer of exchangeable parts: names, shapes, counts, and a random draw."""

import math

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.stack import layer_weights
from transformer_parts.maths.stack_config import StackConfig, shapes

__all__ = ["layer_shapes", "parameter_counts", "part_of", "random_layer"]


def layer_shapes(config: StackConfig) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight of one layer, in the order of the forward pass.

    Parameters
    ----------
    config : StackConfig
        Sizes and kinds; how many layers there are does not matter.

    Returns
    -------
    dict of str to tuple of int
        Those of `stack_config.shapes`, without the ``layers.0.`` before the names.

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16, ffn="relu")
    >>> list(layer_shapes(config))
    ['attn_norm', 'w_q', 'w_k', 'w_v', 'w_o', 'ffn_norm', 'w_in', 'w_out']
    """
    return layer_weights(shapes(config), 0)


def parameter_counts(config: StackConfig) -> dict[str, int]:
    """Return how many parameters each part of one layer has, and their total.

    Parameters
    ----------
    config : StackConfig
        Sizes and kinds.

    Returns
    -------
    dict
        attention, ffn, norms (biases of LayerNorm with them) and total.

    Examples
    --------
    >>> parameter_counts(StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16))
    {'attention': 256, 'ffn': 384, 'norms': 16, 'total': 656}
    """
    counts = {"attention": 0, "ffn": 0, "norms": 0}
    for name, size in layer_shapes(config).items():
        counts[part_of(name)] += math.prod(size)
    return counts | {"total": sum(counts.values())}


def part_of(name: str) -> str:
    """Return the part of a layer that a weight belongs to: "attention", "ffn" or "norms".

    Parameters
    ----------
    name : str
        As `layer_shapes` has it.

    Returns
    -------
    str

    Examples
    --------
    >>> part_of("w_q"), part_of("w_down"), part_of("ffn_norm")
    ('attention', 'ffn', 'norms')
    """
    if "norm" in name:
        return "norms"
    return "attention" if name in ("w_q", "w_k", "w_v", "w_o") else "ffn"


def random_layer(config: StackConfig, *, std: float = 0.02, seed: int = 0) -> dict[str, NDArray]:
    """Return one layer's weights from N(0, std²), with gains of 1 and biases of 0.

    Each matrix has a stream of random numbers of its own, so that exchanging one part leaves the weights of all
    others as they were.

    Parameters
    ----------
    config : StackConfig
        Sizes and kinds.
    std : float
        Standard deviation.
    seed : int
        The same integer gives the same weights.

    Returns
    -------
    dict of str to ndarray

    Examples
    --------
    >>> config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    >>> random_layer(config)["w_up"].shape
    (8, 16)
    """
    std, seed = require.number("std", std, minimum=0), require.integer("seed", seed, minimum=0)
    weights = {}
    for name, size in layer_shapes(config).items():
        if "norm" in name:
            weights[name] = np.zeros(size) if name.endswith("_bias") else np.ones(size)
        else:
            weights[name] = np.random.default_rng([seed, *name.encode()]).normal(0.0, std, size)
    return weights
