import math

import ml_dtypes
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from transformer_parts.maths.cross_entropy import checked_targets, cross_entropy, log_softmax


def test_it_is_the_formula_in_fifty_digits(rng):
    logits, targets = rng.normal(0, 30, size=(2, 5, 7)), rng.integers(0, 7, (2, 5))
    with mpmath.workdps(50):
        terms = []
        for row, target in zip(logits.reshape(-1, 7), targets.ravel(), strict=True):
            total = mpmath.fsum(mpmath.exp(mpmath.mpf(float(z))) for z in row)
            terms.append(mpmath.log(total) - mpmath.mpf(float(row[target])))
        wanted = float(mpmath.fsum(terms) / len(terms))
    assert cross_entropy(logits, targets) == pytest.approx(wanted, rel=1e-14)


def test_positions_that_do_not_count_change_nothing(rng):
    logits, targets = rng.normal(size=(3, 7)), np.array([2, -1, 5])
    assert cross_entropy(logits, targets) == pytest.approx(cross_entropy(logits[[0, 2]], [2, 5]), rel=1e-14)


def test_equal_logits():
    assert cross_entropy(np.zeros((3, 11)), [0, 5, 10]) == pytest.approx(math.log(11), rel=1e-15)


def test_large_logits_keep_their_digits():
    assert_array_equal(log_softmax(np.array([3000.0, 0.0])), [0.0, -3000.0])
    assert cross_entropy([[3000.0, 0.0]], [1]) == 3000.0


def test_logits_further_apart_than_the_dtype_reaches():
    wide = [[1e308, -1e308]]
    assert str(cross_entropy(wide, [0])) == "0.0"
    with pytest.raises(ValueError, match=r"^logits: got entries up to 1e\+308, want a loss within float64"):
        cross_entropy(wide, [1])


def test_sixteen_bits_are_computed_in_float32(rng):
    logits = rng.normal(size=(3, 7)).astype(ml_dtypes.bfloat16)
    assert log_softmax(logits).dtype == np.float32
    assert cross_entropy(logits, [0, 1, 2]) == pytest.approx(cross_entropy(logits.astype(float), [0, 1, 2]), rel=1e-6)
    assert_allclose(np.exp(log_softmax(logits)).sum(-1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("logits", "targets", "name"),
    [
        ([[0.0, np.nan]], [0], "logits"),
        ([[0.0, 1.0]], [2], "targets"),
        ([[0.0, 1.0]], [-2], "targets"),
        ([[0.0, 1.0]], [0.0], "targets"),
        ([[0.0, 1.0]], [True], "targets"),
        ([[0.0, 1.0]], [0, 1], "targets"),
        ([[0.0, 1.0]], [-1], "targets"),
        ([[0.0, 1.0]], np.zeros((0,), int), "targets"),
    ],
)
def test_what_does_not_fit_is_refused(logits, targets, name):
    with pytest.raises(ValueError, match=f"^{name}: got .*, want "):
        cross_entropy(logits, targets)


def test_targets_are_returned_with_where_they_count():
    targets, counted = checked_targets([[1, -1]], np.zeros((1, 2, 3)))
    assert targets.tolist() == [[1, -1]]
    assert counted.tolist() == [[True, False]]
