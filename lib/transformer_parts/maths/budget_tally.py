"""The parts among which a decoder's parameters are shared out."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Tally:
    """Parameters by part.  `embedding` is the token table, `head` what is stored beside it (0 where tied)."""

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
        """Without embedding, learned positions and head, as Kaplan et al. (arXiv:2001.08361, §1.3) count."""
        return self.attention + self.feed_forward + self.norms

    @property
    def shares(self) -> dict[str, float]:
        """Each part over the total (all 0 in an empty tally)."""
        return {part: number / (self.total or 1) for part, number in self.parts.items()}
