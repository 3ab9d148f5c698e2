"""Encoding: stills keep every pixel, live frames keep what the eye sees."""

import io

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from transformer_parts.draw import frame, theme


@pytest.fixture
def canvas():
    canvas = FigureCanvasAgg(Figure(figsize=(1.7, 0.9), dpi=100, facecolor=theme.PAPER))
    axes = canvas.figure.add_axes((0, 0, 1, 1))
    for i, colour in enumerate((theme.QUERY, theme.KEY, theme.VALUE, theme.INK)):
        axes.plot([0, 1], [i, 3 - i], color=colour, linewidth=5)
    canvas.draw()
    return canvas


def rgb(canvas):
    return np.asarray(canvas.buffer_rgba())[..., :3]


def decoded(data, kind):
    image = Image.open(io.BytesIO(data))
    assert image.format == kind
    assert image.mode == "RGB"
    return np.asarray(image)


def test_still_keeps_every_pixel(canvas):
    assert np.array_equal(decoded(frame.still(canvas), "PNG"), rgb(canvas))


def test_live_frame_has_its_format_and_the_colours(canvas):
    picture = decoded(frame.live(canvas), frame.LIVE_FORMAT.upper())
    assert picture.shape == rgb(canvas).shape
    difference = np.abs(picture.astype(float) - rgb(canvas))
    assert difference.mean() < 2
    # Inside of lines and on paper colours are exact to a few levels: no bleeding of hues (full colour resolution).
    assert np.median(difference) <= 1
    assert np.quantile(difference, 0.99) < 16


def test_encoding_is_a_function_of_the_pixels(canvas):
    assert frame.live(canvas) == frame.live(canvas)
    assert frame.still(canvas) == frame.still(canvas)
    before = frame.live(canvas)
    canvas.figure.axes[0].lines[0].set_color(theme.FAINT)
    canvas.draw()
    assert frame.live(canvas) != before
