"""Self-attention with a choice of how it is told the order of its tokens: by a scheme, by a causal mask, or not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import positions, relative_bias, require, rope
from transformer_parts.maths.attention import attention, attention_weights

#: What may tell a token's position.  Sinusoidal and learned vectors are added to the tokens once, below the first
#: layer; T5 and ALiBi add to the scores, RoPE turns query and key, each in every layer.
SCHEMES = ("none", "sinusoidal", "learned", "t5", "alibi", "rope")
TRAINED = ("learned", "t5")


class Projections(NamedTuple):
    """The matrices of one layer.

    Attributes
    ----------
    query, key, value : (D, D) ndarray
        From the tokens into the heads.
    output : (D, D) ndarray
        Out of the heads.
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

    Norms, feed-forward layers and residual connections are left out: they treat every token by itself and know
    nothing of order.

    Parameters
    ----------
    layers : tuple of Projections
        One for each layer.
    n_heads : int
        H, a divisor of D.
    scheme : {"none", "sinusoidal", "learned", "t5", "alibi", "rope"}
        How positions are told.
    causal : bool
        Whether a token sees itself and those before it alone.
    table : array_like, optional
        What a scheme has learned: (L_max, D) vectors for "learned", (buckets, H) scalars for "t5".

    Raises
    ------
    ValueError
        If the scheme is unknown, its table is missing or there is one too many, or D, H and the scheme do not fit.

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
        require.integer("layers", len(self.layers))
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
        d_model, n_heads : int
            D and H.
        scheme, causal
            As for the class.
        n_layers : int
            How many layers.
        max_positions : int
            Rows of the table of "learned".
        seed : int
            Of the weights.

        Returns
        -------
        SelfAttention
            The weights keep the variance of their input at 1; the tables have variance 1 as well.

        Raises
        ------
        ValueError
            As for the class.
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

    def __call__(self, x: ArrayLike, *, start: int = 0) -> NDArray:
        """Return the output of the last layer for tokens `x` (…, L, D), the first of which is at position `start`."""
        *_, last = self._run(x, start)
        return last.output

    def weights(self, x: ArrayLike, *, start: int = 0) -> NDArray:
        """Return the attention weights of every layer.

        Parameters
        ----------
        x : (…, L, D) array_like
            Tokens.
        start : int
            Position of the first.

        Returns
        -------
        (N, …, H, L, L) ndarray
            Of N layers; every row sums to 1.
        """
        bias = self._bias(np.shape(x)[-2])
        return np.stack(
            [attention_weights(layer.query, layer.key, bias=bias, causal=self.causal) for layer in self._run(x, start)]
        )

    def keys(self, x: ArrayLike, *, start: int = 0) -> NDArray:
        """Return the first layer's keys as they would go into a cache.

        Parameters
        ----------
        x : (…, L, D) array_like
            Tokens.
        start : int
            Position of the first.

        Returns
        -------
        (…, H, L, K) ndarray
            Under RoPE after the rotation.
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
            query, key, value = (self._split(x @ matrix) for matrix in projections[:3])
            if self.scheme == "rope":
                query, key = rope.rotate(query, places), rope.rotate(key, places)
            mixed = attention(query, key, value, bias=bias, causal=self.causal)
            x = np.swapaxes(mixed, -3, -2).reshape(x.shape) @ projections.output
            yield _Layer(query, key, x)

    def _split(self, x: NDArray) -> NDArray:
        return np.swapaxes(x.reshape(*x.shape[:-1], self.n_heads, -1), -3, -2)

    def _bias(self, length: int) -> NDArray | None:
        if self.scheme == "t5":
            return relative_bias.t5_bias(self.table, length, bidirectional=not self.causal)
        if self.scheme == "alibi":
            return relative_bias.alibi_bias(relative_bias.alibi_slopes(self.n_heads), length)
        return None
