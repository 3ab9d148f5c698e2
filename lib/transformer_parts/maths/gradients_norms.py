"""Backward passes of RMSNorm and LayerNorm."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.gradients_operands import finite, in_one_dtype

__all__ = ["layer_norm_backward", "rms_norm_backward"]


def rms_norm_backward(
    grad: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6
) -> tuple[NDArray, NDArray]:
    r"""Return the gradients of `rms_norm`.

    With :math:`r = (\tfrac1D \sum_j x_j^2 + \varepsilon)^{-1/2}`, :math:`\hat x = r x` and
    :math:`g = \gamma \odot \bar y`:

    .. math:: \bar x = r \bigl(g - \hat x\, \tfrac1D \textstyle\sum_j g_j \hat x_j\bigr), \qquad
              \bar\gamma = \sum_\text{rows} \bar y \odot \hat x

    The subtracted term takes away what would only lengthen x, which the norm undoes.  The factor r is why a stream
    that has grown passes a smaller gradient on.

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the output.
    x : array_like, shape (..., D)
        The input.
    weight : array_like, shape (D,), optional
        The gain γ; ones if not given.
    eps : float
        ε > 0.

    Returns
    -------
    grad_x : ndarray, shape (..., D)
    grad_weight : ndarray, shape (D,)

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite or `eps` is not above 0.

    References
    ----------
    Zhang & Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467, §4.2 (gradients, with their scale
    invariance).

    Examples
    --------
    >>> grad_x, grad_weight = rms_norm_backward([1.0, 0.0], [1.0, 3.0], eps=1e-12)
    >>> grad_x.round(6).tolist(), grad_weight.round(6).tolist()
    ([0.402492, -0.134164], [0.447214, 0.0])
    """
    grad, x, weight, eps = _checked(grad, x, weight, eps)
    with np.errstate(over="ignore", invalid="ignore"):
        r = _inverse_root(np.vecdot(x, x) / np.float64(x.shape[-1]), eps, x.dtype)
        return _finite(_through(grad, x * r, r, weight), r, grad, x, weight)


def layer_norm_backward(
    grad: ArrayLike, x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-5
) -> tuple[NDArray, NDArray, NDArray]:
    r"""Return the gradients of `layer_norm`.

    With :math:`r = (\sigma^2 + \varepsilon)^{-1/2}`, :math:`\hat x = r (x - \mu)` and
    :math:`g = \gamma \odot \bar y`:

    .. math:: \bar x = r \bigl(g - \tfrac1D \textstyle\sum_j g_j - \hat x\, \tfrac1D \sum_j g_j \hat x_j\bigr),
              \qquad \bar\gamma = \sum_\text{rows} \bar y \odot \hat x, \quad \bar\beta = \sum_\text{rows} \bar y

    Parameters
    ----------
    grad : array_like, shape (..., D)
        Gradient of the output.
    x : array_like, shape (..., D)
        The input.
    weight : array_like, shape (D,), optional
        The gain γ; ones if not given.
    eps : float
        ε > 0.

    Returns
    -------
    grad_x : ndarray, shape (..., D)
        Each row sums to 0, as a shift of x changes nothing.
    grad_weight, grad_bias : ndarrays, shape (D,)

    Raises
    ------
    ValueError
        If a shape does not fit, an entry is not finite or `eps` is not above 0.

    References
    ----------
    Ba, Kiros & Hinton, "Layer Normalization", arXiv:1607.06450, §3, eq. 3; Xu et al., "Understanding and Improving
    Layer Normalization", arXiv:1911.07013, §3 (the gradient through mean and variance).

    Examples
    --------
    >>> grad_x, grad_weight, grad_bias = layer_norm_backward([1.0, 0.0, 0.0], [1.0, 0.0, 2.0], eps=1e-12)
    >>> grad_x.round(6).tolist(), grad_weight.tolist(), grad_bias.tolist()
    ([0.816497, -0.408248, -0.408248], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    """
    grad, x, weight, eps = _checked(grad, x, weight, eps)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = x - x.mean(-1, keepdims=True)
        r = _inverse_root(np.vecdot(centred, centred) / np.float64(x.shape[-1]), eps, x.dtype)
        centred *= r
        grad_x, grad_weight = _through(grad, centred, r, weight, center=True)
        return _finite((grad_x, grad_weight, _rows(grad).sum(0)), r, grad, x, weight)


def _through(
    grad: NDArray, normed: NDArray, r: NDArray, weight: NDArray | None, *, center: bool = False
) -> tuple[NDArray, NDArray]:
    grad_weight = np.einsum("id,id->d", _rows(grad), _rows(normed))
    g = grad if weight is None else grad * weight
    along = np.vecdot(g, normed)[..., None] / g.dtype.type(g.shape[-1])
    mean = g.mean(-1, keepdims=True) if center else None
    normed *= along
    grad_x = np.subtract(g, normed, out=normed)
    if center:
        grad_x -= mean
    grad_x *= r
    return grad_x, grad_weight


def _finite(results: tuple, r: NDArray, grad: NDArray, x: NDArray, weight: NDArray | None) -> tuple:
    """Refuse what isn't finite, and an x so large that 1/RMS has become 0."""
    if not r.all():
        require.all_numbers("x", x)
        raise require.refusal("x", f"entries up to {np.abs(x).max():.3g}", f"squares within {x.dtype.name}")
    return finite(results, grad=grad, x=x, **({} if weight is None else {"weight": weight}))


def _inverse_root(mean_square: NDArray, eps: float, dtype: np.dtype) -> NDArray:
    return (1 / np.sqrt(mean_square + eps)).astype(dtype)[..., None]


def _rows(x: NDArray) -> NDArray:
    return x.reshape(-1, x.shape[-1])


def _checked(grad: ArrayLike, x: ArrayLike, weight: ArrayLike | None, eps: float):
    given = {"grad": grad, "x": x} | ({} if weight is None else {"weight": weight})
    grad, x, *rest = in_one_dtype(**given)
    require.shape("grad", grad, x.shape, "that of x")
    if rest:
        require.shape("weight", rest[0], x.shape[-1:], "the last axis of x")
    return grad, x, rest[0] if rest else None, require.number("eps", eps, above=0)
