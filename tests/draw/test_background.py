"""Backgrounds that are kept come back pixel for pixel, and no more of them than are allowed."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from transformer_parts.draw import background
from transformer_parts.draw.background import Backgrounds, runs


@pytest.fixture
def canvas():
    canvas = FigureCanvasAgg(Figure(figsize=(0.7, 0.5), dpi=100))
    canvas.draw()
    return canvas


def paint(canvas, rng) -> np.ndarray:
    """Paint the canvas with stripes and specks, and return its pixels."""
    pixels = np.asarray(canvas.buffer_rgba())
    pixels[:] = rng.integers(256, size=4)
    pixels[7:19] = rng.integers(256, size=(12, 1, 4))
    pixels[rng.integers(50, size=40), rng.integers(70, size=40)] = rng.integers(256, size=(40, 4))
    return pixels.copy()


def test_each_comes_back_as_it_was(canvas, rng):
    kept, wanted = Backgrounds(), {}
    for key in "abc":
        wanted[key] = paint(canvas, rng)
        kept.keep(key, canvas)
    for key in "bacb":
        assert kept.restore(key, canvas)
        assert np.array_equal(np.asarray(canvas.buffer_rgba()), wanted[key])


def test_an_unknown_one_leaves_the_canvas_alone(canvas, rng):
    kept, before = Backgrounds(), paint(canvas, rng)
    kept.keep("a", canvas)
    kept.drop("a")
    assert not kept.restore("a", canvas)
    assert np.array_equal(np.asarray(canvas.buffer_rgba()), before)
    assert kept.bytes == 0


def test_a_second_of_the_same_key_takes_the_place_of_the_first(canvas, rng):
    kept = Backgrounds()
    paint(canvas, rng)
    kept.keep("a", canvas)
    size, second = kept.bytes, paint(canvas, rng)
    kept.keep("a", canvas)
    kept.restore("a", canvas)
    assert np.array_equal(np.asarray(canvas.buffer_rgba()), second)
    assert kept.bytes < 1.5 * size
    kept.clear()
    assert kept.bytes == 0


def test_the_longest_unused_go_first(canvas, rng, monkeypatch):
    kept = Backgrounds()
    paint(canvas, rng)
    kept.keep(0, canvas)
    monkeypatch.setattr(background, "MOST_BYTES", int(2.8 * kept.bytes))
    for key in (1, 2):
        kept.restore(0, canvas)
        paint(canvas, rng)
        kept.keep(key, canvas)
    assert kept.bytes <= background.MOST_BYTES
    assert [kept.restore(key, canvas) for key in range(3)] == [True, False, True]


def test_one_is_kept_even_where_it_is_too_large(canvas, rng, monkeypatch):
    monkeypatch.setattr(background, "MOST_BYTES", 10)
    kept = Backgrounds()
    for key in (1, 2):
        paint(canvas, rng)
        kept.keep(key, canvas)
    assert [kept.restore(key, canvas) for key in (1, 2)] == [False, True]


def test_runs_are_the_picture_and_no_two_neighbours_are_alike(rng):
    picture = np.repeat(rng.integers(1, 6, (37, 53)), 3, axis=1).astype(np.uint32)
    colours, lengths = runs(picture)
    assert np.array_equal(np.repeat(colours, lengths), picture.ravel())
    assert (colours[1:] != colours[:-1]).all()


def test_a_blank_picture_is_one_run():
    colours, lengths = runs(np.full((400, 680), 7, np.uint32))
    assert (colours.tolist(), lengths.tolist()) == ([7], [400 * 680])
