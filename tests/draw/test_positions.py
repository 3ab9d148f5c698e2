"""The sinusoidal table drawn: cells, frames and the inner product are the data."""

import numpy as np
import pytest

from transformer_parts.draw.positions import Table, TableView


def table(position=2, shift=3, length=9, width=6) -> Table:
    values = np.linspace(-1, 1, length * width).reshape(length, width)
    shifts = np.arange(1 - length, length)
    return Table(values, shifts, 3 - 0.1 * shifts**2, position, shift, values[2], values[5], (6.28, 100.0))


@pytest.fixture
def view():
    return TableView()


def test_positions_go_to_the_right_and_channels_down(view):
    data = table()
    view.update(data)
    colours = view.cells._colours
    assert colours.shape == (6, 9)
    low, high = colours[0, 0], colours[5, 8]
    again = TableView().update(Table(**{**vars(data), "table": -data.table})).cells._colours
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
