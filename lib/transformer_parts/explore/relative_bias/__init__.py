"""Explorers of relative bias: T5 buckets, ALiBi slopes, and what a bias does to the weights."""

from transformer_parts.explore.relative_bias.buckets import T5Buckets
from transformer_parts.explore.relative_bias.slopes import AlibiSlopes
from transformer_parts.explore.relative_bias.weights import BiasAndWeights

__all__ = ["AlibiSlopes", "BiasAndWeights", "T5Buckets"]
