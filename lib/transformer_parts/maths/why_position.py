"""What a function of tokens knows of their order: equivariance, invariance, and how much is left of either.

A reordering is the array `order` of the token at each place afterwards, (PX)_i = X_order[i].
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import positions, relative_bias, require, rope
from transformer_parts.maths.attention import attention, attention_weights

__all__ = [
    "REORDERINGS",
    "SCHEMES",
    "TRAINED",
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

#: What may encode a token's position.  Sinusoidal and learned vectors are added to the tokens once, below the first
#: layer; T5 and ALiBi add to the scores, RoPE turns query and key, each in every layer.
SCHEMES = ("none", "sinusoidal", "learned", "t5", "alibi", "rope")
TRAINED = ("learned", "t5")


class Projections(NamedTuple):
    """The matrices of one layer.

    Attributes
    ----------
    query, key, value : (D, D) ndarray; from the tokens into the heads
    output : (D, D) ndarray; out of the heads
    """

    query: NDArray
    key: NDArray
    value: NDArray
    output: NDArray


class _Layer(NamedTuple):
    """What one layer made of its input."""

    query: NDArray  # (…, H, L, K)
    key: NDArray
    output: NDArray  # (…, L, D)


@dataclass(frozen=True, eq=False)
class SelfAttention:
    """Layers of multi-head self-attention, one upon the other, and nothing else.

    Norms, feed-forward layers and residual connections are left out: they treat every token separately and know
    nothing of order.

    Parameters
    ----------
    layers : tuple of Projections; one for each layer
    n_heads : int; H, a divisor of D
    scheme : {"none", "sinusoidal", "learned", "t5", "alibi", "rope"}; how positions are encoded
    causal : bool; whether a token sees itself and those before it alone
    table : array_like, optional
        What a scheme has learned: (L_max, D) vectors for "learned", (buckets, H) scalars for "t5".

    References
    ----------
    Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, §3.2.2; of the schemes see `positions`,
    `relative_bias` and `rope`.

    Examples
    --------
    >>> attend = SelfAttention.random(8, 2)
    >>> x = np.arange(24.0).reshape(3, 8) / 24
    >>> bool(np.allclose(attend(x[::-1]), attend(x)[::-1], atol=1e-12))
    True
    """

    layers: tuple[Projections, ...]
    n_heads: int
    scheme: str = "none"
    causal: bool = False
    table: NDArray | None = None

    def __post_init__(self):
        require.one_of("scheme", self.scheme, SCHEMES)
        require.boolean("causal", self.causal)
        require.instance("layers", self.layers, Sequence)
        require.integer("layers", len(self.layers))
        for i, projections in enumerate(self.layers):
            require.instance(f"layers[{i}]", projections, Projections)
        d_model = len(self.layers[0].query)
        for projections in self.layers:
            for name, matrix in projections._asdict().items():
                require.shape(name, require.array(name, matrix), (d_model, d_model), "D inputs and D outputs")
        require.integer("n_heads", self.n_heads, maximum=d_model)
        if d_model % self.n_heads:
            raise require.refusal("n_heads", repr(self.n_heads), f"a divisor of the width {d_model}")
        if self.scheme == "rope":
            require.integer("head_dim", d_model // self.n_heads, minimum=2, multiple_of=2)
        if (self.table is None) != (self.scheme not in TRAINED):
            have, want = ("None", "a table") if self.table is None else ("a table", "None")
            raise require.refusal("table", have, f"{want} for the scheme {self.scheme!r}")
        if self.table is not None:
            columns = d_model if self.scheme == "learned" else self.n_heads
            require.shape("table", require.array("table", self.table), ("N", columns), f"as {self.scheme!r} has it")

    @classmethod
    def random(
        cls,
        d_model: int,
        n_heads: int,
        *,
        scheme: str = "none",
        causal: bool = False,
        n_layers: int = 1,
        max_positions: int = 128,
        seed: int = 0,
    ) -> Self:
        """Return layers with random weights; of one seed they are the same whatever the scheme and the mask.

        Parameters
        ----------
        d_model, n_heads : int; D and H
        scheme, causal : as for the class
        n_layers : int
        max_positions : int; rows of the table of "learned"
        seed : int; of the weights

        Returns
        -------
        SelfAttention : the weights keep the variance of their input at 1; the tables have variance 1 as well
        """
        d_model = require.integer("d_model", d_model)
        shape = (require.integer("n_layers", n_layers), len(Projections._fields), d_model, d_model)
        rng = np.random.default_rng(require.integer("seed", seed, minimum=0))
        matrices = rng.standard_normal(shape) / np.sqrt(d_model)
        table = None
        if scheme == "learned":
            table = rng.standard_normal((require.integer("max_positions", max_positions), d_model))
        elif scheme == "t5":
            table = rng.standard_normal((32, require.integer("n_heads", n_heads)))
        return cls(tuple(Projections(*layer) for layer in matrices), n_heads, scheme, causal, table)

    @property
    def position_parameters(self) -> int:
        """How many numbers are learned for the sake of positions."""
        return 0 if self.table is None else self.table.size

    @require.door
    def __call__(self, x: ArrayLike, *, start: int = 0) -> NDArray:
        """Return the output of the last layer for tokens `x` (…, L, D), the first of which is at position `start`."""
        *_, last = self._run(x, start)
        return last.output

    @require.door
    def weights(self, x: ArrayLike, *, start: int = 0) -> NDArray:
        """Return the attention weights of every layer.

        Parameters
        ----------
        x : (…, L, D) array_like; tokens
        start : int; position of the first

        Returns
        -------
        (N, …, H, L, L) ndarray; of N layers; every row sums to 1
        """
        bias = self._bias(require.array("x", x, min_ndim=2).shape[-2])
        return np.stack(
            [attention_weights(layer.query, layer.key, bias=bias, causal=self.causal) for layer in self._run(x, start)]
        )

    @require.door
    def keys(self, x: ArrayLike, *, start: int = 0) -> NDArray:
        """Return the first layer's keys as they would go into a cache.

        Parameters
        ----------
        x : (…, L, D) array_like; tokens
        start : int; position of the first

        Returns
        -------
        (…, H, L, K) ndarray; under RoPE after the rotation
        """
        return next(self._run(x, start)).key

    def _run(self, x: ArrayLike, start: int) -> Iterator[_Layer]:
        x = require.array("x", x, min_ndim=2)
        require.last_axis("x", x, len(self.layers[0].query), "the width of the layers")
        places = require.integer("start", start, minimum=0) + np.arange(x.shape[-2])
        if self.scheme == "sinusoidal":
            x = x + positions.sinusoidal_at(places, x.shape[-1])
        elif self.scheme == "learned":
            x = x + positions.lookup(self.table, places)
        bias = self._bias(len(places))
        for projections in self.layers:
            query, key, value = (self._split(x @ matrix) for matrix in projections[:3])  # (…, H, L, K)
            if self.scheme == "rope":
                query, key = rope.rotate(query, places), rope.rotate(key, places)
            mixed = attention(query, key, value, bias=bias, causal=self.causal)  # (…, H, L, K)
            x = np.swapaxes(mixed, -3, -2).reshape(x.shape) @ projections.output  # (…, L, D)
            yield _Layer(query, key, x)

    def _split(self, x: NDArray) -> NDArray:
        return np.swapaxes(x.reshape(*x.shape[:-1], self.n_heads, -1), -3, -2)

    def _bias(self, length: int) -> NDArray | None:
        """Return what the scheme adds to the scores, (H, L, L)."""
        if self.scheme == "t5":
            return relative_bias.t5_bias(self.table, length, bidirectional=not self.causal)
        if self.scheme == "alibi":
            return relative_bias.alibi_bias(relative_bias.alibi_slopes(self.n_heads), length)
        return None


REORDERINGS = ("none", "swap", "reverse", "rotate", "shuffle")


@require.door
def embed(words: Sequence[str], d_model: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Return a random vector for each word, the same one at every place.

    Parameters
    ----------
    words : sequence of str; the tokens, L of them
    d_model : int; D
    seed : int; of the vectors; of one seed they depend on the set of words alone, not on their order

    Returns
    -------
    (L, D) ndarray; of variance 1

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
    require.sizes(words=len(words), d_model=require.integer("d_model", d_model))
    return rng.standard_normal((len(vocabulary), d_model))[which]


def reorder(kind: str, length: int, *, i: int = 0, j: int = 0, seed: int = 0) -> NDArray[np.intp]:
    """Return a reordering of so many tokens.

    Parameters
    ----------
    kind : {"none", "swap", "reverse", "rotate", "shuffle"}; the tokens at `i` and `j` change places; the last
        becomes the first; each moves on by one place and the last comes to the front; or they are shuffled
    length : int; L
    i, j : int; for "swap"
    seed : int; for "shuffle"

    Returns
    -------
    (L,) ndarray of int; the token at each place

    Examples
    --------
    >>> reorder("rotate", 4).tolist(), reorder("swap", 4, i=0, j=2).tolist()
    ([3, 0, 1, 2], [2, 1, 0, 3])
    """
    require.one_of("kind", kind, REORDERINGS)
    require.sizes(length=require.integer("length", length))
    order = np.arange(length)
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
    order : (L,) array_like of int; the token at each place

    Returns
    -------
    (L, L) ndarray; one 1 in each row and each column

    Examples
    --------
    >>> permutation_matrix([2, 0, 1]).astype(int)
    array([[0, 0, 1],
           [1, 0, 0],
           [0, 1, 0]])
    """
    order = require.permutation("order", order)
    require.sizes(order=len(order), columns=len(order))
    return np.eye(len(order))[order]


@require.door
def equivariance_gap(function: Callable[[NDArray], NDArray], x: ArrayLike, order: ArrayLike) -> NDArray:
    r"""Return how far a function of tokens is from moving its outputs as its inputs are moved.

    .. math:: f(PX) - P f(X)

    Parameters
    ----------
    function : callable; f, from (…, L, D) to (…, L, Dv)
    x : (…, L, D) array_like; tokens
    order : (L,) array_like of int; the reordering

    Returns
    -------
    (…, L, Dv) ndarray; zero, up to rounding, if f is permutation equivariant

    Source: Lee et al., "Set Transformer", arXiv:1810.00825, §3.1 (blocks of attention are equivariant).

    Examples
    --------
    >>> x = np.arange(6.0).reshape(3, 2)
    >>> equivariance_gap(lambda x: np.cumsum(x, axis=0), x, [2, 1, 0])[:, 0].tolist()
    [-2.0, 4.0, 6.0]
    """
    x, order = _tokens(x, order)
    moved, still = _outputs(function, x, order)
    return moved - still[..., order, :]


@require.door
def invariance_gap(function: Callable[[NDArray], NDArray], x: ArrayLike, order: ArrayLike) -> NDArray:
    r"""Return how far a function of tokens is from giving the same whatever their order: f(PX) − f(X).

    Parameters
    ----------
    function, x, order : as for `equivariance_gap`

    Returns
    -------
    (…, L, Dv) ndarray; zero, up to rounding, if f is permutation invariant

    Examples
    --------
    >>> invariance_gap(lambda x: x, [[1.0], [3.0]], [1, 0]).tolist()
    [[2.0], [-2.0]]
    """
    x, order = _tokens(x, order)
    moved, still = _outputs(function, x, order)
    return moved - still


@require.door
def shift_gap(attend: SelfAttention, x: ArrayLike, by: int) -> NDArray:
    """Return how the outputs change if the same tokens are `by` positions further on.

    Parameters
    ----------
    attend : SelfAttention
    x : (…, L, D) array_like; tokens
    by : int; how far they are moved

    Returns
    -------
    (…, L, D) ndarray; zero, up to rounding, for a scheme that reads offsets alone

    Examples
    --------
    >>> x = embed(["dog", "bites", "man"], 8)
    >>> largest = {s: np.abs(shift_gap(SelfAttention.random(8, 2, scheme=s), x, 100)).max() for s in SCHEMES}
    >>> [scheme for scheme, gap in largest.items() if gap > 1e-12]
    ['sinusoidal', 'learned']
    """
    return attend(x, start=require.integer("by", by, minimum=0)) - attend(x)


def sees_the_same(order: ArrayLike, n_layers: int = 1) -> NDArray[np.bool_]:
    """Return for each place whether, under a causal mask, its output is the same as before the reordering.

    Without positions one causal layer reads the tokens up to its own as a set.  The output at place t stays if the
    token there is the old one and the set is.  From the second layer on, what is read has been changed by the order
    within the set, and only an untouched beginning stays.

    Parameters
    ----------
    order : (L,) array_like of int; the reordering, of tokens that all differ
    n_layers : int; number of causal layers

    Returns
    -------
    (L,) ndarray of bool

    Examples
    --------
    >>> sees_the_same([1, 0, 2, 3]).tolist(), sees_the_same([1, 0, 2, 3], n_layers=2).tolist()
    ([False, False, True, True], [False, False, False, False])
    """
    order = require.permutation("order", order)
    stays = order == np.arange(len(order))
    if require.integer("n_layers", n_layers) > 1:
        return np.logical_and.accumulate(stays)
    return stays & (np.maximum.accumulate(order) == np.arange(len(order)))


def _tokens(x: ArrayLike, order: ArrayLike) -> tuple[NDArray, NDArray[np.intp]]:
    x, order = require.array("x", x, min_ndim=2), require.permutation("order", order)
    if len(order) != x.shape[-2]:
        raise require.refusal("order", f"{len(order)} places", f"as many as x has tokens, {x.shape[-2]}")
    return x, order


def _outputs(function: Callable[[NDArray], NDArray], x: NDArray, order: NDArray) -> tuple[NDArray, NDArray]:
    outputs = tuple(
        require.array("function's result", function(tokens), min_ndim=0) for tokens in (x[..., order, :], x)
    )
    for output in outputs:
        if output.ndim < 2 or output.shape[-2] != len(order):
            raise require.refusal(
                "function", f"a result of shape {output.shape}", f"(…, {len(order)}, Dv), a vector for each token"
            )
    return outputs
