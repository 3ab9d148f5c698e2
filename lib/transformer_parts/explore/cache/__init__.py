"""Explorers of the KV cache: decoding step by step, the weights of its heads, its size."""

from transformer_parts.explore.cache.heads import CacheHeads
from transformer_parts.explore.cache.size import CUSTOM, CacheSize
from transformer_parts.explore.cache.steps import WAYS, CacheSteps

__all__ = ["CUSTOM", "WAYS", "CacheHeads", "CacheSize", "CacheSteps"]
