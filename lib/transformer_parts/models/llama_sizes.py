"""The sizes and constants that a GGUF file of the Llama architecture states, checked."""

from dataclasses import dataclass

import numpy as np

from transformer_parts.models.gguf_file import GGUFFile


@dataclass(frozen=True)
class LlamaSizes:
    """The sizes and constants of a Llama model as its file states them."""

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_ff: int
    context_length: int
    rope_base: float
    eps: float


def llama_sizes(file: GGUFFile) -> LlamaSizes:
    """Read the sizes; what Llama files may leave out has the value that leaving it out means.

    Raises
    ------
    ValueError
        A field is missing, the rotation turns only a part of each head, or its frequencies are scaled.
    """

    def field(name: str, default=None):
        return file.field(f"llama.{name}", default)

    n_heads, d_model = field("attention.head_count"), field("embedding_length")
    head_dim = field("attention.key_length", field("rope.dimension_count", d_model // n_heads))
    if (turned := field("rope.dimension_count", head_dim)) != head_dim:
        raise ValueError(f"llama.rope.dimension_count: got {turned}, want {head_dim}, the whole head")
    if (scaling := field("rope.scaling.type", "none")) != "none":
        raise ValueError(f"llama.rope.scaling.type: got {scaling!r}, want 'none'")
    return LlamaSizes(
        vocab_size=len(file.field("tokenizer.ggml.tokens")),
        d_model=d_model,
        n_layers=field("block_count"),
        n_heads=n_heads,
        n_kv_heads=field("attention.head_count_kv", n_heads),
        head_dim=head_dim,
        d_ff=field("feed_forward_length"),
        context_length=field("context_length"),
        rope_base=field("rope.freq_base", 10000.0),
        # stored in 32 bits: the shortest number that rounds to it is what its makers wrote
        eps=float(str(np.float32(field("attention.layer_norm_rms_epsilon")))),
    )
