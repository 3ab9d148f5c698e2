"""Write golden_context_extension.json: frequencies and attention factors by transformers' own rope functions.

Nothing of this library is imported.  transformers computes in float32; the values are stored as it gives them.

    python tests/maths/make_golden_context_extension.py
"""

import json
from pathlib import Path

import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

GOLDEN = Path(__file__).with_name("golden_context_extension.json")

# Name → (rope type, head_dim, base, trained length, current length or None, further parameters).
SHORT = [1 + i / 50 for i in range(22)]
LONG = [1 + i * i / 20 for i in range(22)]
CASES = {
    "pi": ("linear", 128, 10000.0, 2048, None, {"factor": 2.0}),
    "pi_other": ("linear", 22, 500000.0, 8192, None, {"factor": 3.5}),
    "dynamic_short": ("dynamic", 128, 10000.0, 4096, 100, {"factor": 1.0}),
    "dynamic_at": ("dynamic", 128, 10000.0, 4096, 4096, {"factor": 4.0}),
    "dynamic_after": ("dynamic", 128, 10000.0, 4096, 4097, {"factor": 4.0}),
    "dynamic_paper": ("dynamic", 128, 10000.0, 4096, 32768, {"factor": 1.0}),
    "dynamic_factor": ("dynamic", 22, 7000.0, 1021, 6007, {"factor": 2.5}),
    "yarn_8": ("yarn", 128, 10000.0, 4096, None, {"factor": 8.0}),
    "yarn_untruncated": ("yarn", 128, 10000.0, 4096, None, {"factor": 8.0, "truncate": False}),
    "yarn_betas": ("yarn", 64, 150000.0, 4096, None, {"factor": 32.0, "beta_fast": 16.0, "beta_slow": 2.0}),
    "yarn_low_bound": ("yarn", 22, 10000.0, 150, None, {"factor": 3.0}),
    "yarn_high_bound": ("yarn", 22, 100.0, 50021, None, {"factor": 3.0}),
    "yarn_channels": ("yarn", 128, 10000.0, 131072, None, {"factor": 4.0}),
    "yarn_tie": ("yarn", 22, 10000.0, 6, None, {"factor": 3.0}),
    "longrope_at": (
        "longrope", 44, 10000.0, 4096, 4096, {"factor": 32.0, "short_factor": SHORT, "long_factor": LONG},
    ),
    "longrope_after": (
        "longrope", 44, 10000.0, 4096, 4097, {"factor": 32.0, "short_factor": SHORT, "long_factor": LONG},
    ),
    "llama3_1": (
        "llama3", 128, 500000.0, 8192, None, {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    ),
    "llama3_2": (
        "llama3", 64, 500000.0, 8192, None, {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    ),
    "llama3_other": (
        "llama3", 22, 10000.0, 1021, None, {"factor": 3.0, "low_freq_factor": 2.0, "high_freq_factor": 9.0},
    ),
}  # fmt: skip


def compute(kind, head_dim, rope_base, trained_length, length, more):
    """Return inv_freq as a list and the attention factor."""
    config = LlamaConfig(
        hidden_size=head_dim,
        num_attention_heads=1,
        num_key_value_heads=1,
        head_dim=head_dim,
        # "dynamic" reads the trained length here, the others at the name of the second.
        max_position_embeddings=trained_length if kind == "dynamic" else int(trained_length * more["factor"]),
        rope_parameters={
            "rope_type": kind,
            "rope_theta": rope_base,
            **({} if kind in ("linear", "dynamic") else {"original_max_position_embeddings": trained_length}),
            **more,
        },
    )
    inv_freq, attention_factor = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)
    return inv_freq.tolist(), float(attention_factor)


def main() -> None:
    """Write the file."""
    golden = {}
    for name, case in CASES.items():
        inv_freq, attention_factor = compute(*case)
        golden[name] = {"inv_freq": inv_freq, "attention_factor": attention_factor}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in golden.items())
    GOLDEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
