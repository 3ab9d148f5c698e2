"""The heat map: each cell in its place, its colour that of its value."""

import io

import numpy as np
import pytest
from matplotlib import colormaps
from PIL import Image

from transformer_parts.draw import theme
from transformer_parts.draw.artists import HeatMap, envelope, window_of
from transformer_parts.draw.view import View


class CellsView(View):
    """A heat map over the whole figure."""

    size = (60, 40)

    def build(self):
        self.axes = self.fig.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.cells = self.moving(HeatMap(self.axes))

    def update(self, data):
        self.cells.set_cells(*data)
        return self


def pixels(*data):
    return np.asarray(Image.open(io.BytesIO(CellsView(scale=1).still(data))))


def colour(share):
    return np.array(colormaps[theme.DIVERGING](0.5 + share * 100 / 254, bytes=True)[:3], int)


def test_cells_stand_where_they_should():
    """First row on top, first column left; each cell the same number of pixels."""
    cells = np.array([[2.0, 0.0, -2.0], [0.5, -0.5, 0.0]])
    picture = pixels(cells, 2.0)
    assert picture.shape == (40, 60, 3)
    for row, column in np.ndindex(2, 3):
        block = picture[20 * row : 20 * row + 20, 20 * column : 20 * column + 20].reshape(-1, 3)
        assert (block == block[0]).all()
        share = np.sign(cells[row, column]) * np.sqrt(abs(cells[row, column]) / 2)
        assert np.abs(block[0] - colour(share)).max() <= 4


def test_more_is_red_less_is_blue_and_nothing_is_pale():
    (more, none, less), *_ = pixels(np.array([[1.0, 0.0, -1.0]]), 1.0)[:, [10, 30, 50]].astype(int)
    assert more[0] > more[2] + 60
    assert less[2] > less[0] + 60
    assert none.min() > 240


@pytest.mark.parametrize("largest", [0.0, 1.0])
def test_values_beyond_the_scale_have_its_end_colours(largest):
    assert (pixels(np.array([[5.0]]), largest) == pixels(np.array([[5.0]]), largest or 1.0)).all()
    assert (pixels(np.array([[5.0]]), 1.0) == pixels(np.array([[1.0]]), 1.0)).all()


def test_more_cells_than_pixels_are_drawn(rng):
    assert pixels(rng.normal(size=(128, 300)), 1.0).shape == (40, 60, 3)


@pytest.mark.parametrize("count", [1, 5, 129, 340, 341, 8193, 262_145])
def test_window_is_the_smallest_that_fits(count):
    window = window_of(count, 340)
    assert -(-count // window) <= 340
    assert window == 1 or -(-count // (window - 1)) > 340


@pytest.mark.parametrize("window", [1, 2, 7, 101])
def test_columns_hold_what_a_loop_puts_there(rng, window):
    values = rng.normal(size=101)
    got = envelope(-50, values, window)
    columns = [values[start : start + window] for start in range(0, 101, window)]
    assert got.lowest.tolist() == [column.min() for column in columns]
    assert got.highest.tolist() == [column.max() for column in columns]
    np.testing.assert_allclose(got.mean, [column.mean() for column in columns], rtol=1e-13)
    assert got.middles[0] == -50 + (window - 1) / 2
    assert set(np.diff(got.middles)) <= {float(window)}


def test_one_value_among_many_is_not_lost():
    values = np.zeros(262_145)
    values[200_003] = -9.0
    got = envelope(-131_072, values, 772)
    assert got.lowest.min() == -9.0
    assert abs(got.middles[got.lowest.argmin()] - (200_003 - 131_072)) <= 772 / 2
