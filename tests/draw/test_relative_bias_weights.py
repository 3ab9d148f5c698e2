"""A bias and its weights: the matrices, the framed row, and scales that hold them."""

import numpy as np
import pytest

from transformer_parts.draw.relative_bias_weights import BiasedWeights, BiasedWeightsView


def weights(rng, query=3, causal=True, length=7) -> BiasedWeights:
    visible = np.tri(length, dtype=bool) if causal else np.ones((length, length), bool)
    plain, biased = (np.where(visible, rng.random((length, length)), 0) for _ in range(2))
    plain, biased = (w / w.sum(-1, keepdims=True) for w in (plain, biased))
    return BiasedWeights(rng.normal(0, 3, (length, length)), plain, biased, visible, (1.0, 0.5), 1.0, 0.5, 0, query)


@pytest.fixture
def view():
    return BiasedWeightsView()


@pytest.mark.parametrize("causal", [True, False])
def test_the_row_is_the_querys(view, rng, causal):
    data = weights(rng, causal=causal)
    view.update(data)
    keys = np.arange(4 if causal else 7)
    assert view.row.get_xdata().tolist() == keys.tolist()
    assert view.row.get_ydata().tolist() == data.bias[3, keys].tolist()
    for stems, wanted in ((view.biased_stems, data.biased), (view.plain_stems, -data.plain)):
        assert stems.get_ydata()[1::3].tolist() == wanted[3, keys].tolist()
        assert stems.get_xdata()[1::3].tolist() == keys.tolist()
    assert view.bias_frame.get_ydata().mean() == pytest.approx(3, abs=0.2)


def test_hidden_cells_have_no_colour(view, rng):
    view.update(weights(rng))
    blank = view.bias_map._colours[0, 6]
    assert (view.bias_map._colours[np.triu_indices(7, 1)] == blank).all()
    assert view.weight_map._colours[0, 0] != blank


def test_scales_hold_what_they_show(view, rng):
    for query in range(7):
        data = weights(rng, query)
        view.update(data)
        low, high = view.row_axes.get_ylim()
        shown = np.where(data.visible, data.bias, 0)
        assert low <= shown.min() <= shown.max() <= high
        assert max(data.biased[query].max(), data.plain[query].max()) <= view.stem_axes.get_ylim()[1] <= 1.05


def test_no_bias_is_drawn_too(view, rng):
    data = weights(rng)
    view.still(BiasedWeights(**{**vars(data), "bias": np.zeros((7, 7))}))
    assert view.row.get_ydata().tolist() == [0, 0, 0, 0]
