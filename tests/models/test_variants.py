"""Broken and extended variants: each equals the model with that part exchanged by hand, and shares its weights."""

from dataclasses import replace

import numpy as np
import pytest

from transformer_parts.maths.activations import relu
from transformer_parts.maths.context_extension import ScaledRope, yarn
from transformer_parts.maths.norms import layer_norm
from transformer_parts.models import variants
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.weights import GGUFFile

IDS = [1, 71, 262, 5, 71, 0, 131, 89, 12, 200, 71]


@pytest.fixture(scope="module")
def model(tiny):
    return load_model(GGUFFile(tiny.path))


def by_hand(model, *, norm=None, gate=None):
    """The logits, written out with the parts given."""
    from transformer_parts.maths import rope
    from transformer_parts.maths.activations import silu
    from transformer_parts.maths.attention import attention
    from transformer_parts.maths.norms import rms_norm

    norm, gate = norm or rms_norm, gate or silu
    x = model.embedding[IDS].astype(np.float64)
    for layer in model.layers:
        h = norm(x, layer.attn_norm, eps=layer.eps)
        q, k, v = (
            (h @ w).reshape(len(IDS), -1, layer.head_dim).swapaxes(0, 1) for w in (layer.w_q, layer.w_k, layer.w_v)
        )
        q, k = (rope.rotate(part, np.arange(len(IDS)), rope_base=layer.rope_base) for part in (q, k))
        x = x + attention(q, k, v, causal=True).swapaxes(0, 1).reshape(len(IDS), -1) @ layer.w_o
        h = norm(x, layer.ffn_norm, eps=layer.eps)
        x = x + (gate(h @ layer.w_gate) * (h @ layer.w_up)) @ layer.w_down
    return norm(x, model.final_norm, eps=model.sizes.eps) @ model.head


@pytest.mark.parametrize(
    ("variant", "parts"),
    [
        (lambda model: model, {}),
        (variants.with_layer_norm, {"norm": lambda x, w, eps: layer_norm(x, w, eps=eps)}),
        (variants.with_relu, {"gate": relu}),
        (variants.without_gate, {"gate": np.ones_like}),
    ],
)
def test_a_part_exchanged(model, variant, parts):
    np.testing.assert_allclose(variant(model).forward(IDS), by_hand(model, **parts), rtol=0, atol=5e-5)


def test_without_rope_every_position_is_0(model):
    np.testing.assert_array_equal(
        variants.without_rope(model).forward(IDS), variants.without_rope(model).forward(IDS, np.arange(11) * 7)
    )
    np.testing.assert_allclose(
        variants.without_rope(model).forward(IDS), model.forward(IDS, np.zeros(11)), rtol=0, atol=2e-5
    )


def test_the_other_layout_and_the_scale(model):
    other = variants.with_other_layout(model)
    assert {layer.layout for layer in other.layers} == {"split"}
    assert variants.with_other_layout(other).layers[0].layout == "interleaved"
    assert {layer.scale for layer in variants.without_scale(model).layers} == {1.0}
    scaled = tuple(replace(layer, w_q=layer.w_q, scale=10**-0.5) for layer in model.layers)
    np.testing.assert_array_equal(replace(model, layers=scaled).forward(IDS), model.forward(IDS))


def test_the_attention_factor_counts_twice(model):
    scaled = yarn(10, 4, 97, rope_base=5000.0)
    layer = variants.with_rope(model, scaled).layers[0]
    assert layer.scale == pytest.approx((0.1 * np.log(4) + 1) ** 2 / 10**0.5, rel=1e-12)
    np.testing.assert_array_equal(layer.inv_freq, scaled.inv_freq)
    with pytest.raises(ValueError, match="inv_freq"):
        variants.with_rope(model, ScaledRope(np.ones(3), 1.0))


@pytest.mark.parametrize("name", variants.BROKEN)
def test_every_switch_changes_the_logits_and_copies_no_weight(model, name):
    broken = variants.BROKEN[name](model)
    assert np.abs(broken.forward(IDS) - model.forward(IDS)).max() > 1e-2
    for ours, theirs in zip(broken.layers, model.layers, strict=True):
        assert ours.w_qkv is theirs.w_qkv
        assert ours.w_down is theirs.w_down
