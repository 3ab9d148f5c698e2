"""The KV cache: the buffer, decoding with it, and its classic bugs."""

from transformer_parts.maths.cache.decoding import advance, layer_step, position_ids, stack_step
from transformer_parts.maths.cache.fault_names import FAULTS, LONGER, Chunk, Fault
from transformer_parts.maths.cache.faults import (
    Decoding,
    FaultyCache,
    Glance,
    decode,
    head_run,
    head_whole,
    misplaced,
    whole,
)
from transformer_parts.maths.cache.kv_cache import KVCache

__all__ = [
    "FAULTS",
    "LONGER",
    "Chunk",
    "Decoding",
    "Fault",
    "FaultyCache",
    "Glance",
    "KVCache",
    "advance",
    "decode",
    "head_run",
    "head_whole",
    "layer_step",
    "misplaced",
    "position_ids",
    "stack_step",
    "whole",
]
