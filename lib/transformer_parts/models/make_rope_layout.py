"""Writes the report that `rope_layout` reads: ``python -m transformer_parts.models.make_rope_layout``.

The model runs over the excerpt's passage as it was trained (interleaved pairs), with split pairs, and with nothing
turned.  That takes a few minutes; the weights must be there (``python -m transformer_parts.models.weights`` fetches
them), and no network is used.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.cross_entropy import log_softmax
from transformer_parts.models import weights
from transformer_parts.models.excerpt import load_excerpt
from transformer_parts.models.notes import sealed
from transformer_parts.models.rope_layout import COMMAND, READINGS, REPORT_NAME
from transformer_parts.models.smollm2 import SmolLM2, load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile

WINDOW = 32
PROMPTS = ("Once upon a time, there was a", "The capital of France is")
NEW_TOKENS = 24


def read_as(model: SmolLM2, reading: str, length: int) -> tuple[SmolLM2, NDArray | None]:
    """Return the model whose layers pair channels in that way, and the positions to run it with."""
    require.one_of("reading", reading, READINGS)
    if reading == "none":
        return model, np.zeros(length)  # at position 0 nothing is turned
    return replace(model, layers=tuple(replace(layer, layout=reading) for layer in model.layers)), None


def log_probabilities(model: SmolLM2, reading: str, token_ids: ArrayLike) -> NDArray[np.float64]:
    """Return the logarithms of the next token's probabilities at every position, shape (L, V)."""
    model, positions = read_as(model, reading, len(token_ids))
    return log_softmax(model.forward(token_ids, positions).astype(np.float64))


def measure(model: SmolLM2, token_ids: ArrayLike, window: int = WINDOW) -> dict[str, Any]:
    """Return ``loss``, ``divergence``, ``kept`` and ``windows`` of a `LayoutReport` for one passage."""
    require.one_of("the layout of model", model.layers[0].layout, READINGS[:1])
    token_ids = np.asarray(token_ids)
    window = require.integer("window", window, maximum=len(token_ids) - 1)
    loss = {}
    for reading in READINGS:
        likely = log_probabilities(model, reading, token_ids)
        loss[reading] = -float(likely[np.arange(len(token_ids) - 1), token_ids[1:]].mean())
    starts = range(len(token_ids) - window)
    divergence = {reading: np.zeros(window) for reading in READINGS[1:]}
    kept = {reading: np.zeros(window) for reading in READINGS[1:]}
    for start in starts:
        piece = token_ids[start : start + window]
        right = log_probabilities(model, READINGS[0], piece)
        for reading in READINGS[1:]:
            read = log_probabilities(model, reading, piece)
            divergence[reading] += (np.exp(right) * (right - read)).sum(axis=-1) / len(starts)
            kept[reading] += (right.argmax(axis=-1) == read.argmax(axis=-1)) / len(starts)
    rounded = {
        name: {reading: [round(float(x), 6) + 0.0 for x in values] for reading, values in by_reading.items()}
        for name, by_reading in (("divergence", divergence), ("kept", kept))
    }
    return {"loss": {name: round(x, 6) for name, x in loss.items()}, **rounded, "windows": len(starts)}


def continued(model: SmolLM2, reading: str, token_ids: Sequence[int], new_tokens: int) -> list[int]:
    """Return the tokens that follow when the likeliest one is taken each time."""
    ids = list(token_ids)
    for _ in range(require.integer("new_tokens", new_tokens)):
        read, positions = read_as(model, reading, len(ids))
        ids.append(int(read.logits(read.hidden(ids, positions)[-1]).argmax()))
    return ids[len(token_ids) :]


def write(folder: Path) -> Path:
    """Run the real model, write the report into `folder` and return its path."""
    file, passage = GGUFFile(weights.find()), load_excerpt()
    model, tokenizer = load_model(file), load_tokenizer(file)
    continuations = {
        prompt: {
            reading: tokenizer.decode(continued(model, reading, tokenizer.encode(prompt).ids, NEW_TOKENS))
            for reading in READINGS
        }
        for prompt in PROMPTS
    }
    provenance = {
        "model": passage.provenance["model"],
        "license": passage.provenance["license"],
        "weights_sha256": weights.SHA256,
        "passage": "the text of smollm2_excerpt.json",
        "tokens": len(passage.token_ids),
        "command": COMMAND,
        "date": datetime.now(UTC).date().isoformat(),
        "numpy": np.__version__,
    }
    report = measure(model, passage.token_ids) | {"continuations": continuations, "provenance": provenance}
    path = folder / REPORT_NAME
    path.write_text(sealed(json.dumps(report, indent=1, ensure_ascii=False)) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data"
    try:
        sys.stdout.write(f"{write(target)}\n")
    except (OSError, ValueError) as problem:
        sys.exit(f"make_rope_layout: {problem}")
