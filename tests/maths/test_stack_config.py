import dataclasses
import itertools
import math

import pytest

from transformer_parts.maths.budget import count
from transformer_parts.maths.decoder import FFN_KINDS, PLACEMENTS, StackConfig, shapes

SIZES = {"vocab_size": 7, "n_layers": 3, "d_model": 12, "n_heads": 6, "n_kv_heads": 3, "head_dim": 10, "d_ff": 17}


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_shapes_hold_as_many_parameters_as_the_budget_counts(placement):
    """`budget.parameters.count` is held to published models elsewhere; it knows nothing of `shapes`."""
    for norm, qk_norm, tied, ffn in itertools.product(("rms", "layer"), (True, False), (True, False), FFN_KINDS):
        config = StackConfig(**SIZES, placement=placement, norm=norm, qk_norm=qk_norm, tied=tied, ffn=ffn)
        assert sum(math.prod(shape) for shape in shapes(config).values()) == count(config.budget).total


def test_the_worked_sizes():
    config = StackConfig(vocab_size=5, n_layers=1, d_model=8, n_heads=2, d_ff=16)
    layer = {name: shape for name, shape in shapes(config).items() if name.startswith("layers.0.")}
    assert sum(math.prod(shape) for shape in layer.values()) == 656


def test_what_follows_is_filled_in():
    config = StackConfig(vocab_size=5, n_layers=8, d_model=12, n_heads=3, d_ff=16, placement="deepnorm")
    assert (config.n_kv_heads, config.head_dim, config.alpha, config.final_norm) == (3, 4, 2.0, False)
    assert dataclasses.replace(config, alpha=1.5).alpha == 1.5
    assert dataclasses.replace(config, d_model=24).head_dim == 4  # kept, as its notes say, unless it is taken back
    deeper = dataclasses.replace(config, d_model=24, head_dim=None, n_layers=128, alpha=None)
    assert (deeper.head_dim, deeper.alpha) == (8, 4.0)


def test_names_by_kind():
    def last(**kind):
        return {name.split(".")[-1] for name in shapes(StackConfig(**SIZES, **kind))}

    assert last() - last(placement="post") == {"final_norm"}
    assert last(placement="sandwich") - last() == {"attn_norm_out", "ffn_norm_out"}
    assert last(qk_norm=True) - last() == {"q_norm", "k_norm"}
    assert last(tied=False) - last() == {"head"}
    assert last(norm="layer") - last() == {"attn_norm_bias", "ffn_norm_bias", "final_norm_bias"}
    assert last(ffn="relu") ^ last() == {"w_gate", "w_up", "w_down", "w_in", "w_out"}
    assert last(rope_base=None) == last()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"vocab_size": 0}, "vocab_size"),
        ({"n_layers": 0}, "n_layers"),
        ({"n_layers": 2.0}, "n_layers"),
        ({"d_model": -1}, "d_model"),
        ({"n_kv_heads": 4}, "n_kv_heads"),
        ({"head_dim": 5}, "head_dim"),
        ({"d_ff": True}, "d_ff"),
        ({"ffn": "tanh"}, "ffn"),
        ({"norm": "batch"}, "norm"),
        ({"placement": "middle"}, "placement"),
        ({"rope_base": 0.0}, "rope_base"),
        ({"qk_norm": 1}, "qk_norm"),
        ({"tied": "yes"}, "tied"),
        ({"eps": 0.0}, "eps"),
        ({"alpha": 2.0}, "alpha"),
        ({"alpha": 0.0, "placement": "deepnorm"}, "alpha"),
    ],
)
def test_what_does_not_fit_is_refused(change, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        StackConfig(**(SIZES | change))


def test_an_odd_head_is_allowed_where_nothing_turns_it():
    assert StackConfig(**(SIZES | {"head_dim": 5, "rope_base": None})).head_dim == 5
