"""What the real model loses when its queries and keys are turned in the wrong layout, or not at all.

`make_rope_layout` runs the model and writes the report; reading it needs neither weights nor tokenizer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transformer_parts.models import notes as notes_file

REPORT_NAME = "smollm2_rope_layout.json"
COMMAND = "python -m transformer_parts.models.make_rope_layout"
READINGS = ("interleaved", "split", "none")


@dataclass(frozen=True)
class LayoutReport:
    """The model under three readings: pairs as trained, split halves, and nothing turned."""

    # mean negative log-likelihood of the next token over the whole passage, in nats, by reading
    loss: Mapping[str, float]
    # for the two wrong readings: KL(as trained ‖ as read) of the next-token distribution in nats, at each position of a
    # window, mean over `windows` windows of the passage
    divergence: Mapping[str, tuple[float, ...]]
    # for the same: share of the windows in which the likeliest next token is the same
    kept: Mapping[str, tuple[float, ...]]
    windows: int  # how many windows: one beginning at each token that has a full window after it
    # prompt → reading → what follows when the likeliest token is taken each time
    continuations: Mapping[str, Mapping[str, str]] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)  # model, weights' digest, command, date


def load_report(folder: Traversable | Path | None = None) -> LayoutReport:
    """Read the report from `folder`, by default the library's own data; nothing is cached.

    A missing file raises FileNotFoundError, a damaged one ValueError.

    Examples
    --------
    >>> load_report().divergence["split"][0]
    0.0
    """
    file = (files("transformer_parts.models") / "data" if folder is None else folder) / REPORT_NAME
    notes = notes_file.read(file, COMMAND)
    try:
        return LayoutReport(
            loss=MappingProxyType(notes["loss"]),
            divergence=MappingProxyType({name: tuple(values) for name, values in notes["divergence"].items()}),
            kept=MappingProxyType({name: tuple(values) for name, values in notes["kept"].items()}),
            windows=notes["windows"],
            continuations=MappingProxyType(notes["continuations"]),
            provenance=MappingProxyType(notes["provenance"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise notes_file.damaged(file, repr(error), COMMAND) from None
