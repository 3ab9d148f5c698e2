"""Where the norm goes: the four ways to put norms around a branch of the residual stream.

A branch F is attention or the feed-forward layer.  Each function takes F and its norms as functions of one array.
"""

from collections.abc import Callable
from typing import NamedTuple

from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = [
    "DeepNormFactors",
    "deep_norm",
    "deep_norm_backward",
    "deepnorm_alpha_beta",
    "post_norm",
    "post_norm_backward",
    "pre_norm",
    "pre_norm_backward",
    "sandwich_norm",
    "sandwich_norm_backward",
]

Part = Callable[[NDArray], NDArray]


@require.door
def pre_norm(x: ArrayLike, branch: Part, norm: Part) -> NDArray:
    r"""Normalise what the branch reads; the stream itself is never normalised.

    .. math:: y = x + F(\operatorname{Norm}(x))

    After the last layer one more norm is needed, before the head.

    Parameters
    ----------
    x : array_like, shape (..., D); the residual stream
    branch, norm : function; F and its norm

    Returns
    -------
    ndarray, shape (..., D)

    Source: Xiong et al., "On Layer Normalization in the Transformer Architecture", arXiv:2002.04745, §3.1, table 1.

    Examples
    --------
    >>> pre_norm([3.0, 4.0], branch=lambda x: 2 * x, norm=lambda x: x / 5).round(6).tolist()
    [4.2, 5.6]
    """
    x = require.array("x", x)
    return x + applied("branch", branch, applied("norm", norm, x))


@require.door
def post_norm(x: ArrayLike, branch: Part, norm: Part) -> NDArray:
    r"""Normalise the sum, and with it the stream: the original Transformer.

    .. math:: y = \operatorname{Norm}(x + F(x))

    Parameters
    ----------
    x : array_like, shape (..., D); the residual stream
    branch, norm : function; F and the norm

    Returns
    -------
    ndarray, shape (..., D)

    Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.1; arXiv:2002.04745, §3.1, table 1.

    Examples
    --------
    >>> post_norm([3.0, 4.0], branch=lambda x: x, norm=lambda x: x / 10).round(6).tolist()
    [0.6, 0.8]
    """
    return deep_norm(x, branch, norm, 1.0)


@require.door
def sandwich_norm(x: ArrayLike, branch: Part, norm: Part, norm_out: Part) -> NDArray:
    r"""Normalise both what the branch reads and what it writes.

    .. math:: y = x + \operatorname{Norm}_\text{out}(F(\operatorname{Norm}(x)))

    What a branch adds then has the size of the outer norm's gain, however large its weights are.

    Parameters
    ----------
    x : array_like, shape (..., D); the residual stream
    branch, norm, norm_out : function; F, the norm before it and the norm after it

    Returns
    -------
    ndarray, shape (..., D)

    Source: Ding et al., "CogView", arXiv:2105.13290, §2.4 (Sandwich-LN).

    Examples
    --------
    >>> sandwich_norm([3.0, 4.0], lambda x: 100 * x, lambda x: x / 5, lambda x: x / 100).round(6).tolist()
    [3.6, 4.8]
    """
    x = require.array("x", x)
    return x + applied("norm_out", norm_out, applied("branch", branch, applied("norm", norm, x)))


@require.door
def deep_norm(x: ArrayLike, branch: Part, norm: Part, alpha: float) -> NDArray:
    r"""Normalise the sum of the branch and α times the stream.

    .. math:: y = \operatorname{Norm}(\alpha x + F(x))

    The norm is of all of it: ``alpha * x + norm(branch(x))`` is another function.

    Parameters
    ----------
    x : array_like, shape (..., D); the residual stream
    branch, norm : function; F and the norm
    alpha : float; α > 0; with α = 1 this is `post_norm`, and DeepNorm takes that of `deepnorm_alpha_beta`

    Returns
    -------
    ndarray, shape (..., D)

    Source: Wang et al., "DeepNet: Scaling Transformers to 1,000 Layers", arXiv:2203.00555, §4.1 and figure 2.

    Examples
    --------
    >>> deep_norm([3.0, 4.0], branch=lambda x: x, norm=lambda x: x / 20, alpha=3.0).round(6).tolist()
    [0.6, 0.8]
    """
    x, alpha = require.array("x", x), require.number("alpha", alpha, above=0)
    return applied("norm", norm, x.dtype.type(alpha) * x + applied("branch", branch, x)).astype(x.dtype, copy=False)


class DeepNormFactors(NamedTuple):
    """DeepNorm's two factors."""

    alpha: float  # what the stream is multiplied by at every norm
    beta: float  # what the initial w_v, w_o and feed-forward weights (Xavier's) are multiplied by; w_q and w_k are not


def deepnorm_alpha_beta(n_layers: int) -> DeepNormFactors:
    r"""Return DeepNorm's α and β for a model of decoder layers alone (or of encoder layers alone).

    .. math:: \alpha = (2N)^{1/4}, \qquad \beta = (8N)^{-1/4}

    Parameters
    ----------
    n_layers : int; N; each layer has two branches

    Returns
    -------
    DeepNormFactors

    References
    ----------
    arXiv:2203.00555, §2, figure 2 (the table); derived in §4.2 and §4.3.  A model of both an encoder and a
    decoder has other factors.

    Examples
    --------
    >>> [f"{f:.4f}" for f in deepnorm_alpha_beta(8)]
    ['2.0000', '0.3536']
    """
    n_layers = require.integer("n_layers", n_layers)
    return DeepNormFactors((2 * n_layers) ** 0.25, (8 * n_layers) ** -0.25)


def applied(name: str, part: Part, x: NDArray) -> NDArray:
    """Return what the function `part`, the argument `name`, makes of `x`: an array of the same shape."""
    require.function(name, part)
    y = require.floating(f"{name}'s result", part(x), min_ndim=0)
    require.shape(f"{name}'s result", y, x.shape, "that of its argument")
    return y


@require.door
def pre_norm_backward(grad: ArrayLike, branch_backward: Part, norm_backward: Part) -> NDArray:
    """Return the gradient (…, D) at the input of `pre_norm`: that of the output, and what comes through the branch.

    With ȳ the gradient `grad` at the output, it is ȳ + J_Normᵀ·J_Fᵀ·ȳ; the first term is why gradients reach the first
    layer of any depth.  `branch_backward` and `norm_backward` multiply by J_Fᵀ and J_Normᵀ: each turns the gradient at
    the output of its part into that at its input.
    """
    grad = require.array("grad", grad)
    return grad + applied("norm_backward", norm_backward, applied("branch_backward", branch_backward, grad))


@require.door
def post_norm_backward(grad: ArrayLike, branch_backward: Part, norm_backward: Part) -> NDArray:
    """Return the gradient at the input of `post_norm`, (I + J_Fᵀ)·J_Normᵀ·ȳ: every path leads through the norm."""
    return deep_norm_backward(grad, branch_backward, norm_backward, 1.0)


@require.door
def sandwich_norm_backward(
    grad: ArrayLike, branch_backward: Part, norm_backward: Part, norm_out_backward: Part
) -> NDArray:
    """Return the gradient at the input of `sandwich_norm`, ȳ + J_Normᵀ·J_Fᵀ·J_outᵀ·ȳ."""
    grad = require.array("grad", grad)
    inner = applied("branch_backward", branch_backward, applied("norm_out_backward", norm_out_backward, grad))
    return grad + applied("norm_backward", norm_backward, inner)


@require.door
def deep_norm_backward(grad: ArrayLike, branch_backward: Part, norm_backward: Part, alpha: float) -> NDArray:
    """Return the gradient at the input of `deep_norm`, (α·I + J_Fᵀ)·J_Normᵀ·ȳ."""
    grad, alpha = require.array("grad", grad), require.number("alpha", alpha, above=0)
    inner = applied("norm_backward", norm_backward, grad)
    return alpha * inner + applied("branch_backward", branch_backward, inner)
