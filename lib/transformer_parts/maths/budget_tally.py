"""The parts among which a decoder's parameters are shared out."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Tally:
    """Parameters by part.

    Attributes
    ----------
    embedding : int
        The token table, V·D.
    positions : int
        A learned position table; 0 for RoPE and whatever else has none.
    attention : int
        Query, key, value and output projections, with their biases.
    feed_forward : int
        Both or all three matrices, with their biases.
    norms : int
        The weights and biases of every norm, QK-norm and the final one included.
    head : int
        The matrix from D to the vocabulary; 0 where the token table is read as it (tied).

    Examples
    --------
    >>> layer = Tally(attention=256, feed_forward=384, norms=16)
    >>> layer.total, f"{layer.shares['feed_forward']:.3f}"
    (656, '0.585')
    """

    embedding: int = 0
    positions: int = 0
    attention: int = 0
    feed_forward: int = 0
    norms: int = 0
    head: int = 0

    @property
    def parts(self) -> dict[str, int]:
        """The parts by name, in the order in which a token meets them."""
        return asdict(self)

    @property
    def total(self) -> int:
        """All parts."""
        return sum(self.parts.values())

    @property
    def non_embedding(self) -> int:
        """Without embedding, learned positions and head: the N of Kaplan et al., arXiv:2001.08361, §1.3.

        Their formula for it (§2.1) leaves out norms and biases as well.
        """
        return self.attention + self.feed_forward + self.norms

    @property
    def shares(self) -> dict[str, float]:
        """Each part over the total (all 0 in an empty tally)."""
        return {part: number / (self.total or 1) for part, number in self.parts.items()}
