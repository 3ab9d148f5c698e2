"""ALiBi's slopes: circles, squares and crosses are the data, and the curves fall from 1."""

import numpy as np
import pytest

from transformer_parts.draw.relative_bias_slopes import Slopes, SlopesView


def slopes(n=5, of_power=4, head=2, distance=3) -> Slopes:
    values = 2.0 ** -np.arange(1.0, n + 1)
    falls = np.exp(-values[:, None] * np.arange(20))
    return Slopes(values, of_power, values / 2, falls * 0.3, np.log(2) / values, head, distance)


@pytest.fixture
def view():
    return SlopesView()


def test_marks_are_the_slopes(view):
    data = slopes()
    view.update(data)
    assert view.power.get_ydata().tolist() == data.slopes[:4].tolist()
    assert view.between.get_xdata().tolist() == [5]
    assert view.between.get_ydata().tolist() == data.slopes[4:].tolist()
    assert view.one_sequence.get_ydata().tolist() == data.one_sequence.tolist()
    assert (list(view.head.get_xdata()), list(view.head.get_ydata())) == ([2], [data.slopes[1]])


def test_curves_are_shares_of_the_nearest_weight(view):
    data = slopes()
    view.update(data)
    np.testing.assert_allclose(view.curve.get_ydata(), np.exp(-data.slopes[1] * np.arange(20)))
    assert list(view.here.get_ydata()) == [view.curve.get_ydata()[3]]
    assert len(view.curves.get_segments()) == 5


@pytest.mark.parametrize("n", [1, 20, 21, 128])
def test_the_thin_curves_stay_few(view, n):
    view.update(slopes(n=n, of_power=1, head=1))
    assert min(n, 10) <= len(view.curves.get_segments()) <= 20


def test_ratios_are_taken_by_size():
    values = np.array([0.5, 0.125, 0.25])
    data = Slopes(values, 2, values, np.ones((3, 2)), values, 1, 0)
    assert data.ratios.tolist() == [0.5, 0.5]
