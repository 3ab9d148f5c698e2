"""One passage through the real model, step by step: everything that `passage.Passage` holds."""

from collections.abc import Iterator
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from transformer_parts.maths import require
from transformer_parts.maths.activations import silu
from transformer_parts.models import weights
from transformer_parts.models.losses import token_losses
from transformer_parts.models.passage import GATE_EDGES, TRAINED, Passage
from transformer_parts.models.smollm2 import SmolLM2
from transformer_parts.models.tokenizer import token_texts
from transformer_parts.models.variants import BROKEN

MOST_TOKENS = 64
BEST = 5


def read_passage(model: SmolLM2, tokenizer: Tokenizer, text: str) -> Iterator[Passage | float]:
    """Yield the part of the work that is done, from 0 to 1, and at last the `Passage`.

    Parameters
    ----------
    model : SmolLM2
        The model, as trained.
    tokenizer : Tokenizer
        Its tokenizer.
    text : str
        From two tokens to `MOST_TOKENS`.

    Raises
    ------
    ValueError
        The text has fewer or more tokens.
    """
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
