"""Backward passes of the four norm placements of `residual`.

Each takes those of the branch and of its norms: functions that turn the gradient at the part's output into the
gradient at its input, at the point where the forward pass had it.
"""

from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.residual import Part, applied

__all__ = ["deep_norm_backward", "post_norm_backward", "pre_norm_backward", "sandwich_norm_backward"]


def pre_norm_backward(grad: ArrayLike, branch_backward: Part, norm_backward: Part) -> NDArray:
    r"""Return the gradient at the input of `pre_norm`: that of the output, and what comes through the branch.

    .. math:: \bar x = \bar y + J_\text{Norm}^\top J_F^\top\, \bar y

    The first term is why gradients reach the first layer of any depth.

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the loss with respect to the output.
    branch_backward, norm_backward : function
        Turn the gradient at the part's output into that at its input, where the forward pass had them.

    Returns
    -------
    ndarray, shape (..., D)

    Raises
    ------
    ValueError
        If `grad` holds no real numbers, a part is no function, or its result has another shape.

    Examples
    --------
    >>> pre_norm_backward([1.0, 0.0], lambda g: 2 * g, lambda g: g / 5).tolist()
    [1.4, 0.0]
    """
    grad = require.floating("grad", grad)
    return grad + applied("norm_backward", norm_backward, applied("branch_backward", branch_backward, grad))


def post_norm_backward(grad: ArrayLike, branch_backward: Part, norm_backward: Part) -> NDArray:
    r"""Return the gradient at the input of `post_norm`: every path leads through the norm.

    .. math:: \bar x = (I + J_F^\top)\, J_\text{Norm}^\top\, \bar y

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the loss with respect to the output.
    branch_backward, norm_backward : function
        Turn the gradient at the part's output into that at its input, where the forward pass had them.

    Returns
    -------
    ndarray, shape (..., D)

    Raises
    ------
    ValueError
        If `grad` holds no real numbers, a part is no function, or its result has another shape.

    Examples
    --------
    >>> post_norm_backward([1.0, 0.0], lambda g: g, lambda g: g / 10).tolist()
    [0.2, 0.0]
    """
    return deep_norm_backward(grad, branch_backward, norm_backward, 1.0)


def sandwich_norm_backward(
    grad: ArrayLike, branch_backward: Part, norm_backward: Part, norm_out_backward: Part
) -> NDArray:
    r"""Return the gradient at the input of `sandwich_norm`.

    .. math:: \bar x = \bar y + J_\text{Norm}^\top J_F^\top J_\text{out}^\top\, \bar y

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the loss with respect to the output.
    branch_backward, norm_backward, norm_out_backward : function
        Turn the gradient at the part's output into that at its input, where the forward pass had them.

    Returns
    -------
    ndarray, shape (..., D)

    Raises
    ------
    ValueError
        If `grad` holds no real numbers, a part is no function, or its result has another shape.

    Examples
    --------
    >>> sandwich_norm_backward([1.0, 0.0], lambda g: 100 * g, lambda g: g / 5, lambda g: g / 100).tolist()
    [1.2, 0.0]
    """
    grad = require.floating("grad", grad)
    inner = applied("branch_backward", branch_backward, applied("norm_out_backward", norm_out_backward, grad))
    return grad + applied("norm_backward", norm_backward, inner)


def deep_norm_backward(grad: ArrayLike, branch_backward: Part, norm_backward: Part, alpha: float) -> NDArray:
    r"""Return the gradient at the input of `deep_norm`.

    .. math:: \bar x = (\alpha I + J_F^\top)\, J_\text{Norm}^\top\, \bar y

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the loss with respect to the output.
    branch_backward, norm_backward : function
        Turn the gradient at the part's output into that at its input, where the forward pass had them.
    alpha : float
        As in the forward pass.

    Returns
    -------
    ndarray, shape (..., D)

    Raises
    ------
    ValueError
        If `grad` holds no real numbers, `alpha` is not above 0, a part is no function, or its result has another shape.

    Examples
    --------
    >>> deep_norm_backward([1.0, 0.0], lambda g: g, lambda g: g / 20, 3.0).tolist()
    [0.2, 0.0]
    """
    grad, alpha = require.floating("grad", grad), require.number("alpha", alpha, above=0)
    inner = applied("norm_backward", norm_backward, grad)
    return alpha * inner + applied("branch_backward", branch_backward, inner)
