"""Writes the passage that `passage.load_passage` reads: ``python -m transformer_parts.models.make_passage``.

The weights must be there (``python -m transformer_parts.models.weights`` fetches them); this command uses no
network.
"""

import hashlib
import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from transformer_parts.models import weights
from transformer_parts.models.excerpt import LICENSE_NAME
from transformer_parts.models.notes import sealed
from transformer_parts.models.passage import ARRAYS, ARRAYS_NAME, COMMAND, HALF, NOTES_NAME, Passage, read_passage
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile

# Written for this project; the last words have stood before, so that heads which look for an earlier occurrence show.
TEXT = "The ferry leaves the old harbour at noon, and at dusk the ferry returns to the old harbour."


def stored(passage: Passage) -> bytes:
    """Return the arrays as an npz file: `HALF` in float16, other numbers in float32 or the smallest integers."""
    arrays = {}
    for name in ARRAYS:
        array = np.asarray(getattr(passage, name))
        if array.dtype.kind == "f":
            array = array.astype(np.float16 if name in HALF else np.float32)
        else:
            array = array.astype(np.min_scalar_type(int(array.max())))
        arrays[name] = array
    for i, losses in enumerate(passage.losses.values()):
        arrays[f"losses.{i}"] = losses.astype(np.float32)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def notes(passage: Passage, arrays_sha256: str, date: str) -> dict[str, Any]:
    """Return the text, the settings and the provenance, as they are written next to the arrays."""
    return {
        "provenance": {
            "model": "SmolLM2-135M-Instruct",
            "model_by": "HuggingFaceTB (Hugging Face)",
            "license": "Apache-2.0",
            "license_file": LICENSE_NAME,
            "package": weights.PACKAGE,
            "package_version": weights.VERSION,
            "weights_sha256": weights.SHA256,
            "changes": (
                "Not the weights: intermediate tensors that they give for one passage of our own writing, computed "
                "in float32 by transformer_parts.models.passage."
            ),
            "rounding": f"{', '.join(HALF)}: float16, rounded once to nearest; other numbers: float32",
            "command": COMMAND,
            "date": date,
            "numpy": np.__version__,
            "arrays_file": ARRAYS_NAME,
            "arrays_sha256": arrays_sha256,
        },
        "settings": dict(passage.settings),
        "text": passage.text,
        "token_texts": list(passage.token_texts),
        "words": {str(token): word for token, word in passage.words.items()},
        "losses": list(passage.losses),
    }


def write(folder: Path, passage: Passage, date: str) -> tuple[Path, Path]:
    """Write arrays and notes into `folder` and return both paths."""
    data = stored(passage)
    text = json.dumps(notes(passage, hashlib.sha256(data).hexdigest(), date), indent=1, ensure_ascii=False)
    arrays_path, notes_path = folder / ARRAYS_NAME, folder / NOTES_NAME
    arrays_path.write_bytes(data)
    notes_path.write_text(sealed(text) + "\n", encoding="utf-8")
    return arrays_path, notes_path


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data"
    try:
        opened = GGUFFile(weights.find())
        *_, read = read_passage(load_model(opened), load_tokenizer(opened), TEXT)
        paths = write(target, read, datetime.now(UTC).date().isoformat())
    except (OSError, ValueError) as problem:
        sys.exit(f"make_passage: {problem}")
    sys.stdout.write("".join(f"{path} {path.stat().st_size} bytes\n" for path in paths))
