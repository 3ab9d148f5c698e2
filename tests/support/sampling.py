"""What a run of the tests tries of many alike: another part from commit to commit, everything when asked."""

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

PROJECT = Path(__file__).resolve().parents[2]
Item = TypeVar("Item")


def commit() -> str:
    """Return the commit that is checked out, or a word of its own outside a clone."""
    try:
        run = subprocess.run(["git", "rev-parse", "HEAD"], cwd=PROJECT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no-commit"
    return run.stdout.strip()


@dataclass(frozen=True)
class Sample:
    """A part of many alike, decided by a seed alone.

    Attributes
    ----------
    seed : str
        The same seed chooses the same.
    everything : bool
        Nothing is left out.
    """

    seed: str
    everything: bool = False

    def digest(self, name: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {name}".encode()).digest()

    def of(self, items: Sequence[Item], count: int, name=str) -> list[Item]:
        """Return so many of the items, in their order, by their names; all of them where nothing is left out."""
        if self.everything or len(items) <= count:
            return list(items)
        chosen = sorted(range(len(items)), key=lambda place: self.digest(name(items[place])))[:count]
        return [items[place] for place in sorted(chosen)]

    def rng(self, name: str) -> np.random.Generator:
        """Return random numbers for what bears that name."""
        return np.random.default_rng(list(self.digest(name)))
