"""SmolLM2 by the library's own parts: embedding, decoder layers, final norm, head.

It reads any GGUF file of the Llama architecture without biases and without scaled frequencies; the weights that
`weights` fetches are such a one.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import require, rope
from transformer_parts.maths.norms import rms_norm
from transformer_parts.models.configs import LlamaSizes, llama_sizes
from transformer_parts.models.fused_layer import FusedLayer
from transformer_parts.models.weights import GGUFFile

_STEP = re.compile(r"blk\.(?P<layer>\d+)\.(?P<step>\w+)")
_AFTER = ("output_norm.input", "logits")
_ARGUMENT = MappingProxyType({"attn_q": "w_q", "attn_k": "w_k", "attn_v": "w_v", "attn_output": "w_o"})


@dataclass(frozen=True, eq=False)
class SmolLM2:
    """A decoder with its weights, float32."""

    sizes: LlamaSizes  # what the file states
    embedding: NDArray[np.float32] = field(repr=False)  # (V, D): one row a token
    layers: tuple[FusedLayer, ...] = field(repr=False)  # in order
    final_norm: NDArray[np.float32] = field(repr=False)  # (D,): the weight of the last RMSNorm
    # (D, V): to the logits; where the file ties it, a view of the embedding
    head: NDArray[np.float32] = field(repr=False)
    norm: Callable[..., NDArray] = rms_norm  # the last norm, called with the residual vectors, its weight and ``eps``

    def hidden(self, token_ids: ArrayLike, positions: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the residual vectors after the last layer, before the final norm.

        Parameters
        ----------
        token_ids : array_like of int, shape (..., L); from 0 to V − 1
        positions : array_like, shape (L,) or broadcastable to (..., L), optional
            The tokens' positions; 0 … L − 1 if not given.

        Returns
        -------
        ndarray, shape (..., L, D)
        """
        x = self.embed(token_ids)
        for layer in self.layers:
            x = layer(x, positions)
        return x

    def logits(self, hidden: NDArray) -> NDArray[np.float32]:
        """Return the logits of residual vectors, (..., D) → (..., V): the final norm, then the head."""
        return self.norm(hidden, self.final_norm, eps=self.sizes.eps) @ self.head

    def forward(self, token_ids: ArrayLike, positions: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return the logits of the next token at every position.

        Parameters
        ----------
        token_ids, positions : as in `hidden`

        Returns
        -------
        ndarray, shape (..., L, V)
            Logits.  V is large: where only the last position is wanted, ``logits(hidden(token_ids)[..., -1, :])`` takes
            L times less.
        """
        return self.logits(self.hidden(token_ids, positions))

    def trace(
        self, token_ids: ArrayLike, names: Iterable[str], positions: ArrayLike | None = None
    ) -> dict[str, NDArray[np.float32]]:
        """Run the model and keep the intermediate tensors that are named.

        Parameters
        ----------
        token_ids, positions : as in `hidden`
        names : iterable of str
            ``"blk.11.q"`` is the step "q" of layer 11 (from 0); the steps are those of `DecoderLayer.trace` ("x" and
            "U" are the residual vectors that enter the layer's two norms) and "gate_input", x·W_gate before the SiLU.
            ``"output_norm.input"`` are the residual vectors that enter the final norm, ``"logits"`` the logits.

        Returns
        -------
        dict
            The tensors by name, in the order of `names`.  Layers after the last named one are not computed.
        """
        names = [require.text("names", name) for name in require.members("names", names)]
        wanted: dict[int, list[str]] = {}
        for name in names:
            found = _STEP.fullmatch(name)
            if found and int(found["layer"]) < len(self.layers):
                wanted.setdefault(int(found["layer"]), []).append(found["step"])
            elif name not in _AFTER:
                raise ValueError(
                    f"names: got {name!r}, want one of 'blk.N.STEP' with N below {len(self.layers)}, "
                    + ", ".join(map(repr, _AFTER))
                )
        to_the_end = not set(_AFTER).isdisjoint(names)
        last = len(self.layers) if to_the_end else 1 + max(wanted, default=-1)
        kept: dict[str, NDArray] = {}
        x = self.embed(token_ids)
        for index, layer in enumerate(self.layers[:last]):
            steps = wanted.get(index)
            x = _keep_steps(layer, x, positions, index, steps, kept) if steps else layer(x, positions)
        if to_the_end:
            kept["output_norm.input"] = x
        if "logits" in names:
            kept["logits"] = self.logits(x)
        return {name: kept[name] for name in names}

    def embed(self, token_ids: ArrayLike) -> NDArray[np.float32]:
        """Return the embedding of tokens, (..., L) → (..., L, D); refuse what is not a token."""
        ids = require.indices("token_ids", token_ids, len(self.embedding))
        if ids.ndim == 0:
            raise require.refusal("token_ids", "a single token", "at least 1 axis, the sequence")
        return self.embedding[ids]


def load_model(file: GGUFFile, *, layout: str = "interleaved") -> SmolLM2:
    """Read a model of the Llama architecture from a GGUF file.

    Parameters
    ----------
    file : GGUFFile
    layout : {"interleaved", "split"}
        Which channels of q and k make a pair.  The rows in a GGUF file of this architecture are in the interleaved
        layout; the other one is there to show what the mistake does.

    Returns
    -------
    SmolLM2; with every weight in float32, in layers that decode fast (`fused_layer`); the embedding is as in the file
    """
    require.instance("file", file, GGUFFile)
    require.one_of("layout", layout, rope.LAYOUTS)
    require.one_of("general.architecture", file.field("general.architecture"), ("llama",))
    sizes = llama_sizes(file)
    norms, d = ("attn_norm", "ffn_norm"), sizes.d_model
    q, kv = sizes.n_heads * sizes.head_dim, sizes.n_kv_heads * sizes.head_dim
    matrices = {"attn_q": (q, d), "attn_k": (kv, d), "attn_v": (kv, d), "attn_output": (d, q)}
    matrices |= {"ffn_gate": (sizes.d_ff, d), "ffn_up": (sizes.d_ff, d), "ffn_down": (d, sizes.d_ff)}
    if sizes.n_layers > len(file.shapes()):
        raise ValueError(f"llama.block_count: got {sizes.n_layers}, but the file has {len(file.shapes())} tensors")
    known = {"token_embd.weight", "output_norm.weight", "output.weight"}
    known |= {f"blk.{i}.{name}.weight" for i in range(sizes.n_layers) for name in (*norms, *matrices)}
    if unknown := sorted(file.shapes().keys() - known):
        raise ValueError(f"{file.path.name}: got a tensor {unknown[0]!r}, want a Llama without biases or extras")
    settings = {"n_heads": sizes.n_heads, "n_kv_heads": sizes.n_kv_heads, "layout": layout}
    settings |= {"rope_base": sizes.rope_base, "eps": sizes.eps}
    layers = []
    for i in range(sizes.n_layers):
        weights = {name: file.tensor(f"blk.{i}.{name}.weight", (d,)) for name in norms}
        for name, shape in matrices.items():
            argument = _ARGUMENT.get(name, name.replace("ffn_", "w_"))
            weights[argument] = file.tensor(f"blk.{i}.{name}.weight", shape).T
        try:
            layers.append(FusedLayer.join(**weights, **settings))
        except ValueError as error:
            raise ValueError(f"layer {i} of {file.path.name}: {error}") from error
    embedding = file.tensor("token_embd.weight", (sizes.vocab_size, d))
    untied = "output.weight" in file.shapes()
    head = file.tensor("output.weight", embedding.shape) if untied else embedding
    return SmolLM2(sizes, embedding, tuple(layers), file.tensor("output_norm.weight", (d,)), head.T)


def _keep_steps(layer: FusedLayer, x, positions, index: int, wanted: list[str], kept: dict[str, NDArray]):
    """Put the wanted steps of a layer into `kept` and return the layer's output."""
    steps = {step.name: step.value for step in layer.trace(x, positions)}
    steps["gate_input"] = steps["norm2"] @ layer.w_gate
    for name in wanted:
        if name not in steps:
            raise ValueError(f"names: got 'blk.{index}.{name}', want a step that is one of {', '.join(steps)}")
        kept[f"blk.{index}.{name}"] = steps[name]
    return steps["Y"]
