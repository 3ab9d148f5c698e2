"""Numbers about the KV cache: decoding against the whole sequence, bytes, padding."""

import numpy as np

from transformer_parts.maths import budget, rope
from transformer_parts.maths.cache import faults
from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.models.configs import PUBLISHED

__all__ = [
    "cache_of_llama_3",
    "decoding_equals_the_whole",
    "fine_loss_and_bad_text",
    "moved_prefix",
    "padding_in_every_position",
]


def _layers_and_tokens() -> tuple[list[DecoderLayer], np.ndarray]:
    layers = [DecoderLayer.random(d_model=32, n_heads=4, n_kv_heads=2, d_ff=48, std=0.3, seed=i) for i in range(3)]
    return layers, np.random.default_rng(7).normal(size=(20, 32))


def decoding_equals_the_whole() -> dict[str, float]:
    """Decode ten tokens after a prompt of ten, rightly and with the faults that people make; compare with one pass."""
    layers, x = _layers_and_tokens()
    whole = faults.whole(layers, x, prompt=10)
    errors = {
        fault.replace(" ", "_"): float(faults.decode(layers, x, 10, fault).errors(whole).max())
        for fault in ("none", "restart", "off by one", "rotated again")
    }
    first = float(faults.decode(layers, x, 10, "restart").errors(whole)[0])
    rms = float(np.sqrt(np.mean(whole.outputs**2)))
    changes_nothing = {"restarts": errors["restart"] < 1e-9, "turned_again": errors["rotated_again"] < 1e-9}
    return errors | changes_nothing | {"prompt_alone": first, "rms": rms, "holds": errors["none"] < 1e-12}


def padding_in_every_position() -> dict[str, float]:
    """Put four slots of padding before the prompt and count them everywhere, in part, or let them be seen."""
    layers, x = _layers_and_tokens()
    right = faults.whole(layers, x, prompt=9, pad=4)
    errors = {
        name: float(faults.decode(layers, x, 9, fault, pad=4).errors(right).max())
        for name, fault in (
            ("everywhere", "padding counted"),
            ("in_part", "padding counted once decoding"),
            ("seen", "padding seen"),
        )
    }
    return errors | {"holds": errors["everywhere"] < 1e-12}


def cache_of_llama_3() -> dict[str, float]:
    """Count the cache of Llama 3 8B and of Llama 2 7B, their sizes, and what attending costs."""
    grouped, full = (PUBLISHED[name].config for name in ("Llama 3 8B", "Llama 2 7B"))
    products = [budget.flops_per_token(config, 8192).attention for config in (grouped, full)]
    per_token = budget.kv_cache_bytes(grouped, 1)
    projections = [
        2 * budget.attention_parameters(c.d_model, c.n_heads, c.n_kv_heads, c.head_dim) for c in (grouped, full)
    ]
    read = [budget.kv_cache_bytes(config, 8192) / 2 for config in (grouped, full)]
    return {
        "projections_mflop": projections[0] / 1e6,
        "full_projections_mflop": projections[1] / 1e6,
        "group": grouped.n_heads / grouped.n_kv_heads,
        "per_number": products[0] / read[0],
        "full_per_number": products[1] / read[1],
        "per_token": per_token,
        "kib": per_token / 2**10,
        "gib_8192": budget.kv_cache_bytes(grouped, 8192) / 2**30,
        "gib_128k": budget.kv_cache_bytes(grouped, 131_072) / 2**30,
        "full_gib_8192": budget.kv_cache_bytes(full, 8192) / 2**30,
        "ratio": budget.kv_cache_bytes(full, 1) / per_token,
        "quarter": budget.kv_cache_bytes(full, 1) == 4 * per_token,
        "grouped_gflops": products[0] / 1e9,
        "full_gflops": products[1] / 1e9,
        "weights_gb": 2 * budget.count(grouped).total / 1e9,
        "holds": products[0] < products[1],
    }


def fine_loss_and_bad_text() -> dict[str, float]:
    """The same decoding, and how far a token changes earlier outputs in one pass with a causal mask and without."""
    numbers = decoding_equals_the_whole()
    layers, x = _layers_and_tokens()
    changed = x.copy()
    changed[15] += 1
    for name, causal in (("masked", True), ("leaking", False)):
        outputs = [layers[0](tokens, causal=causal) for tokens in (x, changed)]
        numbers[name] = float(np.abs(outputs[1] - outputs[0])[:15].max())
    return numbers | {"holds": numbers["prompt_alone"] < 1e-12 < numbers["restart"]}


def moved_prefix() -> dict[str, float]:
    """Put eight cached tokens six places further on, and behind other tokens; count what blocks of 16 tokens waste."""
    layers, x = _layers_and_tokens()
    key, places = x[:8], np.arange(8)
    cached, wanted = rope.rotate(key, places), rope.rotate(key, places + 6)
    turned = rope.rotate(cached, np.full(8, 6))
    behind = [layers[0](np.concatenate([prefix, x[:8]]))[6:] for prefix in (x[8:14], x[14:20])]
    lengths = np.random.default_rng(9).integers(50, 2000, 1000)
    return {
        "stale": float(np.abs(cached - wanted).max()),
        "turned": (error := float(np.abs(turned - wanted).max())),
        "second_layer": (gap := float(np.abs(behind[1] - behind[0]).max())),
        "reserved_used": float(lengths.mean() / 2048),
        "blocks_used": float(lengths.sum() / (-(-lengths // 16) * 16).sum()),
        "holds": error < 1e-12,
        "second_layer_differs": gap > 1e-3,
    }
