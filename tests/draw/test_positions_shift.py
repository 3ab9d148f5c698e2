"""The shift matrix drawn: dots on squares, and errors that are on the scale even where they are zero."""

import numpy as np
import pytest

from transformer_parts.draw.positions_shift import LEAST, Shifted, ShiftedView


def shifted(width=4, length=7, position=3) -> Shifted:
    matrix = np.diag(np.linspace(-1, 1, width))
    errors = 10.0 ** -np.arange(length)
    errors[0] = 0
    return Shifted(matrix, np.linspace(0, 1, width), np.linspace(1, 0, width), errors, position, 1, 1, 0.0)


@pytest.fixture
def view():
    return ShiftedView()


def test_dots_and_squares_are_the_vectors(view):
    data = shifted()
    view.update(data)
    assert view.moved.get_ydata().tolist() == data.moved.tolist()
    assert view.wanted.get_ydata().tolist() == data.wanted.tolist()
    assert view.moved.get_xdata().tolist() == [0, 1, 2, 3]
    assert view.cells._colours.shape == (4, 4)
    assert view.cells._colours[0, 0] != view.cells._colours[3, 3] != view.cells._colours[0, 3]


def test_no_error_stands_at_the_foot_of_the_scale(view):
    data = shifted()
    view.update(data)
    assert view.errors.get_ydata()[0] == LEAST >= view.error_axes.get_ylim()[0]
    assert view.errors.get_ydata()[1:].tolist() == data.errors[1:].tolist()
    assert view.here.get_xdata() == [3, 3]


def test_scales_follow_the_width(view):
    view.update(shifted(width=10, length=50))
    assert view.matrix_axes.get_xlim() == (-0.5, 9.5)
    assert view.error_axes.get_xlim()[1] > 49
