"""What a function of tokens knows of their order: equivariance, invariance, and how much is left of either.

A reordering is the array `order` that says which token stands at each place afterwards, (PX)_i = X_order[i].
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.order_attention import SCHEMES, Projections, SelfAttention

__all__ = [
    "REORDERINGS",
    "SCHEMES",
    "Projections",
    "SelfAttention",
    "embed",
    "equivariance_gap",
    "invariance_gap",
    "permutation_matrix",
    "reorder",
    "sees_the_same",
    "shift_gap",
]

REORDERINGS = ("none", "swap", "reverse", "rotate", "shuffle")


def embed(words: Sequence[str], d_model: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Return a random vector for each word, the same one wherever the word stands.

    Parameters
    ----------
    words : sequence of str
        The tokens, L of them.
    d_model : int
        D.
    seed : int
        Of the vectors; of one seed they depend on the set of words alone, not on their order.

    Returns
    -------
    (L, D) ndarray
        Of variance 1.

    Raises
    ------
    ValueError
        If there is no word, or something else than a string among them.

    Examples
    --------
    >>> dog, bites, man = embed(["dog", "bites", "man"], 4)
    >>> bool(np.all(embed(["man", "bites", "dog"], 4) == [man, bites, dog]))
    True
    """
    if isinstance(words, str) or not words or not all(isinstance(word, str) for word in words):
        raise require.refusal("words", repr(words), "a list of words")
    vocabulary, which = np.unique(list(words), return_inverse=True)
    rng = np.random.default_rng(require.integer("seed", seed, minimum=0))
    return rng.standard_normal((len(vocabulary), require.integer("d_model", d_model)))[which]


def reorder(kind: str, length: int, *, i: int = 0, j: int = 0, seed: int = 0) -> NDArray[np.intp]:
    """Return a reordering of so many tokens.

    Parameters
    ----------
    kind : {"none", "swap", "reverse", "rotate", "shuffle"}
        The tokens at `i` and `j` change places; the last becomes the first; each moves on by one place and the last
        comes to the front; or they are shuffled.
    length : int
        L.
    i, j : int
        For "swap".
    seed : int
        For "shuffle".

    Returns
    -------
    (L,) ndarray of int
        Which token stands at each place.

    Raises
    ------
    ValueError
        If the kind is unknown or a place is not below `length`.

    Examples
    --------
    >>> reorder("rotate", 4).tolist(), reorder("swap", 4, i=0, j=2).tolist()
    ([3, 0, 1, 2], [2, 1, 0, 3])
    """
    require.one_of("kind", kind, REORDERINGS)
    order = np.arange(require.integer("length", length))
    if kind == "swap":
        i, j = (require.integer(n, at, minimum=0, maximum=length - 1) for n, at in (("i", i), ("j", j)))
        order[[i, j]] = j, i
    elif kind == "reverse":
        order = order[::-1].copy()
    elif kind == "rotate":
        order = np.roll(order, 1)
    elif kind == "shuffle":
        order = np.random.default_rng(require.integer("seed", seed, minimum=0)).permutation(order)
    return order


def permutation_matrix(order: ArrayLike) -> NDArray[np.float64]:
    """Return P, by which PX is ``X[order]``.

    Parameters
    ----------
    order : (L,) array_like of int
        Which token stands at each place.

    Returns
    -------
    (L, L) ndarray
        One 1 in each row and each column.

    Raises
    ------
    ValueError
        If `order` does not hold each of 0 … L−1 once.

    Examples
    --------
    >>> permutation_matrix([2, 0, 1]).astype(int)
    array([[0, 0, 1],
           [1, 0, 0],
           [0, 1, 0]])
    """
    order = _checked(order)
    return np.eye(len(order))[order]


def equivariance_gap(function: Callable[[NDArray], NDArray], x: ArrayLike, order: ArrayLike) -> NDArray:
    r"""Return how far a function of tokens is from moving its outputs as its inputs are moved.

    .. math:: f(PX) - P f(X)

    Parameters
    ----------
    function : callable
        f, from (…, L, D) to (…, L, Dv).
    x : (…, L, D) array_like
        Tokens.
    order : (L,) array_like of int
        The reordering.

    Returns
    -------
    (…, L, Dv) ndarray
        Zero, up to rounding, if f is permutation equivariant.

    Raises
    ------
    ValueError
        If `order` is no reordering of L tokens.

    References
    ----------
    Lee et al., "Set Transformer", arXiv:1810.00825, §3.1 (blocks of attention are equivariant).

    Examples
    --------
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> equivariance_gap(lambda x: np.cumsum(x, axis=0), x, [2, 1, 0])[:, 0].tolist()
    [-2.0, 4.0, 6.0]
    """
    x, order = _tokens(x, order)
    moved, still = _outputs(function, x, order)
    return moved - still[..., order, :]


def invariance_gap(function: Callable[[NDArray], NDArray], x: ArrayLike, order: ArrayLike) -> NDArray:
    r"""Return how far a function of tokens is from giving the same whatever their order: f(PX) − f(X).

    Parameters
    ----------
    function, x, order
        As for `equivariance_gap`.

    Returns
    -------
    (…, L, Dv) ndarray
        Zero, up to rounding, if f is permutation invariant.

    Raises
    ------
    ValueError
        As for `equivariance_gap`.

    Examples
    --------
    >>> invariance_gap(lambda x: x, [[1.0], [3.0]], [1, 0]).tolist()
    [[2.0], [-2.0]]
    """
    x, order = _tokens(x, order)
    moved, still = _outputs(function, x, order)
    return moved - still


def shift_gap(attend: SelfAttention, x: ArrayLike, by: int) -> NDArray:
    """Return how the outputs change if the same tokens stand `by` positions further on.

    Parameters
    ----------
    attend : SelfAttention
        The layers.
    x : (…, L, D) array_like
        Tokens.
    by : int
        How far they are moved.

    Returns
    -------
    (…, L, D) ndarray
        Zero, up to rounding, for a scheme that reads offsets alone.

    Examples
    --------
    >>> x = embed(["dog", "bites", "man"], 8)
    >>> largest = {s: np.abs(shift_gap(SelfAttention.random(8, 2, scheme=s), x, 100)).max() for s in SCHEMES}
    >>> [scheme for scheme, gap in largest.items() if gap > 1e-12]
    ['sinusoidal', 'learned']
    """
    return attend(x, start=by) - attend(x)


def sees_the_same(order: ArrayLike, n_layers: int = 1) -> NDArray[np.bool_]:
    """Tell for each place whether a causal mask alone lets its output stay what it was before the reordering.

    Without positions one causal layer reads the tokens up to its own as a set.  The output at place t stays if the
    token there is the old one and the set is.  From the second layer on, what is read has been changed by the order
    within the set, and only an untouched beginning stays.

    Parameters
    ----------
    order : (L,) array_like of int
        The reordering, of tokens that all differ.
    n_layers : int
        How many causal layers.

    Returns
    -------
    (L,) ndarray of bool

    Raises
    ------
    ValueError
        If `order` does not hold each of 0 … L−1 once.

    Examples
    --------
    >>> sees_the_same([1, 0, 2, 3]).tolist(), sees_the_same([1, 0, 2, 3], n_layers=2).tolist()
    ([False, False, True, True], [False, False, False, False])
    """
    order = _checked(order)
    stays = order == np.arange(len(order))
    if require.integer("n_layers", n_layers) > 1:
        return np.logical_and.accumulate(stays)
    return stays & (np.maximum.accumulate(order) == np.arange(len(order)))


def _checked(order: ArrayLike) -> NDArray[np.intp]:
    order = np.asarray(order)
    if order.ndim != 1 or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(len(order))):
        raise require.refusal("order", repr(order.tolist()), "each of 0 … L−1 once, in some order")
    return order


def _tokens(x: ArrayLike, order: ArrayLike) -> tuple[NDArray, NDArray[np.intp]]:
    x, order = require.array("x", x, min_ndim=2), _checked(order)
    if len(order) != x.shape[-2]:
        raise require.refusal("order", f"{len(order)} places", f"as many as x has tokens, {x.shape[-2]}")
    return x, order


def _outputs(function: Callable[[NDArray], NDArray], x: NDArray, order: NDArray) -> tuple[NDArray, NDArray]:
    outputs = tuple(np.asarray(function(tokens)) for tokens in (x[..., order, :], x))
    for output in outputs:
        if output.ndim < 2 or output.shape[-2] != len(order):
            raise require.refusal(
                "function", f"shape {output.shape}", f"(…, {len(order)}, Dv), a vector for each token"
            )
    return outputs
