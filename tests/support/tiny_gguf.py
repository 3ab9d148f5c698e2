"""A GGUF file of a model of two small layers, written by the tests themselves."""

from pathlib import Path

import gguf
import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("Ġ", "Ġ")]
WORDS = CONTROL + sorted(ByteLevel.alphabet()) + ["".join(pair) for pair in MERGES]  # 263, a prime
SIZES = {"d_model": 42, "n_heads": 6, "n_kv_heads": 2, "head_dim": 10, "d_ff": 64, "n_layers": 2}
ROPE_BASE, EPS = 5000.0, 1e-4


def tiny_tensors() -> dict[str, np.ndarray]:
    """The small model's tensors, matrices as (out, in), in the file's order."""
    draw = np.random.default_rng(7)
    d, f = SIZES["d_model"], SIZES["d_ff"]
    q, kv = SIZES["n_heads"] * SIZES["head_dim"], SIZES["n_kv_heads"] * SIZES["head_dim"]
    shapes = {"token_embd.weight": (len(WORDS), d), "output_norm.weight": (d,)}
    for layer in range(SIZES["n_layers"]):
        parts = {"attn_norm": (d,), "attn_q": (q, d), "attn_k": (kv, d), "attn_v": (kv, d)}
        parts |= {"attn_output": (d, q), "ffn_norm": (d,), "ffn_gate": (f, d), "ffn_up": (f, d)}
        parts |= {"ffn_down": (d, f)}
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in parts.items()}
    return {
        name: (draw.normal(1, 0.2, shape) if len(shape) == 1 else draw.normal(0, 0.3, shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_gguf(path: Path, tensors: dict[str, np.ndarray], *, quantised=(), arch="llama", **changed) -> Path:
    """Write a GGUF file of the small model; `changed` replaces fields, None leaves one out."""
    fields = {
        "block_count": SIZES["n_layers"],
        "context_length": 97,
        "embedding_length": SIZES["d_model"],
        "feed_forward_length": SIZES["d_ff"],
        "head_count": SIZES["n_heads"],
        "head_count_kv": SIZES["n_kv_heads"],
        "rope_dimension_count": SIZES["head_dim"],
        "rope_freq_base": ROPE_BASE,
        "layer_norm_rms_eps": EPS,
        "vocab_size": len(WORDS),
        "tokenizer_model": "gpt2",
        "tokenizer_pre": "smollm",
        "token_list": WORDS,
        "token_types": [3 if word in CONTROL else 1 for word in WORDS],
        "token_merges": [" ".join(pair) for pair in MERGES],
        "bos_token_id": 1,
        "eos_token_id": 2,
    } | changed
    writer = gguf.GGUFWriter(path, arch)
    for name, value in fields.items():
        if value is not None:
            getattr(writer, f"add_{name}")(value)
    for name, values in tensors.items():
        if name in quantised:
            kind = gguf.GGMLQuantizationType[quantised[name]]
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
