"""Writes the excerpt that `excerpt` reads: ``python -m transformer_parts.models.make_excerpt``.

The weights must be there (``python -m transformer_parts.models.weights`` fetches them); this command uses no
network.
"""

import hashlib
import io
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_parts.models import weights
from transformer_parts.models.excerpt import ARRAYS_NAME, LICENSE_NAME, PROVENANCE_NAME, TellingHead
from transformer_parts.models.notes import sealed
from transformer_parts.models.smollm2 import SmolLM2, load_model
from transformer_parts.models.tokenizer import load_tokenizer, token_texts
from transformer_parts.models.weights import GGUFFile

COMMAND = "python -m transformer_parts.models.make_excerpt"
# Written for this project.  It says some things twice, so that heads which look for an earlier occurrence show.
TEXT = (
    "The clock over the station door had stopped at ten past four, so the guard sent a boy to the harbour to read the"
    " time from the tower. The boy ran back and said that the tower clock had stopped as well, at ten past four, and"
    " that everyone in the harbour was waiting for someone from the station to come and tell them the time."
)
QK_LAYERS = (1, 11, 16, 17)
GATE_LAYERS = (11, 16, 29)
RESIDUALS = (
    "blk.0.attn_norm",
    "blk.3.attn_norm",
    "blk.11.attn_norm",
    "blk.11.ffn_norm",
    "blk.12.attn_norm",
    "blk.16.attn_norm",
    "blk.29.ffn_norm",
    "output_norm",
)
TELLING_HEADS = (
    TellingHead(16, 0, "previous token"),
    TellingHead(11, 1, "previous token"),
    TellingHead(1, 2, "previous token"),
    TellingHead(17, 4, "induction"),
    TellingHead(17, 5, "induction"),
)
_STEP_OF_NORM = MappingProxyType({"attn_norm": "x", "ffn_norm": "U"})


def compute(model: SmolLM2, file: GGUFFile) -> dict[str, NDArray]:
    """Run the model over the passage and return the excerpt's arrays by name.

    They are what the passage gives, in float16, and the norms' weights and the shapes of the file, as it holds them.
    """
    tokenizer = load_tokenizer(file)
    token_ids = np.array(tokenizer.encode(TEXT).ids)
    layers = range(model.sizes.n_layers)
    norms = [f"blk.{i}.{part}" for i in layers for part in _STEP_OF_NORM] + ["output_norm"]
    attention = [f"blk.{i}.weights" for i in layers]
    values = [f"blk.{i}.{part}" for i in QK_LAYERS for part in "qk"]
    gates = [f"blk.{i}.gate_input" for i in GATE_LAYERS]
    seen = model.trace(token_ids, [*map(_input_of, norms), *attention, *values, *gates])
    rms = [np.sqrt(np.mean(np.square(seen[_input_of(name)], dtype=np.float64), axis=-1)) for name in norms]
    arrays = {
        "token_ids": token_ids,
        "token_texts": np.array(token_texts(tokenizer, token_ids)),
        "norm_names": np.array(norms),
        "residual_rms": np.array(rms, dtype=np.float32),
        "weight_on_first": np.array([seen[name][:, 1:, 0].mean(axis=-1) for name in attention]),
        **_shapes(file.shapes()),
    }
    arrays |= {name: _half(name, seen[name]) for name in values}
    arrays |= {name.removesuffix("_input"): _half(name, seen[name]) for name in gates}
    for name in RESIDUALS:
        arrays[f"{name}.input"] = _half(name, seen[_input_of(name)])
        arrays[f"{name}.weight"] = file.tensor(f"{name}.weight")
    return arrays


def notes(model: SmolLM2, excerpt_sha256: str, date: str) -> dict[str, Any]:
    """Return the provenance, the settings and the passage, as they are written next to the arrays."""
    settings = asdict(model.sizes)
    for left_out in ("vocab_size", "context_length"):
        del settings[left_out]
    return {
        "provenance": {
            "model": "SmolLM2-135M-Instruct",
            "model_by": "HuggingFaceTB (Hugging Face)",
            "license": "Apache-2.0",
            "license_file": LICENSE_NAME,
            "package": weights.PACKAGE,
            "package_version": weights.VERSION,
            "weights_file": weights.MEMBER,
            "weights_sha256": weights.SHA256,
            "weights_precision": "embedding Q8_0, norms F32, all other matrices Q4_1; dequantised to float32",
            "changes": (
                "Not the weights: intermediate tensors that they give for one passage of our own writing, computed "
                "in float32 by transformer_parts.models.smollm2; of the weights themselves only those of the norms "
                "named in the arrays, unchanged, and every tensor's name and shape."
            ),
            "rounding": (
                "q, k, residual vectors and gates: float16, rounded once to nearest; residual_rms and "
                "weight_on_first: float32, from the unrounded tensors; norm weights: float32 as in the file"
            ),
            "command": COMMAND,
            "date": date,
            "numpy": np.__version__,
            "excerpt_file": ARRAYS_NAME,
            "excerpt_sha256": excerpt_sha256,
        },
        "settings": settings | {"layout": model.layers[0].layout},
        "text": TEXT,
        "telling_heads": [asdict(head) for head in TELLING_HEADS],
    }


def write(folder: Path, model: SmolLM2, file: GGUFFile, date: str) -> tuple[Path, Path]:
    """Compute the excerpt and write arrays and provenance into `folder`; return both paths."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **compute(model, file))
    data = buffer.getvalue()
    text = json.dumps(notes(model, hashlib.sha256(data).hexdigest(), date), indent=2, ensure_ascii=False)
    arrays_path, notes_path = folder / ARRAYS_NAME, folder / PROVENANCE_NAME
    arrays_path.write_bytes(data)
    notes_path.write_text(sealed(text) + "\n", encoding="utf-8")
    return arrays_path, notes_path


def _input_of(norm: str) -> str:
    """Return the name under which `SmolLM2.trace` has a norm's input."""
    head, _, part = norm.rpartition(".")
    return f"{head}.{_STEP_OF_NORM[part]}" if head else f"{norm}.input"


def _half(name: str, values: NDArray) -> NDArray[np.float16]:
    largest = float(np.abs(values).max())
    if largest > np.finfo(np.float16).max:
        raise ValueError(f"{name}: got a value of size {largest:g}, want at most 65504, float16's largest")
    return values.astype(np.float16)


def _shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray]:
    """Return names and shapes as two arrays; a vector's shape (n,) is the row (n, 0)."""
    rows = [(*shape, 0)[:2] for shape in shapes.values()]
    return {"tensor_names": np.array(list(shapes)), "tensor_shapes": np.array(rows)}


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data"
    try:
        opened = GGUFFile(weights.find())
        paths = write(target, load_model(opened), opened, datetime.now(UTC).date().isoformat())
    except (OSError, ValueError) as problem:
        sys.exit(f"make_excerpt: {problem}")
    sys.stdout.write("".join(f"{path} {path.stat().st_size} bytes\n" for path in paths))
