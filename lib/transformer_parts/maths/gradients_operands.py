"""What the backward passes share: arrays in one dtype, a linear map's products, a search for NaN."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require

__all__ = ["finite", "in_one_dtype", "products_backward"]


def products_backward(grad: NDArray, x: NDArray, w: NDArray) -> tuple[NDArray, NDArray]:
    """Return what `linear_backward` does, of arrays that fit and are not looked at: one product for all positions.

    Parameters
    ----------
    grad : ndarray, shape (..., E)
        Gradient of the output.
    x : ndarray, shape (..., D)
        The input.
    w : ndarray, shape (D, E)
        The weights.

    Returns
    -------
    grad_x : ndarray, shape (..., D)
    grad_w : ndarray, shape (D, E)

    Examples
    --------
    >>> products_backward(np.ones((2, 3, 4)), np.ones((2, 3, 5)), np.ones((5, 4)))[1].shape
    (5, 4)
    """
    rows = grad.reshape(-1, grad.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        return (rows @ w.T).reshape(x.shape), x.reshape(-1, x.shape[-1]).T @ rows


def finite(results: tuple[NDArray, ...], **given: NDArray) -> tuple[NDArray, ...]:
    """Return the results; where one isn't finite, refuse the argument that made it so.

    Parameters
    ----------
    results : tuple of ndarray
        What was computed.
    **given : ndarray
        What it was computed from, by the names of the arguments.

    Returns
    -------
    tuple of ndarray
        `results`.

    Raises
    ------
    ValueError
        If a result is not finite: because an argument isn't, or because the numbers left the dtype's range.

    Examples
    --------
    >>> finite((np.array([np.nan]),), grad=np.array([1.0]), x=np.array([np.nan]))
    Traceback (most recent call last):
    ValueError: x: got nan at index (0,) (1 such in all), want finite numbers
    """
    if all(map(require.all_finite, results)):
        return results
    for name, x in given.items():
        require.all_numbers(name, x)
    name, x = next(iter(given.items()))
    raise require.refusal(name, f"entries up to {np.abs(x).max():.3g}", f"gradients within {x.dtype.name}")


def in_one_dtype(**given: ArrayLike) -> list[NDArray]:
    """Return named arrays in the one dtype to compute in, at least float32; their entries aren't looked at.

    Parameters
    ----------
    **given : array_like
        By the names of the arguments.

    Returns
    -------
    list of ndarray
        Those that have the dtype already, as they are.

    Raises
    ------
    ValueError
        If one holds no real numbers.

    Examples
    --------
    >>> [x.dtype.name for x in in_one_dtype(grad=np.ones(3, np.float16), x=np.ones(2, np.float32))]
    ['float32', 'float32']
    """
    arrays = [require.floating(name, value) for name, value in given.items()]
    dtype = np.result_type(*(require.compute_dtype(x.dtype) for x in arrays))
    return [x.astype(dtype, copy=False) for x in arrays]
