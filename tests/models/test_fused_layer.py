"""A fused layer computes what the layer does; its parts are views; it refuses parts that are not."""

from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.maths.decoder import DecoderLayer
from transformer_parts.models.fused_layer import FusedLayer

SIZES = {"d_model": 14, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 23, "std": 0.4, "seed": 2}


@pytest.fixture(scope="module", params=["float64", "float32"])
def layer(request):
    return DecoderLayer.random(**SIZES, dtype=request.param, layout="split", rope_base=500.0)


def test_it_computes_what_the_layer_does(layer, rng):
    fused = FusedLayer.of(layer)
    x = rng.normal(size=(2, 7, 14)).astype(layer.w_q.dtype)
    tolerance = 1e-12 if layer.w_q.dtype == np.float64 else 2e-5
    for ours, theirs in zip(fused.trace(x), layer.trace(x), strict=True):
        assert ours.name == theirs.name
        assert ours.value.dtype == theirs.value.dtype
        np.testing.assert_allclose(ours.value, theirs.value, rtol=0, atol=tolerance)
    assert fused.parameter_counts() == layer.parameter_counts()


def test_the_parts_are_views_and_nothing_is_held_twice(layer):
    fused = FusedLayer.of(layer)
    for name, whole in (("w_q", "w_qkv"), ("w_k", "w_qkv"), ("w_v", "w_qkv"), ("w_gate", "w_gate_up")):
        assert np.shares_memory(getattr(fused, name), getattr(fused, whole))
    assert fused.w_qkv.shape == (14, 120)
    assert fused.w_gate_up.shape == (14, 46)
    assert not np.shares_memory(fused.w_q, layer.w_q)


def test_columns_read_by_rows():
    layer = DecoderLayer.random(**SIZES)
    turned = {name: np.asfortranarray(getattr(layer, name)) for name in ("w_q", "w_k", "w_v", "w_o", "w_down")}
    fused = FusedLayer.of(replace(layer, **turned))
    for name in ("w_qkv", "w_o", "w_gate_up", "w_down"):
        assert getattr(fused, name).flags.c_contiguous


def test_settings_may_be_replaced_and_parts_may_not(layer):
    fused = FusedLayer.of(layer)
    assert replace(fused, layout="interleaved").layout == "interleaved"
    with pytest.raises(ValueError, match="w_up: got a matrix of its own, want the view of w_gate_up"):
        replace(fused, w_up=fused.w_up.copy())
    with pytest.raises(ValueError, match="w_k: got a matrix of its own, want the view of w_qkv"):
        replace(fused, w_k=fused.w_v)
