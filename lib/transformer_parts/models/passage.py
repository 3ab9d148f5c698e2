"""Everything that is shown of one passage going through the real model, and the passage that is part of the library.

`read_passage` computes it from the weights, `load_passage` reads the committed one, which `make_passage` has written:
both return the same kind of object, so that a page works with and without the weights.
"""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from transformer_parts.maths import require
from transformer_parts.maths.activations import silu
from transformer_parts.models import notes as notes_file
from transformer_parts.models import weights
from transformer_parts.models.smollm2 import SmolLM2
from transformer_parts.models.tokenizer import token_texts
from transformer_parts.models.variants import BROKEN, token_losses

ARRAYS_NAME = "smollm2_passage.npz"
NOTES_NAME = "smollm2_passage.json"
COMMAND = "python -m transformer_parts.models.make_passage"
TRAINED = "as trained"
#: Edges of the classes that gates before the activation are counted in; the outer classes are open.
GATE_EDGES = tuple(step / 8 for step in range(-48, 49))
#: Arrays that are stored in float16, being many; the others are in float32.
HALF = ("query", "key", "weights", "lens_top")


@dataclass(frozen=True, eq=False)
class Passage:
    """One passage of L tokens on its way through a model of N layers."""

    text: str  # the passage
    token_texts: tuple[str, ...] = field(repr=False)  # the text of each token, leading space included
    token_ids: NDArray[np.int64] = field(repr=False)  # (L,): the model's numbers of the tokens
    # residual_rms, residual_peak (2N + 1, L): RMS of the residual vectors as they enter each norm, in order, and the
    # size of their largest entry
    residual_rms: NDArray = field(repr=False)
    residual_peak: NDArray = field(repr=False)
    peak_channel: NDArray = field(repr=False)  # (2N + 1, L): the channel of that entry
    query: NDArray = field(repr=False)  # query, key (N, H, L, K), (N, G, L, K): before the rotation
    key: NDArray = field(repr=False)
    weights: NDArray = field(repr=False)  # (N, H, L, L): attention weights
    # (N, L, C): how many of a token's gates before the activation, x·W_gate, fall in each of the C classes of
    # `GATE_EDGES`
    gate_counts: NDArray = field(repr=False)
    # (N, L, 2): the shares of the gates after it, SiLU(x·W_gate), that are below 0, and above 1
    gate_shares: NDArray = field(repr=False)
    # lens_ids, lens_top (N + 1, L, B): The B likeliest next tokens and their probabilities, had the model ended before
    # layer 0, 1, …: final norm and head applied to the residual stream there. The last row is the model's own
    # prediction.
    lens_ids: NDArray = field(repr=False)
    lens_top: NDArray = field(repr=False)
    # (N + 1, L): the probability so given to the token that comes next; NaN for the last
    lens_next: NDArray = field(repr=False)
    words: Mapping[int, str] = field(repr=False)  # the text of every token of `lens_ids`
    # −ln p of each token but the first, in nats: as trained, and with each part of `variants.BROKEN` broken
    losses: Mapping[str, NDArray] = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)  # n_layers, n_heads, n_kv_heads, head_dim, rope_base, layout
    provenance: Mapping[str, Any] = field(repr=False)  # where it is from

    def __len__(self) -> int:
        return len(self.token_ids)

    def key_of(self, layer: int, head: int) -> NDArray:
        """Return the keys that one *query* head reads, before the rotation, (L, K)."""
        layer = require.integer("layer", layer, minimum=0, maximum=len(self.key) - 1)
        head = require.integer("head", head, minimum=0, maximum=self.settings["n_heads"] - 1)
        return self.key[layer, head // (self.settings["n_heads"] // self.settings["n_kv_heads"])]


#: Names of the arrays of a passage, as they are stored.
ARRAYS = (
    "token_ids",
    "residual_rms",
    "residual_peak",
    "peak_channel",
    "query",
    "key",
    "weights",
    "gate_counts",
    "gate_shares",
    "lens_ids",
    "lens_top",
    "lens_next",
)


def load_passage(folder: Traversable | Path | None = None) -> Passage:
    """Read the passage from `folder`, by default the library's own data; floating arrays are float64.

    A missing file raises FileNotFoundError, a damaged one ValueError.

    Examples
    --------
    >>> passage = load_passage()
    >>> passage.weights.shape == (30, 9, len(passage), len(passage))
    True
    """
    folder = files("transformer_parts.models") / "data" if folder is None else folder
    notes = notes_file.read(folder / NOTES_NAME, COMMAND)
    wanted = notes["provenance"]["arrays_sha256"]
    data = (folder / ARRAYS_NAME).read_bytes()
    if (got := hashlib.sha256(data).hexdigest()) != wanted:
        raise require.refusal(ARRAYS_NAME, f"SHA-256 {got}", f"{wanted}, as {NOTES_NAME} says")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: _wide(archive[name]) for name in archive.files}
    losses = {name: arrays.pop(f"losses.{i}") for i, name in enumerate(notes["losses"])}
    return Passage(
        text=notes["text"],
        token_texts=tuple(notes["token_texts"]),
        words=MappingProxyType({int(token): word for token, word in notes["words"].items()}),
        losses=MappingProxyType(losses),
        settings=MappingProxyType(notes["settings"]),
        provenance=MappingProxyType(notes["provenance"]),
        **arrays,
    )


def _wide(array: NDArray) -> NDArray:
    array = array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)
    array.setflags(write=False)
    return array


MOST_TOKENS = 64
BEST = 5


def read_passage(model: SmolLM2, tokenizer: Tokenizer, text: str) -> Iterator[Passage | float]:
    """Yield the finished share of the work and at last the `Passage` of a text (2 to `MOST_TOKENS` tokens)."""
    token_ids = np.array(tokenizer.encode(text).ids, dtype=np.int64)
    if not 2 <= len(token_ids) <= MOST_TOKENS:
        raise require.refusal("text", f"{len(token_ids)} tokens", f"2 to {MOST_TOKENS}")
    steps, done = 2 + len(BROKEN), 0
    yield 0.0
    layers = range(model.sizes.n_layers)
    inputs = [name for i in layers for name in (f"blk.{i}.x", f"blk.{i}.U")] + ["output_norm.input"]
    parts = ("q", "k", "weights", "gate_input")
    seen = model.trace(token_ids, [*inputs, *(f"blk.{i}.{part}" for i in layers for part in parts)])
    stacked = {part: np.stack([seen[f"blk.{i}.{part}"] for i in layers]) for part in parts}
    yield (done := done + 1) / steps
    ends = [seen[f"blk.{i}.x"] for i in layers] + [seen["output_norm.input"]]
    lens = _lens(model, ends, token_ids)
    losses = {TRAINED: token_losses(model, ends[-1], token_ids)}
    for name, broken in BROKEN.items():
        yield (done := done + 1) / steps
        other = broken(model)
        losses[name] = token_losses(other, other.hidden(token_ids), token_ids)
    best = sorted(set(lens["lens_ids"].ravel().tolist()))
    yield Passage(
        text=text,
        token_texts=token_texts(tokenizer, token_ids),
        token_ids=token_ids,
        **_residual([seen[name] for name in inputs]),
        query=stacked["q"],
        key=stacked["k"],
        weights=stacked["weights"],
        **_gates(stacked["gate_input"]),
        **lens,
        words=MappingProxyType(dict(zip(best, token_texts(tokenizer, best), strict=True))),
        losses=MappingProxyType(losses),
        settings=MappingProxyType(settings(model)),
        provenance=MappingProxyType({"weights_sha256": weights.SHA256}),
    )


def settings(model: SmolLM2) -> dict[str, object]:
    """Return the sizes and settings that a `Passage` states."""
    names = ("n_layers", "n_heads", "n_kv_heads", "head_dim", "rope_base")
    return {name: getattr(model.sizes, name) for name in names} | {"layout": model.layers[0].layout}


def _residual(streams: list[NDArray]) -> dict[str, NDArray]:
    sizes = [np.abs(stream) for stream in streams]
    return {
        "residual_rms": np.stack([np.sqrt(np.mean(np.square(x, dtype=np.float64), axis=-1)) for x in streams]),
        "residual_peak": np.stack([size.max(axis=-1) for size in sizes]),
        "peak_channel": np.stack([size.argmax(axis=-1) for size in sizes]),
    }


def _gates(gates: NDArray) -> dict[str, NDArray]:
    """Count the gates of each layer and token, (N, L, F), in classes."""
    classes = np.clip(np.searchsorted(GATE_EDGES, gates) - 1, 0, len(GATE_EDGES) - 2)
    counts = np.stack([(classes == c).sum(axis=-1) for c in range(len(GATE_EDGES) - 1)], axis=-1)
    opened = silu(gates)
    return {
        "gate_counts": counts,
        "gate_shares": np.stack([(opened < 0).mean(axis=-1), (opened > 1).mean(axis=-1)], axis=-1),
    }


def _lens(model: SmolLM2, streams: list[NDArray], token_ids: NDArray) -> dict[str, NDArray]:
    """Return what final norm and head make of the residual stream before each layer and after the last."""
    ids, top, following = [], [], []
    for stream in streams:
        logits = model.logits(stream)
        logits -= logits.max(axis=-1, keepdims=True)
        best = np.argpartition(-logits, BEST, axis=-1)[:, :BEST]
        order = np.argsort(-np.take_along_axis(logits, best, axis=-1), axis=-1, kind="stable")
        ids.append(np.take_along_axis(best, order, axis=-1))
        wanted = np.concatenate([ids[-1], np.append(token_ids[1:], 0)[:, None]], axis=-1)
        chosen = np.exp(np.take_along_axis(logits, wanted, axis=-1).astype(np.float64))
        chosen /= np.exp(logits, out=logits).sum(axis=-1, keepdims=True, dtype=np.float64)
        chosen[-1, -1] = np.nan
        top.append(chosen[:, :-1])
        following.append(chosen[:, -1])
    return {"lens_ids": np.stack(ids), "lens_top": np.stack(top), "lens_next": np.stack(following)}
