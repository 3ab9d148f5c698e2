"""The sinusoidal table drawn: cells, frames and the inner product are the data."""

import numpy as np
import pytest

from transformer_parts.draw.positions import LEAST, PositionTableView, Shifted, ShiftMatrixView, Table


def table(position=2, shift=3, length=9, width=6) -> Table:
    values = np.linspace(-1, 1, length * width).reshape(length, width)
    shifts = np.arange(1 - length, length)
    return Table(values, shifts, 3 - 0.1 * shifts**2, position, shift, values[2], values[5], (6.28, 100.0))


@pytest.fixture
def view():
    return PositionTableView()


def test_positions_go_to_the_right_and_channels_down(view):
    data = table()
    view.update(data)
    colours = view.cells.colours
    assert colours.shape == (6, 9)
    low, high = colours[0, 0], colours[5, 8]
    again = PositionTableView().update(Table(**{**vars(data), "table": -data.table})).cells.colours
    assert (again[0, 0], again[5, 8]) == (high, low)
    assert view.table_axes.get_ylim() == (5.5, -0.5)


def test_frames_are_at_the_two_positions(view):
    view.update(table())
    assert np.mean(view.here_frame.get_xdata()[:4]) == 2
    assert np.mean(view.moved_frame.get_xdata()[:4]) == 5
    assert [text.get_position()[0] for text in view.symbols] == [2, 5]


def test_close_symbols_do_not_lie_on_each_other(view):
    view.update(table(shift=0))
    assert [text.get_visible() for text in view.symbols] == [True, False]
    view.update(table())
    assert [text.get_visible() for text in view.symbols] == [True, True]


def test_the_diamond_is_computed_from_the_vectors(view):
    data = table()
    view.update(data)
    assert view.marker.get_xdata() == [3]
    assert view.marker.get_ydata() == [pytest.approx(float(data.table[2] @ data.table[5]))]
    assert view.curve.get_ydata().tolist() == data.products.tolist()
    assert view.half.get_ydata() == [3, 3]


@pytest.mark.parametrize("least", [1.0, -0.5, -1.2, -1.3, -3.0])
def test_the_curve_lies_within_its_axes(view, least):
    data = table()
    view.update(Table(**{**vars(data), "products": np.linspace(least, 3, 17)}))
    low, high = view.curve_axes.get_ylim()
    assert low < least <= 3 < high


def shifted(width=4, length=7, position=3) -> Shifted:
    matrix = np.diag(np.linspace(-1, 1, width))
    errors = 10.0 ** -np.arange(length)
    errors[0] = 0
    return Shifted(matrix, np.linspace(0, 1, width), np.linspace(1, 0, width), errors, position, 1, 1, 0.0)


@pytest.fixture
def view_of_positions_shift():
    return ShiftMatrixView()


def test_dots_and_squares_are_the_vectors(view_of_positions_shift):
    data = shifted()
    view_of_positions_shift.update(data)
    assert view_of_positions_shift.moved.get_ydata().tolist() == data.moved.tolist()
    assert view_of_positions_shift.wanted.get_ydata().tolist() == data.wanted.tolist()
    assert view_of_positions_shift.moved.get_xdata().tolist() == [0, 1, 2, 3]
    assert view_of_positions_shift.cells.colours.shape == (4, 4)
    assert (
        view_of_positions_shift.cells.colours[0, 0]
        != view_of_positions_shift.cells.colours[3, 3]
        != view_of_positions_shift.cells.colours[0, 3]
    )


def test_no_error_stands_at_the_foot_of_the_scale(view_of_positions_shift):
    data = shifted()
    view_of_positions_shift.update(data)
    assert view_of_positions_shift.errors.get_ydata()[0] == LEAST >= view_of_positions_shift.error_axes.get_ylim()[0]
    assert view_of_positions_shift.errors.get_ydata()[1:].tolist() == data.errors[1:].tolist()
    assert view_of_positions_shift.here.get_xdata() == [3, 3]


def test_scales_follow_the_width(view_of_positions_shift):
    view_of_positions_shift.update(shifted(width=10, length=50))
    assert view_of_positions_shift.matrix_axes.get_xlim() == (-0.5, 9.5)
    assert view_of_positions_shift.error_axes.get_xlim()[1] > 49
