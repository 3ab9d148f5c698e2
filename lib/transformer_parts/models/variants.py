"""The model with one part exchanged: other frequencies, or one part broken, to see what it is there for.

The weights stay as trained and are shared with the model given, not copied.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require
from transformer_parts.maths.activations import relu
from transformer_parts.maths.context_extension import ScaledRope
from transformer_parts.maths.decoder.steps import Note, pass_on
from transformer_parts.maths.norms import layer_norm
from transformer_parts.models.fused_layer import FusedLayer
from transformer_parts.models.smollm2 import SmolLM2

Layer = TypeVar("Layer", bound=FusedLayer)


def with_rope(model: SmolLM2, scaled: ScaledRope) -> SmolLM2:
    """Return the model with other frequencies, and with the scores times the square of the factor of query and key."""
    scale = scaled.attention_factor**2 / model.sizes.head_dim**0.5
    return _with_layers(model, lambda layer: replace(layer, inv_freq=scaled.inv_freq, scale=scale))


def without_rope(model: SmolLM2) -> SmolLM2:
    """Return the model with queries and keys left as they are: every position is position 0."""
    still = np.zeros(model.sizes.head_dim // 2)
    return _with_layers(model, lambda layer: replace(layer, inv_freq=still))


def with_other_layout(model: SmolLM2) -> SmolLM2:
    """Return the model with the other channels paired: the right rotation of the wrong pairs."""
    other = {"interleaved": "split", "split": "interleaved"}
    return _with_layers(model, lambda layer: replace(layer, layout=other[layer.layout]))


def without_scale(model: SmolLM2) -> SmolLM2:
    """Return the model with the scores not divided by √K."""
    return _with_layers(model, lambda layer: replace(layer, scale=1.0))


def with_layer_norm(model: SmolLM2) -> SmolLM2:
    """Return the model with LayerNorm, by the same weights and without a shift, in place of every RMSNorm."""
    return replace(_with_layers(model, lambda layer: _as(_LayerNormed, layer)), norm=layer_norm)


def with_relu(model: SmolLM2) -> SmolLM2:
    """Return the model with ReLU in place of SiLU on the gates."""
    return _with_layers(model, lambda layer: _as(_ReluGated, layer))


def without_gate(model: SmolLM2) -> SmolLM2:
    """Return the model with every gate wide open: 1 in place of SiLU(x·W_gate), which leaves the FFN linear."""
    return _with_layers(model, lambda layer: _as(_Ungated, layer))


#: What a switch breaks → a function from the model to the broken one.
BROKEN: Mapping[str, Callable[[SmolLM2], SmolLM2]] = MappingProxyType(
    {
        "no RoPE": without_rope,
        "RoPE in the other layout": with_other_layout,
        "scores not divided by √K": without_scale,
        "LayerNorm for RMSNorm": with_layer_norm,
        "ReLU for SiLU": with_relu,
        "no gate": without_gate,
    }
)


class _LayerNormed(FusedLayer):
    def norm(self, name: str, x: NDArray, note: Note = pass_on) -> NDArray:
        return layer_norm(x, self.weights[name], eps=self.eps)


class _ReluGated(FusedLayer):
    def activate(self, gate: NDArray) -> NDArray:
        return relu(gate)


class _Ungated(FusedLayer):
    def activate(self, gate: NDArray) -> NDArray:
        return np.ones_like(gate)


def _as(kind: type[Layer], layer: FusedLayer) -> Layer:
    return kind(**{field.name: getattr(layer, field.name) for field in fields(layer)})


def _with_layers(model: SmolLM2, change: Callable[[FusedLayer], FusedLayer]) -> SmolLM2:
    return replace(model, layers=tuple(map(change, model.layers)))


def token_losses(model: SmolLM2, hidden: NDArray, token_ids: ArrayLike, *, rows: int = 256) -> NDArray[np.float64]:
    """Return the loss (L − 1,) of each token but the first, ℓ_t = −ln p(y_t | y_0 … y_{t−1}), in nats, float64.

    `hidden` are the residual vectors after the last layer, (L, D) or (L − 1, D): the last token's is not read.  At most
    `rows` rows of V logits exist at once.
    """
    targets = require.indices("token_ids", token_ids, len(model.embedding))
    require.ndim("token_ids", targets, 1)
    rows, targets = require.integer("rows", rows), targets[1:]
    require.shape("hidden", require.array("hidden", hidden), ("L", model.embedding.shape[1]), "L as token_ids has")
    if len(hidden) < len(targets):
        raise require.refusal("hidden", f"shape {hidden.shape}", f"at least {len(targets)} rows")
    out = np.empty(len(targets))
    for start in range(0, len(targets), rows):
        logits = model.logits(hidden[: len(targets)][start : start + rows])
        logits -= logits.max(axis=-1, keepdims=True)
        right = np.take_along_axis(logits, targets[start : start + rows, None], axis=-1)[:, 0]
        out[start : start + rows] = np.log(np.exp(logits, out=logits).sum(axis=-1, dtype=np.float64)) - right
    return out
