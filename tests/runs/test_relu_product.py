"""Training takes the error down, and the recording has what the notebook says."""

import numpy as np

from transformer_parts.runs import recorded, relu_product


def test_training_takes_the_error_down():
    assert relu_product.error_of(16, 0, steps=400) < 0.5 * relu_product.error_of(16, 0, steps=1)


def test_sixteen_trained_units_come_near_and_four_do_not():
    series = recorded.load(relu_product.NAME).series
    assert all(len(errors) == len(relu_product.SEEDS) == 5 for errors in series.values())
    assert series["16 units"].max() < 0.06
    assert np.median(series["4 units"]) > 0.3
