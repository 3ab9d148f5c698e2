"""An excerpt of the real model that is part of the library: what SmolLM2-135M-Instruct computes for one passage.

Queries and keys before the rotation, residual vectors as they enter a norm, values of the FFN's gates, and the
shape of every tensor.  `make_excerpt` writes it; reading it needs NumPy alone and no weights.
"""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.activations import silu
from transformer_parts.models import notes as notes_file

ARRAYS_NAME = "smollm2_excerpt.npz"
PROVENANCE_NAME = "smollm2_excerpt.json"
LICENSE_NAME = "smollm2_LICENSE.txt"


@dataclass(frozen=True)
class TellingHead:
    """A head worth looking at, and what it does over the passage."""

    layer: int
    head: int
    kind: str


@dataclass(frozen=True, eq=False)
class Excerpt:
    """What the model computes for one passage of L tokens; layers and heads count from 0.

    Arrays are stored in float16 where the model computes them and float32 where it holds them (norm weights);
    the methods return them in float64, which changes no value.
    """

    text: str  # the passage
    token_texts: tuple[str, ...] = field(repr=False)  # the text of each token, leading space included
    token_ids: NDArray[np.int64] = field(repr=False)  # (L,): the model's numbers of the tokens
    # n_layers, n_heads, n_kv_heads, head_dim, d_model, d_ff: the model's sizes; query head h reads key
    # head ``h // (n_heads // n_kv_heads)``
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_model: int
    d_ff: int
    rope_base: float  # base of the rotation's frequencies
    layout: str  # which channels of q and k make a pair: "interleaved", as in the weights' file
    eps: float  # ε of every norm
    qk_layers: tuple[int, ...]  # qk_layers, gate_layers: the layers whose queries and keys, and whose gates, are here
    gate_layers: tuple[int, ...]
    residual_names: tuple[str, ...]  # the norms whose input is here, such as ``"blk.11.attn_norm"``
    telling_heads: tuple[TellingHead, ...]  # heads of `qk_layers` to begin with
    # all norms of the model in the order of the computation: the rows of `residual_rms`
    norm_names: tuple[str, ...] = field(repr=False)
    # every tensor of the weights' file; matrices are (out, in)
    tensor_shapes: Mapping[str, tuple[int, ...]] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)  # model, package, digests, licence, command, date, rounding
    _arrays: Mapping[str, NDArray] = field(repr=False)

    def query(self, layer: int, head: int) -> NDArray[np.float64]:
        """Return the queries of one head before the rotation, shape (L, K)."""
        self._one_of("layer", layer, self.qk_layers)
        self._one_of("head", head, range(self.n_heads))
        return self._arrays[f"blk.{layer}.q"][head].astype(np.float64)

    def key(self, layer: int, head: int) -> NDArray[np.float64]:
        """Return the keys that one *query* head reads, before the rotation, shape (L, K)."""
        self._one_of("layer", layer, self.qk_layers)
        self._one_of("head", head, range(self.n_heads))
        return self._arrays[f"blk.{layer}.k"][head // (self.n_heads // self.n_kv_heads)].astype(np.float64)

    def residual(self, name: str) -> NDArray[np.float64]:
        """Return the residual vectors as they enter the norm `name`, shape (L, D)."""
        require.one_of("name", name, self.residual_names)
        return self._arrays[f"{name}.input"].astype(np.float64)

    def norm_weight(self, name: str) -> NDArray[np.float64]:
        """Return the weight γ of the norm `name`, shape (D,)."""
        require.one_of("name", name, self.residual_names)
        return self._arrays[f"{name}.weight"].astype(np.float64)

    def gate(self, layer: int) -> NDArray[np.float64]:
        """Return the gates of one layer's FFN before the activation, x·W_gate, shape (L, F)."""
        self._one_of("layer", layer, self.gate_layers)
        return self._arrays[f"blk.{layer}.gate"].astype(np.float64)

    def gate_activation(self, layer: int) -> NDArray[np.float64]:
        """Return the gates of one layer's FFN after the activation, SiLU(x·W_gate), shape (L, F)."""
        return silu(self.gate(layer))

    def residual_rms(self) -> NDArray[np.float64]:
        """Return the RMS of every token's residual vector as it enters each norm of `norm_names`, (2N + 1, L)."""
        return self._arrays["residual_rms"].astype(np.float64)

    def weight_on_first(self) -> NDArray[np.float64]:
        """Return the mean attention weight that the later tokens give to token 0, by layer and head, (N, H)."""
        return self._arrays["weight_on_first"].astype(np.float64)

    @staticmethod
    def _one_of(name: str, value: object, choices: tuple[int, ...] | range) -> None:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value not in choices:
            raise ValueError(f"{name}: got {value!r}, want one of {', '.join(map(str, choices))}")


def load_excerpt(folder: Traversable | Path | None = None) -> Excerpt:
    """Read the excerpt from `folder`, by default the library's own data; nothing is cached.

    A missing file raises FileNotFoundError; a damaged one (by its SHA-256) ValueError.

    Examples
    --------
    >>> excerpt = load_excerpt()
    >>> excerpt.query(16, 0).shape == (len(excerpt.token_texts), excerpt.head_dim)
    True
    """
    folder = files("transformer_parts.models") / "data" if folder is None else folder
    notes = _read_json(folder / PROVENANCE_NAME)
    arrays = _read_arrays(folder / ARRAYS_NAME, notes["provenance"]["excerpt_sha256"])
    shapes = arrays.pop("tensor_shapes")
    tensor_shapes = {
        str(name): tuple(int(n) for n in shape if n)
        for name, shape in zip(arrays.pop("tensor_names"), shapes, strict=True)
    }
    return Excerpt(
        token_texts=tuple(str(text) for text in arrays.pop("token_texts")),
        token_ids=arrays.pop("token_ids"),
        qk_layers=_layers(arrays, "q"),
        gate_layers=_layers(arrays, "gate"),
        residual_names=tuple(name.removesuffix(".input") for name in arrays if name.endswith(".input")),
        telling_heads=tuple(TellingHead(**head) for head in notes["telling_heads"]),
        norm_names=tuple(str(name) for name in arrays.pop("norm_names")),
        tensor_shapes=tensor_shapes,
        provenance=notes["provenance"],
        text=notes["text"],
        **notes["settings"],
        _arrays=arrays,
    )


def _layers(arrays: Mapping[str, NDArray], part: str) -> tuple[int, ...]:
    return tuple(int(name.split(".")[1]) for name in arrays if name.endswith(f".{part}"))


def _read_json(file: Traversable | Path) -> dict[str, Any]:
    notes = notes_file.read(file, "make excerpt")
    for key in ("provenance", "settings", "text", "telling_heads"):
        if key not in notes:
            raise ValueError(f"{file}: got no {key!r}, want the provenance `make excerpt` wrote")
    return notes


def _read_arrays(file: Traversable | Path, sha256: str) -> dict[str, NDArray]:
    data = file.read_bytes()
    if (got := hashlib.sha256(data).hexdigest()) != sha256:
        raise ValueError(f"{file}: got SHA-256 {got}, want {sha256}, as {PROVENANCE_NAME} says: it is damaged")
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays
