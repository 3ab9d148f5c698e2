"""The pictures of the KV cache: decoding step by step, the weights of its heads, its size."""

from transformer_parts.draw.cache.heads import CacheHeadsView, HeadWeights
from transformer_parts.draw.cache.size import CacheBytes, CacheSizeView
from transformer_parts.draw.cache.steps import EXACT, LEAST, CacheStepsView, Steps

__all__ = ["EXACT", "LEAST", "CacheBytes", "CacheHeadsView", "CacheSizeView", "CacheStepsView", "HeadWeights", "Steps"]
