"""Norm placements at initialisation: one real pass forward and backward, and its numbers by layer."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.decoder import RESIDUAL_PROJECTIONS, StackConfig, loss_and_gradients
from transformer_parts.maths.decoder.stack import layer_numbers, norm_of
from transformer_parts.maths.initialization import initial_weights

__all__ = ["FirstPass", "first_pass", "initialized", "random_tokens"]

SCHEMES = ("xavier", "gpt2")


class FirstPass(NamedTuple):
    """Numbers of the first pass through a decoder that has not been trained.

    Attributes
    ----------
    loss : float; in nats
    activation_rms : (n_layers + 1,) ndarray
        Root mean square of the residual stream before the first layer and after each.
    stream_gradient : (n_layers + 1,) ndarray; norm of the loss's gradient with respect to these streams
    ffn_gradient : (n_layers,) ndarray
        Norm of its gradient with respect to the last feed-forward matrix of each layer: what theorem 1 of Xiong et al.
        is about.
    """

    loss: float
    activation_rms: NDArray
    stream_gradient: NDArray
    ffn_gradient: NDArray


@require.door
def initialized(
    config: StackConfig,
    *,
    scheme: str = "xavier",
    branch_scale: float = 1.0,
    seed: int = 0,
    draws: Mapping[str, NDArray] | None = None,
) -> dict[str, NDArray]:
    r"""Draw the weights of a decoder whose stream begins at RMS 1 or, with GPT-2's scheme, at 0.02.

    "xavier" is the initialisation of the paper: matrices by Xavier, embedding from N(0, 1), head from N(0, 1/D).
    "gpt2" is N(0, 0.02²) everywhere and the residual projections divided by :math:`\sqrt{2L}`.  DeepNorm has its β in
    both.

    Parameters
    ----------
    config : StackConfig; sizes and kinds; its head must not be tied, for embedding and head are drawn differently
    scheme : {"xavier", "gpt2"}; how the weights are drawn
    branch_scale : float; factor of the last matrix of each branch, above 0
    seed : int; the same integer gives the same weights
    draws : mapping of str to ndarray, optional
        `initialization.standard_draws` of this depth or a greater one, instead of new ones.

    Returns
    -------
    dict of str to ndarray; in float64

    References
    ----------
    Xiong et al., arXiv:2002.04745, §3.3; Radford et al., "Language Models are Unsupervised Multitask Learners", 2019,
    §2.3.

    Examples
    --------
    >>> config = StackConfig(vocab_size=50, n_layers=2, d_model=64, n_heads=2, d_ff=128, tied=False)
    >>> weights = initialized(config)
    >>> f"{weights['embedding'].std():.2f} {weights['head'].std():.3f}"
    '1.00 0.127'
    """
    require.one_of("scheme", scheme, SCHEMES)
    branch_scale = require.number("branch_scale", branch_scale, above=0)
    if config.tied:
        raise require.refusal("config", "a tied head", "one with tied=False")
    if scheme == "xavier":
        narrow = config.placement == "deepnorm"
        std = config.d_model**-0.5
        weights = initial_weights(config, scheme="xavier", std=std, residual_scaling=narrow, seed=seed, draws=draws)
        weights["embedding"] /= std
    else:
        weights = initial_weights(config, seed=seed, draws=draws)
    if branch_scale != 1:
        for name in weights:
            if name.split(".")[-1] in RESIDUAL_PROJECTIONS:
                weights[name] *= branch_scale
    return weights


def random_tokens(vocab_size: int, length: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return random tokens (1, L) and, as targets, the ones that follow."""
    vocab_size, length = require.integer("vocab_size", vocab_size), require.integer("length", length)
    seed = require.integer("seed", seed, minimum=0)
    require.sizes(length=length)
    drawn = np.random.default_rng(seed).integers(0, vocab_size, (1, length + 1))
    return drawn[:, :-1], drawn[:, 1:]


@require.door
def first_pass(weights: Mapping[str, NDArray], config: StackConfig, *, length: int = 16, seed: int = 0) -> FirstPass:
    """Run a decoder forward and backward on random tokens.

    Parameters
    ----------
    weights : mapping of str to ndarray; of `initialized`, say
    config : StackConfig
    length : int; number of tokens
    seed : int; of the tokens

    Returns
    -------
    FirstPass

    Examples
    --------
    >>> config = StackConfig(vocab_size=50, n_layers=3, d_model=64, n_heads=2, d_ff=128, tied=False, placement="post")
    >>> found = first_pass(initialized(config), config)
    >>> found.activation_rms[1:].round(3).tolist(), found.ffn_gradient.shape
    ([1.0, 1.0, 1.0], (3,))
    """
    require.sizes(length=require.integer("length", length), keys=length, heads=config.n_layers * config.n_heads)
    tokens, targets = random_tokens(config.vocab_size, length, seed)
    found = loss_and_gradients(weights, tokens, targets, config)
    numbers = layer_numbers(found)
    last = "w_down" if config.gated else "w_out"
    ffn = [norm_of([found.gradients[f"layers.{i}.{last}"]]) for i in range(config.n_layers)]
    return FirstPass(found.loss, numbers.activation_rms, numbers.stream_gradient, np.array(ffn))
